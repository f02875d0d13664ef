"""Asking a stage's questions in batches: each round in one go, and what has to be mended in the next round."""

from collections.abc import Collection, Sequence
from typing import Any

from pipelines.errors import HostRefused
from pipelines.llm.failures import InvalidReplies
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Recorded
from pipelines.llm.progress import Told
from pipelines.llm.providers import settling
from pipelines.llm.providers.batch.asking import Failure, ask_batch
from pipelines.llm.providers.bodies import ABOUT_ONE, MOST_IN_A_ROW, verdict_of
from pipelines.llm.providers.endpoint import UNLIKED, Endpoint, no_answers
from pipelines.llm.providers.pending import PendingRequest
from pipelines.llm.questions import OVER_BUDGET

_NOT_HAD = {f"http_{status}" for status in ABOUT_ONE}


async def in_batches(
    stage: str,
    requests: Sequence[PendingRequest[Any]],
    endpoint: Endpoint,
    ledger: Ledger,
    budget: int | None,
    told: Told,
    counts: InvalidReplies,
) -> None:
    """Ends the requests of one model; `told` and `counts` hear of each.

    Raises what `ask_batch` raises, HostRefused where the host would have none of many, and TooManyInvalid, with all
    answers kept that came before.
    """
    while requests:
        calls = {pending.request.key: settling.call(stage, pending.request, endpoint.profile) for pending in requests}
        found = await ask_batch(endpoint.client, ledger, endpoint.profile, list(calls.values()), budget)
        told.paid(sum(one.cost for one in found.values() if isinstance(one, Recorded)))
        _require_some_answer(endpoint, found.values())
        for pending in requests:
            got = found[pending.request.key]
            pending.called = True
            if not isinstance(got, Failure):
                pending.take(got.body)
            elif (verdict := _of_its_length(pending, got)) is not None:
                pending.take(verdict)
            elif got.reason == OVER_BUDGET:
                pending.fail(got.status, got.reason)
            else:
                pending.fail(f"{got.status}, tries: {got.tries}", got.reason)
            if pending.reply is not None:
                told.reply(pending.reply, cached=False)
                counts.count(pending.reply)
        counts.require()
        requests = [pending for pending in requests if pending.reply is None]


def _require_some_answer(endpoint: Endpoint, found: Collection[Recorded | Failure]) -> None:
    """A host that would have none of the questions does not mean their texts, and one that answers none is down (see
    MOST_IN_A_ROW).
    """
    asked = [one for one in found if not isinstance(one, Failure) or one.reason != OVER_BUDGET]
    if len(asked) < MOST_IN_A_ROW or not all(isinstance(one, Failure) for one in asked):
        return
    failed = {one.status for one in asked if isinstance(one, Failure)}
    if not_had := failed & _NOT_HAD:
        told = " and ".join(sorted(status.removeprefix("http_") for status in not_had))
        raise HostRefused(
            f"{endpoint.profile.alias} answers {told} to all {len(asked)} questions of a batch: nothing more is sent",
            where=f"{endpoint.host}, model {endpoint.profile.model}",
            hint=UNLIKED,
        )
    which = f"none to all {len(asked)} questions of a batch"
    raise no_answers(endpoint.profile, endpoint.host, which, ", ".join(sorted(failed)))


def _of_its_length(pending: PendingRequest[Any], failure: Failure) -> bytes | None:
    """A host that cannot give so long a reply has said so with a 400."""
    return verdict_of(b"", lengthened=True) if failure.status in _NOT_HAD and pending.request.lengthened else None
