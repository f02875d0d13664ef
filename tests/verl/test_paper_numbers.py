"""Every number of papers.md §7, as the tables of docs/recipes.md have it, stands in verl's composed configuration."""

import json
import re
from typing import Any, NamedTuple

import pytest
from train_env import script_result

from pipelines.settings import ROOT
from pipelines.train.recipe import as_arguments, as_number, build_overrides, load_recipe, recipe_names
from pipelines.train.trainers import find_differences

pytestmark = [pytest.mark.xdist_group("training"), pytest.mark.timeout(300)]

RECIPE = {"M": "mindchat_ecot", "E": "empathy_coe", "C": "compeer_cer"}
ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"


class Cell(NamedTuple):
    """A number of a paper's, the key that holds it, and its value there."""

    paper: str
    what: str
    key: str
    value: Any


def read_table(heading: str) -> list[Cell]:
    section = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8").partition(f"## {heading}\n")[2]
    lines = re.findall(
        r"^\| ([MEC ]+) \| (.*) \| `([^`]+)` \| ([^|]+) \|$", section.partition("\n## ")[0], re.MULTILINE
    )
    return [Cell(paper, what, key, json.loads(value)) for paper, what, key, value in lines]


PAPERS = read_table("What the papers give")
OURS = read_table(
    "What no paper gives"
)  # `(open)` in papers.md: verl's default, or what follows from the numbers above

SCRIPT = """
import contextlib, json, sys
with contextlib.redirect_stdout(sys.stderr):
    from pipelines.train.compose import compose_config
    found = {name: compose_config("ppo_trainer", arguments) for name, arguments in json.loads(sys.stdin.read()).items()}
print(json.dumps(found, default=str))
"""


@pytest.fixture(scope="module")
def composed() -> dict[str, dict[str, Any]]:
    """verl's whole configuration of every recipe on GPUs, by its paper."""
    files = {"data.train_files": "a.parquet", "data.val_files": "b.parquet"}
    arguments = {
        paper: as_arguments(build_overrides(load_recipe(name), "gpu", files)) for paper, name in RECIPE.items()
    }
    result: dict[str, dict[str, Any]] = script_result(SCRIPT, stdin=arguments)
    return result


def at(config: Any, key: str) -> Any:
    for part in key.split("."):
        config = (config or {}).get(part)
    return config


def test_every_number_stands_in_verls_configuration(composed: dict[str, dict[str, Any]]):
    missed = []
    for cell in (*PAPERS, *OURS):
        values = [at(composed[paper], cell.key) for paper in cell.paper.split()]
        missed += [(cell, value) for value in values if (value, type(value)) != (cell.value, type(cell.value))]
    assert not missed


def test_every_recipe_is_in_the_table():
    assert (len(PAPERS), len(OURS)) == (48, 16)
    assert sorted(RECIPE.values()) == [name for name in recipe_names() if load_recipe(name).trainer == "grpo"]
    assert {cell.paper for cell in PAPERS} == set(RECIPE)


@pytest.mark.parametrize("paper", RECIPE)
def test_the_papers_numbers_of_a_recipe_are_the_table(paper: str):
    """What it sets and what it compares: so a difference from any number of §7 is shown."""
    recipe = load_recipe(RECIPE[paper])
    table = {cell.key: as_number(cell.value) for cell in PAPERS if cell.paper == paper}
    assert {key.removeprefix("+"): as_number(value) for key, value in (recipe.paper | recipe.implied).items()} == table


@pytest.mark.parametrize("paper", RECIPE)
def test_on_gpus_nothing_that_verl_composes_differs_from_the_paper(composed: dict[str, dict[str, Any]], paper: str):
    assert find_differences(load_recipe(RECIPE[paper]), composed[paper]) == []


@pytest.mark.parametrize("paper", RECIPE)
def test_a_step_can_be_shared_out_to_the_gpus(composed: dict[str, dict[str, Any]], paper: str):
    """verl counts batches in prompts: times G they are outputs, which every GPU has as many of."""
    config = composed[paper]
    gpus, group = at(config, "trainer.n_gpus_per_node"), at(config, f"{ROLLOUT}.n")
    batch, mini = at(config, "data.train_batch_size"), at(config, f"{ACTOR}.ppo_mini_batch_size")
    micro = at(config, f"{ACTOR}.ppo_micro_batch_size_per_gpu")
    assert batch * group % gpus == 0
    assert mini * group % gpus == 0
    assert mini * group // gpus % micro == 0
    assert batch % mini == 0


@pytest.mark.parametrize("paper", ["M", "E"])
def test_the_reference_of_the_kl_term_is_the_model_that_a_run_starts_from(
    composed: dict[str, dict[str, Any]], paper: str
):
    """verl builds it from the policy's own `model`; E's starts from its SFT model, which is so its reference."""
    assert "model" not in composed[paper]["actor_rollout_ref"]["ref"]
    start = composed[paper]["actor_rollout_ref"]["model"]
    assert not start["lora_rank"], "else the reference were the policy without its adapter"


def test_the_reward_models_of_c_learn_at_its_rate_and_batch():
    """In verl's composed SFT configuration; the vision encoder is no part of any loss, for all rows are text."""
    names = ("compeer_prm", "compeer_orm", "unifireward")
    files = {"data.train_files": "a.parquet"}
    arguments = {name: as_arguments(build_overrides(load_recipe(name), "gpu", files)) for name in names}
    configs = script_result(SCRIPT.replace("ppo_trainer", "sft_trainer_engine"), stdin=arguments)
    assert set(configs) == set(names)
    for config in configs.values():
        assert config["optim"]["lr"] == 1e-5
        assert config["data"]["train_batch_size"] == 64
        assert config["trainer"]["n_gpus_per_node"] == 8
        assert config["model"]["path"] == "Qwen/Qwen2.5-VL-7B-Instruct"
        assert config["data"]["enable_thinking_default"] is False
