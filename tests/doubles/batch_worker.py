"""A process that asks in a batch and kills itself: `python batch_worker.py LEDGER BASE_URL COUNT CAP WHERE`."""

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


def die_at(owner: Any, name: str, times: int) -> None:
    """Dies before the first call of a method (0 times), or once it has returned so often."""
    call, gate, done = getattr(owner, name), asyncio.Semaphore(AT_ONCE), 0

    async def dies(*args: Any, **fields: Any) -> Any:
        nonlocal done
        async with gate:
            result = await call(*args, **fields) if times else None
        done += 1
        if done >= times:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, dies)


async def ask(path: Path, base_url: str, count: int, cap: int, where: str) -> None:
    client = client_of(base_url)
    with Ledger(path) as ledger:
        places = {
            "stored": (client.files, "create", 1),  # before the ledger hears of the file
            "uploaded": (client.batches, "create", 0),  # before the batch is made
            "made": (client.batches, "create", 1),  # before the ledger hears of it
            "waiting": (client.batches, "retrieve", 0),  # while the host works
            "collecting": (ledger, "answered", KEPT),  # with some of the answers kept
            "clearing": (client.files, "delete", 0),  # with all of them kept
        }
        die_at(*places[where])
        await BatchSender(client, ledger, MODEL, opened(ledger, cap).id, PATIENCE).ask(calls(range(count)))


if __name__ == "__main__":
    asyncio.run(ask(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]))
