"""An erasure: what goes, what stays, what it leaves, and what never comes back."""

import asyncio
import json
import shutil
import sqlite3
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
from erase_home import (
    HERS,
    HIS,
    MADE,
    OF_ERASED,
    OTHER_TALK,
    QUOTED,
    TALK,
    TO_HER,
    TO_HIM,
    answer,
    clean_post,
    drop,
    frame,
    post,
    question,
)
from every_byte import runs, traces
from killing import versions

from pipelines.core.files import held
from pipelines.errors import Busy, DamagedRelease, DamagedVersion, LedgerBusy, RequestError
from pipelines.llm.ledger.ledger import Ledger
from pipelines.operations.doctor import examine
from pipelines.operations.erase import documents
from pipelines.operations.erase.erasing import erase, resume
from pipelines.operations.erase.survey import Request
from pipelines.store.store import Store
from pipelines.store.suppression import SuppressionList, alone, require_no_erasure
from schemas.tables import TABLES

ASKED = Request(rows=("s:a", "s:x"))


@pytest.fixture(scope="module")
def erased(made, tmp_path_factory) -> Path:
    """The home once the post `s:a` and the dialogue `s:x` are erased. Read only."""
    home = Path(shutil.copytree(made, tmp_path_factory.mktemp("erased") / "home"))
    erase(home, ASKED)
    return home


@pytest.fixture(scope="module")
def receipt(erased):
    [path] = (erased / "erasures").glob("*.json")
    return json.loads(path.read_bytes())


@pytest.fixture
def half_done(home, monkeypatch) -> Path:
    """A home in which an erasure was broken off."""
    with monkeypatch.context() as patched:
        patched.setattr("pipelines.operations.erase.erasing.scrub_folder", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            erase(home, ASKED)
    return home


def test_before_it_the_search_finds_every_kind_of_place(made):
    """The test below would pass as well if the search found nothing anywhere."""
    found = traces(made, runs([HERS]))
    places = {"data/imported_posts", "data/clean_posts", ".dagster/index.db", ".dagster/compute", "ledger.sqlite"}
    places.add("report-zh.html")
    assert all(any(path.startswith(place) for path in found) for place in places), sorted(found)


def test_what_people_judged_of_it_goes_and_what_they_judged_of_others_stays(erased, receipt):
    store = Store(erased / "data")
    left = {name: store.read(name).collect() for name in ("review_tasks", "cer_votes", "coe_reviews", "rankings")}
    assert left["review_tasks"]["item_id"].to_list() == ["s:b", "s:y#1/1"]
    assert left["cer_votes"]["dialogue_id"].to_list() == ["s:y"]
    assert left["coe_reviews"]["post_id"].to_list() == ["s:b"]
    assert left["rankings"]["item_id"].to_list() == ["s:b"]
    folder = erased / "review" / "coe-1"
    [line] = (folder / "tasks-u_00000000000000ff.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["item_id"] == "s:b"
    assert [path.name for path in folder.glob("*.html")] == ["other.html"], "a sheet is made again by an export"
    assert receipt["reviews"] == 2


def test_answers_of_models_to_it_go_and_their_other_answers_stay(made, erased):
    assert any(path.startswith("data/model_answers") for path in traces(made, runs([HERS])))
    assert Store(erased / "data").read("model_answers", partition="tested").collect()["row_id"].to_list() == ["s:b"]


@pytest.mark.drill("privacy")
def test_no_byte_of_it_is_left(erased):
    """Neither of what was written, nor of what was made from that; nor an id that leads to it."""
    assert traces(erased, runs([*OF_ERASED, QUOTED]) - runs([HIS, TO_HIM, *OTHER_TALK])) == {}


@pytest.mark.drill("privacy")
def test_no_id_of_it_is_left(erased):
    store = Store(erased / "data")
    cells = {
        (version.table, version.version): json.dumps([rows.to_dicts() for rows in parts(store, version)], default=str)
        for version in versions(erased)
    }
    assert len(cells) > 10
    assert [place for place, text in cells.items() if any(name in text for name in ("s:a", "s:x", "s:y~P"))] == []


def parts(store, version):
    where = (version.table, version.version, version.partition)
    return [store.read(*where).collect(), store.read_dropped(*where).collect()]


def test_other_rows_and_versions_read_as_before(made, erased):
    """In every version: the same rows in the same order, but for those that are gone. Two tables lose parts: below."""
    before, after = Store(made / "data"), Store(erased / "data")
    listed = [version for version in versions(made) if version.table not in {"unique_posts", "persona_fits"}]
    assert len({version.table for version in listed}) >= 11
    for version in listed:
        now = after.version(version.table, version.version, version.partition)
        after.verify(now)
        keys, where = (TABLES[version.table].key(), ["row_id"]), (version.table, version.version)
        for old, new, key in zip(parts(before, version), parts(after, now), keys, strict=True):
            assert old.join(new, on=key, how="semi", maintain_order="left").equals(new), where
            lost = {name for row in old.join(new, on=key, how="anti").select(key).rows() for name in row}
            assert lost <= GONE, where


# By every id of a row that is gone or goes with it.
GONE = {"s:a", "s:a/2", "s:x", "s:x/seeker", "s:b", "s:b/1", "s:b/other", "s:y", "s:y~P", "s:y~P#1"}
GONE |= {"seeker", "P", "dialogue", "g0", "t0", "t2", "ra", "tested", 1}


@pytest.mark.drill("privacy")
def test_what_comes_back_with_a_backup_goes_again_without_being_named(made, erased, tmp_path):
    restored = Path(shutil.copytree(made, tmp_path / "restored"))
    shutil.rmtree(restored / "erasures", ignore_errors=True)
    shutil.copytree(erased / "erasures", restored / "erasures")
    erase(restored, Request(again=True))
    assert traces(restored, runs([*OF_ERASED, QUOTED]) - runs([HIS, TO_HIM, *OTHER_TALK])) == {}
    with pytest.raises(RequestError, match="nothing of what was erased is there again"):
        erase(restored, Request(again=True))


@pytest.mark.drill("privacy")
def test_what_comes_back_with_dagsters_state_alone_goes_again(made, erased, tmp_path):
    """No table holds it any more: it is known by the list, and by the records that name it."""
    home = Path(shutil.copytree(erased, tmp_path / "home"))
    shutil.rmtree(home / ".dagster")
    shutil.copytree(made / ".dagster", home / ".dagster")
    assert traces(home, runs(OF_ERASED))
    erase(home, Request(again=True))
    assert traces(home, runs([*OF_ERASED, QUOTED]) - runs([HIS, TO_HIM, *OTHER_TALK])) == {}


def test_rows_made_from_it_go_and_their_neighbours_stay(erased):
    store = Store(erased / "data")
    assert store.read("imported_posts").collect()["post_id"].to_list() == ["s:b"]
    assert store.read("ecot_chains").collect().is_empty(), "the chain of s:b quotes s:a"
    assert store.read("rm_triplets").collect()["row_id"].to_list() == ["s:b/generic"], "her answer was a negative"
    for table in ("rewritten_dialogues", "sampled_rewrites", "grpo_cer"):
        assert store.read(table).collect().is_empty(), "s:y was rewritten to the persona of s:x"
    assert store.read("rewrite_judgements").collect().is_empty()
    assert store.read("persona_fits").collect()["pool"].to_list() == [["s:y/seeker"]]
    assert store.read("splits").collect()["group_id"].to_list() == ["g1", "g6"]
    mask = SuppressionList(erased).mask
    [kept] = store.read("unique_posts").collect()["answers"].to_list()
    assert kept[0]["cluster_id"] == mask("s:a/1"), "ids in rows that stay are masked"
    assert store.read_dropped("unique_posts").collect()["detail"].to_list() == [f"0.93 like {mask('s:a')}"]


def test_a_version_keeps_its_name_and_says_what_it_lost(made, erased):
    before, after = Store(made / "data"), Store(erased / "data")
    old, new = before.version("imported_posts", partition="s"), after.version("imported_posts", partition="s")
    assert new.version == old.version
    [tombstone] = new.manifest.erasures
    assert (tombstone.rows, tombstone.dropped, tombstone.changed, new.rows) == (1, 0, 0, 1)
    assert "s:a" not in new.manifest.to_bytes().decode()


def test_what_lost_rows_is_made_again_and_so_are_figures_over_them_which_name_no_row(made, erased):
    tables = ("clean_posts", "ecot_chains", "agreements")
    assert all(Store(made / "data").pointer(table).inputs for table in tables)
    assert [Store(erased / "data").pointer(table).inputs for table in tables] == ["", "", ""]


def test_calls_that_made_it_or_say_it_are_forgotten_and_their_cost_stays(made, erased):
    with Ledger(made / "ledger.sqlite") as before, Ledger(erased / "ledger.sqlite") as after:
        left = [json.loads(payload)["messages"][0]["content"] for _, payload, _ in after.bodies()]
        assert left == [json.dumps({"text": HIS + "？"}, ensure_ascii=False)]
        assert sum(one.calls for one in after.spend()) == sum(one.calls for one in before.spend()) == 4
        after.check()


def test_dagster_keeps_its_events_without_the_text(erased):
    with sqlite3.connect(erased / ".dagster" / "index.db") as database:
        events = [json.loads(event) for (event,) in database.execute("SELECT event FROM event_logs ORDER BY id")]
    mask = SuppressionList(erased).mask("s:a")
    sample = {"sample": [{"post_id": mask, "text": "[erased]"}, {"post_id": "s:b", "text": HIS}]}
    assert [json.loads(event["metadata"]) for event in events] == [sample, sample]
    log = (erased / ".dagster" / "compute" / "run.out").read_text(encoding="utf-8")
    assert log == f"reading\n[erased]\ndone with {mask}\n"


def test_it_leaves_a_release_and_the_receipt_names_the_copy_on_the_hub(erased, receipt):
    manifest = json.loads((erased / "releases" / "v1" / "manifest.json").read_bytes())
    [shard] = manifest["configs"]["rm_triplets"]
    content = (erased / "releases" / "v1" / shard["path"]).read_bytes()
    assert (shard["rows"], shard["bytes"]) == (1, len(content))
    assert manifest["erasures"] == [{"erasure": receipt["erasure"], "rows": 1, "changed": 1}]
    assert manifest["findings"][0]["examples"] == [SuppressionList(erased).mask("s:a")]
    [published] = receipt["published"]
    assert (published["repo"], published["commit"]) == ("team/set", "c0ffee")
    assert "super_squash_history" in published["removal"]


def test_the_receipt_counts_and_names_nobody(erased, receipt):
    assert receipt["asked"] == {"rows": 2, "authors": 0, "files": 0}
    lost = {one["place"].split("@")[0]: one["rows"] for one in receipt["lost"]}
    assert (lost["imported_posts/s"], lost["ecot_chains"]) == (1, 2)
    assert receipt["calls"] == 3
    assert receipt["index"] is True
    text = json.dumps(receipt, ensure_ascii=False)
    assert not runs([text]) & runs([*OF_ERASED])
    assert "s:a" not in text
    assert [path.suffix for path in sorted((erased / "erasures").iterdir())].count(".plan") == 0


def test_what_a_drop_quotes_is_no_excuse_for_others_that_quote(home):
    """Nor is it where the table has more rows behind the drop."""
    store = Store(home / "data")
    rows = store.read("clean_posts").collect()
    store.write("clean_posts", rows, drop("clean_posts", "post", "s:z", "too_short", HERS[2:20]))
    store.write(
        "clean_posts", pl.concat([rows, frame("clean_posts", clean_post("q", "湖面结了冰，孩子们在上面滑来滑去"))])
    )
    erase(home, Request(rows=("s:a",)))
    assert Store(home / "data").read("ecot_chains").collect().is_empty()


def test_the_names_of_groups_and_what_was_said_of_records_that_were_not_kept_leave_logs_as_well(home):
    store, log = Store(home / "data"), home / ".dagster" / "compute" / "run.out"
    splits = store.read("splits").collect()
    names = {"g0": "g0123456789abcdef"}
    store.write("splits", splits.with_columns(pl.col("group_id").replace(names)))
    kept, lost = post("k", "湖面结了冰，孩子们在上面滑来滑去"), "unexpected field zebra-quagga"
    unread = drop("imported_posts", "record", "line 17", "not_a_post", lost)
    store.write("imported_posts", frame("imported_posts", kept), unread, partition="f", note={"file": "f.json"})
    log.write_text(f"{names['g0']} is of train\n{lost}\n", encoding="utf-8")
    erase(home, Request(rows=("s:a",), files=(Path("f.json"),)))
    assert log.read_text(encoding="utf-8") == "[erased]\n[erased]\n"


def test_an_answer_goes_alone_and_never_comes_back(home):
    erase(home, Request(rows=("s:b/1",)))
    store = Store(home / "data")
    assert [len(answers) for answers in store.read("imported_posts").collect()["answers"]] == [1, 0]
    assert traces(home, runs([TO_HIM])) == {}
    rows = frame("imported_posts", post("b", HIS, answer("s:b/1", TO_HIM), answer("s:b/2", "另一个回答")))
    kept, dropped = SuppressionList(home).sift(rows, "imported_posts")
    assert [one["answer_id"] for one in kept["answers"][0]] == ["s:b/2"]
    assert dropped["unit"].to_list() == ["answer"]


def test_an_author_goes_with_posts_and_answers_and_never_comes_back(home):
    erase(home, Request(authors=("u_00000000000000aa",)))
    store = Store(home / "data")
    rows = store.read("imported_posts").collect()
    assert (rows["post_id"].to_list(), rows["answers"].list.len().to_list()) == (["s:b"], [0])
    new = frame("imported_posts", post("new", "换了一个地方再写一次", author="u_00000000000000aa"))
    assert SuppressionList(home).sift(new, "imported_posts")[0].is_empty()


def test_what_was_erased_comes_back_neither_at_another_address_nor_in_a_file_of_another_name(home):
    copy = frame("imported_posts", post("copy", HIS))  # somebody else's, which stands
    Store(home / "data").write("imported_posts", copy, partition="other")
    erase(home, Request(rows=("s:a", "s:b", "s:x")))
    came = frame("imported_posts", post("new", HERS), post("new2", "别的", answer("s:new2/1", TO_HER)), post("c", HIS))
    kept, _ = SuppressionList(home).sift(came, "imported_posts")
    assert kept["post_id"].to_list() == ["s:new2", "s:c"], "what stands elsewhere is kept out nowhere"
    assert kept["answers"].list.len().to_list() == [0, 0]
    talk = Store(home / "data").read("imported_dialogues").collect()
    assert SuppressionList(home).sift(talk, "imported_dialogues")[0].height == talk.height == 1


def test_half_a_fetch_goes_and_unmanaged_files_are_named_and_left(home):
    half = home / "releases" / ".fetching" / "c0ffee" / "sft_coe" / "train-00000-of-00001.parquet"
    half.parent.mkdir(parents=True)
    pl.DataFrame({"row_id": ["s:a"], "text": [HERS]}).write_parquet(half)
    notes = home / "out" / "notes.md"
    notes.parent.mkdir()
    notes.write_text(f"s:a: {HERS}", encoding="utf-8")
    (home / "out" / "s:b.md").write_text(HIS, encoding="utf-8")
    [receipt] = erase(home, ASKED)
    assert not half.exists(), "a fetch would go on from there, past the erasure"
    assert (receipt.elsewhere, notes.read_text(encoding="utf-8")) == (["out/notes.md"], f"s:a: {HERS}")


def test_what_is_left_of_a_plan_that_was_never_whole_or_is_done_goes(home):
    erasures = home / "erasures"
    erasures.mkdir(exist_ok=True)
    for name in ("20260101T000000-abcdef.plan.part", "20260101T000000-abcdef.runs", "kept-out.part"):
        (erasures / name).write_text("s:a", encoding="utf-8")
    assert resume(home) == []
    assert list(erasures.iterdir()) == []


def test_what_nobody_knows_is_refused_before_anything_is_done(home):
    before = {path: path.read_bytes() for path in (home / "data").rglob("*.parquet")}
    for request, message in (
        (Request(), "nothing is named"),
        (Request(rows=("s:nobody",)), "no table holds"),
        (Request(rows=("s:x#1",)), "no table holds"),
        (Request(authors=("王小明",)), "named by a pseudonym"),
        (Request(authors=("u_0123456789abcdef",)), "nobody wrote under"),
        (Request(files=(Path("other.json"),)), "nothing was imported"),
    ):
        with pytest.raises(RequestError, match=message) as caught:
            erase(home, request)
        assert "王小明" not in str(caught.value)
    assert {path: path.read_bytes() for path in (home / "data").rglob("*.parquet")} == before
    assert list(documents.unfinished(home)) == []


def test_while_one_is_unfinished_nothing_else_is_made_and_the_doctor_names_it(half_done):
    with pytest.raises(Busy, match="not finished"), alone(half_done):
        pass
    with pytest.raises(Busy, match="erase --resume"):
        require_no_erasure(half_done)
    [finding] = [one for one in examine(half_done) if one.what == "erasures"]
    assert (finding.state, "gongqing erase --resume" in finding.detail) == ("broken", True)
    [receipt] = resume(half_done)
    assert receipt.calls == 3
    require_no_erasure(half_done)
    assert [one for one in examine(half_done) if one.what == "erasures"] == []


@pytest.mark.drill("race")
def test_neither_a_refresh_nor_an_export_is_disturbed(home):
    """The command line and a run of Dagster hold the same lock; the receipt could not name an export's place."""
    with held(home / "refresh.lock"), pytest.raises(Busy, match="a refresh, a release or an erasure is at work"):
        erase(home, ASKED)
    with held(home / ".locks" / "giving", shared=True), pytest.raises(Busy, match="being exported"):
        erase(home, ASKED)
    assert list(documents.unfinished(home)) == []


def test_a_question_in_a_batch_that_nobody_collected_comes_first(home):
    """Its answer would bring back what is erased."""
    with Ledger(home / "ledger.sqlite") as ledger:
        planned = ledger.batches.plan("m", "https://example.org", [question(f"{HERS}。", "topics")], [1], None)
    with pytest.raises(LedgerBusy, match=f"batch {planned.batch.id}"):
        erase(home, ASKED)
    with Ledger(home / "ledger.sqlite") as ledger:
        ledger.batches.give_up(planned.batch.id)
    [receipt] = erase(home, ASKED)
    assert receipt.calls == 4
    assert traces(home, runs([HERS])) == {}
    assert [one.host for one in receipt.at_hosts] == ["https://example.org"]


def test_a_question_under_way_comes_first(home):
    """A notebook, say, that no lock of ours knows of."""
    with Ledger(home / "ledger.sqlite") as other:
        attempt = asyncio.run(other.begin(question(f"{HERS}。", "topics"), reserve=1, budget=None))
        with pytest.raises(LedgerBusy, match="under way, for topics"):
            erase(home, ASKED)
        assert list(documents.unfinished(home)) == []
        asyncio.run(other.failed(attempt, "timeout", billed=False))
    erase(home, ASKED)
    assert traces(home, runs([HERS])) == {}


def test_a_damaged_release_or_version_comes_first(home):
    """Rows that somebody else took out of it would pass for erased, and the release for whole."""
    [shard] = (home / "releases" / "v1" / "rm_triplets").glob("*.parquet")
    rows = pq.read_table(shard)
    shard.unlink()
    pq.write_table(rows.slice(0, 1), shard)
    with pytest.raises(DamagedRelease):
        erase(home, ASKED)
    shard.unlink()
    with pytest.raises(DamagedRelease, match="missing"):
        erase(home, ASKED)
    shutil.rmtree(home / "releases" / "v1")
    version = Store(home / "data").version("ecot_chains")
    (home / "data" / "ecot_chains" / version.version / version.manifest.files[0].path).write_bytes(b"")
    with pytest.raises(DamagedVersion):  # nobody knows what is in it
        erase(home, ASKED)
    assert list(documents.unfinished(home)) == []


def test_a_release_that_is_taken_away_in_between_stops_it_for_no_longer_than_it_must(home, made, monkeypatch):
    monkeypatch.setattr("pipelines.operations.erase.erasing.erase_from_releases", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        erase(home, ASKED)
    monkeypatch.undo()
    [shard] = (home / "releases" / "v1" / "rm_triplets").glob("*.parquet")
    shard.unlink()
    with pytest.raises(DamagedRelease, match="erase --resume"):
        resume(home)
    shutil.rmtree(home / "releases" / "v1")
    [receipt] = resume(home)
    assert [one.place for one in receipt.lost if one.place.startswith("releases")] == []


def test_a_later_erasure_finishes_what_was_begun(half_done):
    first, second = erase(half_done, Request(rows=("s:b",)))
    assert (first.asked["rows"], second.asked["rows"]) == (2, 1)
    assert traces(half_done, runs([HERS, HIS, MADE, *TALK])) == {}
    assert Store(half_done / "data").read("imported_posts").select(pl.len()).collect().item() == 0
