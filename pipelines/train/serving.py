"""Serves what a run has left, on 127.0.0.1: a model, so that it is asked as any host is, by vLLM where the environment
to train in has it, else by transformers on a CPU; or an encoder.
"""

import contextlib
import hashlib
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.core.files import sha256_of
from pipelines.core.service import end_session
from pipelines.errors import RequestError, TrainingFailed
from pipelines.settings import ROOT
from pipelines.train.embedding import Kind
from pipelines.train.launch import secret_variables
from pipelines.train.runs import MODEL, read_config
from pipelines.train.services import ADDRESSES, PYTHON, beside

_HOST = "127.0.0.1"
_START_SECONDS = 900  # a large model is read from the disk
_PATIENCE = 20
_LAST_WORDS = 2000
_MAX_TOKENS = 1024  # of a reply, where the run does not say
_TEXTS = 256  # read at a time

# It ends with us, however we end: prctl's PR_SET_PDEATHSIG stays over exec, and no server of others reads our pipe.
_TIED = (
    "import ctypes, os, signal, sys; ctypes.CDLL(None).prctl(1, signal.SIGTERM); os.execv(sys.argv[1], sys.argv[1:])"
)

# The vectors [n, d] of n texts, of unit length.
Encode = Callable[[Sequence[str], Kind], NDArray[np.float64]]


class ServedModel(NamedTuple):
    """Where a run's model is served, and under which name: the run's, and a hash of its files, so that what the ledger
    holds of one training is never read as another's. `max_tokens` is the longest reply that it was trained to give.
    """

    base_url: str
    model: str
    engine: str
    max_tokens: int


@contextlib.contextmanager
def serve_model(run: Path) -> Iterator[ServedModel]:
    """Serves the model in the folder of a run until the block ends.

    Raises RequestError where the run has left none or there is no environment to train in, TrainingFailed with its last
    words where the server does not start.
    """
    folder = _model_of(run)
    name = f"{run.name}-{_digest(folder)}"
    with TemporaryDirectory() as scratch:
        # transformers answers to the folder that it was given alone, so that is what the model is called
        (Path(scratch) / name).symlink_to(folder.resolve())
        with socket.socket() as probe:
            probe.bind((_HOST, 0))
            port = probe.getsockname()[1]
        engine, command = _command(name, folder, port)
        log = Path(scratch) / "server.log"
        with log.open("wb") as words:
            process = subprocess.Popen(
                [str(PYTHON), "-c", _TIED, *command],
                cwd=scratch,
                env=_environment(run),
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            _await(process, f"http://{_HOST}:{port}/health", log)
            longest = read_config(run).get("data", {}).get("max_response_length", _MAX_TOKENS)
            yield ServedModel(f"http://{_HOST}:{port}/v1", name, engine, int(longest))
        finally:
            end_session(process, _PATIENCE)


@contextlib.contextmanager
def serve_encoder(run: Path) -> Iterator[Encode]:
    """Serves the encoder in the folder of a run until the block ends; yields what gives a text its vector.

    Raises as `serve_model`; what is yielded raises TrainingFailed for texts that the encoder gives no vectors.
    """
    command = [str(PYTHON), "-m", "pipelines.train.encoder", str(_model_of(run))]
    with (
        TemporaryDirectory() as scratch,
        beside({"encoder": command}, {"encoder": _environment(run)}, Path(scratch)) as addresses,
    ):
        address = addresses[ADDRESSES["encoder"]]

        def encode(texts: Sequence[str], kind: Kind) -> NDArray[np.float64]:
            parts = []
            for at in range(0, len(texts), _TEXTS):
                body = json.dumps({"texts": texts[at : at + _TEXTS], "kind": kind}).encode()
                asked = urllib.request.Request(f"{address}/embed", body, {"Content-Type": "application/json"})  # noqa: S310
                try:
                    with urllib.request.urlopen(asked) as answer:  # noqa: S310 - our own address
                        parts.append(np.array(json.load(answer)["vectors"], np.float64))
                except urllib.error.HTTPError as error:
                    problem = json.load(error).get("problem")
                    raise TrainingFailed(f"the encoder gives no vectors: {problem}", where=run) from error
            return np.concatenate(parts)

        yield encode


def _model_of(run: Path) -> Path:
    folder = run / MODEL
    if not (folder / "config.json").exists():
        raise RequestError("the run has no model yet", where=run, hint="train it to its end: gongqing train")
    if not PYTHON.exists():
        raise RequestError("there is no environment to serve it in", where=PYTHON.parents[1], hint="make train-env")
    return folder


def _environment(run: Path) -> dict[str, str]:
    """Without the keys of models that are asked elsewhere."""
    secret = secret_variables(run.parents[1])
    ours = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONPATH": str(ROOT)}
    return {name: value for name, value in os.environ.items() if name not in secret} | ours


def _command(name: str, folder: Path, port: int) -> tuple[str, list[str]]:
    vllm = PYTHON.with_name("vllm")
    where = ["--host", _HOST, "--port", str(port)]
    if vllm.exists():
        return "vllm", [str(vllm), "serve", str(folder.resolve()), "--served-model-name", name, *where]
    transformers = PYTHON.with_name("transformers")
    return "transformers", [str(transformers), "serve", name, *where, "--device", "cpu", "--dtype", "float32"]


def _await(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):  # noqa: S310 - our own address
            return
        time.sleep(0.2)
    words = log.read_text(encoding="utf-8", errors="replace")[-_LAST_WORDS:]
    raise TrainingFailed(f"the model could not be served:\n{words}", where=log.name, hint="mend what it names")


def _digest(folder: Path) -> str:
    """Of the model's files: names and contents."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = "\n".join(f"{path.relative_to(folder)} {sha256_of(path)}" for path in files)
    return hashlib.sha256(lines.encode()).hexdigest()[:12]
