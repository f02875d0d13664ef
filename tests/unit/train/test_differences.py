"""Where a run is not as its paper says."""

import json
from pathlib import Path
from typing import Any

from pipelines.train.recipe import build_overrides, load_recipe
from pipelines.train.runs import CONFIG, MODEL, NOTE, read_note
from pipelines.train.trainers import Difference, find_differences, run_differences


def composed(name: str, preset: Any = "gpu", **changed: Any) -> dict[str, Any]:
    """As verl would: what the recipe sets, what it implies, and what is changed, part in part."""
    recipe = load_recipe(name)
    config: dict[str, Any] = {}
    for key, value in (recipe.implied | build_overrides(recipe, preset) | changed).items():
        *parts, last = key.removeprefix("+").split(".")
        part = config
        for one in parts:
            part = part.setdefault(one, {})
        part[last] = value
    return config


def test_differences_stand_in_the_papers_order():
    recipe = load_recipe("mindchat_ecot")
    differences = find_differences(recipe, composed("mindchat_ecot", "cpu_smoke"))
    by_key = {one.key: (one.paper, one.here) for one in differences}
    assert by_key["data.max_response_length"] == (1500, 48)
    assert by_key["trainer.n_gpus_per_node"] == (4, 1)
    assert "data.max_prompt_length" not in by_key
    keys = [key.removeprefix("+") for key in (*recipe.paper, *recipe.implied)]
    assert [one.key for one in differences] == [key for key in keys if key in by_key]


def test_what_the_trainer_makes_of_a_number_and_a_number_that_is_missing_are_differences():
    """Of the first nobody set the key: it is the trainer's own."""
    key = "actor_rollout_ref.rollout.response_length"
    drawn = composed("mindchat_ecot", **{key: 100})
    assert find_differences(load_recipe("mindchat_ecot"), drawn) == [Difference(key, 1500, 100)]
    config = composed("compeer_cer")
    del config["trainer"]["n_gpus_per_node"]
    assert find_differences(load_recipe("compeer_cer"), config) == [Difference("trainer.n_gpus_per_node", 8, None)]


def run_of(home: Path, name: str, of: str, started_from: str) -> str:
    folder = home / "training" / name
    (folder / MODEL).mkdir(parents=True)
    asked = {"recipe": of, "overrides": {"model.path": started_from}}
    (folder / NOTE).write_text(json.dumps(asked), encoding="utf-8")
    return str(folder / MODEL)


def test_a_warm_start_counts_as_what_it_has_started_from(tmp_path: Path):
    model = "actor_rollout_ref.model.path"
    warm = run_of(tmp_path, "warm", "empathy_sft", "Qwen/Qwen3-8B")
    again = run_of(tmp_path, "again", "empathy_sft", warm)
    replaced = [Difference("reward.custom_reward_function.reward_kwargs.answer", "paper", "guarded")]
    assert find_differences(load_recipe("empathy_coe"), composed("empathy_coe", **{model: again})) == replaced
    other = run_of(tmp_path, "other", "empathy_sft", "Qwen/Qwen3-4B")
    differences = find_differences(load_recipe("empathy_coe"), composed("empathy_coe", **{model: other}))
    assert differences == [Difference(model, "Qwen/Qwen3-8B", "Qwen/Qwen3-4B"), *replaced]


def test_a_run_is_compared_by_its_composed_configuration(tmp_path: Path):
    run_of(tmp_path, "warm", "empathy_sft", "Qwen/Qwen3-8B")
    folder = tmp_path / "training" / "warm"
    assert run_differences(folder) == [], "nothing is known of it yet"
    config = composed("empathy_sft", **{"model.path": "Qwen/Qwen3-4B"})
    (folder / CONFIG).write_text(json.dumps(config), encoding="utf-8")
    assert run_differences(folder) == [Difference("model.path", "Qwen/Qwen3-8B", "Qwen/Qwen3-4B")]


def test_the_note_of_a_run_before_ablations_had_their_name_is_read(tmp_path: Path):
    (tmp_path / NOTE).write_text(json.dumps({"recipe": "compeer_cer", "arm": "ur"}), encoding="utf-8")
    assert read_note(tmp_path) == {"recipe": "compeer_cer", "ablation": "ur"}


def test_a_warm_start_that_is_ours_is_a_difference(tmp_path: Path):
    """C trains the base model itself."""
    model = "actor_rollout_ref.model.path"
    warm = run_of(tmp_path, "warm", "compeer_sft", "Qwen/Qwen2.5-VL-7B-Instruct")
    differences = find_differences(load_recipe("compeer_cer"), composed("compeer_cer", **{model: warm}))
    assert differences == [Difference(model, "Qwen/Qwen2.5-VL-7B-Instruct", warm)]
