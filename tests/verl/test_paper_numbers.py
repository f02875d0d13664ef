"""Every number of papers.md §7 stands in verl's composed configuration, and in the table of docs/recipes.md.

What is expected is written here, apart from the recipes.
"""

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
ACTOR, ROLLOUT, MODEL = (f"actor_rollout_ref.{part}" for part in ("actor", "rollout", "model"))


class Cell(NamedTuple):
    """A number of a paper's, the key that holds it, and its value there."""

    paper: str
    what: str
    key: str
    value: Any

    def row(self) -> str:
        return f"| {self.paper} | {self.what} | `{self.key}` | {json.dumps(self.value)} |"


PAPERS = (
    Cell("M", "base Qwen3-8B-Base", f"{MODEL}.path", "Qwen/Qwen3-8B-Base"),
    Cell("M", "native thinking off, in training and rollout", "data.apply_chat_template_kwargs.enable_thinking", False),
    Cell("M", "GRPO", "algorithm.adv_estimator", "grpo"),
    Cell("M", "learning rate 1e-6", f"{ACTOR}.optim.lr", 1e-6),
    Cell("M", "G = 4", f"{ROLLOUT}.n", 4),
    Cell("M", "temperature 1.0", f"{ROLLOUT}.temperature", 1.0),
    Cell("M", "micro batch 4 per GPU", f"{ACTOR}.ppo_micro_batch_size_per_gpu", 4),
    Cell("M", "mini batch 16", f"{ACTOR}.ppo_mini_batch_size", 16),
    Cell("M", "prompt 1024", "data.max_prompt_length", 1024),
    Cell("M", "prompt 1024, of the rollout", f"{ROLLOUT}.prompt_length", 1024),
    Cell("M", "response 1500", "data.max_response_length", 1500),
    Cell("M", "response 1500, of the rollout", f"{ROLLOUT}.response_length", 1500),
    Cell("M", "1000 steps", "trainer.total_training_steps", 1000),
    Cell("M", "FP16, of the training", f"{ACTOR}.fsdp_config.mixed_precision.param_dtype", "fp16"),
    Cell("M", "FP16, of the reference", "actor_rollout_ref.ref.fsdp_config.mixed_precision.param_dtype", "fp16"),
    Cell("M", "FP16, of the rollout", f"{ROLLOUT}.dtype", "float16"),
    Cell("M", "gradient checkpointing", f"{MODEL}.enable_gradient_checkpointing", True),
    Cell("M", "4 GPUs", "trainer.n_gpus_per_node", 4),
    Cell("M", "a KL term to the reference", f"{ACTOR}.use_kl_loss", True),
    Cell("M", "of the loss, not of the reward", "algorithm.use_kl_in_reward", False),
    Cell("E", "base Qwen3-8B; a run starts from its SFT model", f"{MODEL}.path", "Qwen/Qwen3-8B"),
    Cell("E", "native thinking off", "data.apply_chat_template_kwargs.enable_thinking", False),
    Cell("E", "GRPO", "algorithm.adv_estimator", "grpo"),
    Cell("E", "learning rate 1e-6", f"{ACTOR}.optim.lr", 1e-6),
    Cell("E", "G = 4", f"{ROLLOUT}.n", 4),
    Cell("E", "temperature 1.0", f"{ROLLOUT}.temperature", 1.0),
    Cell("E", "micro batch 1 per GPU", f"{ACTOR}.ppo_micro_batch_size_per_gpu", 1),
    Cell("E", "mini batch 6", f"{ACTOR}.ppo_mini_batch_size", 6),
    Cell("E", "prompt 1024", "data.max_prompt_length", 1024),
    Cell("E", "prompt 1024, of the rollout", f"{ROLLOUT}.prompt_length", 1024),
    Cell("E", "response 1024", "data.max_response_length", 1024),
    Cell("E", "response 1024, of the rollout", f"{ROLLOUT}.response_length", 1024),
    Cell("E", "1000 steps", "trainer.total_training_steps", 1000),
    Cell("E", "seed 42, of the order of the rows", "data.seed", 42),
    Cell("E", "seed 42, of the rollout", f"{ROLLOUT}.seed", 42),
    Cell("E", "seed 42, of the policy", f"{ACTOR}.fsdp_config.seed", 42),
    Cell("E", "seed 42, of the mini-batches", f"{ACTOR}.data_loader_seed", 42),
    Cell("E", "6 GPUs of 8 for the policy", "trainer.n_gpus_per_node", 6),
    Cell("E", "a KL term to the reference", f"{ACTOR}.use_kl_loss", True),
    Cell("E", "of the loss, not of the reward", "algorithm.use_kl_in_reward", False),
    Cell("C", "base Qwen2.5-VL-7B", f"{MODEL}.path", "Qwen/Qwen2.5-VL-7B-Instruct"),
    Cell("C", "GRPO", "algorithm.adv_estimator", "grpo"),
    Cell("C", "learning rate 1e-6", f"{ACTOR}.optim.lr", 1e-6),
    Cell("C", "G = 4", f"{ROLLOUT}.n", 4),
    Cell("C", "batch 32", "data.train_batch_size", 32),
    Cell("C", "8 GPUs", "trainer.n_gpus_per_node", 8),
    Cell("C", "no KL term in the loss", f"{ACTOR}.use_kl_loss", False),
    Cell("C", "nor in the reward", "algorithm.use_kl_in_reward", False),
)

# `(open)` in papers.md: verl's default, or what follows from the numbers above.
OURS = (
    Cell("M E C", "ε of the clip", f"{ACTOR}.clip_ratio", 0.2),
    Cell("M E C", "ε below", f"{ACTOR}.clip_ratio_low", 0.2),
    Cell("M E C", "ε above", f"{ACTOR}.clip_ratio_high", 0.2),
    Cell("M E", "β of the KL term", f"{ACTOR}.kl_loss_coef", 0.001),
    Cell("M E C", "advantages over the deviation", "algorithm.norm_adv_by_std_in_grpo", True),
    Cell("M E C", "no bonus for entropy", f"{ACTOR}.entropy_coeff", 0),
    Cell("M E C", "overlong prompts left out", "data.filter_overlong_prompts", True),
    Cell("M E C", "one machine", "trainer.nnodes", 1),
    Cell("M", "prompts of a step", "data.train_batch_size", 16),
    Cell("E", "prompts of a step: times G divisible by six", "data.train_batch_size", 6),
    Cell("C", "temperature", f"{ROLLOUT}.temperature", 1.0),
    Cell("C", "prompt", "data.max_prompt_length", 2048),
    Cell("C", "response", "data.max_response_length", 1024),
    Cell("C", "mini batch", f"{ACTOR}.ppo_mini_batch_size", 32),
    Cell("C", "micro batch per GPU", f"{ACTOR}.ppo_micro_batch_size_per_gpu", 4),
    Cell("C", "steps", "trainer.total_training_steps", 1000),
)

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


def test_the_table_of_the_docs_is_this_one():
    lines = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if re.match(r"\| [MEC ]+ \| .* \| `[^`]+` \| [^|]+ \|$", line)]
    assert rows == [cell.row() for cell in (*PAPERS, *OURS)]


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
