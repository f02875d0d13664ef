"""Before anything is erased: a search for everything that has to go, which changes nothing.

Rows are found by their ids, in every version and release; then by their text: a row that a model or a rule made, and
that quotes 15 characters of what is erased and of no other post, goes as well.
"""

import datetime as dt
import json
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from polars.selectors import by_name

import pipelines
from pipelines.core.files import sha256_of
from pipelines.core.home import Home
from pipelines.core.spill import slices
from pipelines.dedup.formulas import cut_formulas
from pipelines.dedup.group_keys import dialogue_keys, post_keys
from pipelines.errors import LedgerBusy, RequestError
from pipelines.llm.ledger.ledger import Ledger
from pipelines.operations.erase.documents import Plan
from pipelines.operations.erase.files import posts_of_crawls, texts_of_folder
from pipelines.operations.erase.places import Place, Places, versions
from pipelines.operations.erase.rows import DROPPED, ErasedIds, RowFilter, row_keys
from pipelines.operations.erase.server import texts_of_server
from pipelines.operations.erase.traces import Flags, TextTraces, texts_of, unescape
from pipelines.store.derived import ID_COLUMNS
from pipelines.store.releases import Releases
from pipelines.store.store import Store
from pipelines.store.suppression import SuppressionList, words_of
from schemas.dialogues import Dialogues
from schemas.posts import Posts
from schemas.tables import TABLES

_PSEUDONYM = re.compile(r"u_[0-9a-f]{16}")
_NAME = re.compile(r"[0-9A-Za-z_.-]+:[^\s\"',;，。；、（）()<>\[\]{}|]+")  # what may be an id in a text
_PART = re.compile("[#/~]")


@dataclass(frozen=True)
class Request:
    """Rows by id, all rows of authors by pseudonym, all rows that came from files; `again`: all that was erased before
    and is there again, from a backup.
    """

    rows: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    again: bool = False


def _targets(
    request: Request, home: Path, store: Store, places: Places, suppression: SuppressionList
) -> tuple[ErasedIds, dict[str, set[str]], set[str]]:
    """The posts, answers and dialogues that a request names, the keys of records that were never kept, and texts of
    theirs that no table has. Raises RequestError for a row, an author or a file that is nowhere known.
    """
    wanted = set(request.rows)
    (ids, records), written_beside = _of_files(request.files, store), set[str]()
    known, authors, whole = set(), set(), set()
    for place in places:
        if _is_source(place.table):
            written = _written(place.rows)
            known |= wanted.intersection(written["id"])
            by_author = written.filter(pl.col("author").is_in(list(request.authors)))
            ids |= set(by_author["id"])
            authors |= set(by_author["author"])
            if request.again:
                ids |= {id_ for id_, author, _ in written.rows() if id_ in suppression or author in suppression}
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
    if request.again:
        beside, written_beside = _named_beside(home, suppression)
        ids |= beside
        if not ids:
            raise RequestError(
                "nothing of what was erased is there again, by its ids",
                where=home,
                hint="GONGQING_HOME names the home, if this is another; its list is erasures/kept-out",
            )
    erased = ErasedIds(known | ids)
    erased.namesakes |= {name for name in whole - erased.ids if name in erased}
    return erased, records, written_beside


def _named_beside(home: Path, suppression: SuppressionList) -> tuple[set[str], set[str]]:
    """The suppressed ids that are named beside the tables (in Dagster's state, crawls, reviews, rollouts), and what
    records say that name one: Dagster's may come back from a backup of its own, and no table holds it then.
    """
    kept = Home(home)
    ids, written_beside = {name for name in posts_of_crawls(home) if name in suppression}, set[str]()
    for text in chain(*map(texts_of_folder, (kept.dagster, kept.review, kept.training)), texts_of_server(home)):
        plain = unescape(text.encode("utf-8", "surrogatepass"))
        names = {match[0] for match in _NAME.finditer(plain)}
        if found := {whole for name in names for whole in _wholes(name) if whole in suppression}:
            ids |= found
            written_beside.update(_said_of(text, found))
    return ids, written_beside


def _wholes(name: str) -> Iterator[str]:
    """What an id may be a part of, and itself."""
    return (name[:end] for end in (*(mark.start() for mark in _PART.finditer(name)), len(name)))


def _said_of(text: str, ids: set[str]) -> Iterator[str]:
    """The strings of all records in a JSON text, and in the JSON texts within it, that name one of some ids."""
    with suppress(ValueError):
        yield from _said_in(json.loads(text), ids)


def _said_in(value: Any, ids: set[str]) -> Iterator[str]:
    if isinstance(value, str) and value[:1] in {"{", "["}:
        yield from _said_of(value, ids)
    elif isinstance(value, list | dict):
        parts = list(value.values()) if isinstance(value, dict) else value
        strings = [part for part in parts if isinstance(part, str)]
        if isinstance(value, dict) and any(whole in ids for name in strings for whole in _wholes(name)):
            yield from strings
        for part in parts:
            yield from _said_in(part, ids)


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


_GROUP_KEYS = {"clean_posts": post_keys, "clean_dialogues": dialogue_keys}
_PROMPTS = (".md", ".toml")
_AS_WRITTEN = frozenset({"raw_posts", "imported_posts", "imported_dialogues"})


def survey(home: Path, store: Store, request: Request, suppression: SuppressionList) -> tuple[Plan, TextTraces]:
    """What has to be done, and the n-grams of what goes. Reads the home about twice.

    Raises RequestError for an empty request, an unknown row, author or file, DamagedVersion and DamagedRelease for what
    cannot be read, LedgerBusy where a question about it is under way, or in a batch that is not collected.
    """
    if request == Request():
        raise RequestError("nothing is named that should be erased", hint="name rows, --author or --file")
    releases = Releases(home)
    for name in releases.names():
        releases.read(name)  # what is damaged now would pass for erased later
    places = Places(home, store)
    erased, records, written_beside = _targets(request, home, store, places, suppression)
    named = frozenset(erased.ids)
    _add_derived(places, erased)
    row_filter = RowFilter(erased, suppression.mask, records)
    _add_group_keys(places, row_filter, store.storage.scratch())
    texts = _texts(places, row_filter, suppression)
    traces = TextTraces.of(texts.written, texts.made | row_filter.group_keys | written_beside)
    for text in _our_texts():
        traces.add_elsewhere([text], source=True)
    touched, calls = _by_texts(places, row_filter, traces)
    now = dt.datetime.now(dt.UTC)
    plan = Plan(
        erasure=f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}",
        began=now,
        asked={"rows": len(request.rows), "authors": len(request.authors), "files": len(request.files)},
        gone=sorted(erased.ids),
        namesakes=sorted(erased.namesakes),
        quoting={table: sorted(keys) for table, keys in row_filter.quoting.items()},
        links=sorted(row_filter.group_keys),
        touched=sorted(touched),
        forgotten=sorted(_calls(home, calls, traces)),
        kept_out=sorted({*named, *request.authors}),
        wordings=sorted(texts.wordings),
        taken_down=sorted(texts.crawled & named),
        base=traces.base,
    )
    return plan, traces


def _add_derived(places: Places, erased: ErasedIds) -> None:
    """Adds what was made from erased rows; rewritings to an erased persona, and what was made of those, included."""
    grown = True
    while grown:
        grown = False
        for place in places:
            ids = place.rows.select(by_name(*ID_COLUMNS, require_all=False)).collect()
            grown |= erased.add_derived(ids.filter(erased.rows(ids)))


class _Texts(NamedTuple):
    """What people wrote of what goes, what was made from that, the codes of its words, the ids of crawled posts."""

    written: set[str]
    made: set[str]
    wordings: set[str]
    crawled: set[str]


def _texts(places: Places, row_filter: RowFilter, suppression: SuppressionList) -> _Texts:
    """Reads what goes, and adds the addresses of erased posts to their ids. No address or wording counts that something
    else, which stays, has as well.
    """
    texts, erased = _Texts(set(), set(), set(), set()), row_filter.erased
    urls, urls_left = set[str](), set[str]()
    words, words_left = set[str](), pl.Series(dtype=pl.UInt64)  # of all that stays the hashes alone: these are many
    for place in places:
        if not _is_source(place.table):
            key = TABLES[place.table.removesuffix(DROPPED)].key()
            deciding = place.rows.select(by_name(*ID_COLUMNS, *key, "members", require_all=False)).collect()
            if (marks := row_filter.marks(place.table, deciding)).any():
                texts.made.update(_strings(place.rows.collect().filter(marks)))
            continue
        frame = place.rows.collect()
        for removed in row_filter.removed(place.table, frame):
            texts.written.update(_strings(removed))
            urls.update(removed["url"].drop_nulls() if "url" in removed.columns else [])
            words.update(_all_words(removed) if place.table in _AS_WRITTEN else [])
        left, _ = row_filter.split(place.table, frame)
        urls_left.update(left["url"].drop_nulls() if "url" in left.columns else [])
        if place.table in _AS_WRITTEN:
            words_left.append(_all_words(left).hash())
        if place.table == "raw_posts":
            texts.crawled.update(frame["post_id"])
    texts.wordings.update(filter(None, map(suppression.wording, _without(words, words_left))))
    erased.ids |= {url for url in urls - urls_left if "://" in url}
    erased.namesakes |= {url for url in urls_left if url in erased}
    return texts


def _strings(rows: pl.DataFrame) -> Iterator[str]:
    return (text for _, column in texts_of(rows) for text in column.to_pylist() if text)


def _add_group_keys(places: Places, row_filter: RowFilter, scratch: Path | None) -> None:
    """Adds the group keys in `splits` that go with what goes: those that nothing has which stays."""
    left = pl.Series(dtype=pl.UInt64)  # hashes: these are many
    for table, keys in _GROUP_KEYS.items():
        for rows in places.versions(table):
            # The answers of posts have their keys without their formulas.
            plain = cut_formulas(rows, 0, scratch)[0] if table == "clean_posts" else rows
            for some in slices(plain):
                row_filter.group_keys.update(keys(some.filter(row_filter.losing(table, some)))["keys"].explode())
                stays, _ = row_filter.split(table, some)
                left.append(keys(stays)["keys"].explode().hash())
            left = left.unique()
    row_filter.group_keys.intersection_update(_without(row_filter.group_keys, left))


def _all_words(rows: pl.DataFrame) -> pl.Series:
    """The words of rows, and of the answers in them."""
    words = words_of(rows)
    if "answers" in rows.columns:
        answers = rows.select(answer="answers").explode("answer", empty_as_null=False).unnest("answer")
        words = pl.concat([words, words_of(answers)])
    return words.drop_nulls()


def _without(names: Iterable[str], hashes: pl.Series) -> pl.Series:
    """Those that have none of these hashes of polars."""
    known = pl.Series(sorted(names), dtype=pl.String)
    return known.filter(~known.hash().is_in(hashes.implode()))


def _by_texts(places: Places, row_filter: RowFilter, traces: TextTraces) -> tuple[set[str], set[str]]:
    """Finds the rows that quote. Gives the places that lose something, and the keys of the calls that made it."""
    touched, calls, others = set[str](), set[str](), set[str]()
    for table in TABLES:
        while (read := _read(places.of(table), row_filter, traces)) is None:
            pass
        touched |= read.touched
        calls |= read.calls
        others |= read.others
        traces.mark_shared(read.elsewhere, source=False)
    return touched, calls - others


class _Read(NamedTuple):
    """Of a table the places that lose something, the keys of the calls that made it and of all others, and which
    n-grams of what goes stand in rows of it that stay.
    """

    touched: set[str]
    calls: set[str]
    others: set[str]
    elsewhere: Flags


def _read(places: Iterable[Place], row_filter: RowFilter, traces: TextTraces) -> _Read | None:
    """Reads a table. None where rows of it were found that quote: they go, and what was made of them may stand before
    them.
    """
    read, quote = _Read(set(), set(), set(), np.zeros(len(traces.values), bool)), False
    for place in places:
        frame = place.rows.collect()
        left, changed = row_filter.split(place.table, frame)
        matches = [(rows, traces.find(column)) for rows, column in texts_of(left)]
        for _, of_column in matches:
            if _is_source(place.table):
                traces.mark_shared(of_column.places, source=True)
            else:
                read.elsewhere[of_column.places] = True
        if not _is_source(place.table):
            quoting = left[sorted({int(rows[at]) for rows, of_column in matches for at in traces.quoting(of_column)})]
            known = row_filter.quoting.setdefault(place.table, set())
            quote |= not known.issuperset(keys := row_keys(place.table, quoting).to_list())
            known.update(keys)
            row_filter.erased.add_derived(quoting)
        if changed or left.height < frame.height:
            read.touched.update(place.names)
        if "request_key" in frame.columns:
            read.calls.update(frame.join(left, on=TABLES[place.table].key(), how="anti")["request_key"])
            read.others.update(left["request_key"])
    return None if quote else read


def _is_source(table: str) -> bool:
    """Whether rows of the table hold what people wrote, and nothing that was made from it."""
    return issubclass(TABLES.get(table, object), Posts | Dialogues)


def _our_texts() -> Iterator[str]:
    """Our own prompts and the sentences that rules fill in: they lead to nobody."""
    root = Path(pipelines.__path__[0])
    return (path.read_text(encoding="utf-8") for path in root.rglob("*") if path.suffix in _PROMPTS)


def _calls(home: Path, made: Iterable[str], traces: TextTraces) -> set[str]:
    """The calls that made what goes, and those whose question or answer holds a trace of it."""
    path, known = Home(home).ledger, set(made)
    if not path.exists():
        return set()
    with Ledger(path) as ledger:
        keys = {
            key
            for key, payload, body in ledger.bodies()
            if key in known or traces.is_trace(unescape(payload)) or traces.is_trace(unescape(body))
        }
        for attempt in ledger.open_attempts():
            if attempt.key not in keys or attempt.lost:
                continue
            what = f"under way, for {attempt.stage}: its answer would come later"
            hint = "wait for the process that asks it, or end that"
            if attempt.batch is not None:
                what = f"in batch {attempt.batch}, whose answers nobody has collected"
                hint = f"collect it (gongqing refresh --batch), or: gongqing ledger give-up-batch {attempt.batch}"
            raise LedgerBusy(f"a question about it is {what}", where=path, hint=hint)
    return keys
