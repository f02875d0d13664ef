"""What is known of a data set: its licence, its writers' consent, who wrote it, what it was made from."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pipelines.ingest.records import Broken, Record, Source

Read = Callable[[Source], Iterator[Record | Broken]]

# Stands where only the mapping file of an import can say it.
BY_MAPPING = "by mapping"


class Origin(NamedTuple):
    """Who wrote what the seeker and what the supporter says: human, model or unknown."""

    seeker: str
    supporter: str


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set and the function that reads it.

    Attributes:
        name: What `gongqing import` calls it.
        title: Its own name.
        table: "imported_posts" or "imported_dialogues".
        licence: As its publisher states it, and "not stated" where none was found.
        consent: One of `schemas.labels.CONSENTS`.
        lineage: The sets it was made from, nearest first.
        about: The form of its files, in a line.
        suffixes: The files to read in a folder or an archive.
        record_a_file: Whether a file is one record, so that an unreadable file costs that record alone.
        encoding: The encoding, where it is known; detected otherwise.
    """

    name: str
    title: str
    table: str
    licence: str
    consent: str
    origin: Origin
    lineage: tuple[str, ...]
    lang: str
    about: str
    read: Read
    suffixes: tuple[str, ...]
    record_a_file: bool = False
    encoding: str | None = None
