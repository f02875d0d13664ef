"""What the ledger is told of a call: before it leaves, and of a body that came with status 200, which was paid for,
whatever it is.
"""

from collections.abc import Mapping
from typing import Any

from pipelines.errors import HostRefused
from pipelines.llm.ledger.records import Answer, Attempt, Call, Recorded
from pipelines.llm.money import amount, owed
from pipelines.llm.payload import Request, canonical
from pipelines.llm.profiles import Profile, price
from pipelines.llm.providers.bodies import Completion, UnreadableBody, completion


def call(stage: str, request: Request, profile: Profile) -> Call:
    """The call that a request is, made for a table. Raises UnknownPrice."""
    return Call(
        request.key,
        stage,
        profile.alias,
        profile.model,
        canonical(request.payload),
        request.sample,
        price(profile).currency,
    )


def read(body: bytes) -> tuple[Completion, bool]:
    """What can be told of a body, and whether it is a completion."""
    try:
        return completion(body), True
    except UnreadableBody as error:
        return Completion(told=error.told), False


def answer(
    given: Completion,
    readable: bool,
    body: bytes,
    profile: Profile,
    attempt: Attempt,
    payload: Mapping[str, Any] | None,
    *,
    batch: bool = False,
) -> Answer:
    """The answer as the ledger keeps it (`pipelines.llm.money.owed` says what it cost)."""
    reply = given.content + (given.reasoning or "") if readable else None
    usage, cost = owed(profile, given.told, payload, attempt.reserve, reply=reply, batch=batch)
    return Answer(body, given.served, given.finish_reason, usage, cost, attempt.call.currency)


def overrun(recorded: Recorded, attempt: Attempt, profile: Profile, host: str) -> HostRefused | None:
    """Why nothing more may be sent after a call that cost more than it could by its profile; None where it did not."""
    if recorded.cost <= attempt.reserve:
        return None
    told, currency = recorded.usage, attempt.call.currency
    return HostRefused(
        f"{profile.alias} tells {told.prompt} tokens in and {told.completion} out of one call, "
        f"{amount(recorded.cost):f} {currency}, where {amount(attempt.reserve):f} was set aside: nothing more is sent",
        where=f"{host}, model {profile.model}",
        hint="look at max_tokens and price of the profile: the cap of a budget holds only if they are right",
    )
