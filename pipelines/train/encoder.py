"""The encoder service: E's reward model, or any encoder, over HTTP on this machine. Runs in `.venv-train`.

    python -m pipelines.train.encoder FOLDER [--device auto] [--port 0]

Once it is ready it prints `{"address": "http://127.0.0.1:PORT/TOKEN"}`. Others of this machine do not know the token,
and get 404. It ends when its standard input does, and so with whoever started it, and by SIGINT or SIGTERM. POST /embed
`{"texts": […], "kind": "query" | "answer"}` gives `{"vectors": [[…]]}` of unit length, GET /about the folder's name,
the dimension, T (null for an encoder that we did not train) and its figures. What arrives while the model works is read
together. A wrong request is answered with 400 and `{"problem": …}`, a failure of the model, or weights that give what
is no number, with 500 and the same.
"""

import argparse
import asyncio
import json
import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from aiohttp import web

from pipelines.core.modes import keep_private
from pipelines.core.service import over
from pipelines.train.embedding import KINDS, Encoder, Kind, Vectors, note

_BODY = 256 * 1024 * 1024  # bytes of a request
_TEXTS = 256  # read together
_BROKEN = (
    "the encoder gives what is no number: its weights are broken; train it anew under another name, with a lower rate, "
    "or serve another folder"
)

Waiting = tuple[Sequence[str], Kind, "asyncio.Future[Vectors]"]


class Service:
    """An encoder that answers requests as they come, many at a time."""

    def __init__(self, folder: Path, device: str) -> None:
        self._encoder = Encoder.load(folder, device=device)
        read = note(folder)
        self._about = {
            "folder": folder.resolve().name,
            "dimension": self._encoder.dimension,
            "threshold": read.get("threshold"),
            "figures": read.get("figures", {}),
        }
        self._waiting: asyncio.Queue[Waiting] = asyncio.Queue()

    def application(self, token: str) -> web.Application:
        """What answers, below `token`."""
        made = web.Application(client_max_size=_BODY)
        made.router.add_get(f"/{token}/about", self._tell)
        made.router.add_post(f"/{token}/embed", self._embed)
        made.cleanup_ctx.append(self._at_work)
        return made

    async def _tell(self, _: web.Request) -> web.Response:
        return web.json_response(self._about)

    async def _embed(self, request: web.Request) -> web.Response:
        try:
            texts, kind = _asked(await request.json())
        except ValueError as error:  # of JSON, of Unicode, or ours
            return web.json_response({"problem": str(error)[:200]}, status=400)
        if not texts:
            return web.json_response({"vectors": []})
        answer: asyncio.Future[Vectors] = asyncio.get_running_loop().create_future()
        await self._waiting.put((texts, kind, answer))
        try:
            vectors = await answer
        except Exception as error:  # noqa: BLE001 - of torch, or of a tokenizer: whoever asked is told
            return web.json_response({"problem": f"the encoder failed: {error}"[:400]}, status=500)
        if not np.isfinite(vectors).all():
            return web.json_response({"problem": _BROKEN}, status=500)
        return web.json_response({"vectors": vectors.tolist()})

    async def _at_work(self, _: web.Application) -> Any:
        work = asyncio.create_task(self._read_on())
        yield
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)

    async def _read_on(self) -> None:
        while True:
            taken = [await self._waiting.get()]
            while not self._waiting.empty() and sum(len(texts) for texts, _, _ in taken) < _TEXTS:
                taken.append(self._waiting.get_nowait())
            for kind in KINDS:
                await self._answer([one for one in taken if one[1] == kind], kind)

    async def _answer(self, taken: Sequence[Waiting], kind: Kind) -> None:
        if not taken:
            return
        texts = [text for several, _, _ in taken for text in several]
        try:
            vectors = await asyncio.to_thread(self._encoder.vectors, texts, kind)
        except Exception as error:  # noqa: BLE001 - the next request is to be read, whatever it was
            for _, _, answer in taken:
                _settle(answer, error)
            return
        at = 0
        for several, _, answer in taken:
            _settle(answer, vectors[at : at + len(several)])
            at += len(several)


def _settle(answer: "asyncio.Future[Vectors]", found: Vectors | Exception) -> None:
    if answer.done():  # who asked has gone
        return
    if isinstance(found, Exception):
        answer.set_exception(found)
    else:
        answer.set_result(found)


def _asked(body: Any) -> tuple[list[str], Kind]:
    """Texts and kind of a request. Raises ValueError."""
    if not isinstance(body, dict) or not isinstance(body.get("texts"), list):
        raise ValueError('"texts" must be a list of strings')
    if wrong := [place for place, text in enumerate(body["texts"]) if not isinstance(text, str)]:
        raise ValueError(f'"texts" must be a list of strings: number {wrong[0]} is none')
    if body.get("kind") not in KINDS:
        raise ValueError(f'"kind" must be one of {", ".join(KINDS)}')
    # A lone surrogate is no character, and no tokenizer reads it.
    return [text.encode("utf-8", "replace").decode() for text in body["texts"]], body["kind"]


async def serve(folder: Path, device: str, port: int) -> None:
    """Answer until standard input ends, or whoever started it says so by a signal."""
    token = secrets.token_urlsafe()
    runner = web.AppRunner(Service(folder, device).application(token), access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        ended = over()
        host, chosen = runner.addresses[0][:2]
        sys.stdout.write(json.dumps({"address": f"http://{host}:{chosen}/{token}"}) + "\n")
        sys.stdout.flush()
        await ended
    finally:
        await runner.cleanup()


def main() -> None:
    """Entry point."""
    keep_private()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--port", type=int, default=0)
    told = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        asyncio.run(serve(told.folder, told.device, told.port))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"no encoder is served from {told.folder}: {error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
