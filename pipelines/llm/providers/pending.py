"""A question on its way: what is asked next, and what came of it; its call and answer as the ledger has them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, Literal, TypeVar

from pipelines.errors import HostRefused
from pipelines.llm import payload as payloads
from pipelines.llm.completions import Completion, read_completion
from pipelines.llm.cost import owed
from pipelines.llm.ledger.records import Answer, Attempt, Call
from pipelines.llm.money import amount
from pipelines.llm.payload import Request, canonical
from pipelines.llm.profiles import Profile, price, profile, profiles
from pipelines.llm.progress import Progress
from pipelines.llm.questions import NO_ANSWER, InvalidReply, Provenance, Question, Reply, read
from pipelines.settings import Llm

T = TypeVar("T")
Recordings = Callable[[Sequence[str]], Mapping[str, bytes]]  # the bodies that are recorded, by key

# A question that is asked again is another sample of it, this far from those that a stage draws itself: ours.
_NEXT_SAMPLE = 1000


class PendingRequest(Generic[T]):
    """Where a question stands: `request` is what is to be asked next, `reply` what came of it, None until the end."""

    def __init__(self, question: Question[T], profile: Profile, provider: str, repairs: int) -> None:
        self.question = question
        self.profile = profile
        self.reply: Reply[T] | None = None
        self.called = False  # whether anything was sent for it in this run
        self._provider = provider
        self._repairs = self._repairs_left = repairs
        self._payload = payloads.payload(question, profile)
        self.request = Request.of(self._payload, question.sample, images=question.images)

    @property
    def is_unusable(self) -> bool:
        """Whether it has ended with what the model said in the place of an answer."""
        return self.reply is not None and (self.reply.may_come_right or self.reply.is_of_the_text)

    def take(self, body: bytes) -> None:
        """The body that answers `request`: ends the question, or makes the next request."""
        completion = read_completion(body, thinks=self.profile.thinking)
        if not completion.readable:  # it was paid for all the same: once
            self._end(Completion(), reason="invalid_reply", detail="unreadable")
        elif completion.verdict is not None:
            reason = "refused" if completion.verdict == "refused" else "cut_short"
            self._end(completion, reason=reason, detail=completion.detail)
        elif completion.finish_reason == "length":
            longer = payloads.lengthened(self._payload, self.profile)
            if self._repairs_left == 0 or longer is None:
                tokens = completion.usage.completion or self._payload[self.profile.limit_field]
                self._end(completion, reason="cut_short", detail=f"{tokens} tokens")
            else:
                self._payload = longer
                self._repair(longer, lengthened=True)
        else:
            self._read(completion)

    def next_sample(self) -> "PendingRequest[T]":
        """The same question from its beginning, as its next sample: another request, and another answer."""
        question = replace(self.question, sample=self.question.sample + _NEXT_SAMPLE)
        return PendingRequest(question, self.profile, self._provider, self._repairs)

    def fail(self, detail: str, reason: str = NO_ANSWER) -> None:
        """No request for it came through, or none was sent."""
        self._end(Completion(), reason=reason, detail=detail)

    def _read(self, completion: Completion) -> None:
        try:
            self._end(completion, read(self.question, completion.content))
        except InvalidReply as error:
            if self._repairs_left == 0:
                self._end(completion, reason="invalid_reply", detail=error.problem)
                return
            language = self.question.prompt.language
            repaired = payloads.repaired(self._payload, completion.content, error.sentence, language)
            self._repair(repaired)

    def _repair(self, payload: payloads.Payload, *, lengthened: bool = False) -> None:
        self._repairs_left -= 1
        images, sample = self.request.images, self.question.sample
        self.request = Request.of(payload, sample, repair=True, lengthened=lengthened, images=images)

    def _end(
        self, completion: Completion, value: T | None = None, *, reason: str | None = None, detail: str | None = None
    ) -> None:
        name, model = self.question.prompt.name, self.profile.model
        temperature = self._payload.get("temperature")
        provenance = Provenance(self._provider, model, completion.served, name, self.request.key, temperature)
        self.reply = Reply(self.question, value, provenance, completion.reasoning, reason, detail)


class ProfileClient:
    """A client that asks by profiles, or answers as if it did."""

    provider: Literal["openai", "replay", "written"]

    def __init__(self, llm: Llm, progress: Progress | None = None) -> None:
        self._llm, self._progress = llm, progress
        self._profiles = profiles(llm.profiles)

    def models(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """The aliases, as they are. Raises UnknownName."""
        return tuple(profile(self._profiles, alias).alias for alias in wanted)

    def _recorded_requests(
        self, questions: Iterable[Question[Any]], recordings: Recordings
    ) -> list[PendingRequest[Any]]:
        """A request a question, as far as the recordings lead it."""
        requests = [
            PendingRequest(question, profile(self._profiles, question.model), self.provider, self._llm.repairs)
            for question in questions
        ]
        go_on(requests, recordings)
        return requests


def go_on(requests: Iterable[PendingRequest[Any]], recordings: Recordings) -> None:
    """Takes each as far as the bodies that are recorded lead it."""
    ahead = list(requests)
    while ahead:
        bodies = recordings(list(dict.fromkeys(pending.request.key for pending in ahead)))
        ahead = [pending for pending in ahead if pending.request.key in bodies]
        for pending in ahead:
            pending.take(bodies[pending.request.key])
        ahead = [pending for pending in ahead if pending.reply is None]


def newest(requests: Sequence[PendingRequest[Any]], recordings: Recordings) -> list[PendingRequest[Any]]:
    """The requests; in the place of an unusable one, how the same question ended when it was asked again."""
    latest = list(requests)
    places = [place for place, pending in enumerate(latest) if pending.is_unusable]
    while places:
        again = [latest[place].next_sample() for place in places]
        go_on(again, recordings)
        ended = [(place, pending) for place, pending in zip(places, again, strict=True) if pending.reply is not None]
        for place, pending in ended:
            latest[place] = pending
        places = [place for place, pending in ended if pending.is_unusable]
    return latest


def call_of(stage: str, request: Request, profile: Profile) -> Call:
    """A request as the ledger knows it. Raises UnknownPrice."""
    currency = price(profile).currency
    body = canonical(request.payload)
    return Call(request.key, stage, profile.alias, profile.model, body, request.sample, currency, request.repair)


def answer_of(
    body: bytes,
    completion: Completion,
    profile: Profile,
    attempt: Attempt,
    payload: Mapping[str, Any] | None,
    *,
    batch: bool = False,
) -> Answer:
    """A body of status 200 as the ledger keeps it: it was paid for, whatever it is (`pipelines.llm.cost.owed`)."""
    usage, cost = owed(profile, completion.usage, payload, attempt.reserve, reply=completion.written, batch=batch)
    return Answer(body, completion.served, completion.finish_reason, usage, cost)


def overrun(answer: Answer, attempt: Attempt, profile: Profile, host: str) -> HostRefused | None:
    """Why nothing more may be sent after a call that cost more than it could by its profile; None where it did not."""
    if answer.cost <= attempt.reserve:
        return None
    usage, currency = answer.usage, attempt.call.currency
    return HostRefused(
        f"{profile.alias} tells {usage.prompt} tokens in and {usage.completion} out of one call, "
        f"{amount(answer.cost):f} {currency}, where {amount(attempt.reserve):f} was set aside: nothing more is sent",
        where=f"{host}, model {profile.model}",
        hint="look at max_tokens and price of the profile: the cap of a budget holds only if they are right",
    )
