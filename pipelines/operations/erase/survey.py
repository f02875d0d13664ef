"""Before anything is erased: all that has to go is looked for, and nothing is changed.

Rows are found by their ids, in every version of every table and in every release; then by what they say: a row that a
model or a rule made, and that quotes 15 characters of what is erased and of no other post, goes as well. What remains
of the erased texts as runs of 8 characters that nobody else has shows where else they were copied to.
"""

import datetime as dt
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path

import polars as pl

from pipelines.core.home import Home
from pipelines.dedup.links import dialogue_links, post_links
from pipelines.errors import LedgerBusy
from pipelines.llm.ledger.ledger import Ledger
from pipelines.operations.erase.cells import texts
from pipelines.operations.erase.lineage import IDS, LOOKED_AT, Gone, Mask
from pipelines.operations.erase.places import places
from pipelines.operations.erase.plan import Plan, name_of
from pipelines.operations.erase.request import Request, Targets, targets
from pipelines.operations.erase.sieve import Sieve, keys
from pipelines.operations.erase.traces import Runs, plain
from pipelines.store.releases import Releases
from pipelines.store.store import Store
from pipelines.store.suppression import SuppressionList, words_of
from schemas.dialogues import Dialogues
from schemas.posts import Posts
from schemas.tables import TABLES

_LINKS = {"clean_posts": post_links, "clean_dialogues": dialogue_links}
_PROMPTS = ("md", "toml")
_CAME = frozenset({"raw_posts", "imported_posts", "imported_dialogues"})  # as people wrote it


def survey(home: Path, store: Store, request: Request, keeper: SuppressionList) -> tuple[Plan, Runs]:
    """What has to be done, and the runs of what goes. Reads the home about twice.

    Raises RequestError for what nobody knows, DamagedVersion for a version and DamagedRelease for a release that cannot
    be read, LedgerBusy where a question about it is under way, or in a batch that is not collected.
    """
    releases = Releases(home)
    for name in releases.names():
        releases.read(name)  # what is damaged now would pass for erased later
    found = targets(request, home, store)
    sieve = _by_ids(home, store, found, keeper.mask)
    _take_addresses(home, store, sieve.gone)
    wordings = _wordings(home, store, sieve, keeper)
    runs = Runs.of(*_gone_texts(home, store, sieve))
    for text in _own_texts():
        runs.elsewhere([text], source=True)
    touched, calls = _by_texts(home, store, sieve, runs)
    now = dt.datetime.now(dt.UTC)
    plan = Plan(
        erasure=name_of(now),
        began=now,
        asked={"rows": len(request.rows), "authors": len(request.authors), "files": len(request.files)},
        gone=sorted(sieve.gone.ids),
        namesakes=sorted(sieve.gone.namesakes),
        quoting={table: sorted(found) for table, found in sieve.quoting.items()},
        links=sorted(sieve.links),
        touched=sorted(touched),
        forgotten=sorted(_calls(home, calls, runs)),
        kept_out=sorted({*found.ids, *request.authors}),
        wordings=sorted(wordings),
        taken_down=sorted(_crawled(home, store) & found.ids),
        base=runs.base,
    )
    return plan, runs


def _by_ids(home: Path, store: Store, found: Targets, mask: Mask) -> Sieve:
    """All that is gone by its ids; rewritings to a persona that is gone, and what was made of those, included."""
    gone = Gone(found.ids, found.namesakes)
    grown = True
    while grown:
        grown = False
        for place in places(home, store):
            ids = place.rows.select(name for name in place.columns if name in LOOKED_AT).collect()
            grown |= gone.take(ids.filter(gone.rows(ids)))
    return Sieve(gone, mask, {table: set(keys) for table, keys in found.records.items()})


def _take_addresses(home: Path, store: Store, gone: Gone) -> None:
    """A post that goes is named by where it stood as well, unless something that stays stood there too."""
    going: set[str] = set()
    standing: set[str] = set()
    for place in places(home, store):
        if "url" in place.columns:
            rows = place.rows.select("url", *(name for name in place.columns if name in IDS)).collect()
            of_gone = gone.rows(rows)
            going.update(rows.filter(of_gone)["url"].drop_nulls())
            standing.update(rows.filter(~of_gone)["url"].drop_nulls())
    gone.ids |= {url for url in going - standing if "://" in url}
    gone.namesakes |= {url for url in standing if url in gone}


def _wordings(home: Path, store: Store, sieve: Sieve, keeper: SuppressionList) -> set[str]:
    """Codes of the words of what goes, as it came, and of nothing that stays: else that would be kept out as well."""
    going: set[str | None] = set()
    standing: set[str | None] = set()
    for place in places(home, store):
        if place.table in _CAME:
            frame = place.rows.collect()
            for rows in sieve.taken(place.table, frame):
                going.update(_said(rows))
            standing.update(_said(sieve.left(place.table, frame)[0]))
    return {code for words in going - standing if (code := keeper.wording(words))}


def _said(rows: pl.DataFrame) -> Iterator[str | None]:
    """The words of rows, and of the answers in them."""
    yield from words_of(rows)
    if "answers" in rows.columns:
        yield from words_of(rows.select(answer="answers").explode("answer", empty_as_null=False).unnest("answer"))


def _gone_texts(home: Path, store: Store, sieve: Sieve) -> tuple[set[str], set[str]]:
    """What people wrote of what goes, and what was made from that. On the way: which hashes in `splits` go with it."""
    written: set[str] = set()
    made: set[str] = set()
    stay: set[str] = set()
    for place in places(home, store):
        frame = place.rows.collect()
        said = written if _is_source(place.table) else made
        for taken in sieve.taken(place.table, frame):
            said.update(text for _, column in texts(taken) for text in column if text)
        if place.table in _LINKS:
            left, _ = sieve.left(place.table, frame)
            losing = frame.filter(sieve.losing(place.table, frame))
            going, standing = (set(_LINKS[place.table](rows)["links"].explode()) for rows in (losing, left))
            sieve.links.update(going)
            stay |= standing
    sieve.links.difference_update(stay)
    return written, made | sieve.links


def _by_texts(home: Path, store: Store, sieve: Sieve, runs: Runs) -> tuple[set[str], set[str]]:
    """Finds the rows that quote. Gives the places that lose something, and the keys of the calls that made it."""
    touched: set[str] = set()
    calls: set[str] = set()
    others: set[str] = set()
    for place in places(home, store):
        frame = place.rows.collect()
        left, changed = sieve.left(place.table, frame)
        if not _is_source(place.table):
            quoting = left.filter(_quoting(left, runs))
            sieve.quoting.setdefault(place.table, set()).update(keys(place.table, quoting))
            sieve.gone.take(quoting)
            left, changed = sieve.left(place.table, frame)
        for _, column in texts(left):
            runs.elsewhere(column, source=_is_source(place.table))
        if changed or left.height < frame.height:
            touched.add(place.name)
        if "request_key" in frame.columns:
            calls |= set(frame.join(left, on=TABLES[place.table].key(), how="anti")["request_key"])
            others |= set(left["request_key"])
    return touched, calls - others


def _is_source(table: str) -> bool:
    """Whether rows of the table say what people wrote, and nothing that was made from it."""
    return issubclass(TABLES.get(table, object), Posts | Dialogues)


def _quoting(frame: pl.DataFrame, runs: Runs) -> pl.Series:
    quoting = {int(rows[place]) for rows, column in texts(frame) for place in runs.quoting(column)}
    return pl.Series([row in quoting for row in range(frame.height)], dtype=pl.Boolean)


def _own_texts() -> Iterator[str]:
    """Our own prompts and the sentences that rules fill in: they lead to nobody."""
    folders = [files("pipelines")]
    while folders:
        for entry in folders.pop().iterdir():
            if entry.is_dir():
                folders.append(entry)
            elif entry.name.rpartition(".")[2] in _PROMPTS:
                yield entry.read_text(encoding="utf-8")


def _calls(home: Path, made: Iterable[str], runs: Runs) -> set[str]:
    """The calls that made what goes, and those whose question or answer holds a trace of it."""
    if not Home(home).ledger.exists():
        return set()
    with Ledger(Home(home).ledger) as ledger:
        known = set(made)
        found = {
            key
            for key, payload, body in ledger.bodies()
            if key in known or runs.traced(plain(payload)) or runs.traced(plain(body))
        }
        for attempt in ledger.open_attempts():
            if attempt.key not in found or attempt.lost:
                continue
            if attempt.batch is None:
                raise LedgerBusy(
                    f"a question about it is under way, for {attempt.stage}: its answer would come later",
                    where=Home(home).ledger,
                    hint="wait for whoever asks it, or end them",
                )
            raise LedgerBusy(
                f"a question about it is in batch {attempt.batch}, whose answers nobody has collected",
                where=Home(home).ledger,
                hint=f"collect it (gongqing refresh --batch), or: gongqing ledger give-up-batch {attempt.batch}",
            )
    return found


def _crawled(home: Path, store: Store) -> set[str]:
    """The ids of all posts that were crawled."""
    raw = [place.rows.select("post_id").collect() for place in places(home, store) if place.table == "raw_posts"]
    return set().union(*(rows["post_id"] for rows in raw))
