"""Recipes: the papers' numbers, layer by layer, and what is said where something else is set."""

import json
import subprocess

import pytest
from train_env import require_train_env

from pipelines.errors import RequestError, UnknownName
from pipelines.train.recipe import PRESETS, as_arguments, given, number, overrides, recipe, recipes
from pipelines.train.services import PYTHON

# papers.md §7, and for E's batch §7's note: six GPUs, so that batch × G is divisible by six.
NUMBERS = {
    "mindchat_ecot": {
        "actor_rollout_ref.model.path": "Qwen/Qwen3-8B-Base",
        "+data.apply_chat_template_kwargs.enable_thinking": False,
        "actor_rollout_ref.actor.optim.lr": 1e-6,
        "actor_rollout_ref.rollout.n": 4,
        "actor_rollout_ref.rollout.temperature": 1.0,
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 4,
        "actor_rollout_ref.actor.ppo_mini_batch_size": 16,
        "data.max_prompt_length": 1024,
        "data.max_response_length": 1500,
        "trainer.total_training_steps": 1000,
        "+actor_rollout_ref.actor.fsdp_config.mixed_precision.param_dtype": "fp16",
        "+actor_rollout_ref.ref.fsdp_config.mixed_precision.param_dtype": "fp16",
        "actor_rollout_ref.rollout.dtype": "float16",
        "actor_rollout_ref.model.enable_gradient_checkpointing": True,
        "trainer.n_gpus_per_node": 4,
        "actor_rollout_ref.actor.use_kl_loss": True,
    },
    "empathy_coe": {
        "actor_rollout_ref.model.path": "Qwen/Qwen3-8B",
        "+data.apply_chat_template_kwargs.enable_thinking": False,
        "actor_rollout_ref.actor.optim.lr": 1e-6,
        "actor_rollout_ref.rollout.n": 4,
        "actor_rollout_ref.rollout.temperature": 1.0,
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 1,
        "actor_rollout_ref.actor.ppo_mini_batch_size": 6,
        "data.max_prompt_length": 1024,
        "data.max_response_length": 1024,
        "trainer.total_training_steps": 1000,
        "data.seed": 42,
        "trainer.n_gpus_per_node": 6,
        "actor_rollout_ref.actor.use_kl_loss": True,
    },
    "compeer_cer": {
        "actor_rollout_ref.model.path": "Qwen/Qwen2.5-VL-7B-Instruct",
        "actor_rollout_ref.actor.optim.lr": 1e-6,
        "actor_rollout_ref.rollout.n": 4,
        "data.train_batch_size": 32,
        "trainer.n_gpus_per_node": 8,
        "actor_rollout_ref.actor.use_kl_loss": False,
    },
}


def test_there_is_a_recipe_for_each_paper():
    assert set(NUMBERS) < set(recipes())
    assert {recipe(name).rows for name in NUMBERS} == {"grpo_ecot", "grpo_coe", "grpo_cer"}


@pytest.mark.parametrize("name", NUMBERS)
def test_the_gpu_preset_has_the_papers_numbers(name):
    told = recipe(name)
    assert {key: number(value) for key, value in told.paper.items()} == {
        key: number(value) for key, value in NUMBERS[name].items()
    }
    found = {key.removeprefix("+"): value for key, value in overrides(told, "gpu").items()}
    assert {key: found[key.removeprefix("+")] for key in told.paper} == told.paper


@pytest.mark.parametrize("name", NUMBERS)
def test_every_decision_of_ours_is_apart_from_the_papers(name):
    told = recipe(name)
    assert not told.ours.keys() & told.paper.keys()


def test_what_a_caller_sets_wins():
    told = recipe("mindchat_ecot")
    found = overrides(told, "gpu", given(["trainer.total_training_steps=7", "+trainer.nnodes=2"]))
    assert found["trainer.total_training_steps"] == 7
    assert [value for key, value in found.items() if key.lstrip("+") == "trainer.nnodes"] == [2]


def test_settings_are_written_as_hydra_reads_them():
    found = as_arguments({"a": None, "b": True, "c": [1, "x"], "d": 1e-6, "+e.f": "g"})
    assert found == ["a=null", "b=true", "c=[1,x]", "d=1e-06", "+e.f=g"]


TEXTS = (
    "/家/共情/home",
    "a, b",
    "f(x)=y",
    "it's",
    "back\\",
    "a\\'b",
    "'",
    "\\\\'",
    "[1,2]",
    "",
    "two words",
    'a"b',
    "1e-6",
)
PARSED = """
import json, sys
from hydra.core.override_parser.overrides_parser import OverridesParser
parser = OverridesParser.create()
print(json.dumps([parser.parse_override(one).value() for one in json.load(sys.stdin)]))
"""


@pytest.mark.xdist_group("training")
def test_every_text_is_read_by_hydra_as_it_was_meant():
    require_train_env()
    written = [one for text in TEXTS for one in as_arguments({"key": text, "keys": [text, text]})]
    ran = subprocess.run([PYTHON, "-c", PARSED], input=json.dumps(written), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    texts = [*TEXTS[:-1], 1e-6]  # YAML 1.1 reads a rate as a text, and Hydra is to read a rate
    assert json.loads(ran.stdout) == [one for text in texts for one in (text, [text, text])]


@pytest.mark.parametrize(
    "written", ["", "trainer.nnodes", "=1", "+=1", "++trainer.nnodes=1", "~trainer.nnodes=1", "a b=1"]
)
def test_what_sets_nothing_is_refused(written):
    with pytest.raises(RequestError, match="sets nothing"):
        given([written])


@pytest.mark.parametrize(("written", "says"), [
    ("a=[", "is no value"),
    *((f"a={value}", "no number to train with") for value in (".nan", "nan", "-.inf", "inf", "1e999", "[0.9, .nan]")),
])  # fmt: skip
def test_a_value_that_is_none_is_refused(written, says):
    with pytest.raises(RequestError, match=says):
        given([written])


def test_a_date_is_a_text_to_a_configuration():
    assert given(["trainer.project_name=2025-01-01"]) == {"trainer.project_name": "2025-01-01"}


def test_an_unknown_recipe_names_the_nearest():
    with pytest.raises(UnknownName, match="mindchat_ecot"):
        recipe("mindchat")


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("preset", PRESETS)
def test_no_old_name_of_a_reward_is_ever_written(name, preset):
    """verl 0.9 reads `custom_reward_function.path` no more, and does not say so."""
    keys = overrides(recipe(name), preset)
    assert not [key for key in keys if key.startswith(("custom_reward_function", "reward_model", "+reward_model"))]
