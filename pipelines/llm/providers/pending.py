"""The way from a question to its reply: a request, perhaps repairs, an end. The same on the line and from the ledger.

Each step follows from the body of the step before alone. So what was paid for is walked again without a call.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, Literal, TypeVar

from pipelines.llm import payload as payloads
from pipelines.llm.payload import Request
from pipelines.llm.profiles import Profile
from pipelines.llm.providers.bodies import Completion, UnreadableBody, completion
from pipelines.llm.questions import NO_ANSWER, InvalidReply, Provenance, Question, Reply, read

T = TypeVar("T")

# A question that is asked again is another sample of it, this far from those that a stage draws itself: ours.
_ANEW = 1000


class PendingRequest(Generic[T]):
    """Where a question stands: `request` is what is to be asked next, `reply` what came of it, None until the end."""

    def __init__(
        self, question: Question[T], profile: Profile, provider: Literal["openai", "replay"], repairs: int
    ) -> None:
        self.question = question
        self.profile = profile
        self.reply: Reply[T] | None = None
        self.called = False  # whether anything was sent for it in this run: else it was to be had without a call
        self._provider = provider
        self._most_repairs = self._repairs = repairs
        self._asked = payloads.payload(question, profile)
        self.request = Request.of(self._asked, question.sample)

    def take(self, body: bytes) -> None:
        """The body that answers `request`: ends the pending, or makes the next request."""
        try:
            given = completion(body, thinks=self.profile.thinking)
        except UnreadableBody:  # it was paid for all the same: once
            self._end(None, reason="invalid_reply", detail="unreadable")
            return
        if given.verdict is not None:
            self._end(given, reason="refused" if given.verdict == "refused" else "cut_short", detail=given.detail)
        elif given.finish_reason == "length":
            longer = payloads.lengthened(self._asked, self.profile)
            if self._repairs == 0 or longer is None:
                tokens = given.usage.completion if given.usage is not None else self._asked[self.profile.limit_field]
                self._end(given, reason="cut_short", detail=f"{tokens} tokens")
            else:
                self._asked = longer
                self._next(Request.of(longer, self.question.sample, lengthened=True))
        else:
            self._read(given)

    def anew(self) -> "PendingRequest[T]":
        """The same question from its beginning, as its next sample: another request, and another answer."""
        question = replace(self.question, sample=self.question.sample + _ANEW)
        return PendingRequest(question, self.profile, self._provider, self._most_repairs)

    def fail(self, detail: str, reason: str = NO_ANSWER) -> None:
        """No request for it came through, or none was sent."""
        self._end(None, reason=reason, detail=detail)

    def _read(self, given: Completion) -> None:
        try:
            value = read(self.question, given.content)
        except InvalidReply as error:
            if self._repairs == 0:
                self._end(given, reason="invalid_reply", detail=error.problem)
                return
            told = payloads.repaired(self._asked, given.content, error.sentence, self.question.prompt.language)
            self._next(Request.of(told, self.question.sample))
        else:
            self._end(given, value)

    def _next(self, request: Request) -> None:
        self._repairs -= 1
        self.request = request

    def _end(
        self, given: Completion | None, value: T | None = None, *, reason: str | None = None, detail: str | None = None
    ) -> None:
        self.reply = Reply(
            self.question,
            value,
            Provenance(
                self._provider,
                self.profile.model,
                given.served if given is not None else None,
                self.question.prompt.name,
                self.request.key,
            ),
            reasoning=given.reasoning if given is not None else None,
            reason=reason,
            detail=detail,
        )


def go_on(requests: Iterable[PendingRequest[Any]], recorded: Callable[[Sequence[str]], Mapping[str, bytes]]) -> None:
    """Takes each pending as far as the bodies that are recorded, by key, lead it."""
    ahead = list(requests)
    while ahead:
        found = recorded(list(dict.fromkeys(pending.request.key for pending in ahead)))
        ahead = [pending for pending in ahead if pending.request.key in found]
        for pending in ahead:
            pending.take(found[pending.request.key])
        ahead = [pending for pending in ahead if pending.reply is None]


def newest(
    requests: Sequence[PendingRequest[Any]], recorded: Callable[[Sequence[str]], Mapping[str, bytes]]
) -> list[PendingRequest[Any]]:
    """The requests; in the place of one that ended without an answer, how the same question ended later."""
    found = list(requests)
    places = [place for place, pending in enumerate(found) if _has_no_answer(pending)]
    while places:
        again = [found[place].anew() for place in places]
        go_on(again, recorded)
        ended = [(place, pending) for place, pending in zip(places, again, strict=True) if pending.reply is not None]
        for place, pending in ended:
            found[place] = pending
        places = [place for place, pending in ended if _has_no_answer(pending)]
    return found


def _has_no_answer(pending: PendingRequest[Any]) -> bool:
    """Whether a request has ended with what the model said in the place of an answer."""
    return pending.reply is not None and (pending.reply.may_come_right or pending.reply.is_of_the_text)
