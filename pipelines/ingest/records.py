"""What a data set states of itself, what its reader gets, and what it yields: posts, dialogues, and broken records."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

# Of one record in any form: a value of a JSON list or a line, a row of a CSV file, all texts of a dialogue that is put
# together from rows. The longest real one that we know has 27,000. A longer one is dropped, `too_long`.
MAX_RECORD_CHARS = 2_000_000
# Stands where only the mapping file of an import can say it.
BY_MAPPING = "by mapping"


class Source(NamedTuple):
    """One file: its name within the import, and its content: `data` of Parquet and of a spreadsheet, or `text`."""

    name: str
    data: bytes
    text: str
    encoding: str


class Broken(NamedTuple):
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


class Answer(NamedTuple):
    """An answer as its set gives it; one without `answer_id` is named by the hash of its text."""

    where: str
    text: str
    answer_id: str | None = None
    author: str | None = None
    author_role: str = "unknown"
    posted_at: datetime | None = None
    likes: int | None = None
    recommended: bool | None = None
    spans: tuple[Span, ...] = ()


class Post(NamedTuple):
    """A post as its set gives it; one without `source_id` is named by the hash of its words."""

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


class Media(NamedTuple):
    """A reference to a clip: nothing is ever fetched."""

    uri: str
    kind: str
    sha256: str | None = None
    start_ms: int | None = None
    end_ms: int | None = None
    licence: str | None = None
    needed: bool | None = None  # the source says that text does not do


class Utterance(NamedTuple):
    """What one speaker says at once. `role` and `strategies` are the source's own names."""

    role: str
    text: str
    strategies: tuple[str, ...] = ()
    emotion: str | None = None
    feedback: int | None = None
    media: tuple[Media, ...] = ()


class Dialogue(NamedTuple):
    """A dialogue as its set gives it; one without `source_id` is named by the hash of its joined turns."""

    where: str
    utterances: tuple[Utterance, ...]
    source_id: str | None = None
    topic: str | None = None
    situation: str | None = None
    emotion: str | None = None
    modality: str | None = None
    lang: str | None = None
    attributes: tuple[tuple[str, str], ...] = ()


Record = Post | Dialogue


class Origin(NamedTuple):
    """Who wrote what the seeker and what the supporter says: human, model or unknown."""

    seeker: str
    supporter: str


UNKNOWN_ORIGIN = Origin("unknown", "unknown")


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set and the function that reads it."""

    name: str  # what `gongqing import` calls it
    title: str  # its own name
    about: str  # the form of its files, in a line
    read: Callable[[Source], Iterator[Record | Broken]]  # of one file
    table: str = "imported_dialogues"  # or imported_posts
    licence: str = "not stated in the file: find out before use"  # as its publisher states it
    consent: str = "not_asked"  # one of `schemas.labels.CONSENTS`
    origin: Origin = UNKNOWN_ORIGIN
    lineage: tuple[str, ...] = ()  # the sets it was made from, nearest first
    noise: str = ""  # what its texts hold besides, counted on a sample, and what becomes of it
    lang: str = "zh"
    suffixes: tuple[str, ...] = (".json", ".jsonl", ".ndjson")  # of the files to read in a folder or an archive
    record_a_file: bool = False  # an unreadable file costs that record alone
    encoding: str | None = None  # where it is known; detected otherwise
