"""The encoder service: E's reward model, or any encoder, over HTTP on this machine. Runs in `.venv-train`.

    python -m pipelines.train.encoder FOLDER

Once it is ready it prints `{"address": "http://127.0.0.1:PORT/TOKEN"}`. Others of this machine do not know the token,
and get 404. It ends when its standard input closes, and so with the process that started it, and by SIGINT or SIGTERM.
POST /embed `{"texts": […], "kind": "query" | "answer"}` gives `{"vectors": [[…]]}` of unit length, GET /about the
folder's name, the dimension, T by reading (null for an encoder that we did not train) and its figures. What arrives
while the model works is read together. A wrong request gets 400 and `{"problem": …}`, a failure of the model, or
vectors that are not finite, 500 and the same.
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
from pipelines.train.embedding import KINDS, Encoder, Kind, Vectors, read_note, read_thresholds

_BODY = 256 * 1024 * 1024  # bytes of a request
_TEXTS = 256  # read together
_BROKEN = (
    "the encoder's vectors are not finite: its weights are broken; train it again under another name, with a lower "
    "rate, or serve another folder"
)

Waiting = tuple[Sequence[str], Kind, "asyncio.Future[Vectors]"]


class Service:
    """An encoder that answers requests as they come, many at a time."""

    def __init__(self, folder: Path) -> None:
        self._encoder = Encoder.load(folder)
        note = read_note(folder)
        self._description = {
            "folder": folder.resolve().name,
            "dimension": self._encoder.dimension,
            "threshold": read_thresholds(note) or None,
            "figures": note.get("figures", {}),
        }
        self._waiting: asyncio.Queue[Waiting] = asyncio.Queue()

    def application(self, token: str) -> web.Application:
        """What answers, below `token`."""
        application = web.Application(client_max_size=_BODY)
        application.router.add_get(f"/{token}/about", self._about)
        application.router.add_post(f"/{token}/embed", self._embed)
        application.cleanup_ctx.append(self._worker)
        return application

    async def _about(self, _: web.Request) -> web.Response:
        return web.json_response(self._description)

    async def _embed(self, request: web.Request) -> web.Response:
        try:
            texts, kind = _parse(await request.json())
        except ValueError as error:  # of JSON, of Unicode, or ours
            return web.json_response({"problem": str(error)[:200]}, status=400)
        if not texts:
            return web.json_response({"vectors": []})
        answer: asyncio.Future[Vectors] = asyncio.get_running_loop().create_future()
        await self._waiting.put((texts, kind, answer))
        try:
            vectors = await answer
        except Exception as error:  # noqa: BLE001 - of torch, or of a tokenizer: the client gets it
            return web.json_response({"problem": f"the encoder failed: {error}"[:400]}, status=500)
        if not np.isfinite(vectors).all():
            return web.json_response({"problem": _BROKEN}, status=500)
        return web.json_response({"vectors": vectors.tolist()})

    async def _worker(self, _: web.Application) -> Any:
        work = asyncio.create_task(self._read_requests())
        yield
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)

    async def _read_requests(self) -> None:
        while True:
            taken = [await self._waiting.get()]
            while not self._waiting.empty() and sum(len(texts) for texts, _, _ in taken) < _TEXTS:
                taken.append(self._waiting.get_nowait())
            for kind in KINDS:
                if same := [one for one in taken if one[1] == kind]:
                    await self._answer(same, kind)

    async def _answer(self, requests: Sequence[Waiting], kind: Kind) -> None:
        texts = [text for several, _, _ in requests for text in several]
        try:
            vectors = await asyncio.to_thread(self._encoder.vectors, texts, kind)
        except Exception as error:  # noqa: BLE001 - the next request is to be read, whatever it was
            for _, _, answer in requests:
                if not answer.done():  # else the client has gone
                    answer.set_exception(error)
            return
        for several, _, answer in requests:
            if not answer.done():
                answer.set_result(vectors[: len(several)])
            vectors = vectors[len(several) :]


def _parse(body: Any) -> tuple[list[str], Kind]:
    """Texts and kind of a request. Raises ValueError."""
    if not isinstance(body, dict) or not isinstance(body.get("texts"), list):
        raise ValueError('"texts" must be a list of strings')
    if wrong := [place for place, text in enumerate(body["texts"]) if not isinstance(text, str)]:
        raise ValueError(f'"texts" must be a list of strings: number {wrong[0]} is not')
    if body.get("kind") not in KINDS:
        raise ValueError(f'"kind" must be one of {", ".join(KINDS)}')
    # A lone surrogate is no character, and no tokenizer reads it.
    return [text.encode("utf-8", "replace").decode() for text in body["texts"]], body["kind"]


async def _serve(folder: Path) -> None:
    token = secrets.token_urlsafe()
    runner = web.AppRunner(Service(folder).application(token), access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
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
    folder = parser.parse_args().folder
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        asyncio.run(_serve(folder))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"no encoder is served from {folder}: {error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
