"""A process that asks in a batch and kills itself: `python batch_worker.py LEDGER BASE_URL COUNT CAP WHERE`.

WHERE: `stored` (before the ledger hears of the file), `uploaded` (before the batch is made), `made` (before the ledger
hears of it), `waiting` (while the host works), `collecting` (with some of the answers kept), `clearing` (with all of
them kept), or `never`.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from batch_calls import MODEL, PATIENCE, calls, client_of
from ledger_calls import opened

from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.providers.batch import BatchSender

KEPT = 17  # answers before it dies while collecting, of which so many are on their way into the ledger at once
AT_ONCE = 10


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def ask(path: Path, base_url: str, count: int, cap: int, where: str) -> None:
    gate = asyncio.Semaphore(AT_ONCE)
    client: Any = client_of(base_url)
    with Ledger(path) as ledger:
        create, retrieve, answered = client.batches.create, client.batches.retrieve, ledger.answered
        delete, upload = client.files.delete, client.files.create
        kept = 0

        async def creates(**given: Any) -> Any:
            if where == "uploaded":
                die()
            made = await create(**given)
            if where == "made":
                die()
            return made

        async def retrieves(*given: Any) -> Any:
            if where == "waiting":
                die()
            return await retrieve(*given)

        async def keeps(*given: Any) -> Any:
            nonlocal kept
            async with gate:
                recorded = await answered(*given)
            kept += 1
            if where == "collecting" and kept == KEPT:
                die()
            return recorded

        async def deletes(*given: Any) -> Any:
            if where == "clearing":
                die()
            return await delete(*given)

        async def uploads(**given: Any) -> Any:
            told = await upload(**given)
            if where == "stored":
                die()
            return told

        client.files.delete, client.files.create = deletes, uploads
        client.batches.create, client.batches.retrieve, ledger.answered = creates, retrieves, keeps  # type: ignore
        await BatchSender(client, ledger, MODEL, opened(ledger, cap).id, PATIENCE).ask(calls(range(count)))


if __name__ == "__main__":
    asyncio.run(ask(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]))
