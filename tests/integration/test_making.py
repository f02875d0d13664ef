"""Making tables: what is stale, what is run, and that nothing vanishes on the way."""

import shutil
import subprocess
from dataclasses import replace
from functools import wraps
from pathlib import Path

import polars as pl
import pytest
from fake_model import FakePool
from web_ui import GONGQING, environment_of

from pipelines.errors import DamagedVersion, NoVersion, RequestError, Shrunk, Unaccounted
from pipelines.flow.clients import ClientPool
from pipelines.flow.runner import Runner, Status, _require_size, parents_of, reconciliations, run_of
from pipelines.flow.stages import STAGES
from pipelines.settings import Annotate, Llm, PostSizes, Sampling, Settings, Splits
from pipelines.store import Store
from schemas.dropped import drops
from schemas.tables import TABLES

BY_NAME = {stage.name: stage for stage in STAGES}


@pytest.fixture
def store(sample_home: Path, tmp_path: Path) -> Store:
    """A copy of the sample home's tables, to be written to."""
    shutil.copytree(sample_home / "data", tmp_path / "data")
    return Store(tmp_path / "data")


def stale(store: Store, settings: Settings | None = None) -> list[str]:
    runner = Runner(store, settings or Settings())
    return [stage.name for stage in STAGES if runner.is_stale(stage)]


def run(store: Store, *names: str, settings: Settings | None = None, clients: ClientPool | None = None):
    """Runs stages one after another; gives the versions of the last."""
    return [Runner(store, settings or Settings(), clients).run(BY_NAME[name]) for name in names][-1]


def run_all(store: Store) -> None:
    run(store, *BY_NAME, clients=FakePool(None, Settings().llm))


@pytest.mark.parametrize("home", ["sample_store", "real_store"])
def test_rows_in_are_rows_kept_and_rows_dropped(home, request):
    store = request.getfixturevalue(home)
    by_table = {table: reconciliations(stage, table, store) for stage in STAGES for table in stage.units}
    assert all(by_table.values())
    unlabelled = {"rm_process", "rm_outcome", "rm_unified"}  # people give labels later
    for table, counts in by_table.items():
        assert all(one.balanced for one in counts), (table, counts)
        assert table in unlabelled or all(one.taken > 0 or one.unit == "label" for one in counts), table


def test_a_changed_setting_or_model_makes_stale_what_reads_it_and_nothing_else(sample_store):
    assert stale(sample_store) == []
    assert stale(sample_store, Settings(sampling=Sampling(n_samples=2))) == ["sampled_turns", "sampled_rewrites"]
    assert stale(sample_store, Settings(sampling=Sampling(variants=("none",)))) == ["sampled_rewrites", "grpo_cer"]
    assert stale(sample_store, Settings(annotate=Annotate(coe="vllm-local"))) == ["coe_chains"]


def test_code_that_changes_nothing_gives_the_same_version(store, monkeypatch):
    before = store.version("clean_posts")
    monkeypatch.setattr("pipelines.flow.runner.code_version", lambda *_: "another")
    assert "clean_posts" in stale(store)
    (after,) = run(store, "clean_posts")
    assert after.version == before.version
    assert [run.code for run in after.manifest.runs] == [before.manifest.runs[0].code, "another"]


def test_another_parent_version_makes_stale_what_follows_and_a_promoted_one_has_the_books_of_its_own_parents(store):
    imported = store.read("imported_posts", partition="sample").collect()
    first = store.version("unique_posts").version
    store.write("imported_posts", imported.head(100), partition="sample")
    assert stale(store) == ["clean_posts"]
    run(store, "clean_posts")
    assert "unique" in stale(store)
    run(store, "unique")
    store.promote("unique_posts", first)
    assert all(one.balanced for one in reconciliations(BY_NAME["unique"], "unique_posts", store))


def test_a_promoted_version_is_not_undone_until_something_upstream_changes(store):
    first = store.version("sampled_turns")
    run(store, "sampled_turns", settings=Settings(sampling=Sampling(n_samples=1)))
    run(store, "sampled_turns")
    older = next(one for one in store.versions("sampled_turns") if one.version != first.version)
    store.promote("sampled_turns", older.version)
    assert "sampled_turns" not in stale(store)
    assert "grpo_cer" in stale(store)
    assert "sampled_turns" in stale(store, Settings(sampling=Sampling(n_samples=4)))


def test_a_step_that_loses_rows_writes_nothing(store):
    stage = BY_NAME["clean_dialogues"]
    before = store.version("clean_dialogues").version
    taken = store.version("imported_dialogues", partition="sample").rows

    def forget(imported_dialogues, settings):
        return tuple(frame.head(3) for frame in stage.function(imported_dialogues, settings))

    with pytest.raises(Unaccounted, match=rf"dialogue: {taken} in, 3 kept, [123] dropped"):
        Runner(store, Settings()).run(replace(stage, function=forget))
    assert store.version("clean_dialogues").version == before


def test_a_refresh_equals_a_full_run(sample_store, tmp_path):
    """Half of the posts first, then all: the same posts, and groups keep the split that they were given."""
    store = Store(tmp_path / "data")
    posts = sample_store.read("imported_posts", partition="sample").collect()
    splits = []
    for part in (posts.head(60), posts):
        store.write("imported_posts", part, partition="sample")
        run(store, "clean_posts", "clean_dialogues", "unique")
        splits.append(dict(store.read("splits").select("group_id", "split").collect().iter_rows()))
    assert splits[0].items() <= splits[1].items()
    kept = set(store.read("unique_posts").collect()["post_id"])
    bridges = store.read_dropped("unique_posts").filter(pl.col("reason") == "bridges_split").collect()
    assert kept | set(bridges["row_id"]) == set(sample_store.read("unique_posts").collect()["post_id"])


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
def test_ray_gives_the_same_versions(store, tmp_path):
    """Of a few posts: that Ray finds what one process finds, at size, is tests/e2e/test_on_ray.py's."""
    made = Store(tmp_path / "home/data")
    made.write("imported_posts", store.read("imported_posts").head(25).collect(), partition="sample")
    stages = ("clean_posts", "clean_dialogues", "unique", "grpo_ecot")
    versions = [version.version for stage in stages for version in run(made, stage)]
    for table in ("clean_posts", "splits", "grpo_ecot"):  # so that the stages have something to do
        made.write(table, made.read(table).collect().clear())
    command = [GONGQING, "refresh", *(word for stage in stages for word in ("--select", stage)), "--engine", "ray"]
    # A process of its own: Ray's threads write to the output of the one that they are in, also once it is closed.
    ran = subprocess.run(command, env=environment_of(tmp_path / "home"), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    tables = [table for stage in STAGES if stage.name in stages for table in stage.tables]
    assert [made.version(table).version for table in tables] == versions
    again = made.version("clean_posts").manifest.files
    assert all(file.made_from for file in again)  # piece by piece


def test_empty_sources_make_empty_tables(tmp_path):
    store = Store(tmp_path / "data")
    run_all(store)
    made = [store.version(table) for stage in STAGES for table in stage.tables]
    assert made
    for version in made:
        assert version.rows == version.dropped == 0
        assert store.read(version.table).collect().schema == TABLES[version.table].polars_schema()


def test_promoted_splits_are_built_upon_again(store):
    """Groups that the older splits do not know are given one; no prompt is left without a split."""
    older = store.write("splits", store.read("splits").collect().head(20))
    store.promote("splits", older.version)
    assert "unique" in stale(store)
    run(store, "unique")
    groups = set(store.read("splits").collect()["group_id"])
    assert set(store.read("unique_posts").collect()["group_id"]) <= groups


@pytest.mark.drill("damage")
def test_damaged_splits_say_that_they_cannot_be_made_again(store):
    (file,) = Path(store.storage.uri("splits")).glob("*/rows/*.parquet")
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(DamagedVersion, match="cannot be made again") as error:
        run(Store(store.storage.root), "unique")
    assert "may train" in error.value.hint


def test_numbers_that_leave_nothing_to_train_on_are_refused(tmp_path, sample_store):
    store = Store(tmp_path / "data")
    store.write("imported_posts", sample_store.read("imported_posts", partition="sample"), partition="sample")
    with pytest.raises(NoVersion, match="come from unique_posts"):
        run(store, "grpo_ecot")
    run(store, "clean_posts", "clean_dialogues")
    unique_posts = sample_store.version("unique_posts").rows
    with pytest.raises(RequestError, match=f"none of {unique_posts} posts to train on"):
        run(store, "unique", settings=Settings(splits=Splits(posts=PostSizes(test=500))))
    assert store.current("splits") == []
    run(store, "unique", settings=Settings(splits=Splits(posts=PostSizes(test=40, validation=0))))
    posts = store.read("unique_posts").collect().join(store.read("splits").collect(), on="group_id")
    assert posts.filter(pl.col("split") == "test").height == 40


def test_a_table_stays_with_the_provider_that_made_it(store):
    """Somebody who forgets --provider loses nothing that was paid for; who says it gets what they say."""
    stage = BY_NAME["ecot_chains"]
    assert Runner(store, Settings()).provider(stage) == "openai"
    with ClientPool(None, Settings().llm, provider="written") as chosen:
        assert Runner(store, Settings(), chosen).provider(stage) == "written"
        assert Runner(store, Settings(), chosen).is_stale(stage)


def test_other_recordings_make_stale_what_was_replayed_from_them(store, tmp_path):
    stage, path = BY_NAME["ecot_chains"], tmp_path / "r.jsonl"
    settings = Settings(llm=Llm(provider="replay", recordings=path))
    inputs = []
    for content in (None, "one\n", "one\n", "two\n"):
        if content is not None:
            path.write_text(content, encoding="utf-8")
        inputs.append(run_of(stage, parents_of(stage, store), settings, "replay").inputs)
    assert inputs[1] == inputs[2]
    assert len(set(inputs)) == 3
    assert "recordings" not in run_of(stage, parents_of(stage, store), settings, "written").settings


@pytest.mark.parametrize("reason", ["no_answer", "over_budget", "not_asked_yet"])
def test_a_question_without_an_answer_is_asked_again(store, reason):
    stage, run_before = BY_NAME["emotions"], store.version("emotions").manifest.runs[-1]
    rows, gone = store.read("emotions").collect(), store.read_dropped("emotions").collect()
    lost = drops(rows.head(1), "emotions", rows["unit"][0], "row_id", pl.lit(reason), pl.lit("6 attempts"))
    known = {"parents": parents_of(stage, store), "code": run_before.code, "settings": run_before.settings}
    store.write("emotions", rows.slice(1), pl.concat([gone, lost]), **known)
    assert "emotions" in stale(store)
    (again,) = run(store, "emotions", clients=FakePool(None, Settings().llm))
    assert again.rows == rows.height
    assert "emotions" not in stale(store)


def test_a_table_whose_parents_or_settings_are_others_may_shrink(store):
    """Rows that are gone upstream are gone here as well."""
    before = store.version("emotions")
    run = before.manifest.runs[-1]
    for change in ({"parents": {}}, {"settings": run.settings | {"provider": "another"}}):
        other = run.model_copy(update=change)
        _require_size("emotions", 0, before.rows // 2 - 1, other, store)
        with pytest.raises(Shrunk):  # most of them found no answer
            _require_size("emotions", 0, before.rows // 2 + 1, other, store)
    with pytest.raises(Shrunk):
        _require_size("emotions", before.rows // 2, 0, run, store)
    _require_size("emotions", before.rows // 2 + 1, 0, run, store)
    _require_size("emotions", before.rows, 0, run, store, unasked=9)
    with pytest.raises(Shrunk, match="for 9 are not asked about yet"):  # for want of money none is lost
        _require_size("emotions", before.rows - 1, 0, run, store, unasked=9)


def test_a_stage_is_looked_at_once_and_its_questions_are_planned_once(store, monkeypatch):
    """By a refresh and the asset that it runs together, until something was made."""
    looked, planned, stage = [], [], BY_NAME["topics"]
    monkeypatch.setattr(Runner, "is_stale", lambda _, one: looked.append(one.name) or True)

    @wraps(stage.function)
    def counting(**arguments):
        planned.append(stage.name)
        return stage.function(**arguments)

    counted, runner = replace(stage, function=counting), Runner(store, Settings(), FakePool(None, Settings().llm))
    assert runner.status(counted) == runner.status(counted) == Status(stale=True)
    runner.run(counted)
    assert (looked, planned) == (["topics"], ["topics"])
    runner.status(counted)
    assert len(looked) == 2, "what was found before a run may be true no longer"
