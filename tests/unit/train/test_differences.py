"""Where a run is not as its paper says."""

import json
from pathlib import Path
from typing import Any

from pipelines.train.differences import Difference, differences, of_run
from pipelines.train.recipe import overrides, recipe
from pipelines.train.runs import CONFIG, MODEL, NOTE


def composed(name: str, preset: Any = "gpu", **changed: Any) -> dict[str, Any]:
    """As verl would: what the recipe sets, what it implies, and what is changed, part in part."""
    told = recipe(name)
    config: dict[str, Any] = {}
    for key, value in (told.implied | overrides(told, preset) | changed).items():
        *parts, last = key.removeprefix("+").split(".")
        part = config
        for one in parts:
            part = part.setdefault(one, {})
        part[last] = value
    return config


def test_the_papers_own_set_up_differs_in_nothing():
    for name in ("mindchat_ecot", "empathy_coe", "compeer_cer", "empathy_sft", "unifireward"):
        assert differences(recipe(name), composed(name)) == []


def test_what_differs_is_told_in_the_papers_order():
    told = recipe("mindchat_ecot")
    found = differences(told, composed("mindchat_ecot", "cpu_smoke"))
    by_key = {one.key: (one.paper, one.here) for one in found}
    assert by_key["data.max_response_length"] == (1500, 48)
    assert by_key["trainer.n_gpus_per_node"] == (4, 1)
    assert "data.max_prompt_length" not in by_key
    keys = [key.removeprefix("+") for key in (*told.paper, *told.implied)]
    assert [one.key for one in found] == [key for key in keys if key in by_key]


def test_what_the_trainer_makes_of_a_number_or_defaults_to_is_compared_as_well():
    """Nobody set these keys: they are the trainer's own."""
    drawn = {"actor_rollout_ref.rollout.response_length": 100}
    assert differences(recipe("mindchat_ecot"), composed("mindchat_ecot", **drawn)) == [
        Difference("actor_rollout_ref.rollout.response_length", 1500, 100)
    ]
    assert differences(recipe("empathy_coe"), composed("empathy_coe", **{"actor_rollout_ref.rollout.seed": 7})) == [
        Difference("actor_rollout_ref.rollout.seed", 42, 7)
    ]


def test_a_number_that_is_missing_is_a_difference():
    config = composed("compeer_cer")
    del config["trainer"]["n_gpus_per_node"]
    assert differences(recipe("compeer_cer"), config) == [Difference("trainer.n_gpus_per_node", 8, None)]


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
    assert differences(recipe("empathy_coe"), composed("empathy_coe", **{model: again})) == []
    other = run_of(tmp_path, "other", "empathy_sft", "Qwen/Qwen3-4B")
    assert differences(recipe("empathy_coe"), composed("empathy_coe", **{model: other})) == [
        Difference(model, "Qwen/Qwen3-8B", "Qwen/Qwen3-4B")
    ]


def test_a_run_is_held_against_what_it_was_composed_of(tmp_path: Path):
    run_of(tmp_path, "warm", "empathy_sft", "Qwen/Qwen3-8B")
    folder = tmp_path / "training" / "warm"
    assert of_run(folder) == [], "nothing is known of it yet"
    config = composed("empathy_sft", **{"model.path": "Qwen/Qwen3-4B"})
    (folder / CONFIG).write_text(json.dumps(config), encoding="utf-8")
    assert of_run(folder) == [Difference("model.path", "Qwen/Qwen3-8B", "Qwen/Qwen3-4B")]
