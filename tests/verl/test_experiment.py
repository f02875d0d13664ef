"""Experiments: ablations on equal rows and seeds, one table; verl's SFT trainer for real, killed in the middle."""

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from train_env import BLOCK_IN_PROMPT_ALONE, ROWS, SAVED, SEED, STEPS, Trained, script_result

from pipelines.errors import RequestError, UnknownName, UnreadableFile
from pipelines.settings import Rewards
from pipelines.train.experiment import Experiment, Planned, plan_runs, prepare_runs, read_experiment, train_runs
from pipelines.train.launch import Run
from pipelines.train.recipe import as_arguments
from pipelines.train.runs import METRICS, MODEL, NOTE, REFUSED, describe_rows, parse_step, read_config, read_note

pytestmark = pytest.mark.xdist_group("training")  # the home is made there

ABLATIONS = """
name = "variants"
preset = "cpu_smoke"
seeds = [1, 2]
rows = 20

[[ablations]]
recipe = "unifireward"
ablation = "none"

[[ablations]]
recipe = "compeer_cer"
ablation = "sft"

[settings.sft]
"trainer.total_training_steps" = 2
"""


def read(folder: Path, text: str) -> Experiment:
    (folder / "ablations.toml").write_text(text, encoding="utf-8")
    return read_experiment(folder / "ablations.toml")


@pytest.mark.parametrize(("text", "says"), [
    (ABLATIONS.replace("seeds = [1, 2]", "seeds = [1, 1]"), "each may stand there once"),
    (ABLATIONS.replace("seeds = [1, 2]", "seeds = [true]"), "seeds.0: "),
    (ABLATIONS.replace('ablation = "none"', 'arm = "none"'), "Extra inputs are not permitted"),
    (ABLATIONS.replace("settings.sft", "settings.dpo"), "settings"),
    ('name = "x"\nablations = []', "ablations"),
    (ABLATIONS + '"optim.lr" = nan\n', "settings: .*optim.lr: nan is no number to train with"),
    (ABLATIONS + '"optim.betas" = [0.9, nan]\n', "optim.betas: .* is no number to train with"),
    (ABLATIONS + '"optim.lr" = 2026-11-22\n', "optim.lr: 2026-11-22 is no value of a setting"),
    (ABLATIONS + '"+data.seed" = 3\n', "data.seed is the experiment's own to set"),
    (ABLATIONS + '"data.seed" = 3\n', "data.seed is the experiment's own to set"),
    ("settings = 3\n" + ABLATIONS.partition("[settings.sft]")[0], "settings: "),
    (ABLATIONS.replace("rows = 20", "rows = 0"), "greater than or equal to 1"),
])  # fmt: skip
def test_a_wrong_experiment_is_refused_with_the_place(tmp_path: Path, text: str, says: str):
    with pytest.raises(RequestError, match=says):
        read(tmp_path, text)


def test_a_missing_file_and_one_that_is_no_toml_are_refused(tmp_path: Path):
    with pytest.raises(UnreadableFile, match="no such file"):
        read_experiment(tmp_path / "nowhere.toml")
    with pytest.raises(UnreadableFile, match="not valid TOML"):
        read(tmp_path, "name = ")


def test_a_key_may_stand_with_quotes_or_without(tmp_path: Path):
    key = "trainer.total_training_steps"
    for text in (ABLATIONS, ABLATIONS.replace(f'"{key}"', key)):
        assert read(tmp_path, text).settings == {"sft": {key: 2}}


def planned(home: Path, folder: Path, text: str) -> list[Planned]:
    return plan_runs(home, read(folder, text), Rewards())


def ablations(recipe: str, *named: str) -> str:
    return "".join(f'[[ablations]]\nrecipe = "{recipe}"\nablation = "{one}"\n' for one in named)


@pytest.mark.parametrize(("text", "says"), [
    (f'name = "e"\nencoder = "nope"\n{ablations("empathy_coe", "grpo_only")}', "there is no run nope"),
    (ABLATIONS.replace('"sft"\n\n', '"urb"\n\n'), "no ablation of compeer_cer 'urb'"),
    (ABLATIONS.replace("rows = 20", 'rows = 20\nprovider = "openai"'), "has a use for provider"),
    (ABLATIONS.replace("rows = 20", "rows = 20\nbudget = 3"), "no ablation has a use for budget"),
    (ABLATIONS.replace("rows = 20", 'rows = 20\nencoder = "x"'), "has a use for encoder"),
    (ABLATIONS + "[settings.grpo]\nseries = 3\n", "no ablation is trained by grpo"),
])  # fmt: skip
def test_what_cannot_be_trained_or_has_no_effect_is_refused_by_the_plan(
    training_home: Path, tmp_path: Path, text: str, says: str
):
    with pytest.raises((RequestError, UnknownName), match=says):
        planned(training_home, tmp_path, text)


def test_ablations_on_different_numbers_of_rows_are_refused(training_home: Path, tmp_path: Path):
    for rows in ("rows = 100000", ""):
        with pytest.raises(RequestError, match="different numbers of rows: unifireward none on ") as error:
            planned(training_home, tmp_path, ABLATIONS.replace("rows = 20", rows))
        [least] = re.findall(r"rows = (\d+), which all of them have", error.value.hint)
        plan = planned(training_home, tmp_path, ABLATIONS.replace("rows = 20", f"rows = {least}"))
        assert {one.run.rows for one in plan} == {int(least)}


def test_a_seed_reaches_everything_that_draws(training_home: Path, tmp_path: Path):
    text = 'name = "s"\npreset = "cpu_smoke"\nseeds = [7]\nrows = 20\nprovider = "openai"\n'
    text += ablations("compeer_cer", "ur", "sft") + ablations("empathy_encoder", "")
    runs = [one.run for one in planned(training_home, tmp_path, text)]
    assert [run.recipe.trainer for run in runs] == ["grpo", "sft", "contrastive"]
    for run in runs:
        assert {run.overrides[key] for key in run.trainer.seeds} == {7}
        assert [key for key, value in run.overrides.items() if key.endswith("seed") and value != 7] == []


def test_a_policy_is_planned_before_its_warm_start_is_trained(training_home: Path, tmp_path: Path):
    encoder = training_home / "training" / "planned-encoder"
    (encoder / MODEL).mkdir(parents=True, exist_ok=True)
    (encoder / NOTE).write_text(json.dumps({"recipe": "empathy_encoder", "release": {"name": "v1"}}))
    (encoder / MODEL / "encoder.json").write_text('{"threshold": 0.5}', encoding="utf-8")
    text = 'name = "w"\npreset = "cpu_smoke"\nseeds = [1, 2]\nrows = 12\nencoder = "planned-encoder"\n'
    text += ablations("empathy_coe", "", "sft_only", "grpo_only", "no_coe")
    plan = planned(training_home, tmp_path, text + '[settings.sft]\n"optim.lr" = 1e-5\n')
    assert [[run.folder.name for run in one.runs] for one in plan[::2]] == [
        ["w-empathy_sft-s1", "w-empathy_coe-s1"],
        ["w-empathy_coe-sft_only-s1"],
        ["w-empathy_coe-grpo_only-s1"],
        ["w-empathy_sft-no_coe-s1", "w-empathy_coe-no_coe-s1"],
    ]
    started = [one for one in plan if one.start is not None]
    assert len(started) == 4
    for one in started:
        assert one.run.overrides["actor_rollout_ref.model.path"] == str(one.start.folder / MODEL)
        assert one.start.overrides["engine.seed"] == one.run.overrides["data.seed"]
        assert one.start.overrides["optim.lr"] == 1e-5


@pytest.mark.parametrize("setting", ['"trainer.total_training_steps" = 0\n', '"trainer.default_local_dir" = "x"\n'])
def test_a_refusal_names_the_file_as_a_place_where_settings_are_written(
    training_home: Path, tmp_path: Path, setting: str
):
    with pytest.raises(RequestError) as error:
        planned(training_home, tmp_path, ABLATIONS[: ABLATIONS.index("[settings")] + f"[settings.sft]\n{setting}")
    assert error.value.where == "--set, or [settings] of an experiment"


@pytest.mark.timeout(300)
def test_an_ablation_that_cannot_be_composed_is_refused_before_rows_of_another_are_written(
    training_home: Path, tmp_path: Path
):
    text = ABLATIONS.replace("variants", "uncomposed").replace("seeds = [1, 2]", "")
    text = text.replace('ablation = "sft"', 'ablation = "ur"')
    plan = planned(training_home, tmp_path, text + '[settings.grpo]\n"data.train_batch_size" = 3\n')
    seen: list[str] = []
    with pytest.raises(RequestError) as error:
        prepare_runs(plan, lambda run: seen.append(run.folder.name))
    refused = plan[1].run.folder
    refusal = "train_batch_size (3) must be >= actor.ppo_mini_batch_size (8)"
    assert error.value.what == f"verl refuses the configuration: {refusal}"
    assert error.value.where == refused / REFUSED
    assert "Disabled critic" in (refused / REFUSED).read_text(), "the rest of what verl printed"
    assert "[settings] of an experiment" in error.value.hint
    assert seen == [one.run.folder.name for one in plan]
    assert not [one for one in plan if (one.run.folder / NOTE).exists()]


# --- for real: verl's SFT, killed in the middle, and the contrastive training


@pytest.fixture(scope="module")
def run(experiment: Trained) -> Run:
    """The first run, of verl's SFT."""
    return experiment.plan[0].run


@pytest.mark.timeout(1500)
class TestAnExperiment:
    def test_it_goes_on_from_the_last_checkpoint(self, experiment: Trained, run: Run):
        assert "training ended with code -9" in experiment.killed
        assert experiment.left == [], "a worker that trains on beside the next start"
        second = (run.folder / METRICS / "0002.jsonl").read_bytes().splitlines()
        steps = [step for step, metrics in map(parse_step, second) if "val/loss" not in metrics]
        assert steps[0] > 1
        assert steps[0] % SAVED == 1
        assert steps == list(range(steps[0], STEPS + 1))
        assert sorted(run.metrics()) == list(range(1, STEPS + 1))

    def test_the_reward_model_is_validated_on_held_out_rows(self, run: Run):
        validated = {step: one["val/loss"] for step, one in run.metrics().items() if "val/loss" in one}
        assert list(validated) == [10, STEPS], "as cpu_smoke has it"
        assert validated[STEPS] < validated[10], "it learns the form of verdicts, whichever they are"
        held_out = pq.read_table(run.folder / "data" / "validation.parquet")
        assert held_out.num_rows >= 8, "a batch of the experiment's"
        assert set(held_out["split"].to_pylist()) == {"validation"}
        [counted] = [line for line in describe_rows(run.folder) if line.startswith("samples of validation")]
        assert counted.startswith(f"samples of validation: {held_out.num_rows:,}, ")

    def test_results_stand_in_the_order_of_the_file_with_what_they_measure(self, experiment: Trained, run: Run):
        assert [one["recipe"] for one in experiment.results] == ["unifireward", "empathy_encoder"]
        alike = {"ablation": "", "rows": ROWS, "asked_rows": ROWS, "seeds": 1, "figure": "loss", "shown": "train/loss"}
        assert all(alike.items() <= one.items() for one in experiment.results)
        imitating, contrastive = experiment.results
        assert imitating["steps"] == STEPS
        assert imitating["last"] < imitating["first"] - 1
        assert imitating["measured"].startswith("loss of unifireward on what it imitates; it writes no outputs")
        assert imitating["validation"] == run.metrics()[STEPS]["val/loss"]
        assert imitating["validation_figure"] == "loss"
        assert contrastive["measured"] == "loss over triplets"
        assert contrastive["validation_figure"] == "balanced accuracy"

    def test_a_run_is_like_all_others_and_shows_its_variants(self, experiment: Trained, run: Run):
        note, config = read_note(run.folder), read_config(run.folder)
        assert (note["recipe"], note["most_rows"], note["overrides"]["+data.seed"]) == ("unifireward", ROWS, SEED)
        assert (config["data"]["seed"], config["trainer"]["seed"], config["engine"]["seed"]) == (SEED,) * 3
        rows = json.loads((run.folder / "rows.json").read_text())
        assert set(rows["variants"]) == {"none", "P"}
        assert sum(rows["variants"].values()) == run.rows == ROWS

    def test_runs_are_not_trained_again(self, experiment: Trained):
        prepare_runs(experiment.plan, pytest.fail)
        on = {"on_start": lambda run: None, "on_end": lambda run: None, "on_rows": pytest.fail, "on_step": pytest.fail}
        again = train_runs(read_experiment(experiment.file), experiment.plan, **on)
        assert [one._asdict() for one in again] == experiment.results


LEARNT = """
import json, sys
from omegaconf import OmegaConf
from transformers import AutoModelForCausalLM, AutoTokenizer
from verl.trainer.sft_trainer import create_sft_dataset
from pipelines.train.compose import compose_config

config = OmegaConf.create(compose_config("sft_trainer_engine", sys.argv[2:]))
AutoModelForCausalLM.from_pretrained(sys.argv[1])
tokens = AutoTokenizer.from_pretrained(sys.argv[1])
learnt = []
for template in (tokens.chat_template, json.load(sys.stdin)):
    tokens.chat_template = template
    rows = create_sft_dataset(config.data.train_files, config.data, tokens, None)
    for place in range(40):
        row, messages = rows[place], rows.messages[place]
        options = {"add_generation_prompt": True, "enable_thinking": False}
        prompt = tokens.apply_chat_template(messages[:2], **options)["input_ids"]
        learnt.append({
            "learnt": tokens.decode(row["input_ids"][row["loss_mask"].bool()]),
            "replies": [one["content"] for one in messages if one["role"] == "assistant"],
            "begins": row["input_ids"][: len(prompt)].tolist() == prompt,
        })
print(json.dumps(learnt, ensure_ascii=False))
"""


@pytest.mark.timeout(1500)
def test_the_model_loads_and_every_reply_was_learnt_whole_behind_the_prompt_that_will_ask_for_it(
    run: Run, training_home: Path
):
    """By our template, and by Qwen3's."""
    arguments = as_arguments(run.overrides)
    cwd = {"cwd": training_home, "HF_HOME": str(training_home / "hf")}
    rows = script_result(LEARNT, run.folder / MODEL, *arguments, stdin=BLOCK_IN_PROMPT_ALONE, **cwd)
    assert len(rows) == 80
    for row in rows:
        assert row["learnt"] == "".join(f"{reply}<|im_end|>\n" for reply in row["replies"])
        assert row["begins"]
