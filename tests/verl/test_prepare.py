"""What a run is made of before it starts: rows, ablations, what it starts from, whom it asks."""

import json
import re
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import RequestError, UnknownName
from pipelines.flow.stages import STAGES
from pipelines.settings import Rewards
from pipelines.store import Store
from pipelines.train.launch import Run, secret_variables, share_gpus
from pipelines.train.prepare import _files, find_release, prepare
from pipelines.train.recipe import load_recipe, recipe_names
from pipelines.train.runs import MODEL, NOTE, START
from pipelines.train.trainers import TRAINERS
from tools.recipes import PAGE, with_table

pytestmark = pytest.mark.xdist_group("training")  # the home is made there

REWARD = "+reward.custom_reward_function.reward_kwargs."


def run_of(home: Path, recipe: str, preset: Any = "gpu", **options: Any) -> Run:
    return prepare(home, load_recipe(recipe), preset, **options)


def make_ended(home: Path, *names: str, release: str = "v1", learnt_of: list[str] | None = None) -> None:
    for name in names:
        (home / "training" / name / MODEL).mkdir(parents=True, exist_ok=True)
        note = {"recipe": name.partition("-")[0], "release": {"name": release, "content": "c"}, "learnt_of": learnt_of}
        (home / "training" / name / NOTE).write_text(json.dumps(note), encoding="utf-8")


# --- what it starts from


def test_a_policy_starts_from_its_warm_start_on_the_same_release(training_home: Path):
    make_ended(training_home, "empathy_sft-gpu-v1", "empathy_encoder-gpu-v1")
    run = run_of(training_home, "empathy_coe")
    start = training_home / "training" / "empathy_sft-gpu-v1" / MODEL
    assert run.overrides["actor_rollout_ref.model.path"] == str(start)
    assert run.details["encoder"] == f"training/empathy_encoder-gpu-v1/{MODEL}"
    with pytest.raises(RequestError, match="is a run of empathy_sft, and not of empathy_encoder"):
        run_of(training_home, "empathy_coe", encoder="empathy_sft-gpu-v1")


def test_every_recipe_starts_from_the_runs_that_the_table_names_and_from_no_other(training_home: Path, tmp_path: Path):
    """`empathy_encoder` and `unifireward` among the others: an encoder or a judge is no start of a policy."""
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page), "run: python -m tools.recipes"
    lines = re.findall(r"^\| `(\w+)` \| .* \| (.+?) \| (.+?) \|$", page, re.MULTILINE)
    taken = {recipe: (first, re.findall(r"`(\w+)`", starts)) for recipe, first, starts in lines}
    assert [*taken] == list(recipe_names())
    assert taken["compeer_cer"] == ("Qwen/Qwen2.5-VL-7B-Instruct", ["compeer_sft", "compeer_cer"])
    shutil.copytree(training_home / "releases", tmp_path / "releases")
    make_ended(tmp_path, *(f"{name}-cpu_smoke-v1" for name in recipe_names()))
    for name, (first, starts) in taken.items():
        key = TRAINERS[load_recipe(name).trainer].model
        model = {start: str(tmp_path / "training" / f"{start}-cpu_smoke-v1" / MODEL) for start in recipe_names()}
        for start in recipe_names():
            named = {"start": f"{start}-cpu_smoke-v1", "name": "started"}
            if start in starts:
                assert run_of(tmp_path, name, "cpu_smoke", **named).overrides[key] == model[start]
                continue
            with pytest.raises(RequestError, match=f"is a run of {start}, and not of {' or '.join(starts)}") as error:
                run_of(tmp_path, name, "cpu_smoke", **named)
            assert error.value.hint == f"name a run of {' or '.join(starts)}, or leave --start out"
        itself = run_of(tmp_path, name, "cpu_smoke", name="itself")
        [warm] = re.findall(r"^the model of `(\w+)`$", first) or [None]
        assert itself.overrides[key] == (model[warm] if warm else str(itself.folder / START))


def test_a_run_has_learnt_of_its_release_and_of_those_of_the_models_that_it_starts_from_and_asks(training_home: Path):
    make_ended(training_home, "empathy_sft-old", release="v0", learnt_of=["u", "v0"])
    make_ended(training_home, "empathy_encoder-old", release="w")
    policy = run_of(training_home, "empathy_coe", start="empathy_sft-old", encoder="empathy_encoder-old")
    assert policy.details["learnt_of"] == ["u", "v0", "v1", "w"]
    assert run_of(training_home, "empathy_sft").details["learnt_of"] == ["v1"]
    checkpoint = {"model.path": str(training_home / "training" / "empathy_sft-old" / "checkpoints" / "global_step_5")}
    assert run_of(training_home, "empathy_sft", settings=checkpoint).details["learnt_of"] == ["u", "v0", "v1"]


def test_without_a_warm_start_or_an_encoder_a_policy_says_how_to_get_one(training_home: Path):
    first = "gongqing train empathy_{} first, or name a run with --{}"
    for ablation, says in {
        "": f"no run empathy_sft-cpu_smoke-v1 .*{first.format('sft', 'start')}",
        "no_coe": "no run empathy_sft-no_coe-cpu_smoke-v1 .*gongqing train empathy_sft first",
        "grpo_only": first.format("encoder", "encoder"),
    }.items():
        with pytest.raises(RequestError, match=f"(?s){says}"):
            run_of(training_home, "empathy_coe", "cpu_smoke", ablation=ablation)


def test_a_model_to_start_from_is_a_name(training_home: Path):
    for name, value in (("mindchat_ecot", None), ("empathy_encoder", 3)):
        key = TRAINERS[load_recipe(name).trainer].model
        with pytest.raises(RequestError, match="is no model to start from") as error:
            run_of(training_home, name, "cpu_smoke", settings={key: value})
        assert str(error.value.where).startswith(f"{key}: --set")


# --- ablations and rows


def test_on_the_way_to_the_rows_of_every_recipe_no_table_is_empty(training_home: Path):
    """From what is imported (in the demo: crawled) to the release, for M, E and C."""
    store, release = Store(training_home / "data"), find_release(training_home, "v1")
    made_by = {table: stage for stage in STAGES for table in stage.tables}
    empty = []
    for name in recipe_names():
        recipe = load_recipe(name)
        left, seen = [recipe.rows], set[str]()
        while left:
            seen.add(table := left.pop())
            parents = getattr(made_by.get(table), "parents", ())
            left += [parent for parent in parents if parent not in seen and parent != "coe_reviews"]  # people fill it
        assert len(seen) > 5
        partitions = {table: store.partitions(table) or [None] for table in seen - {"raw_posts"}}
        rows = {
            table: sum(store.version(table, partition=one).rows for one in partitions[table]) for table in partitions
        }
        empty += [(name, table) for table in rows if not rows[table]]
        empty += [
            (name, split)
            for split in ("train", "validation")
            if recipe.trainer != "sft" and not release.rows(recipe.rows, split)
        ]
        assert release.rows(recipe.rows, "train"), name
    assert not empty


def test_an_ablation_may_be_another_recipe(training_home: Path):
    run = run_of(training_home, "empathy_coe", "cpu_smoke", ablation="sft_only")
    assert (run.recipe.name, run.folder.name) == ("empathy_sft", "empathy_sft-sft_only-cpu_smoke-v1")
    assert set(run.files) == {"train"}, "a warm start is not validated"
    assert "data.val_files" not in run.overrides
    assert run.overrides["trainer.test_freq"] == -1


def test_a_reward_model_is_validated_where_its_held_out_rows_fill_a_batch(training_home: Path):
    rows = find_release(training_home, "v1").rows("rm_unified", "validation")
    run = run_of(training_home, "unifireward", "cpu_smoke")
    assert run.overrides["data.val_files"] == str(run.folder / "data" / "validation.parquet")
    assert (run.overrides["trainer.test_freq"], run._unvalidated()) == (10, [])
    size = {"data.train_batch_size": rows + 1}
    few = run_of(training_home, "unifireward", "cpu_smoke", settings=size)
    assert set(few.files) == {"train"}
    assert "data.val_files" not in few.overrides
    assert few.overrides["trainer.test_freq"] == -1
    assert few._unvalidated() == [f"not validated: there are {rows:,} rows for it, and one batch takes {rows + 1}"]
    assert (
        "validation"
        in run_of(training_home, "unifireward", "cpu_smoke", settings={"data.train_batch_size": rows}).files
    )


def test_ablations_differ_in_what_the_paper_compares_and_in_nothing_else(training_home: Path):
    named = ("trainer.experiment_name", "trainer.default_local_dir", "trainer.rollout_data_dir")
    named = (*named, "data.train_files", "data.val_files")  # each run's own copy: its variants
    ablations = ("", "urp", "ur", "por", "p", "none")
    runs = [run_of(training_home, "compeer_cer", ablation=one, provider="openai") for one in ablations]
    paper, urp, ur, por, p, none = (
        {key: value for key, value in run.overrides.items() if key not in named} for run in runs
    )
    assert paper == urp == p == none
    assert [run.rows for run in runs[:-1]] == [runs[0].rows] * (len(runs) - 1)
    assert runs[-1].rows < runs[0].rows, "without rewritings"
    assert ur == por == paper | {f"{REWARD}reweight": False}
    assert [run.details["judge"]["mode"] for run in runs] == [
        "unified",
        "unified",
        "unified",
        "apart",
        "unified",
        "unified",
    ]
    with pytest.raises(UnknownName, match="did you mean 'ur'"):
        run_of(training_home, "compeer_cer", ablation="upr")


def test_there_must_be_a_release_with_the_rows(training_home: Path, tmp_path: Path):
    with pytest.raises(RequestError, match="no release to train on"):
        run_of(tmp_path, "mindchat_ecot")
    chains = load_recipe("mindchat_ecot").model_copy(update={"rows": "ecot_chains"})
    with pytest.raises(RequestError, match="no train rows of ecot_chains"):
        prepare(training_home, chains, "cpu_smoke")


def test_where_rows_are_missing_for_want_of_labels_the_hint_says_so(training_home: Path):
    empty = find_release(training_home, "v1").model_copy(update={"configs": {}})
    for name in recipe_names():
        recipe = load_recipe(name)
        [of_labels] = ["cer_labels" in stage.parents for stage in STAGES if recipe.rows in stage.tables]
        with pytest.raises(RequestError, match=f"no train rows of {recipe.rows}") as error:
            _files(training_home, empty, recipe)
        assert ("people have to label candidates first (the table cer_labels" in error.value.hint) == of_labels, name


# --- who judges


def test_the_judge_is_the_named_provider_and_on_gpus_one_has_to_be_named(training_home: Path):
    judge = run_of(training_home, "mindchat_ecot", provider="openai").details["judge"]
    assert (judge["provider"], judge["model"]) == ("openai", "qwen-plus")
    judge = run_of(training_home, "mindchat_ecot", "cpu_smoke", provider="replay").details["judge"]
    assert (judge["provider"], judge["model"]) == ("replay", "qwen-plus")
    with pytest.raises(RequestError, match="--provider is missing"):
        run_of(training_home, "mindchat_ecot")


def test_where_nobody_judges_the_reward_is_set_so_and_no_service_is_started(training_home: Path):
    name = "compeer_cer"
    run = run_of(training_home, name, "cpu_smoke")
    assert run.details["judge"] == {"provider": "none", "reward": "format and redundancy alone"}
    assert (run.services, run.judge) == ({}, None)
    assert run.overrides[f"{REWARD}judge"] is False
    with pytest.raises(RequestError, match="the run's own to set"):
        run_of(training_home, name, "cpu_smoke", settings={f"{REWARD}judge": True})
    with pytest.raises(RequestError, match="nobody judges, and so nothing is spent"):
        run_of(training_home, name, provider="none", budget=Decimal(1))


def test_steps_and_responses_apart_have_a_model_each(training_home: Path):
    options = {"name": "apart", "provider": "openai", "rewards": Rewards(compeer_outcome="mine")}
    apart = run_of(training_home, "compeer_cer", ablation="por", **options)
    assert apart.details["judge"] == {
        **{"provider": "openai", "mode": "apart", "model": "unifireward"},
        **{"model-process": "compeer-prm", "model-outcome": "mine"},
    }
    assert {"--model-process=compeer-prm", "--model-outcome=mine", "--mode=apart"} <= {*apart.services["judge"]}
    assert "--model-process" not in " ".join(run_of(training_home, "compeer_cer", **options).services["judge"])


def test_an_option_without_effect_is_refused(training_home: Path):
    for name, option, value in (
        ("empathy_sft", "provider", "openai"), ("unifireward", "budget", Decimal(1)),
        ("mindchat_ecot", "encoder", "empathy_encoder-gpu-v1"),
    ):  # fmt: skip
        with pytest.raises(RequestError, match=f"{name} has no use for --{option}"):
            run_of(training_home, name, "cpu_smoke", **{option: value})


# --- names and settings


def test_a_name_is_no_path_and_no_version(training_home: Path):
    for name in ("..", "/tmp/x", "a/b", "a\nb", "-x", "0123456789abcdef"):
        for option in ("name", "start", "encoder"):
            with pytest.raises(RequestError, match="is no name of a run"):
                run_of(training_home, "empathy_coe", "cpu_smoke", **{option: name})


def test_a_setting_that_is_the_runs_own_is_refused(training_home: Path):
    """And the parts that these lie in, what asks the sampler, and what would lose rows behind their count."""
    for key in (
        *("trainer.default_local_dir", "trainer.rollout_data_dir", "data.train_files", "data.train_max_samples"),
        *("reward.custom_reward_function.path", "reward.custom_reward_function", "actor_rollout_ref.model"),
        *("reward.reward_manager.name", "reward.reward_manager", "trainer.v1.sampler", "trainer.use_v1"),
        *("trainer.v1.trainer_mode",),
    ):
        with pytest.raises(RequestError, match="is the run's own to set"):
            run_of(training_home, "mindchat_ecot", "cpu_smoke", settings={key: "x"})


def test_the_reward_of_c_has_its_settings_and_a_wrong_one_is_refused_before_a_worker_meets_it(training_home: Path):
    settings = {f"{REWARD}mode": "shift", f"{REWARD}alpha": 1, f"{REWARD}beta": 0.5, f"{REWARD}reweight": False}
    run = run_of(training_home, "compeer_cer", provider="openai", settings=settings)
    assert settings.items() <= run.overrides.items()
    for name, value, says in (
        ("mode", "shfit", "no mode of the reward compeer 'shfit'"),
        ("alpha", "much", "alpha of the reward compeer is to be a number, and 'much' is not"),
        ("reweight", "maybe", "is to be true or false"),
        ("rewieght", False, "did you mean 'reweight'"),
    ):
        with pytest.raises((RequestError, UnknownName), match=says):
            run_of(training_home, "compeer_cer", provider="openai", settings={f"{REWARD}{name}": value})


# --- machines and secrets


def test_the_encoder_has_the_first_gpu_that_the_policy_leaves():
    assert share_gpus({}, 6) == ("0,1,2,3,4,5", "6")
    assert share_gpus({"CUDA_VISIBLE_DEVICES": "2,3,5"}, 2) == ("2,3", "5")
    assert share_gpus({"CUDA_VISIBLE_DEVICES": "2,3"}, 2) == ("2,3", "")


@pytest.mark.drill("privacy")
def test_no_trainer_has_the_keys_of_models_nor_that_of_authors(training_home: Path, tmp_path: Path, monkeypatch):
    own = '[own]\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "m"\nmax_tokens = 300\nkey_variable = "OF_MY_HOST"\n'
    (tmp_path / "profiles.toml").write_text(own, encoding="utf-8")
    (tmp_path / "gongqing.toml").write_text('[llm]\nprofiles = "profiles.toml"\n', encoding="utf-8")
    secret = secret_variables(training_home)
    assert secret_variables(tmp_path) == secret | {"OF_MY_HOST"}
    assert {"GONGQING_AUTHOR_KEY", "DASHSCOPE_API_KEY"} <= secret
    for name in (*secret, "OF_ANOTHER"):
        monkeypatch.setenv(name, "a secret of sixteen characters")
    run = run_of(training_home, "mindchat_ecot", "cpu_smoke")
    services = run._service_environments()
    assert secret.isdisjoint(run._environment())
    assert secret.isdisjoint(services["encoder"])
    assert secret - services["judge"].keys() == {"GONGQING_AUTHOR_KEY"}
    assert "OF_ANOTHER" in run._environment(), "what a trainer may need stays"
