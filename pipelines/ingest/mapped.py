"""Any JSON, JSON lines, CSV or Parquet file, read by a mapping file."""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from pipelines.errors import UnreadableFile
from pipelines.ingest import jsons, times
from pipelines.ingest.data_set import DataSet, Origin
from pipelines.ingest.delimited import Delimited
from pipelines.ingest.fields import Node, Unfit, flattened
from pipelines.ingest.files import require_size
from pipelines.ingest.mapping import Answers, Clips, Mapping, Turns
from pipelines.ingest.records import Answer, Broken, Dialogue, Media, Post, Record, Source, Utterance
from schemas.labels import LANGUAGES, MODALITIES

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")

MEDIA_KINDS = ("audio", "video", "image")

_ITEM = "answer"  # what an item of a list of answers is called

_YES = frozenset({"true", "1", "yes", "是"})
_NO = frozenset({"false", "0", "no", "否"})


def data_set(mapping: Mapping) -> DataSet:
    """The data set that a mapping file states."""
    origin = mapping.origin
    return DataSet(
        name="mapped",
        title=mapping.title,
        table=f"imported_{mapping.kind}",
        licence=mapping.licence,
        consent=mapping.consent,
        origin=Origin(origin, origin) if isinstance(origin, str) else Origin(origin.seeker, origin.supporter),
        lineage=mapping.lineage,
        lang=mapping.lang,
        about="JSON, JSON lines, CSV or Parquet, by a mapping file",
        read=_Reader(mapping).read,
        suffixes=SUFFIXES,
        encoding=mapping.encoding,
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    mapping: Mapping

    def read(self, source: Source) -> Iterator[Record | Broken]:
        return _records(source, self._post if self.mapping.kind == "posts" else self._dialogue)

    def _post(self, where: str, value: Node) -> Post:
        record, columns = _Picked(value), self.mapping.columns
        posted_at, precision = self._time(record, columns.posted_at)
        answers, broken = self._answers(where, record)
        return Post(
            where,
            title=record.text(columns.title or ""),
            description=record.maybe(columns.description) or "",
            answers=answers,
            broken_answers=broken,
            source_id=record.name(columns.id),
            url=record.maybe(columns.url),
            topic=record.maybe(columns.topic),
            subtopics=record.names(columns.subtopics),
            author=record.name(columns.author),
            posted_at=posted_at,
            posted_at_precision=precision,
            lang=record.one_of(columns.lang, LANGUAGES),
        )

    def _answers(self, where: str, record: "_Picked") -> tuple[tuple[Answer, ...], tuple[Broken, ...]]:
        section = self.mapping.answers
        if section is None:
            return (), ()
        values = [record.node.value] if section.list is None else record.items(section.list)
        answers: list[Answer] = []
        broken: list[Broken] = []
        for i, value in enumerate(values):
            place = where if section.list is None else f"{where}.{section.list}[{i}]"
            try:
                item = Node({_ITEM: value})
                answers.append(
                    self._answer(place, _Picked(item if section.text is None else item.node(_ITEM)), section)
                )
            except Unfit as unfit:
                broken.append(Broken(place, unfit.reason, unfit.detail, unit="answer"))
        return tuple(answers), tuple(broken)

    def _answer(self, where: str, record: "_Picked", section: Answers) -> Answer:
        return Answer(
            where,
            record.text(section.text or _ITEM),
            answer_id=record.name(section.id),
            author=record.name(section.author),
            author_role=self._author_role(record.maybe(section.author_role)),
            posted_at=self._time(record, section.posted_at)[0],
            likes=record.number(section.likes),
            recommended=record.flag(section.recommended),
        )

    def _author_role(self, name: str | None) -> str:
        if name is None:
            return "unknown"
        roles = self.mapping.author_roles
        for role, names in (
            ("professional", roles.professional),
            ("member", roles.member),
            ("unknown", roles.unknown),
        ):
            if name in names:
                return role
        raise Unfit("wrong_value", "the author's role is none of those under [author_roles]")

    def _dialogue(self, where: str, value: Node) -> Dialogue:
        record, columns, section = _Picked(value), self.mapping.columns, self.mapping.turns
        assert section is not None  # the mapping's own check
        return Dialogue(
            where,
            tuple(self._utterance(turn, section) for turn in record.nodes(section.list)),
            source_id=record.name(columns.id),
            topic=record.maybe(columns.topic),
            situation=record.maybe(columns.situation),
            emotion=record.maybe(columns.emotion),
            modality=record.one_of(columns.modality, MODALITIES),
            lang=record.one_of(columns.lang, LANGUAGES),
            attributes=tuple(
                attribute
                for name, path in self.mapping.attributes.items()
                for attribute in flattened(record.value(path), name)
            ),
        )

    def _utterance(self, turn: "_Picked", section: Turns) -> Utterance:
        feedback = turn.number(section.feedback)
        if feedback is not None and not 1 <= feedback <= 5:
            raise Unfit("wrong_value", f"`{turn.node.path}{section.feedback}` is not 1 … 5")
        return Utterance(
            self._role(turn.text(section.role)),
            turn.text(section.text),
            strategies=turn.names(section.strategies),
            emotion=turn.maybe(section.emotion),
            feedback=feedback,
            media=() if section.media is None else _clips(turn, section.media),
        )

    def _role(self, name: str) -> str:
        roles = self.mapping.roles
        if name in roles.seeker:
            return "seeker"
        return "supporter" if name in roles.supporter else name

    def _time(self, record: "_Picked", path: str | None) -> tuple[datetime | None, str | None]:
        value = record.value(path)
        return (None, None) if value in (None, "") else times.read(value, self.mapping.zone, path or "")


def _clips(turn: "_Picked", section: Clips) -> tuple[Media, ...]:
    return tuple(_clip(clip, section) for clip in turn.nodes(section.list)) if turn.has(section.list) else ()


def _clip(clip: "_Picked", section: Clips) -> Media:
    kind = clip.text(section.kind)
    if kind not in MEDIA_KINDS:
        raise Unfit("wrong_value", f"`{clip.node.path}{section.kind}` is not one of {', '.join(MEDIA_KINDS)}")
    return Media(
        clip.text(section.uri),
        kind,
        clip.maybe(section.sha256),
        clip.number(section.start_ms),
        clip.number(section.end_ms),
        clip.maybe(section.licence),
    )


@dataclass(frozen=True, slots=True)
class _Picked:
    """A record whose fields are asked for by the mapping's paths. No path asks for nothing, and gets None."""

    node: Node

    def text(self, path: str) -> str:
        node, key = self._at(path)
        return node.text(key)

    def maybe(self, path: str | None) -> str | None:
        node, key = self._at(path)
        return node.maybe_text(key)

    def name(self, path: str | None) -> str | None:
        node, key = self._at(path)
        return node.maybe_name(key)

    def number(self, path: str | None) -> int | None:
        node, key = self._at(path)
        return node.maybe_number(key)

    def names(self, path: str | None) -> tuple[str, ...]:
        node, key = self._at(path)
        return node.names(key)

    def nodes(self, path: str) -> list["_Picked"]:
        node, key = self._at(path)
        return [_Picked(found) for found in node.nodes(key)]

    def value(self, path: str | None) -> Any:
        node, key = self._at(path)
        return node.value.get(key)

    def has(self, path: str) -> bool:
        return self.value(path) is not None

    def items(self, path: str) -> list[Any]:
        node, key = self._at(path)
        return node.items(key) if node.has(key) else []

    def flag(self, path: str | None) -> bool | None:
        value = self.value(path)
        word = str(value).strip().casefold()
        if value is None or word == "":
            return None
        if word not in _YES | _NO:
            raise Unfit("wrong_type", f"`{self.node.path}{path}` is neither true nor false")
        return word in _YES

    def one_of(self, path: str | None, values: tuple[str, ...]) -> str | None:
        value = self.maybe(path)
        if value is not None and value not in values:
            raise Unfit("wrong_value", f"`{self.node.path}{path}` is not one of {', '.join(values)}")
        return value

    def _at(self, path: str | None) -> tuple[Node, str]:
        """The object that holds the field, and its key there. A key that holds a dot itself is found first."""
        if path is None:
            return Node({}, self.node.path), ""
        node, key = self.node, path
        while key not in node.value and "." in key:
            head, key = key.split(".", 1)
            node = node.node(head) if node.has(head) else Node({}, f"{node.path}{head}.")
        return node, key


def _records(source: Source, convert: Callable[[str, Node], Record]) -> Iterator[Record | Broken]:
    name = source.name.lower()
    if name.endswith((".csv", ".tsv")):
        for row in Delimited(source, delimiter="\t" if name.endswith(".tsv") else ",").rows():
            if isinstance(row, Broken):
                yield row
            else:
                yield jsons.fitted(row.where, partial(convert, row.where, Node(row.values)))
    elif name.endswith(".parquet"):
        for i, value in enumerate(_parquet(source)):
            where = f"{source.name}[{i}]"
            yield jsons.fitted(where, partial(convert, where, Node(value)))
    else:
        yield from jsons.records(source, convert)


_BYTES_OF_A_CELL = 16  # of a string, in memory


def _parquet(source: Source) -> Iterator[dict[str, Any]]:
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        told = pq.read_metadata(pa.BufferReader(source.data))
        # It packs its columns as an archive does its files.
        packed = sum(told.row_group(i).total_byte_size for i in range(told.num_row_groups))
        # Nulls and repeats take next to nothing packed, and this much of a row once read.
        require_size(source.name, max(packed, told.num_rows * told.num_columns * _BYTES_OF_A_CELL))
        frame = pl.read_parquet(io.BytesIO(source.data))
    except (pl.exceptions.PolarsError, pa.ArrowException) as error:
        raise UnreadableFile("the file is no Parquet, or damaged", where=source.name, hint="fetch it again") from error
    yield from frame.iter_rows(named=True)
