"""What somebody asks to be erased, and which rows that is."""

import re
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pipelines.core.files import sha256_of
from pipelines.errors import RequestError
from pipelines.operations.erase.lineage import Gone
from pipelines.operations.erase.places import places, versions
from pipelines.operations.erase.sieve import DROPPED, keys
from pipelines.store.store import Store

_POSTS = ("raw_posts", "imported_posts", "clean_posts", "unique_posts")
_DIALOGUES = ("imported_dialogues", "clean_dialogues", "unique_dialogues", "coherent_dialogues")
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

    Raises RequestError for a request of nothing, and for a row, an author or a file that nothing is known of.
    """
    if not (request.rows or request.authors or request.files):
        raise RequestError("nothing is named that should be erased", hint="name rows, --author or --file")
    wanted = set(request.rows)
    ids, records = _of_files(request.files, store)
    found, authors, whole = set(), set(), set()
    for place in places(home, store):
        if place.table in {*_POSTS, *_DIALOGUES}:
            named, by = _named(place.rows, set(request.authors))
            found |= named & wanted
            whole |= _whole(place.rows)
            ids |= by.keys()
            authors |= set(by.values())
        elif place.table.endswith(DROPPED):
            met = place.rows.select("row_id").filter(pl.col("row_id").is_in(list(wanted))).collect()
            found |= set(met["row_id"])
    if missing := sorted(wanted - found):
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
    asked = frozenset(found | ids)
    return Targets(asked, frozenset(name for name in whole - asked if name in Gone(asked)), records)


def _named(rows: pl.LazyFrame, authors: set[str]) -> tuple[set[str], dict[str, str]]:
    """The ids of posts, answers and dialogues, and of those that the authors wrote: id → author."""
    columns = rows.collect_schema().names()
    key = "post_id" if "post_id" in columns else "dialogue_id"
    written = [rows.select(id=key, author="author" if "author" in columns else pl.lit(None, pl.String))]
    if "answers" in columns:
        answer = pl.col("answer").struct.field
        answers = rows.select(answer="answers").explode("answer", empty_as_null=False)
        written.append(answers.select(id=answer("answer_id"), author=answer("author")))
    table = pl.concat(written).collect()
    return set(table["id"]), dict(table.filter(pl.col("author").is_in(list(authors))).iter_rows())


def _whole(rows: pl.LazyFrame) -> set[str]:
    """The ids of posts and dialogues that hold a mark of parts."""
    key = "post_id" if "post_id" in rows.collect_schema().names() else "dialogue_id"
    return set(rows.filter(pl.col(key).str.contains("[#/~]")).select(key).collect().to_series())


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
                records.setdefault(table + DROPPED, set()).update(keys(table + DROPPED, dropped))
        if not known:
            raise RequestError(
                "nothing was imported from this file",
                where=file,
                hint="give the file as it was imported, or its name alone where it is no more",
            )
    return ids, records
