"""Provider `replay`: recordings of real answers, each with its provenance. A miss is an error, never a call.

A recording is a JSONL file, one call a line. `gongqing ledger record FILE` writes one.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel

from pipelines.core.files import writing
from pipelines.errors import RequestError, UnreadableFile
from pipelines.llm.interface import Estimate, ModelEstimate
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.payload import canonical, key_of
from pipelines.llm.profiles import base_url, profiles
from pipelines.llm.progress import Progress, Tally
from pipelines.llm.providers.pending import ProfileClient, newest
from pipelines.llm.questions import Question, Reply
from pipelines.settings import Llm


class Origin(BaseModel, extra="forbid", frozen=True):
    """Where a recording is from: when (ISO 8601, UTC), which host, and the model that it says answered."""

    recorded_at: str
    host: str
    served: str | None


class Recording(BaseModel, extra="forbid", frozen=True):
    """One call as it was answered once: the payload and the body."""

    key: str
    sample: int
    stage: str
    alias: str
    request: dict[str, Any]
    response: dict[str, Any]
    provenance: Origin


class ReplayClient(ProfileClient):
    """Answers from recordings."""

    provider: Literal["replay"] = "replay"

    def __init__(self, llm: Llm, progress: Progress | None = None) -> None:
        """Raises RequestError where no recordings are named, UnreadableFile where they cannot be read."""
        super().__init__(llm, progress)
        if llm.recordings is None:
            raise RequestError(
                "provider replay has nothing to replay",
                where="the setting llm.recordings",
                hint="name a file of recordings; gongqing ledger record FILE writes one from what was asked",
            )
        self._path = llm.recordings
        self._bodies = recorded_bodies(llm.recordings)

    def ask(self, stage: str, questions: Sequence[Question[Any]]) -> list[Reply[Any]]:
        """The replies, in the order of the questions. Raises RequestError for one that was not recorded."""
        requests = newest(self._recorded_requests(questions, self._recordings), self._recordings)
        replies = [pending.reply for pending in requests if pending.reply is not None]
        if missing := [pending for pending in requests if pending.reply is None]:
            first = missing[0]
            raise RequestError(
                f"{len(missing)} of {len(requests)} questions of {stage} are not in the recordings; the first is "
                f"{first.request.key}, asked of {first.profile.alias}",
                where=self._path,
                hint="ask them once (--provider openai), then gongqing ledger record FILE",
            )
        tally = Tally(self._progress, stage, len(requests))
        for reply in replies:
            tally.reply(reply, cached=True)
        return replies

    def estimate(self, stage: str, questions: Sequence[Question[Any]]) -> Estimate:  # noqa: ARG002 - as every client
        """Nothing is sent: `calls` are the questions that are missing in the recordings."""
        counts: dict[str, Counter[str]] = {}
        for pending in newest(self._recorded_requests(questions, self._recordings), self._recordings):
            counts.setdefault(pending.profile.alias, Counter())["calls" if pending.reply is None else "cached"] += 1
        return Estimate.of({alias: ModelEstimate(of["calls"], of["cached"]) for alias, of in counts.items()})

    def _recordings(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        return {key: self._bodies[key] for key in keys if key in self._bodies}


def recorded_bodies(path: Path) -> dict[str, bytes]:
    """The bodies of a file of recordings, by key. Raises UnreadableFile, which names the line."""
    try:
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(
            f"the recordings cannot be read: {error}", where=path, hint="name a file that is there"
        ) from error
    bodies: dict[str, bytes] = {}
    for number, line in enumerate(lines, 1):
        try:
            recording = Recording.model_validate_json(line)
            if recording.key != key_of(canonical(recording.request), recording.sample):
                raise ValueError("the key is not that of the request")
            bodies[recording.key] = canonical(recording.response)
        except (ValueError, RecursionError) as error:
            raise UnreadableFile(
                f"no recording: {type(error).__name__}",
                where=f"{path}, line {number}",
                hint="recordings are not written by hand: gongqing ledger record FILE",
            ) from error
    return bodies


def record(ledger: Ledger, path: Path, stages: Sequence[str] | None = None, *, extra: Path | None = None) -> int:
    """Writes what is in the ledger, of some stages or of all, to a file of recordings, whole or not at all; gives how
    many there are. Raises RequestError where there are none.

    The file holds people's texts, as the ledger does: it is for its owner alone. Which host answered is not in the
    ledger: it is the one that the profiles (`extra`: the user's) name now.
    """
    known = profiles(extra)
    n = 0
    with writing(path) as file:
        for n, exchange in enumerate(ledger.exchanges(stages), 1):  # noqa: B007 - how many there were
            answer = exchange.answer
            address = base_url(known[answer.alias]) if answer.alias in known else None
            host = (urlsplit(address).hostname if address else None) or "unknown"
            fields = {
                "key": answer.key,
                "sample": exchange.sample,
                "stage": exchange.stage,
                "alias": answer.alias,
                "request": json.loads(exchange.payload),
                "response": _response(answer.body),
                "provenance": {
                    "recorded_at": answer.at.isoformat(timespec="seconds"),
                    "host": host,
                    "served": answer.served,
                },
            }
            file.write(json.dumps(fields, ensure_ascii=False, sort_keys=True, allow_nan=False).encode() + b"\n")
        if not n:
            of = f" of {', '.join(stages)}" if stages else ""
            raise RequestError(
                f"the ledger has no answers{of}: a file of none could not be replayed",
                where=path,
                hint="ask first (gongqing refresh --provider openai); gongqing ledger shows what was asked",
            )
    return n


def _response(body: bytes) -> dict[str, Any]:
    """A body as JSON; what is not an object, or cannot be written as one (NaN), was no completion."""
    try:
        response = json.loads(body)
        canonical(response)
    except (ValueError, RecursionError):
        response = None
    return response if isinstance(response, dict) else {"unreadable": body.decode(errors="replace")}
