"""The writers that `crash_drill` kills, a line each in WRITERS; imported without starting a worker of polars."""

import asyncio
import datetime as dt
import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crash_drill import Writer
from crawl_home import DAY, end_of, item
from crawl_home import Home as CrawlHome
from erase_home import HIS, OF_ERASED, OTHER_TALK, QUOTED, TO_HIM, frame, make_home
from every_byte import runs, traces
from killing import current, leftovers, versions
from labelled_rows import TURN, candidate
from ledger_calls import answer, call, key_of, opened, run
from release_rows import made, triplets
from reviewed import label, lines, read_tasks
from store_rows import TABLE, drops, groups
from table_rows import dialogue_of, row_of
from table_rows import frame as rows_of

from pipelines.flow.refresh import refresh
from pipelines.ingest.import_file import import_file
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Attempt
from pipelines.operations.erase.erasing import erase, resume
from pipelines.operations.erase.survey import Request
from pipelines.operations.review.exporting import export, task_file
from pipelines.operations.review.importing import import_labels
from pipelines.settings import ROOT, Settings, make_author_key
from pipelines.store.release_manifest import LeftOut
from pipelines.store.releases import Releases
from pipelines.store.store import Store
from pipelines.store.suppression import SuppressionList
from schemas.annotations import CerCandidates
from schemas.dialogues import CoherentDialogues
from schemas.tables import TABLES
from schemas.training import SampledTurns, Splits

# What holds of any home


def tables(home: Path) -> dict[str, Any]:
    """Every version with its runs and a digest of its rows, read and verified; the current ones; and what is left."""
    store, made = Store(home / "data"), {"current": current(home), "left": leftovers(home)}
    for version in versions(home):
        store.verify(version)
        where = (version.table, version.version, version.partition)
        parts = [read(*where).collect() for read in (store.read, store.read_dropped)]
        rows = "".join(part.drop("detail", strict=False).write_ndjson() for part in parts)
        codes = [run.code for run in version.manifest.runs]
        made[" ".join(map(str, where))] = [hashlib.sha256(rows.encode()).hexdigest(), codes]
    return made


def whole(home: Path) -> None:
    """No current version is damaged, whatever was killed."""
    store = Store(home / "data")
    for version in (one for table in TABLES for one in store.current(table)):
        store.verify(version)


# A version of a table


def write_old(home: Path) -> None:
    Store(home / "data").write(TABLE, groups(60, "old"), drops("p1"), code="1")


def write_new(home: Path, code: str = "2") -> None:
    Store(home / "data").write(TABLE, groups(90, "new"), drops("p1", "p2"), code=code)


def write_both(home: Path) -> None:
    """The new content is known, and the old one current."""
    write_new(home)
    write_old(home)


def write_and_damage(home: Path) -> None:
    """The new content is current, and cut short."""
    write_both(home)
    write_new(home)
    store = Store(home / "data")
    version = store.version(TABLE)
    path = Path(store.storage.uri(f"{TABLE}/{version.version}/{version.manifest.files[0].path}"))
    path.write_bytes(path.read_bytes()[:100])


# Rows that come in


def import_posts(home: Path) -> None:
    posts = ROOT / "samples" / "posts.jsonl"
    import_file(Store(home / "data"), home, "mapped", posts, data_set="sample", mapping=posts.with_suffix(".toml"))


def crawl_two_days(home: Path) -> None:
    """A crawl has ended, and nobody has collected it."""
    rows = [item(str(n), f"第{n}篇", f"{DAY + dt.timedelta(days=n % 2)}T09:00:00+00:00") for n in range(6)]
    end_of(CrawlHome(home).prepare(DAY, DAY + dt.timedelta(days=1)), *rows)


def collect_crawl(home: Path) -> None:
    """As the command that crawls the next window begins."""
    CrawlHome(home).prepare(DAY + dt.timedelta(days=9))


# A refresh


def home_to_refresh(home: Path) -> None:
    """Two dialogues, and posts, whose stages load no dictionary and no kernel: these would be loaded in every fork."""
    store, made = make_home(home), {"provider": "openai", "model_asked": "m", "prompt_version": "p@1", "why": "w"}
    made |= {"group_id": "g0", "script": "simplified", "cluster_id": "s:x", "cluster_size": 1}
    made |= {"verdict": "keep", "request_key": "k"}
    talks = store.read("imported_dialogues").collect().to_dicts()
    store.write("coherent_dialogues", frame("coherent_dialogues", *(one | made for one in talks)))


def refresh_some(home: Path) -> None:
    refresh(home, Settings(), select=["sampled_turns", "grpo_ecot", "grpo_cer"])


# A release


def release(home: Path) -> None:
    """As `pipelines.release.assemble` goes about it: written, published, then pointed to."""
    if "v1" not in Releases(home):
        rows = [(f"s:{number}/a", ("train", "test")[number % 2]) for number in range(40)]
        gone = LeftOut(config="rm_triplets", check="text_reuse", count=1, row_ids=["s:40/a"])
        made(home, "v1", {"rm_triplets": triplets(*rows)}, left_out=[gone])
    Releases(home).promote("v1")


def read_releases(home: Path) -> list[Any]:
    return [Releases(home).read(name) for name in Releases(home).names()]


def released(home: Path) -> dict[str, Any]:
    current = Releases(home).current()
    held = current and [current.content, *(one.model_dump() for one in current.left_out)]
    return {"names": Releases(home).names(), "holds": held, "left": leftovers(home)}


# An erasure


def home_to_erase_in(home: Path) -> None:
    make_home(home)
    SuppressionList(home).mask("s:a/1")  # by a key that is drawn once: all copies have the same


def erase_or_resume(home: Path) -> None:
    if any(path.suffix in (".plan", ".json") for path in (home / "erasures").glob("*")):
        resume(home)
    else:
        erase(home, Request(rows=("s:a", "s:x")))


def erased(home: Path) -> dict[str, Any]:
    """The tables, and the files in which a byte of what was erased is left."""
    wanted = runs([*OF_ERASED, QUOTED]) - runs([HIS, TO_HIM, *OTHER_TALK])
    return tables(home) | {"traces": traces(home, wanted)}


# The ledger

CALLS, AT_ONCE, CAP, RESERVE = 6, 3, 1000, 10


def ask(home: Path) -> None:
    """Each call is "sent" by a line in the log, takes 2 ms, costs its whole reserve, and is "kept" by another line."""
    log = os.open(home / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def some(ledger: Ledger, budget: int, numbers: Iterator[int]) -> None:
        for number in numbers:
            begun = await ledger.begin(call(number), reserve=RESERVE, budget=budget)
            if isinstance(begun, Attempt):
                os.write(log, f"sent {begun.call.key}\n".encode())
                await asyncio.sleep(0.002)
                await ledger.answered(begun, answer(number, RESERVE))
                os.write(log, f"kept {begun.call.key}\n".encode())

    async def all_of_them(ledger: Ledger, budget: int) -> None:
        numbers = iter(range(CALLS))
        await asyncio.gather(*(some(ledger, budget, numbers) for _ in range(AT_ONCE)))

    with Ledger(home / "ledger.sqlite") as ledger:
        run(all_of_them(ledger, opened(ledger, CAP).id))


def is_sound(home: Path) -> None:
    """No answer is lost, no call left that the ledger does not know of, and the budget holds what was lost."""
    log = home / "log"
    written = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    sent, kept = (Counter(key for kind, key in written if kind == wanted) for wanted in ("sent", "kept"))
    with Ledger(home / "ledger.sqlite") as ledger:
        ledger.check()
        answered = ledger.recorded([key_of(number) for number in range(CALLS)]).keys()
        assert kept.keys() <= answered, "an answer is lost"
        open_ = ledger.open_attempts()
        assert all(one.lost for one in open_), "a dead process passes for a living one"
        lost = Counter(one.key for one in open_)
        for key, times in sent.items():
            assert times <= lost[key] + (key in answered), "a call left that the ledger does not know of"
        assert len(open_) <= AT_ONCE
        if budget := ledger.budget("refresh"):
            assert (budget.spent, budget.held) == (RESERVE * len(answered), RESERVE * len(open_))


def all_answered(home: Path) -> dict[str, Any]:
    is_sound(home)
    sessions = [path.name for path in (home / "ledger.sqlite-sessions").iterdir()]
    with Ledger(home / "ledger.sqlite") as ledger:
        known = ledger.recorded([key_of(number) for number in range(CALLS)])
        return {"known": len(known), "spent": str(sum(one.cost for one in ledger.spend())), "sessions": sessions}


STORE, FILES = ("store/",), ("store/", "core/files.py")
# Not the loops over strings and cells: they change nothing, and would be most of the steps.
ERASING = tuple(f"operations/erase/{name}.py" for name in ("erasing", "documents", "files", "places"))
# How many kills: over all steps, over the first steps of functions, and at random times.
# Labels that come back


def home_with_labels(home: Path) -> None:
    """Three candidates went out to two people, who have labelled them: two alike, the third otherwise."""
    store = Store(home / "data")
    spoken = ("seeker: 我睡不着", "supporter: 多久了？", "seeker: 一个月", "supporter: 辛苦了。")
    named = [{"dialogue_id": f"s:{n}", "group_id": f"g{n}"} for n in (1, 2, 3)]
    talks = [dialogue_of(CoherentDialogues, n, *spoken, group_id=f"g{n}", verdict="keep") for n in (1, 2, 3)]
    store.write("coherent_dialogues", rows_of(CoherentDialogues, *talks))
    store.write("sampled_turns", rows_of(SampledTurns, *(TURN | one for one in named)))
    store.write("cer_candidates", rows_of(CerCandidates, *(candidate(**one) for one in named)))
    given = [row_of(Splits, group_id=f"g{n}", split="train", given_at="v") for n in (1, 2, 3)]
    store.write("splits", rows_of(Splits, *given))
    exported = export(home, Settings(), "cer", ["甲", "乙"], out=home / "out")
    for place, one in enumerate(exported.tasks):
        tasks = read_tasks(task_file(exported.folder, one))
        said = [label(task, preference="both", step1=place == 0 or task.item_id != "s:3#2/1") for task in tasks]
        (home / f"labels-{place}.jsonl").write_text(lines(*said), encoding="utf-8")


def import_them(home: Path) -> None:
    import_labels(home, "cer", [home / "labels-0.jsonl", home / "labels-1.jsonl"])


def labelled(home: Path) -> None:
    """All votes are there, or none; and no label without its votes."""
    store = Store(home / "data")
    votes = store.read("cer_votes").collect().height if store.current("cer_votes") else 0
    labels = store.read("cer_labels").collect().height if store.current("cer_labels") else 0
    assert (votes, labels) in ((0, 0), (6, 0), (6, 2))


WRITERS = {
    "a version": Writer(write_old, write_new, tables, STORE, 20, 40, 6, whole),
    "a run of a known version": Writer(write_both, lambda home: write_new(home, "3"), tables, STORE, 15, 20, 5, whole),
    "a version that was damaged": Writer(write_and_damage, write_new, tables, STORE, 15, 10),
    "an import": Writer(make_author_key, import_posts, tables, ("ingest/import_file.py", *FILES), 4, 11, 2, whole),
    "a crawl that is collected": Writer(crawl_two_days, collect_crawl, tables, ("crawl/", *FILES), 7, 17, 2, whole),
    "labels of people": Writer(
        home_with_labels, import_them, tables, ("operations/review/", *FILES), 7, 10, 2, labelled
    ),
    "a refresh": Writer(home_to_refresh, refresh_some, tables, ("flow/", *FILES), 7, 14, 2, whole),
    "a release": Writer(write_old, release, released, FILES, 12, 20, 4, read_releases),
    "an erasure": Writer(home_to_erase_in, erase_or_resume, erased, (*ERASING, "llm/ledger/", *FILES), 7, 8),
    "the ledger": Writer(lambda home: None, ask, all_answered, ("llm/ledger/",), 25, 10, 10, is_sound),
}
