"""Provider `replay`: recordings of real answers, each with its provenance. A miss is an error, never a call.

A recording is a JSONL file, one call a line: `key`, `sample`, `stage`, `alias`, `request` (the payload), `response`
(the body), and `provenance` with `recorded_at`, `host` and `served`. `gongqing ledger record FILE` writes one.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pipelines.core.files import writing
from pipelines.errors import RequestError, UnreadableFile
from pipelines.llm.interface import Estimate, ModelEstimate
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Exchange
from pipelines.llm.payload import canonical, key_of
from pipelines.llm.profiles import Profile, base_url, profile, profiles
from pipelines.llm.progress import Progress, Tally
from pipelines.llm.providers.ask import PendingRequest, go_on, newest
from pipelines.llm.questions import Question, Reply
from pipelines.settings import Llm


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a recording is from: when (ISO 8601, UTC), which host, and the model that it says answered."""

    recorded_at: str
    host: str
    served: str | None


@dataclass(frozen=True, slots=True)
class Recording:
    """One call as it was answered once."""

    key: str
    sample: int
    stage: str
    alias: str
    request: dict[str, Any]
    response: dict[str, Any]
    provenance: Origin

    @classmethod
    def read(cls, line: str) -> Self:
        """The recording of a line. Raises ValueError, KeyError, TypeError or RecursionError where it is none."""
        fields = json.loads(line)
        found = cls(**{**fields, "provenance": Origin(**fields["provenance"])})
        if found.key != key_of(canonical(found.request), found.sample):
            raise ValueError("the key is not that of the request")
        canonical(found.response)
        return found

    @property
    def body(self) -> bytes:
        """The response, as a host would send it."""
        return canonical(self.response)


class ReplayClient:
    """Answers from recordings."""

    provider: Literal["replay"] = "replay"

    def __init__(self, llm: Llm, progress: Progress | None = None) -> None:
        """Raises RequestError where no recordings are named, UnreadableFile where they are none."""
        if llm.recordings is None:
            raise RequestError(
                "provider replay has nothing to replay",
                where="the setting llm.recordings",
                hint="name a file of recordings; gongqing ledger record FILE writes one from what was asked",
            )
        self._path = llm.recordings
        self._repairs = llm.repairs
        self._profiles = profiles(llm.profiles)
        self._progress = progress
        self._bodies = {one.key: one.body for one in recordings(llm.recordings)}

    def models(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """The aliases, as they are. Raises UnknownName."""
        return tuple(profile(self._profiles, alias).alias for alias in wanted)

    def ask(self, stage: str, questions: Sequence[Question[Any]]) -> list[Reply[Any]]:
        """The replies, in the order of the questions. Raises RequestError for one that was not recorded."""
        requests = self._pending(questions)
        missing = [pending for pending in requests if pending.reply is None]
        if missing:
            first = missing[0]
            raise RequestError(
                f"{len(missing)} of {len(requests)} questions of {stage} are not in the recordings; the first is "
                f"{first.request.key}, asked of {first.profile.alias}",
                where=self._path,
                hint="ask them once (--provider openai), then gongqing ledger record FILE",
            )
        tally = Tally(self._progress, stage, len(requests))
        replies = []
        for pending in requests:
            assert pending.reply is not None
            replies.append(pending.reply)
            tally.reply(pending.reply, cached=True)
        return replies

    def estimate(self, stage: str, questions: Sequence[Question[Any]]) -> Estimate:  # noqa: ARG002 - as every client
        """Nothing is sent: `calls` are the questions that are missing in the recordings."""
        made: dict[str, Counter[str]] = {}
        for pending in self._pending(questions):
            made.setdefault(pending.profile.alias, Counter())["calls" if pending.reply is None else "cached"] += 1
        by_model = {alias: ModelEstimate(calls=of["calls"], cached=of["cached"]) for alias, of in made.items()}
        return Estimate.of(by_model)

    def _pending(self, questions: Sequence[Question[Any]]) -> list[PendingRequest[Any]]:
        requests = [
            PendingRequest(question, profile(self._profiles, question.model), self.provider, self._repairs)
            for question in questions
        ]
        go_on(requests, self._found)
        return newest(requests, self._found)

    def _found(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        return {key: self._bodies[key] for key in keys if key in self._bodies}


def recordings(path: Path) -> list[Recording]:
    """The recordings of a file. Raises UnreadableFile, which names the line."""
    try:
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(
            f"the recordings cannot be read: {error}", where=path, hint="name a file that is there"
        ) from error
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(Recording.read(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UnreadableFile(
                f"no recording: {type(error).__name__}",
                where=f"{path}, line {number}",
                hint="recordings are not written by hand: gongqing ledger record FILE",
            ) from error
    return found


def record(ledger: Ledger, path: Path, stages: Sequence[str] | None = None, *, extra: Path | None = None) -> int:
    """Writes what stands in the ledger, of some stages or of all, to a file of recordings; gives how many there are.

    The file holds people's texts, as the ledger does: it is for its owner alone. It is written whole or not at all.
    Which host answered is not in the ledger: it is the one that the profiles (`extra`: the user's) name now.

    Raises RequestError where there is nothing to write.
    """
    known = profiles(extra)
    n = 0
    with writing(path) as file:
        for one in ledger.exchanges(stages):
            recorded = json.dumps(asdict(_recording(one, known)), ensure_ascii=False, sort_keys=True, allow_nan=False)
            file.write(f"{recorded}\n".encode())
            n += 1
        if not n:
            of = f" of {', '.join(stages)}" if stages else ""
            raise RequestError(
                f"the ledger has no answers{of}: a file of none could not be replayed",
                where=path,
                hint="ask first (gongqing refresh --provider openai); gongqing ledger tells what was asked",
            )
    return n


def _recording(one: Exchange, known: Mapping[str, Profile]) -> Recording:
    answer = one.answer
    named = known.get(answer.alias)
    address = None if named is None else base_url(named)
    return Recording(
        answer.key,
        one.sample,
        one.stage,
        answer.alias,
        json.loads(one.payload),
        _response(answer.body),
        Origin(
            answer.at.isoformat(timespec="seconds"),
            (urlsplit(address).hostname if address else None) or "unknown",
            answer.served,
        ),
    )


def _response(body: bytes) -> dict[str, Any]:
    """A body as JSON; what is no object, or cannot be written as one (NaN), was no completion, and is none here."""
    try:
        read = json.loads(body)
        canonical(read)
    except (ValueError, RecursionError):
        read = None
    return read if isinstance(read, dict) else {"unreadable": body.decode(errors="replace")}
