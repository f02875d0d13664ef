"""Calls and answers for the tests of the ledger: invented, and told apart by a number."""

import asyncio
import hashlib
import json
from collections.abc import Coroutine
from decimal import Decimal
from pathlib import Path
from typing import Any

from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Answer, Attempt, Budget, Call, InProgress
from pipelines.llm.money import Usage

COST = 700


def key_of(number: int) -> str:
    return hashlib.sha256(b"%d" % number).hexdigest()


def call(number: int, **fields: Any) -> Call:
    payload = json.dumps({"model": "m", "messages": [f"编造的第{number}个问题"] * 5}, ensure_ascii=False).encode()
    return Call(**{"key": key_of(number), "stage": "coe", "alias": "r1", "model": "R1", "payload": payload} | fields)


def answer(number: int, cost: int = COST, **fields: Any) -> Answer:
    told = {"body": f'{{"reply": "编造的第{number}个回复"}}'.encode() * 3, "served": "R1-0528", "finish_reason": "stop"}
    return Answer(**told | {"usage": Usage(100, 10, 20), "cost": cost} | fields)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


async def ask(
    ledger: Ledger, number: int, reply: Answer | None = None, *, budget: int | None = None, **fields: Any
) -> Any:
    """Begins a call with these fields and answers it, where it may leave."""
    begun = await ledger.begin(call(number, **fields), reserve=1000, budget=budget)
    if isinstance(begun, Attempt):
        await ledger.answered(begun, reply or answer(number))
        return ledger.recorded([begun.call.key])[begun.call.key]
    return begun


async def begin_when_free(ledger: Ledger, number: int, *, reserve: int = 1, budget: int | None = None) -> Any:
    """As `Ledger.begin`; waits while a living session has sent the request, and takes over when it dies."""
    while isinstance(begun := await ledger.begin(call(number), reserve=reserve, budget=budget), InProgress):
        await asyncio.sleep(0.01)
    return begun


def opened(ledger: Ledger, cap: int) -> Budget:
    """A budget of so many nano-units."""
    return ledger.open_budget(Decimal(cap) / 10**9, "USD", "refresh")


def bytes_beside(path: Path) -> bytes:
    """All that is on the disk of a ledger."""
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(path.name + "*")) if file.is_file())
