"""What a reader is given, and what it yields: posts, dialogues, and what it could not read."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

# Of one record, whatever its form: a value of a JSON list or a line, a row of a CSV file, all texts of a dialogue that
# is put together from rows. The longest real one that we have seen has 27,000. A longer one is dropped, `too_long`.
MAX_RECORD_CHARS = 2_000_000


@dataclass(frozen=True, slots=True)
class Source:
    """One file: its name within what was imported, and what it holds: the `data` of a Parquet file, of others the
    `text`.
    """

    name: str
    data: bytes
    text: str
    encoding: str


@dataclass(frozen=True, slots=True)
class Broken:
    """What was not kept. `detail` names keys and places only: never what a person wrote."""

    where: str
    reason: str
    detail: str | None = None
    unit: Literal["record", "answer"] = "record"


class Span(NamedTuple):
    """A strategy of an answer and the characters that it covers."""

    source_strategy: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as its set gives it; without `answer_id` it is named by the hash of its text."""

    where: str
    text: str
    answer_id: str | None = None
    author: str | None = None
    author_role: str = "unknown"
    posted_at: datetime | None = None
    likes: int | None = None
    recommended: bool | None = None
    spans: tuple[Span, ...] = ()

    def texts(self) -> Iterator[str]:
        """Every text that came from the file."""
        yield from filter(None, (self.text, self.answer_id, self.author))
        yield from (span.source_strategy for span in self.spans)


@dataclass(frozen=True, slots=True)
class Post:
    """A post as its set gives it; without `source_id` it is named by the hash of its words."""

    where: str
    title: str
    description: str
    answers: tuple[Answer, ...] = ()
    broken_answers: tuple[Broken, ...] = ()
    source_id: str | None = None
    url: str | None = None
    topic: str | None = None
    subtopics: tuple[str, ...] = ()
    author: str | None = None
    posted_at: datetime | None = None
    posted_at_precision: str | None = None
    lang: str | None = None

    def texts(self) -> Iterator[str]:
        """Every text that came from the file."""
        yield from filter(None, (self.title, self.description, self.source_id, self.url, self.topic, self.author))
        yield from self.subtopics
        for answer in self.answers:
            yield from answer.texts()


@dataclass(frozen=True, slots=True)
class Media:
    """A reference to a clip."""

    uri: str
    kind: str
    sha256: str | None = None
    start_ms: int | None = None
    end_ms: int | None = None
    licence: str | None = None


@dataclass(frozen=True, slots=True)
class Utterance:
    """What one speaker says at once. `role` and `strategies` are the source's own names."""

    role: str
    text: str
    strategies: tuple[str, ...] = ()
    emotion: str | None = None
    feedback: int | None = None
    media: tuple[Media, ...] = ()

    def texts(self) -> Iterator[str]:
        """Every text that came from the file."""
        yield from filter(None, (self.role, self.text, self.emotion))
        yield from self.strategies
        for clip in self.media:
            yield from filter(None, (clip.uri, clip.sha256, clip.licence))


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A dialogue as its set gives it; without `source_id` it is named by the hash of its joined turns."""

    where: str
    utterances: tuple[Utterance, ...]
    source_id: str | None = None
    topic: str | None = None
    situation: str | None = None
    emotion: str | None = None
    modality: str | None = None
    lang: str | None = None
    attributes: tuple[tuple[str, str], ...] = ()

    def texts(self) -> Iterator[str]:
        """Every text that came from the file."""
        yield from filter(None, (self.source_id, self.topic, self.situation, self.emotion))
        for utterance in self.utterances:
            yield from utterance.texts()
        for name, value in self.attributes:
            yield from (name, value)


Record = Post | Dialogue
