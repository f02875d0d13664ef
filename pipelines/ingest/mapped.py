"""Any JSON, JSON lines, CSV or Parquet file, or spreadsheet, read by a mapping file."""

import io
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, tzinfo
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator

from pipelines.core.workbooks import DAMAGED, Workbook, hint_for
from pipelines.errors import UnreadableFile
from pipelines.ingest import jsons
from pipelines.ingest.delimited import Delimited
from pipelines.ingest.files import require_size
from pipelines.ingest.forms import (
    Form,
    FormT,
    Names,
    OptionalName,
    OptionalNumber,
    OptionalText,
    Rating,
    Unfit,
    fill,
    flattened,
    kind,
    shown,
    stripped,
)
from pipelines.ingest.mapping import Answers, Mapping, Turns
from pipelines.ingest.records import (
    MAX_RECORD_CHARS,
    Answer,
    Broken,
    DataSet,
    Dialogue,
    Media,
    Origin,
    Post,
    Record,
    Source,
    Utterance,
)

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".xlsx")

_FLAGS = dict.fromkeys(("true", "1", "yes", "是"), True) | dict.fromkeys(("false", "0", "no", "否"), False)
_BYTES_OF_A_CELL = 16  # of a string, in memory


def _flag(value: object) -> bool | None:
    word = "" if value is None else str(value).strip().casefold()
    if word and word not in _FLAGS:
        raise Unfit("wrong_type", "is neither true nor false")
    return _FLAGS.get(word)


# The forms have the fields of the sections of `Mapping`; what a mapping does not name keeps its default.
_Lang = Annotated[Literal["zh", "en"] | None, BeforeValidator(stripped)]
_Modality = Annotated[Literal["text", "text+audio", "text+video", "text+image"] | None, BeforeValidator(stripped)]


class _Post(Form):
    title: str
    description: OptionalText = None
    id: OptionalName = None
    lang: _Lang = None
    topic: OptionalText = None
    subtopics: Names = ()
    url: OptionalText = None
    author: OptionalName = None
    posted_at: Any = None
    answers: list[Any] | None = None


class _Answer(Form):
    text: str
    id: OptionalName = None
    author: OptionalName = None
    author_role: OptionalText = None
    posted_at: Any = None
    likes: OptionalNumber = None
    recommended: Annotated[bool | None, BeforeValidator(_flag)] = None


class _Dialogue(Form):
    turns: list[Any]
    id: OptionalName = None
    lang: _Lang = None
    topic: OptionalText = None
    situation: OptionalText = None
    emotion: OptionalText = None
    modality: _Modality = None


class _Turn(Form):
    role: str
    text: str
    emotion: OptionalText = None
    strategies: Names = ()
    feedback: Rating = None
    media: list[Any] | None = None


class _Clip(Form):
    uri: str
    kind: Literal["audio", "video", "image"]
    sha256: OptionalText = None
    start_ms: OptionalNumber = None
    end_ms: OptionalNumber = None
    licence: OptionalText = None
    needed: Annotated[bool | None, BeforeValidator(_flag)] = None


def data_set(mapping: Mapping) -> DataSet:
    """The data set that a mapping file states."""
    origin = mapping.origin
    return DataSet(
        name="mapped",
        title=mapping.title,
        table=f"imported_{mapping.kind}",
        about="JSON, JSON lines, CSV, Parquet or a spreadsheet, by a mapping file",
        read=partial(_read, mapping.sheet, convert=partial(_post if mapping.kind == "posts" else _dialogue, mapping)),
        licence=mapping.licence,
        consent=mapping.consent,
        origin=Origin(origin, origin) if isinstance(origin, str) else Origin(origin.seeker, origin.supporter),
        lineage=mapping.lineage,
        lang=mapping.lang,
        suffixes=SUFFIXES,
        encoding=mapping.encoding,
    )


def _post(mapping: Mapping, where: str, record: dict[str, Any]) -> Post:
    section = mapping.answers
    post = _picked(_Post, record, mapping.columns, "", answers=section.list if section else None)
    places: list[tuple[str, Any]] = []
    if section is not None and section.list is None:
        places = [(where, record)]
    elif section is not None:
        places = [(f"{where}.{section.list}[{i}]", item) for i, item in enumerate(post.answers or [])]
    posted_at, precision = _time(mapping, post.posted_at, mapping.columns.posted_at)
    return Post(
        where,
        post.title,
        post.description or "",
        *jsons.answers(places, partial(_answer, mapping)),
        source_id=post.id,
        posted_at=posted_at,
        posted_at_precision=precision,
        **post.model_dump(include={"url", "topic", "subtopics", "author", "lang"}),
    )


def _answer(mapping: Mapping, where: str, item: Any) -> Answer:
    section = mapping.answers or Answers()
    if section.text is None:
        answer = fill(_Answer, {"text": item}, "", {"text": "answer"})
    else:
        answer = _picked(_Answer, item, section, "answer")
    return Answer(
        where,
        answer.text,
        answer.id,
        answer.author,
        _author_role(mapping, answer.author_role),
        _time(mapping, answer.posted_at, section.posted_at)[0],
        answer.likes,
        answer.recommended,
    )


def _author_role(mapping: Mapping, name: str | None) -> str:
    if name is None:
        return "unknown"
    for role, names in mapping.author_roles:
        if name in names:
            return str(role)
    raise Unfit("wrong_value", "the author's role is none of those under [author_roles]")


def _dialogue(mapping: Mapping, where: str, record: dict[str, Any]) -> Dialogue:
    section = mapping.turns
    assert section is not None  # the mapping's own check
    dialogue = _picked(_Dialogue, record, mapping.columns, "", turns=section.list)
    places = [f"{section.list}[{i}]" for i in range(len(dialogue.turns))]
    attributes = _values(record, mapping.attributes, "")
    return Dialogue(
        where,
        tuple(_utterance(mapping, section, turn, place) for turn, place in zip(dialogue.turns, places, strict=True)),
        source_id=dialogue.id,
        **dialogue.model_dump(exclude={"id", "turns"}),
        attributes=tuple(leaf for name, value in attributes.items() for leaf in flattened(value, name)),
    )


def _utterance(mapping: Mapping, section: Turns, value: Any, place: str) -> Utterance:
    turn = _picked(_Turn, value, section, place, media=section.media.list if section.media else None)
    roles = mapping.roles
    role = "seeker" if turn.role in roles.seeker else "supporter" if turn.role in roles.supporter else turn.role
    clips: list[Media] = []
    if section.media is not None:
        for i, entry in enumerate(turn.media or ()):
            clip = _picked(_Clip, entry, section.media, f"{place}.{section.media.list}[{i}]")
            every = section.media.needed if isinstance(section.media.needed, bool) else None
            clips.append(Media(**clip.model_dump() | ({} if every is None else {"needed": every})))
    return Utterance(role, turn.text, turn.strategies, turn.emotion, turn.feedback, tuple(clips))


def _time(mapping: Mapping, value: object, path: str | None) -> tuple[datetime | None, str | None]:
    return (None, None) if value in (None, "") else read_time(value, mapping.timezone, path or "")


def _picked(form: type[FormT], record: Any, section: BaseModel, place: str, **more: str | None) -> FormT:
    """The fields of `record` that a section of the mapping names, and `more`, as a `form`."""
    if not isinstance(record, dict):
        raise Unfit("wrong_type", f"`{place}` is {kind(record)}, not an object")
    paths = {name: path for name, path in (*section, *more.items()) if isinstance(path, str)}
    return fill(form, _values(record, paths, place), place, paths)


def _values(record: dict[str, Any], paths: dict[str, str], place: str) -> dict[str, Any]:
    """The values at `paths`, by name, where there are any. A key that holds a dot itself comes first."""
    values = {}
    for name, path in paths.items():
        inner, at, key = record, place, path
        while key not in inner and "." in key:
            head, key = key.split(".", 1)
            at = f"{at}.{head}" if at else head
            inner = {} if inner.get(head) is None else inner[head]
            if not isinstance(inner, dict):
                raise Unfit("wrong_type", f"`{at}` is {kind(inner)}, not an object")
        if key in inner:
            values[name] = inner[key]
    return values


def _read(
    sheet: str | None, source: Source, convert: Callable[[str, dict[str, Any]], Record]
) -> Iterator[Record | Broken]:
    name = source.name.lower()
    if name.endswith((".csv", ".tsv")):
        for row in Delimited(source, delimiter="\t" if name.endswith(".tsv") else ",").rows():
            yield row if isinstance(row, Broken) else jsons.converted(row.where, row.values, convert)
    elif name.endswith(".xlsx"):
        for cells in sheet_rows(source, sheet):
            yield cells if isinstance(cells, Broken) else jsons.converted(cells.where, cells.values, convert)
    elif name.endswith(".parquet"):
        for i, value in enumerate(_parquet(source)):
            yield jsons.converted(f"{source.name}[{i}]", value, convert)
    else:
        yield from jsons.objects(source, convert)


def _parquet(source: Source) -> Iterator[dict[str, Any]]:
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(pa.BufferReader(source.data))
        # It packs its columns as an archive does its files.
        packed = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
        # Nulls and repeats take next to nothing packed, and this much of a row once read.
        require_size(source.name, max(packed, metadata.num_rows * metadata.num_columns * _BYTES_OF_A_CELL))
        frame = pl.read_parquet(io.BytesIO(source.data))
    except (pl.exceptions.PolarsError, pa.ArrowException) as error:
        raise UnreadableFile("the file is no Parquet, or damaged", where=source.name, hint="fetch it again") from error
    yield from frame.iter_rows(named=True)


class SheetRow(NamedTuple):
    """A row, its place, and its values by column: texts, numbers, truth values, dates; an empty text where none is."""

    where: str
    values: dict[str, Any]


def sheet_rows(source: Source, sheet: str | None) -> Iterator[SheetRow | Broken]:
    """The rows beneath the first one that is not empty, which names the columns; columns without a name are not read.

    Raises UnreadableFile for a file that is no spreadsheet, has no such sheet, two columns of one name, or is absurdly
    large once unpacked.
    """
    try:
        yield from _sheet_rows(source, sheet)
    except DAMAGED as error:
        raise UnreadableFile(
            "the file is no spreadsheet of the form .xlsx, or is damaged",
            where=source.name,
            hint=hint_for(source.data),
        ) from error


def _sheet_rows(source: Source, sheet: str | None) -> Iterator[SheetRow | Broken]:
    book = Workbook(source.data)
    require_size(source.name, book.unpacked_bytes)
    header: dict[int, str] = {}
    for number, row in book.rows(_part(book, source.name, sheet)):
        where = f"{source.name}:{number}"
        cells = {at: cell.value for at, cell in row.items() if cell.value not in (None, "")}
        if not header:
            named = ((at, str(value).strip()) for at, value in cells.items() if isinstance(value, str | int))
            header = {at: name for at, name in named if name}
            if any(times > 1 for times in Counter(header.values()).values()):
                raise UnreadableFile(
                    "two columns of the sheet have the same name", where=where, hint="give each its own"
                )
        elif sum(len(value) for value in cells.values() if isinstance(value, str)) > MAX_RECORD_CHARS:
            yield Broken(where, "too_long", f"more than {MAX_RECORD_CHARS:,} characters")
        elif any(at in header for at in cells):
            yield SheetRow(where, {name: cells.get(at, "") for at, name in header.items()})


def _part(book: Workbook, name: str, wanted: str | None) -> str:
    """The part of the sheet `wanted`, of the first one without a name."""
    parts = book.sheets()
    part = next(iter(parts.values()), None) if wanted is None else parts.get(wanted)
    if part is None:
        has = ", ".join(map(shown, parts)) or "none"
        raise UnreadableFile(
            f"the spreadsheet has no sheet {wanted!r}; its sheets: {has}" if wanted else "the spreadsheet has no sheet",
            where=name,
            hint="name one of them as `sheet` in the mapping",
        )
    return part


_WRITTEN = re.compile(
    r"(?P<year>\d{4})(?:[-/](?P<month>\d{1,2})(?:[-/](?P<day>\d{1,2})"
    r"(?:[T ](?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?P<fraction>[.,]\d{1,9})?)?"
    r"\s*(?P<offset>Z|[+-]\d{2}:?\d{2})?)?)?)?",
    re.IGNORECASE,
)
_PARTS = ("year", "month", "day", "minute", "second")


def read_time(value: object, zone: tzinfo, path: str) -> tuple[datetime, str]:
    """The instant (UTC) and its precision, one of `schemas.labels.PRECISIONS`; `zone` is that of a time without one.

    Read are texts (``2025-03-04 21:15``, ISO 8601, or its first parts alone), and dates and datetimes of Parquet and of
    sheets; raises Unfit for anything else in the field `path`.
    """
    if isinstance(value, datetime):
        return _utc(value, zone), "second"
    if isinstance(value, date):
        return _utc(datetime(value.year, value.month, value.day), zone), "day"
    written = _WRITTEN.fullmatch(value.strip()) if isinstance(value, str) else None
    if written is None:
        raise Unfit("bad_time", f"`{path}` is not a time of the form 2025-03-04 21:15")
    precision = next(part for part in reversed(_PARTS) if written[part] is not None)
    year, month, day = (int(written[part] or 1) for part in ("year", "month", "day"))
    hour, minute, second = (int(written[part] or 0) for part in ("hour", "minute", "second"))
    micro = int((written["fraction"] or ".0")[1:7].ljust(6, "0"))
    offset = written["offset"]
    try:
        its_zone = datetime.strptime(offset.upper(), "%z").tzinfo if offset else zone
        return _utc(datetime(year, month, day, hour, minute, second, micro), its_zone or UTC), precision
    except (ValueError, OverflowError) as error:
        raise Unfit("bad_time", f"`{path}` is a time that cannot be") from error


def _utc(moment: datetime, zone: tzinfo) -> datetime:
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
