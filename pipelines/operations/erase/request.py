"""What a request names, and which rows that is."""

import re
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pipelines.core.files import sha256_of
from pipelines.errors import RequestError
from pipelines.operations.erase.places import places, versions
from pipelines.operations.erase.rows import DROPPED, ErasedIds, row_keys
from pipelines.store.store import Store

_SOURCES = {
    *("raw_posts", "imported_posts", "clean_posts", "unique_posts"),
    *("imported_dialogues", "clean_dialogues", "unique_dialogues", "coherent_dialogues"),
}
_PSEUDONYM = re.compile(r"u_[0-9a-f]{16}")


@dataclass(frozen=True)
class Request:
    """Rows by id, all rows of authors by pseudonym, all rows that came from files."""

    rows: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Targets:
    """The posts, answers and dialogues that a request names, by id, and the keys of records that were never kept.

    `namesakes`: other posts and dialogues whose ids look like parts of these.
    """

    ids: frozenset[str]
    namesakes: frozenset[str]
    records: dict[str, set[str]]


def targets(request: Request, home: Path, store: Store) -> Targets:
    """What a request names in all versions of all tables.

    Raises RequestError for an empty request, and for a row, an author or a file that is nowhere known.
    """
    if not (request.rows or request.authors or request.files):
        raise RequestError("nothing is named that should be erased", hint="name rows, --author or --file")
    wanted = set(request.rows)
    ids, records = _of_files(request.files, store)
    known, authors, whole = set(), set(), set()
    for place in places(home, store):
        if place.table in _SOURCES:
            written = _written(place.rows)
            known |= wanted.intersection(written["id"])
            by_author = written.filter(pl.col("author").is_in(list(request.authors)))
            ids |= set(by_author["id"])
            authors |= set(by_author["author"])
            whole |= set(written.filter(pl.col("is_whole") & pl.col("id").str.contains("[#/~]"))["id"])
        elif place.table.endswith(DROPPED):
            known |= set(place.rows.select("row_id").filter(pl.col("row_id").is_in(list(wanted))).collect()["row_id"])
    if missing := sorted(wanted - known):
        raise RequestError(
            f"no table holds, or ever dropped, a post, an answer or a dialogue {missing[0]!r}",
            where=home,
            hint="name rows as tables do (gongqing why ROW); for a round or a rewriting, its dialogue",
        )
    if unknown := sorted(set(request.authors) - authors):
        raise RequestError(
            f"nobody wrote under the pseudonym {unknown[0]!r}" if _PSEUDONYM.fullmatch(unknown[0])
            # What is no pseudonym of ours may be somebody's name.
            else "an author is named by a pseudonym",
            where=home,
            hint="take it from the column `author`: u_ and 16 hex digits",
        )  # fmt: skip
    named = frozenset(known | ids)
    erased = ErasedIds(named)
    return Targets(named, frozenset(name for name in whole - named if name in erased), records)


def _written(rows: pl.LazyFrame) -> pl.DataFrame:
    """`id` and `author` of posts, answers and dialogues, and `is_whole`: no answer."""
    columns = rows.collect_schema().names()
    key = "post_id" if "post_id" in columns else "dialogue_id"
    author = "author" if "author" in columns else pl.lit(None, pl.String)
    written = [rows.select(id=key, author=author, is_whole=True)]
    if "answers" in columns:
        answer = pl.col("answer").struct.field
        answers = rows.select(answer="answers").explode("answer", empty_as_null=False)
        written.append(answers.select(id=answer("answer_id"), author=answer("author"), is_whole=False))
    return pl.concat(written).collect()


def _of_files(files: tuple[Path, ...], store: Store) -> tuple[set[str], dict[str, set[str]]]:
    """The ids of all rows that came from the files, and the keys of what was dropped as they were read."""
    ids: set[str] = set()
    records: dict[str, set[str]] = {}
    for file in files:
        digest = sha256_of(file) if file.is_file() else None
        known = False
        for table, key in (("imported_posts", "post_id"), ("imported_dialogues", "dialogue_id")):
            for version in versions(store, table):
                notes = [run.note for run in version.manifest.runs]
                if not any(note.get("sha256") == digest if digest else note.get("file") == file.name for note in notes):
                    continue
                known = True
                where = (table, version.version, version.partition)
                ids |= set(store.read(*where).select(key).collect().to_series())
                dropped = store.read_dropped(*where).collect()
                records.setdefault(table + DROPPED, set()).update(row_keys(table + DROPPED, dropped))
        if not known:
            raise RequestError(
                "nothing was imported from this file",
                where=file,
                hint="name the file as it was imported, or its name alone where it is no more",
            )
    return ids, records
