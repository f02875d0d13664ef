"""Making tables: what is stale, what is run, and that nothing vanishes on the way."""

import shutil
from dataclasses import replace
from decimal import Decimal
from functools import wraps
from pathlib import Path

import polars as pl
import pytest
from fake_model import FakePool
from hostile_host import HostileHost
from vendor_profile import PROFILE

from pipelines.errors import (
    DamagedVersion,
    NoVersion,
    RequestError,
    SettingsError,
    Shrunk,
    TooManyInvalid,
    Unaccounted,
)
from pipelines.flow.clients import ClientPool
from pipelines.flow.runner import LEAST_TO_SHRINK, Runner, Status, _require_size, parents_of, reconciliations, run_of
from pipelines.flow.stages import STAGES
from pipelines.settings import Annotate, Llm, Sampling, Settings, Splits, SplitSizes
from pipelines.store import Store
from schemas.dropped import drops
from schemas.tables import TABLES

BY_NAME = {stage.name: stage for stage in STAGES}


@pytest.fixture
def store(sample_home: Path, tmp_path: Path) -> Store:
    """A copy of the sample home's tables, to be written to."""
    shutil.copytree(sample_home / "data", tmp_path / "data")
    return Store(tmp_path / "data")


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_after_a_run_nothing_is_stale(stage, sample_store):
    assert not Runner(sample_store, Settings()).is_stale(stage)


# People give labels later.
NOT_IN_THE_SAMPLES = {"rm_process", "rm_outcome", "rm_unified"}


@pytest.mark.parametrize("table", [table for stage in STAGES for table in stage.units])
@pytest.mark.parametrize("home", ["sample_store", "real_store"])
def test_rows_in_are_rows_kept_and_rows_dropped(table, home, request):
    stage = next(stage for stage in STAGES if table in stage.units)
    found = reconciliations(stage, table, request.getfixturevalue(home))
    assert found
    for reconciliation in found:
        assert reconciliation.balanced, reconciliation
        assert reconciliation.taken > 0 or reconciliation.unit == "label" or table in NOT_IN_THE_SAMPLES


def test_a_changed_setting_makes_stale_what_reads_it_and_nothing_else(sample_store):
    changed = Settings(sampling=Sampling(n_samples=2))
    assert [stage.name for stage in STAGES if Runner(sample_store, changed).is_stale(stage)] == ["sampled_turns"]


def test_changed_code_makes_a_stage_stale(sample_store, monkeypatch):
    monkeypatch.setattr("pipelines.flow.runner.code_version", lambda *_: "another")
    assert Runner(sample_store, Settings()).is_stale(BY_NAME["clean_posts"])


def test_code_that_changes_nothing_gives_the_same_version(store, monkeypatch):
    before = store.version("clean_posts")
    monkeypatch.setattr("pipelines.flow.runner.code_version", lambda *_: "another")
    (after,) = Runner(store, Settings()).run(BY_NAME["clean_posts"])
    assert after.version == before.version
    assert [run.code for run in after.manifest.runs] == [before.manifest.runs[0].code, "another"]
    assert not Runner(store, Settings()).is_stale(BY_NAME["unique"]) or before.version == after.version


def test_another_parent_version_makes_stale_what_follows(store):
    imported = store.read("imported_posts", partition="sample").collect()
    store.write("imported_posts", imported.head(50), partition="sample")
    stale = [stage.name for stage in STAGES if Runner(store, Settings()).is_stale(stage)]
    assert stale == ["clean_posts"]
    Runner(store, Settings()).run(BY_NAME["clean_posts"])
    assert Runner(store, Settings()).is_stale(BY_NAME["unique"])


@pytest.mark.drill("damage")
def test_a_damaged_file_makes_its_stage_stale_and_a_run_mends_it(store):
    version = store.version("grpo_coe")
    (file,) = (Path(store.storage.uri("grpo_coe")) / version.version / "rows").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:100])
    fresh = Store(store.storage.uri(""))
    assert Runner(fresh, Settings()).is_stale(BY_NAME["grpo_coe"])
    (mended,) = Runner(fresh, Settings()).run(BY_NAME["grpo_coe"])
    assert mended.version == version.version
    assert fresh.read("grpo_coe").collect().height == version.rows


def test_a_promoted_version_is_not_undone_until_something_upstream_changes(store):
    stage = BY_NAME["sampled_turns"]
    first = store.version("sampled_turns")
    Runner(store, Settings(sampling=Sampling(n_samples=1))).run(stage)
    Runner(store, Settings()).run(stage)
    older = next(one for one in store.versions("sampled_turns") if one.version != first.version)
    store.promote("sampled_turns", older.version)
    assert not Runner(store, Settings()).is_stale(stage)
    assert Runner(store, Settings()).is_stale(BY_NAME["grpo_cer"])
    assert Runner(store, Settings(sampling=Sampling(n_samples=4))).is_stale(stage)


def test_a_step_that_loses_rows_writes_nothing(store):
    stage = BY_NAME["clean_dialogues"]
    before = store.version("clean_dialogues").version
    taken = store.version("imported_dialogues", partition="sample").rows
    forgetful = replace(
        stage,
        function=lambda imported_dialogues, settings: tuple(
            frame.head(3) for frame in stage.function(imported_dialogues, settings)
        ),
    )
    with pytest.raises(Unaccounted, match=rf"dialogue: {taken} in, 3 kept, [123] dropped"):
        Runner(store, Settings()).run(forgetful)
    assert store.version("clean_dialogues").version == before


def test_a_refresh_equals_a_full_run(sample_home, tmp_path):
    """Half of the posts first, then all: the same posts, and groups keep the split that they were given."""
    store, all_at_once = Store(tmp_path / "data"), Store(sample_home / "data")
    posts = all_at_once.read("imported_posts", partition="sample").collect()
    for part in (posts.head(60), posts):
        store.write("imported_posts", part, partition="sample")
        for stage in STAGES:
            Runner(store, Settings(), FakePool(None, Settings().llm)).run(stage)
        given = dict(store.read("splits").select("group_id", "split").collect().iter_rows())
        if part.height < posts.height:
            first = given
    assert first.items() <= given.items()
    kept = set(store.read("unique_posts").collect()["post_id"])
    bridges = store.read_dropped("unique_posts").filter(pl.col("reason") == "bridges_split").collect()
    assert kept | set(bridges["row_id"]) == set(all_at_once.read("unique_posts").collect()["post_id"])


def test_an_engine_that_does_not_exist_is_refused(store, monkeypatch):
    monkeypatch.setenv("GONGQING_ENGINE", "spark")
    with pytest.raises(SettingsError, match="no engine 'spark'"):
        Runner(store, Settings()).run(BY_NAME["unique"])


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.xdist_group("ray")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray", "ignore::ResourceWarning")  # Ray's own
def test_ray_gives_the_same_versions(store, tmp_path, monkeypatch):
    """Of a few posts: that Ray finds what one process finds, at size, is tests/e2e/test_on_ray.py's."""
    small = Store(tmp_path / "small")
    small.write("clean_posts", store.read("clean_posts").head(25))
    small.write("clean_dialogues", store.read("clean_dialogues").head(0))
    wanted = [version.version for version in Runner(small, Settings()).run(BY_NAME["unique"])]
    monkeypatch.setenv("GONGQING_ENGINE", "ray")
    assert [version.version for version in Runner(small, Settings()).run(BY_NAME["unique"])] == wanted


def test_empty_sources_make_empty_tables(tmp_path):
    store = Store(tmp_path / "data")
    for stage in STAGES:
        made = Runner(store, Settings(), FakePool(None, Settings().llm)).run(stage)
        assert made
        for version in made:
            assert version.rows == version.dropped == 0
            assert store.read(version.table).collect().schema == TABLES[version.table].polars_schema()


def test_an_older_parent_does_not_unbalance_the_books(store):
    """The reconciliations of a promoted version are those of the versions that it was made from."""
    posts = store.read("imported_posts", partition="sample").collect()
    first = store.version("unique_posts").version
    store.write("imported_posts", posts.head(100), partition="sample")
    for name in ("clean_posts", "unique"):
        Runner(store, Settings()).run(BY_NAME[name])
    store.promote("unique_posts", first)
    assert all(reconciliation.balanced for reconciliation in reconciliations(BY_NAME["unique"], "unique_posts", store))


def test_promoted_splits_are_built_upon_again(store):
    """Groups that the older splits do not know are given one; no prompt is left without a split."""
    older = store.write("splits", store.read("splits").collect().head(20))
    store.promote("splits", older.version)
    assert Runner(store, Settings()).is_stale(BY_NAME["unique"])
    for stage in STAGES:
        Runner(store, Settings(), FakePool(None, Settings().llm)).run(stage)
    groups = set(store.read("splits").collect()["group_id"])
    assert set(store.read("unique_posts").collect()["group_id"]) <= groups


@pytest.mark.drill("damage")
def test_damaged_splits_say_that_they_cannot_be_made_anew(store):
    (file,) = (Path(store.storage.uri("splits")) / store.version("splits").version / "rows").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:50])
    fresh = Store(store.storage.uri(""))
    with pytest.raises(DamagedVersion, match="cannot be made again") as error:
        Runner(fresh, Settings()).run(BY_NAME["unique"])
    assert "may train" in error.value.hint


def test_numbers_that_leave_nothing_to_train_on_are_refused(tmp_path, sample_store):
    store = Store(tmp_path / "data")
    store.write("imported_posts", sample_store.read("imported_posts", partition="sample"), partition="sample")
    for name in ("clean_posts", "clean_dialogues"):
        Runner(store, Settings()).run(BY_NAME[name])
    unique_posts = sample_store.version("unique_posts").rows
    with pytest.raises(RequestError, match=f"none of {unique_posts} posts to train on"):
        Runner(store, Settings(splits=Splits(posts=SplitSizes(test=500)))).run(BY_NAME["unique"])
    assert store.current("splits") == []
    Runner(store, Settings(splits=Splits(posts=SplitSizes(test=40, validation=0)))).run(BY_NAME["unique"])
    posts = store.read("unique_posts").collect().join(store.read("splits").collect(), on="group_id")
    assert posts.filter(pl.col("split") == "test").height == 40


def test_a_stage_whose_parents_were_never_made_says_so(tmp_path, sample_store):
    store = Store(tmp_path / "data")
    store.write("imported_posts", sample_store.read("imported_posts", partition="sample"), partition="sample")
    with pytest.raises(NoVersion, match="come from unique_posts"):
        Runner(store, Settings()).run(BY_NAME["grpo_ecot"])


def test_a_table_stays_with_the_provider_that_made_it(store):
    """Somebody who forgets --provider loses nothing that was paid for; who says it gets what they say."""
    stage = BY_NAME["ecot_chains"]
    assert Runner(store, Settings()).provider(stage) == "openai"
    assert not Runner(store, Settings()).is_stale(stage)
    with ClientPool(None, Settings().llm, provider="written") as said:
        assert Runner(store, Settings(), said).provider(stage) == "written"
        assert Runner(store, Settings(), said).is_stale(stage)


def _made_by(store, provider):
    """Another version of `ecot_chains`, as if `provider` had answered; gives its folder."""
    stage, run = BY_NAME["ecot_chains"], store.version("ecot_chains").manifest.runs[-1]
    rows = store.read("ecot_chains").collect().with_columns(provider=pl.lit(provider), answer=pl.col("answer") + "。")
    version = store.write(
        "ecot_chains",
        rows,
        store.read_dropped("ecot_chains").collect(),
        parents=parents_of(stage, store),
        code=run.code,
        settings=run.settings | {"provider": provider},
    )
    return Path(store.storage.uri("ecot_chains")) / version.version


def test_where_the_pointer_is_damaged_the_newest_version_tells_who_answers(store):
    folder = _made_by(store, "openai")
    (folder.parent / "current.json").write_text("{", encoding="utf-8")
    stage, fresh = BY_NAME["ecot_chains"], Store(store.storage.uri(""))
    assert Runner(fresh, Settings()).is_stale(stage)
    assert Runner(fresh, Settings()).provider(stage) == "openai"


def test_where_nobody_can_tell_who_answered_a_stage_waits_to_be_told(store):
    for manifest in _made_by(store, "openai").parent.glob("*/manifest.json"):
        manifest.write_text("{", encoding="utf-8")
    stage, fresh = BY_NAME["ecot_chains"], Store(store.storage.uri(""))
    assert Runner(fresh, Settings()).is_stale(stage)
    with ClientPool(None, Settings().llm) as nobody:
        assert "gongqing refresh --provider" in (Runner(fresh, Settings(), nobody).status(stage).waits or "")
    with FakePool(None, Settings().llm, provider="openai") as said:
        runner = Runner(fresh, Settings(), said)
        assert runner.status(stage).waits is None
        runner.run(stage)
        assert not Runner(fresh, Settings(), said).is_stale(stage)


def test_other_recordings_make_stale_what_was_replayed_from_them(store, tmp_path):
    stage, path = BY_NAME["ecot_chains"], tmp_path / "r.jsonl"
    settings = Settings(llm=Llm(provider="replay", recordings=path))

    def inputs():
        return run_of(stage, parents_of(stage, store), settings, "replay").inputs

    none = inputs()
    path.write_text("one\n", encoding="utf-8")
    one = inputs()
    assert inputs() == one
    path.write_text("two\n", encoding="utf-8")
    assert len({none, one, inputs()}) == 3
    assert run_of(stage, parents_of(stage, store), settings, "written").settings.keys() & {"recordings"} == set()


def test_another_model_makes_stale_what_is_asked_of_it(sample_store):
    changed = Settings(annotate=Annotate(coe="vllm-local"))
    assert [stage.name for stage in STAGES if Runner(sample_store, changed).is_stale(stage)] == ["coe_chains"]


@pytest.mark.parametrize("reason", ["no_answer", "over_budget"])
def test_a_question_without_an_answer_is_asked_again(store, reason):
    stage = BY_NAME["emotions"]
    run = store.version("emotions").manifest.runs[-1]
    rows, gone = store.read("emotions").collect(), store.read_dropped("emotions").collect()
    row = rows.row(0, named=True)
    lost = drops(rows.head(1), "emotions", row["unit"], "row_id", pl.lit(reason), pl.lit("6 attempts"))
    store.write(
        "emotions",
        rows.slice(1),
        pl.concat([gone, lost]),
        parents=parents_of(stage, store),
        code=run.code,
        settings=run.settings,
    )
    assert Runner(store, Settings()).is_stale(stage)
    (again,) = Runner(store, Settings(), FakePool(None, Settings().llm)).run(stage)
    assert again.rows == rows.height
    assert not Runner(store, Settings()).is_stale(stage)


# Tables that are made by asking


def _hostile(home, base_url):
    """Settings of a home whose one model, of `emotions`, is asked at an address."""
    (home / "profiles.toml").write_text(PROFILE.format(url=base_url), encoding="utf-8")
    return Settings(llm=Llm(profiles=home / "profiles.toml", failures=1.0))


def _asked_emotions(store, settings, **more):
    """Another model answers for `emotions`, whose rows are known; nothing else of it changes."""
    home = Path(store.storage.uri("")).parent
    with ClientPool(home, settings.llm, provider="openai", budget=Decimal(5), **more) as clients:
        return Runner(store, settings, clients).run(BY_NAME["emotions"])


@pytest.mark.drill("model host")
def test_a_table_that_other_answers_would_halve_is_made_only_where_that_is_allowed(store):
    before = store.version("emotions")
    assert before.rows >= LEAST_TO_SHRINK
    with HostileHost("服务繁忙") as host:
        settings = _hostile(Path(store.storage.uri("")).parent, host.base_url)
        with pytest.raises(Shrunk, match=f"emotions would shrink from {before.rows} rows to 0") as caught:
            _asked_emotions(store, settings)
        assert "--allow-shrink" in caught.value.hint
        assert store.version("emotions").version == before.version
        paid = host.requests
        [made] = _asked_emotions(store, settings, allow_shrink=True)
        assert (made.rows, host.requests) == (0, paid)  # what was answered is not asked again


@pytest.mark.drill("model host")
def test_a_stage_whose_answers_are_mostly_invalid_leaves_its_table(store):
    before = store.version("emotions")
    with HostileHost("服务繁忙") as host:
        settings = _hostile(Path(store.storage.uri("")).parent, host.base_url)
        settings = settings.model_copy(update={"llm": settings.llm.model_copy(update={"failures": 0.2})})
        with pytest.raises(TooManyInvalid):
            _asked_emotions(store, settings, allow_shrink=True)
    assert store.version("emotions").version == before.version
    assert host.requests < before.rows


def test_a_table_whose_parents_or_settings_are_others_may_shrink(store):
    """Rows that are gone upstream are gone here as well."""
    before = store.version("emotions")
    answers = store.read("emotions").collect()
    run = before.manifest.runs[-1]
    for change in ({"parents": {}}, {"settings": run.settings | {"provider": "another"}}):
        other = run.model_copy(update=change)
        _require_size("emotions", 0, before.rows // 2 - 1, other, store)
        with pytest.raises(Shrunk):  # most of them found no answer
            _require_size("emotions", 0, before.rows // 2 + 1, other, store)
    with pytest.raises(Shrunk):
        _require_size("emotions", answers.height // 2, 0, run, store)
    _require_size("emotions", answers.height // 2 + 1, 0, run, store)


def test_a_stage_is_looked_at_once_and_its_questions_are_planned_once(store, monkeypatch):
    """By a refresh and the asset that it runs together, until something was made."""
    looked, planned, stage = [], [], BY_NAME["topics"]
    monkeypatch.setattr(Runner, "is_stale", lambda _, one: looked.append(one.name) or True)

    @wraps(stage.function)
    def counting(**given):
        planned.append(stage.name)
        return stage.function(**given)

    counted = replace(stage, function=counting)
    runner = Runner(store, Settings(), FakePool(None, Settings().llm))
    assert runner.status(counted) == runner.status(counted) == Status(stale=True)
    runner.run(counted)
    assert (looked, planned) == (["topics"], ["topics"])
    runner.status(counted)
    assert len(looked) == 2, "what was found before a run may be true no longer"
