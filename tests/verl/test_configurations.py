"""verl's composed configurations: the papers' numbers as the tables of docs/recipes.md have them, every recipe on every
preset, and what verl or we refuse, in one line.
"""

import json
import re
from typing import Any, NamedTuple

import pytest
from train_env import script_result

from pipelines.settings import ROOT
from pipelines.train.recipe import (
    PRESETS,
    as_arguments,
    as_number,
    build_overrides,
    load_recipe,
    parse_settings,
    recipe_names,
)
from pipelines.train.trainers import TRAINERS, Difference, find_differences

pytestmark = [pytest.mark.xdist_group("training"), pytest.mark.timeout(300)]

RECIPE = {"M": "mindchat_ecot", "E": "empathy_coe", "C": "compeer_cer"}
# What a recipe replaces, and says so: E eq. 6 as printed pays for echoes (docs/reward-models.md).
REPLACED = {"E": [Difference("reward.custom_reward_function.reward_kwargs.answer", "paper", "guarded")]}
ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"

GRPO, SFT = "mindchat_ecot", "empathy_sft"
REFUSALS = {
    (GRPO, "data.train_batch_size=many"): "data.train_batch_size is to be a whole number, and 'many' is not",
    (GRPO, f"{ACTOR}.optim.lr=fast"): f"{ACTOR}.optim.lr is to be a number, and 'fast' is not",
    (GRPO, f"{ACTOR}.use_kl_loss=maybe"): f"{ACTOR}.use_kl_loss is to be true or false, and 'maybe' is not",
    (GRPO, "data.max_promt_length=1"): "there is no key data.max_promt_length: did you mean data.max_prompt_length?",
    (GRPO, "custom_reward_function.path=x"): "custom_reward_function.path is ignored by verl 0.9: its keys begin with",
    (GRPO, "algorithm.adv_estimator=grop"): "Unknown advantage estimator simply: grop",
    (GRPO, "data.train_batch_size=5"): "train_batch_size (5) must be >= actor.ppo_mini_batch_size (16)",
    (GRPO, f"{ROLLOUT}.mode=sync"): "Rollout mode 'sync' has been removed",
    (GRPO, f"{ROLLOUT}.n=0"): f"{ROLLOUT}.n is 0, and has to be 1 or more",
    (GRPO, f"{ROLLOUT}.temperature=-1"): f"{ROLLOUT}.temperature is -1, and has to be 0 or more",
    (GRPO, "trainer.save_freq=-1"): "trainer.save_freq is -1, and has to be 1 or more",
    (GRPO, "trainer.val_only=true"): "trainer.val_only is true: nothing would be trained",
    (GRPO, "reward.num_workers=0"): "reward.num_workers is 0, and has to be 1 or more",
    (GRPO, "data.seed=-1"): "data.seed is -1, and has to be 0 or more",
    (SFT, "optim.lr=fast"): "optim.lr is to be a number, and 'fast' is not",
    (SFT, "optim.lr=-1e-5"): "optim.lr is -1e-05, and has to be 0 or more",
    (SFT, "+data.seed=x"): "+data.seed is to be a whole number, and 'x' is not",
    (SFT, "data.train_batch_size=63"): "data.train_batch_size (63) is not divisible by trainer.n_gpus_per_node (8)",
    (SFT, "engine.strategy=zz"): "strategy zz not supported",
    (SFT, "trainer.nnodes=2"): "trainer.nnodes is 2: SFT is started on this machine alone",
    (SFT, "trainer.save_freq=0"): "trainer.save_freq is 0, and has to be 1 or more",
    (SFT, "trainer.total_epochs=0"): "trainer.total_epochs is 0, and has to be 1 or more",
}
ACCEPTED = (
    (GRPO, f"{ROLLOUT}.temperature=1"),
    (GRPO, f"{ACTOR}.entropy_coeff=0.01"),
    (SFT, "trainer.save_freq=after_each_epoch"),
    (SFT, "optim.lr=0"),
    # As the difference from the paper names it: that verl's schema does not is the recipe's to know.
    (GRPO, f"{ACTOR}.fsdp_config.mixed_precision.param_dtype=bf16"),
)
SCRIPT = """
import contextlib, json, sys
with contextlib.redirect_stdout(sys.stderr):
    from pipelines.train.compose import compose_config
    composed = []
    for name, arguments in json.load(sys.stdin):
        try:
            composed.append(compose_config(name, arguments))
        except ValueError as error:
            composed.append(str(error))
print(json.dumps(composed, default=str))
"""

Composed = dict[tuple[str, str], Any]


class Cell(NamedTuple):
    """A number of a paper's: the key that holds it, and its value there."""

    paper: str
    key: str
    value: Any


def read_table(heading: str) -> list[Cell]:
    section = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8").partition(f"## {heading}\n")[2]
    row = re.compile(r"^\| ([MEC ]+) \| .* \| `([^`]+)` \| ([^|]+) \|$", re.MULTILINE)
    cells = row.findall(section.partition("\n## ")[0])
    return [Cell(paper, key, json.loads(value)) for paper, key, value in cells]


PAPERS = read_table("What the papers give")
OURS = read_table("What no paper gives")  # verl's default, or what follows from the numbers above


def arguments_of(name: str, preset: str, setting: str = "") -> tuple[str | None, list[str]]:
    recipe = load_recipe(name)
    trainer = TRAINERS[recipe.trainer]
    files = {trainer.train: "a.parquet"} | ({trainer.validation: "b.parquet"} if recipe.trainer == "grpo" else {})
    settings = files | parse_settings([setting] if setting else [])
    return trainer.config, as_arguments(build_overrides(recipe, preset, settings))


@pytest.fixture(scope="module")
def composed() -> Composed:
    """verl's configuration by recipe and preset, or setting on GPUs; a message where it is refused."""
    cases = {(name, setting): arguments_of(name, "gpu", setting) for name, setting in (*REFUSALS, *ACCEPTED)}
    names = [name for name in recipe_names() if load_recipe(name).trainer != "contrastive"]
    cases |= {(name, preset): arguments_of(name, preset) for name in names for preset in PRESETS}
    return dict(zip(cases, script_result(SCRIPT, stdin=[*cases.values()]), strict=True))


def test_a_wrong_setting_is_refused_in_one_line_that_names_it(composed: Composed):
    said = {case: str(composed[case]) for case in REFUSALS}
    assert not {
        case: said[case] for case, start in REFUSALS.items() if not re.fullmatch(f"{re.escape(start)}.*", said[case])
    }


def test_other_settings_and_every_recipe_are_accepted(composed: Composed):
    accepted = composed.keys() - REFUSALS.keys()
    assert len(accepted) > len(ACCEPTED) + 10
    assert not {case: composed[case] for case in accepted if isinstance(composed[case], str)}


def at(config: Any, key: str) -> Any:
    for part in key.split("."):
        config = (config or {}).get(part)
    return config


def test_every_number_of_the_papers_stands_in_verls_configuration(composed: Composed):
    assert (len(PAPERS), len(OURS)) == (57, 19)
    assert sorted(RECIPE.values()) == [name for name in recipe_names() if load_recipe(name).trainer == "grpo"]
    missed = []
    for cell in (*PAPERS, *OURS):
        for paper in cell.paper.split():
            instead = {one.key: one.here for one in REPLACED.get(paper, ())}
            wanted, value = instead.get(cell.key, cell.value), at(composed[RECIPE[paper], "gpu"], cell.key)
            missed += [(cell, value)] if (value, type(value)) != (wanted, type(wanted)) else []
    assert not missed


@pytest.mark.parametrize("paper", RECIPE)
def test_a_recipe_sets_and_compares_the_numbers_of_its_paper_and_differs_in_what_it_says(
    composed: Composed, paper: str
):
    recipe = load_recipe(RECIPE[paper])
    table = {cell.key: as_number(cell.value) for cell in PAPERS if cell.paper == paper}
    assert {key.removeprefix("+"): as_number(value) for key, value in (recipe.paper | recipe.implied).items()} == table
    assert not recipe.ours.keys() & recipe.paper.keys()
    assert find_differences(recipe, composed[RECIPE[paper], "gpu"]) == REPLACED.get(paper, [])


def test_a_step_can_be_shared_out_to_the_gpus(composed: Composed):
    """verl counts batches in prompts: times G they are outputs, which every GPU has as many of."""
    for name in RECIPE.values():
        config = composed[name, "gpu"]
        gpus, group = at(config, "trainer.n_gpus_per_node"), at(config, f"{ROLLOUT}.n")
        batch, mini = at(config, "data.train_batch_size"), at(config, f"{ACTOR}.ppo_mini_batch_size")
        micro = at(config, f"{ACTOR}.ppo_micro_batch_size_per_gpu")
        left = (batch * group % gpus, mini * group % gpus, mini * group // gpus % micro, batch % mini)
        assert left == (0, 0, 0, 0), name


def test_the_reference_of_the_kl_term_is_the_model_that_a_run_starts_from(composed: Composed):
    """verl builds it from the policy's own `model`; E's starts from its SFT model, which is so its reference."""
    for paper in "ME":
        config = composed[RECIPE[paper], "gpu"]["actor_rollout_ref"]
        assert "model" not in config["ref"]
        assert not config["model"]["lora_rank"], "else the reference were the policy without its adapter"


def test_supervised_recipes_differ_in_nothing_either(composed: Composed):
    assert [
        name for name in ("empathy_sft", "unifireward") if find_differences(load_recipe(name), composed[name, "gpu"])
    ] == []


def test_the_reward_models_of_c_learn_at_its_rate_and_batch(composed: Composed):
    for name in ("compeer_prm", "compeer_orm", "unifireward"):
        config = composed[name, "gpu"]
        assert (config["optim"]["lr"], config["data"]["train_batch_size"]) == (1e-5, 64)
        assert (config["trainer"]["n_gpus_per_node"], config["model"]["path"]) == (8, "Qwen/Qwen2.5-VL-7B-Instruct")
        assert config["data"]["enable_thinking_default"] is False
