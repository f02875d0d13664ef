"""Asking a stage's questions in batches: each round in one go, and what has to be mended in the next round."""

from collections.abc import Callable, Sequence
from typing import Any

from pipelines.llm.batch import Failure, ask_batch
from pipelines.llm.ledger import Ledger
from pipelines.llm.ledger_records import Call
from pipelines.llm.payload import canonical
from pipelines.llm.profiles import price
from pipelines.llm.providers.bodies import verdict_of
from pipelines.llm.providers.line import Line
from pipelines.llm.providers.walking import Walk


async def in_batches(
    stage: str,
    walks: Sequence[Walk[Any]],
    line: Line,
    ledger: Ledger,
    budget: int | None,
    ended: Callable[[Walk[Any], int], None],
) -> None:
    """Ends the walks of one model; `ended` is told of each, with what its last request cost in nano-units.

    Raises what `ask_batch` raises, with all answers kept that came before.
    """
    profile = line.profile
    currency = price(profile).currency
    while walks:
        calls = {
            walk.request.key: Call(
                walk.request.key,
                stage,
                profile.alias,
                profile.model,
                canonical(walk.request.payload),
                walk.request.sample,
                currency,
            )
            for walk in walks
        }
        found = await ask_batch(line.client, ledger, profile, list(calls.values()), budget)
        for walk in walks:
            got = found[walk.request.key]
            walk.called = True
            if not isinstance(got, Failure):
                walk.take(got.body)
            elif (verdict := _of_its_length(walk, got)) is not None:
                walk.take(verdict)
            else:
                walk.fail(f"{got.status}, tries: {got.tries}")
            if walk.reply is not None:
                ended(walk, 0 if isinstance(got, Failure) else got.cost)
        walks = [walk for walk in walks if walk.reply is None]


def _of_its_length(walk: Walk[Any], failure: Failure) -> bytes | None:
    """A host that cannot give so long a reply has said so with a 400."""
    refused = failure.status in {"http_400", "http_413"}
    return verdict_of(b"", lengthened=True) if refused and walk.request.lengthened else None
