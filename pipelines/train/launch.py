"""A run of a recipe: its folder, the command that trains, and what verl tells of it as it goes.

::

    <home>/training/<name>/run.json        what was asked for: recipe, preset, release, its content, every setting
                           start/          of `cpu_smoke`: the tiny model that it starts from
                           metrics/        a file a start of the run, a line a step (verl's file logger)
                           checkpoints/    verl's own; the same command goes on from the last one
                           rollouts/       every step's prompts, outputs and rewards
                           tensorboard/    log-0001.txt …
                           model/          at the end: a Hugging Face folder

verl and torch live in an environment of their own (`.venv-train`), so they are reached as processes.
"""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pipelines.durable import write_whole
from pipelines.errors import Busy, RequestError, TrainingFailed
from pipelines.locks import held
from pipelines.release.manifest import Release
from pipelines.release.releases import Releases
from pipelines.settings import ROOT
from pipelines.train.recipe import Overrides, Preset, Recipe, as_arguments, overrides

FOLDER = "training"  # in a home
PYTHON = ROOT / ".venv-train" / "bin" / "python"
LOCK, NOTE, ROLLOUTS = ".lock", "run.json", "rollouts"  # in the folder of a run
REWARD = "critic/score/mean"  # among the metrics of a step, by verl's name
_SECONDS = 0.5  # between two looks at what verl has written
_PATIENCE = 30  # seconds that verl has to end its processes
_LAST_WORDS = 15  # lines of a log that an error repeats

Metrics = dict[str, float]
Told = Callable[[int, Metrics], None]  # of a step and its metrics


@dataclass(frozen=True)
class Run:
    """A run that may start, or go on."""

    folder: Path
    recipe: Recipe
    preset: Preset
    release: Release
    overrides: Overrides

    @property
    def steps(self) -> int:
        """How many there are to be."""
        return int(self.overrides["trainer.total_training_steps"])

    def composed(self) -> dict[str, Any]:
        """verl's whole configuration, by verl's own code. Raises RequestError for what verl refuses."""
        command = [str(PYTHON), "-m", "pipelines.train.compose", *as_arguments(self.overrides)]
        ran = subprocess.run(command, check=False, env=self._environment(), capture_output=True, text=True)
        if ran.returncode:
            raise RequestError(
                f"verl refuses the configuration: {ran.stderr.strip()[-600:]}",
                where=f"{self.recipe.name}, {self.preset}",
                remedy="look at what --set gives",
            )
        found: dict[str, Any] = json.loads(ran.stdout)
        return found

    def train(self, told: Told) -> Path:
        """Train to the last step, from the last checkpoint where there is one, and merge the weights.

        Returns:
            A folder that `transformers` loads.

        Raises:
            TrainingFailed: verl ended with an error, whose last words it repeats; the last checkpoint is kept.
            RequestError: A run of this name was asked for something else, or the recipe has no reward yet.
            Busy: It is at work.
        """
        self._require_reward()
        self._note()
        target = self.folder / "model"
        if target.is_dir():
            return target
        self._make_start()
        metrics = self.folder / "metrics" / f"{_next(self.folder / 'metrics'):04}.jsonl"
        metrics.parent.mkdir(exist_ok=True)
        environment = self._environment() | {
            "VERL_FILE_LOGGER_PATH": str(metrics),
            "TENSORBOARD_DIR": str(self.folder / "tensorboard"),
        }
        command = [str(PYTHON), "-m", "verl.trainer.main_ppo", *as_arguments(self.overrides)]
        with _running(command, environment, self.folder / f"log-{metrics.stem}.txt") as process:
            for step, found in _followed(process, metrics):
                told(step, found)
        self._require_end(process, f"log-{metrics.stem}.txt", "training")
        return self._merge(target)

    def metrics(self) -> dict[int, Metrics]:
        """The metrics of every step; of one that was made twice, after a break, the later."""
        found: dict[int, Metrics] = {}
        for path in sorted((self.folder / "metrics").glob("*.jsonl")):
            for line in path.read_bytes().splitlines(keepends=True):
                if line.endswith(b"\n"):  # a process that was killed may leave half a line
                    step, metrics = _step(line)
                    found[step] = found.get(step, {}) | metrics
        return found

    def _require_reward(self) -> None:
        if find_spec(f"pipelines.rewards.{self.recipe.reward}") is None:
            raise RequestError(
                f"the reward of {self.recipe.name} is not there yet",
                where=f"pipelines.rewards.{self.recipe.reward}",
                remedy="--dry-run checks the configuration; mindchat_ecot can be trained",
            )

    def _note(self) -> None:
        path = self.folder / NOTE
        asked = {
            "recipe": self.recipe.name,
            "preset": self.preset,
            "release": {"name": self.release.name, "content": self.release.content},
            "overrides": self.overrides,
        }
        if not path.exists():
            write_whole(path, json.dumps(asked, indent=1, ensure_ascii=False).encode() + b"\n")
        elif json.loads(path.read_bytes()) != asked:
            raise RequestError(
                "there is a run of this name, and it was asked for something else",
                where=path,
                remedy="give this run another name (--name), or remove that folder",
            )

    def _make_start(self) -> None:
        start = self.folder / "start"
        if self.preset == "gpu" or (start / "config.json").exists():
            return
        self._run(
            ["pipelines.train.tiny", self.overrides["data.train_files"], str(start)], "log-start.txt", "the start"
        )

    def _merge(self, target: Path) -> Path:
        last = max((self.folder / "checkpoints").glob("global_step_*"), key=lambda path: int(path.name.split("_")[-1]))
        staged = target.with_name(".model.part")
        told = ["--backend", "fsdp", "--local_dir", str(last / "actor"), "--target_dir", str(staged)]
        self._run(["verl.model_merger", "merge", *told], "log-merge.txt", "merging the weights")
        staged.replace(target)
        return target

    def _run(self, module: Sequence[str], log: str, doing: str) -> None:
        with _running([str(PYTHON), "-m", *module], self._environment(), self.folder / log) as process:
            process.wait()
        self._require_end(process, log, doing)

    def _require_end(self, process: "subprocess.Popen[bytes]", log: str, doing: str) -> None:
        if process.returncode:
            path = self.folder / log
            words = path.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_WORDS:]
            raise TrainingFailed(
                f"{doing} ended with code {process.returncode}:\n" + "\n".join(words),
                where=path,
                remedy="mend what it names, and run the same command again: it goes on from the last checkpoint",
            )

    def _environment(self) -> dict[str, str]:
        told = {
            "PYTHONPATH": str(ROOT),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "disabled",  # else a token is left in the user's home
            "TOKENIZERS_PARALLELISM": "false",
            "WANDB_MODE": "disabled",
        }
        if self.preset == "cpu_smoke":
            told |= {
                "VERL_PLATFORM": "cpu",
                "VERL_USE_EXTERNAL_MODULES": "pipelines.train.verl_cpu",
                "VERL_ENGINE_DEVICE": "cuda",  # the key under which verl looks for its FSDP engine
                "HF_HUB_OFFLINE": "1",
                "OMP_NUM_THREADS": "1",
                "RAY_worker_niceness": "0",  # 15 otherwise: beside anything else that works, they would wait for it
            }
        return {**os.environ, **told}


def prepare(
    home: Path, told: Recipe, preset: Preset, *, release: str | None = None, name: str = "", given: Mapping[str, Any]
) -> Run:
    """A run of a recipe on a release, the current one unless another is named.

    Args:
        home: Where the releases are, and the run's folder will be.
        told: The recipe.
        preset: The kind of machine.
        release: A release of the home.
        name: Of the run; default: recipe, preset and release.
        given: Settings of verl's that win over the recipe's.

    Raises RequestError where there is no environment to train in, no release, or one without the recipe's rows.
    """
    if not PYTHON.exists():
        raise RequestError("there is no environment to train in", where=PYTHON, remedy="make train-env")
    releases = Releases(home)
    found = releases.read(release) if release else releases.current()
    if found is None:
        raise RequestError("there is no release to train on", where=home, remedy="gongqing release NAME")
    files = {
        split: [
            str(releases.folder(found.name) / shard.path)
            for shard in found.configs.get(told.rows, [])
            if shard.split == split
        ]
        for split in ("train", "validation")
    }
    for split, paths in files.items():
        if not paths:
            raise RequestError(
                f"the release {found.name} has no {split} rows of {told.rows}",
                remedy="gongqing refresh --select training, then release anew",
            )
    folder = home / FOLDER / (name or f"{told.name}-{preset}-{found.name}")
    ours: Overrides = {
        "data.train_files": _only(files["train"]),
        "data.val_files": _only(files["validation"]),
        "reward.custom_reward_function.path": f"pkg://pipelines.rewards.{told.reward}",
        "reward.custom_reward_function.name": "compute_score",
        "trainer.experiment_name": folder.name,
        "trainer.default_local_dir": str(folder / "checkpoints"),
        "trainer.rollout_data_dir": str(folder / ROLLOUTS),
    }
    if preset == "cpu_smoke":
        ours["actor_rollout_ref.model.path"] = str(folder / "start")
    return Run(folder, told, preset, found, overrides(told, preset, {**ours, **given}))


def _only(paths: list[str]) -> str | list[str]:
    return paths[0] if len(paths) == 1 else paths


def _next(folder: Path) -> int:
    return 1 + max((int(path.stem) for path in folder.glob("*.jsonl")), default=0)


@contextlib.contextmanager
def _running(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process in a session of its own, which ends with the block.

    It holds the lock of its folder for as long as it lives, also where this process is killed: nobody starts the run a
    second time beside it. The lock's file names its process.

    Raises Busy where the run is at work.
    """
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.ExitStack() as opened:
        try:
            lock = opened.enter_context(held(log.parent / LOCK, wait=False))
        except BlockingIOError:
            at_work = (log.parent / LOCK).read_text(encoding="utf-8").strip()
            raise Busy(
                f"this run is at work (process {at_work})", where=log.parent, remedy="wait for it, or end it"
            ) from None
        words = opened.enter_context(log.open("wb"))
        process = subprocess.Popen(
            command,
            env=dict(environment),
            cwd=log.parent,  # verl leaves files where it is started
            stdout=words,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(lock.fileno(),),
        )
        lock.truncate(0)
        lock.write(f"{process.pid}\n")
        lock.flush()
        try:
            yield process
            process.wait()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.wait(timeout=_PATIENCE)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()


def _followed(process: "subprocess.Popen[bytes]", path: Path) -> Iterator[tuple[int, Metrics]]:
    """The lines of a file of metrics as they are written, until the process has ended and all are read."""
    at = 0
    while True:
        ended = process.poll() is not None
        if path.exists():
            with path.open("rb") as file:
                file.seek(at)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    at += len(line)
                    yield _step(line)
        if ended:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_SECONDS)


def _step(line: bytes) -> tuple[int, Metrics]:
    read = json.loads(line)
    return int(read["step"]), read["data"]
