"""`read`: a public data set as a table, with all that could not be kept and why."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pipelines.errors import RequestError, UnreadableFile
from pipelines.ingest import jsons
from pipelines.ingest.files import ARCHIVES, decode, members
from pipelines.ingest.records import Broken, DataSet, Source
from pipelines.ingest.registry import find
from pipelines.ingest.rows import Rows
from pipelines.store.reconciliation import Reconciliation, count, require_balance
from schemas.table import Dropped

_BINARY = (".parquet", ".xlsx")
_SOURCE = re.compile(r"[a-z0-9][a-z0-9_.-]*")
# The keys by which records of JSON are known, for the message when somebody names the wrong set; the first that fits.
_KEYS = {
    "psyqa": {"question", "answers"},
    "esconv": {"dialog", "emotion_type"},
    "avamerg": {"conversation_id", "turns"},
    "emollm": {"conversation"},
    "sharegpt": {"conversations"},
    "soulchat": {"messages"},
    "llama_factory": {"instruction", "output"},
    "smile": {"role", "content"},
}


@dataclass(frozen=True)
class Imported:
    """A data set that was read."""

    table: str  # imported_posts or imported_dialogues
    kept: pl.DataFrame  # `schemas.posts.ImportedPosts` or `schemas.dialogues.ImportedDialogues`
    dropped: pl.DataFrame  # `schemas.table.Dropped`, in the units record and answer
    unknown_strategies: dict[str, int]  # names in the rows kept that the cross-walk lacks, and how often each occurs
    encoding: str  # the encodings of the files, or parquet, or xlsx
    n_records: int  # those kept, and those dropped
    n_answers: int  # with posts kept and dropped
    notes: dict[str, int]  # what was done to the rows kept: turns joined, empty utterances left out …


def read(
    name: str,
    path: Path,
    *,
    data_set: str | None = None,
    author_key: bytes | None = None,
    mapping: Path | None = None,
) -> Imported:
    """Reads the data set `name` at `path`: a file, a folder, or an archive.

    Args:
        name: One of `registry.READERS`.
        path: Where the set lies.
        data_set: What the rows call it, and what their ids begin with; default: `name`.
        author_key: Of the pseudonyms, 16 bytes or more; needed where a mapping names authors.
        mapping: The mapping file, for `mapped` alone.

    Raises UnknownName for a set without a reader; UnreadableFile for a file that is missing, empty, in no known
    encoding, or of another form altogether; RequestError for a mapping that is missing or not wanted, or a missing
    key; Unaccounted if a record were lost.
    """
    data_set_read, source = _data_set(name, mapping, author_key), data_set or name
    if not _SOURCE.fullmatch(source):
        raise RequestError(f"a data set cannot be called {source!r}", hint="use small letters, digits, _ . and -")
    rows = Rows(data_set_read, source, author_key)
    encodings: set[str] = set()
    broken: list[Broken] = []
    n_records = 0
    first: Source | None = None
    for file in _sources(data_set_read, path):
        if isinstance(file, Broken):
            n_records += 1
            broken.append(file)
            continue
        encodings.add(file.encoding)
        for record in data_set_read.read(file):
            n_records += 1
            broken += [record] if isinstance(record, Broken) else rows.add(record)
        first = None if rows.ids else first or file  # for the message, where nothing of it could be read
        del file  # before the next is read
    if not n_records:
        raise UnreadableFile("there is no record in it", where=path, hint="check that it is the right file")
    if first is not None and not rows.ids and all(one.reason == "wrong_form" for one in broken):
        raise _wrong_form(name, path, first, broken[0])
    table, kept, dropped = data_set_read.table, rows.frame(), _dropped(broken, data_set_read.table)
    units = Counter(dropped["unit"])
    reconciliations = [Reconciliation("record", n_records, kept.height, units["record"])]
    if table == "imported_posts":
        reconciliations.append(Reconciliation("answer", rows.n_answers, count(kept, "answer"), units["answer"]))
    require_balance(table, reconciliations)
    return Imported(
        table=table,
        kept=kept,
        dropped=dropped,
        unknown_strategies=dict(rows.unknown_strategies.most_common()),
        encoding=", ".join(sorted(encodings)),
        n_records=n_records,
        n_answers=rows.n_answers,
        notes={note: n for note, n in sorted(rows.notes.items()) if n},
    )


def _data_set(name: str, mapping: Path | None, author_key: bytes | None) -> DataSet:
    data_set = find(name)
    if author_key is not None and len(author_key) < 16:
        raise RequestError("the author key is too short", hint="use 16 bytes or more")
    if name != "mapped":
        if mapping is not None:
            raise RequestError(f"{name} has a reader: it takes no mapping file", hint="import `mapped`")
        return data_set
    if mapping is None:
        raise RequestError("`mapped` needs a mapping file", hint="say which field of the file goes where")
    from pipelines.ingest import mapped
    from pipelines.ingest.mapping import load

    loaded = load(mapping)
    if loaded.names_authors and author_key is None:
        raise RequestError(
            "the mapping names authors, and there is no key for their pseudonyms",
            where=mapping,
            hint="set GONGQING_AUTHOR_KEY, or take the authors out of the mapping",
        )
    return mapped.data_set(loaded)


def _sources(data_set: DataSet, path: Path) -> Iterator[Source | Broken]:
    """The files with their texts. One that is a record by itself and cannot be read is Broken, unless it is all."""
    alone = path.is_file() and not path.name.lower().endswith(ARCHIVES)
    for name, data in members(path, data_set.suffixes):
        if name.lower().endswith(_BINARY):
            yield Source(name, data, "", name.lower().rpartition(".")[2])
            continue
        try:
            text, encoding = decode(data, where=path if alone else f"{path}: {name}", stated=data_set.encoding)
        except UnreadableFile as error:
            if alone or not data_set.record_a_file:
                raise
            yield Broken(name, "unknown_encoding", error.what)
            continue
        del data
        if text and not text.isspace():
            yield Source(name, b"", text, encoding)
            del text  # before the next is read
        elif alone:
            raise UnreadableFile("the file is empty", where=path, hint="fetch it again")
        else:
            yield Broken(name, "empty_file")


def _wrong_form(name: str, path: Path, first: Source, broken: Broken) -> UnreadableFile:
    """Names the set that the file looks like, by the first of its records."""
    element = next(jsons.elements(first), None) if first.text.lstrip().startswith(("[", "{")) else None
    value = element.value if isinstance(element, jsons.Element) else None
    for other, keys in _KEYS.items():
        if other != name and isinstance(value, dict) and value.keys() >= keys:
            what = f"this looks like {other}, not {name}: it has {' and '.join(f'`{key}`' for key in sorted(keys))}"
            return UnreadableFile(what, where=path, hint=f"gongqing import {other} {path}")
    what = f"this is not {name}: the first record {broken.detail}"
    return UnreadableFile(what, where=path, hint=f"{name} is {find(name).about}")


def _dropped(broken: list[Broken], table: str) -> pl.DataFrame:
    seen: Counter[tuple[str, str]] = Counter()
    rows = []
    for one in broken:
        seen[one.unit, one.where] += 1
        again = seen[one.unit, one.where]  # an archive may hold two members of one name
        where = one.where if again == 1 else f"{one.where} ({again})"
        rows.append({"stage": table, "unit": one.unit, "row_id": where, "reason": one.reason, "detail": one.detail})
    return Dropped.validate(pl.DataFrame(rows, schema=Dropped.polars_schema()))
