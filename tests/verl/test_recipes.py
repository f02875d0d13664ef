"""Recipes: the papers' numbers, layer by layer."""

import pytest
from train_env import script_result

from pipelines.errors import RequestError, UnknownName
from pipelines.train.recipe import as_arguments, build_overrides, load_recipe, parse_settings


def test_what_a_caller_sets_wins():
    recipe = load_recipe("mindchat_ecot")
    overrides = build_overrides(recipe, "gpu", parse_settings(["trainer.total_training_steps=7", "+trainer.nnodes=2"]))
    assert overrides["trainer.total_training_steps"] == 7
    assert [value for key, value in overrides.items() if key.lstrip("+") == "trainer.nnodes"] == [2]


TEXTS = (
    *("/家/共情/home", "a, b", "f(x)=y", "it's", "back\\", "a\\'b", "'", "\\\\'", "[1,2]", "", "two words", 'a"b'),
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
    written = [one for text in TEXTS for one in as_arguments({"key": text, "keys": [text, text]})]
    texts = [*TEXTS[:-1], 1e-6]  # YAML 1.1 reads a rate as a text, and Hydra is to read a rate
    values = {"a": None, "b": True, "c": [1, "x"], "d": 1e-6, "+e.f": "g"}
    parsed = script_result(PARSED, stdin=[*written, *as_arguments(values)])
    assert parsed == [*(one for text in texts for one in (text, [text, text])), *values.values()]


@pytest.mark.parametrize(("says", "settings"), [
    ("sets nothing", ["", "trainer.nnodes", "=1", "+=1", "++trainer.nnodes=1", "~trainer.nnodes=1", "a b=1"]),
    ("is no value", ["a=["]),
    ("no number to train with", ["a=.nan", "a=nan", "a=-.inf", "a=inf", "a=1e999", "a=[0.9, .nan]"]),
])  # fmt: skip
def test_what_sets_nothing_and_a_value_that_is_none_are_refused(says: str, settings: list[str]):
    for setting in settings:
        with pytest.raises(RequestError, match=says):
            parse_settings([setting])


def test_a_date_is_a_text_to_a_configuration():
    assert parse_settings(["trainer.project_name=2025-01-01"]) == {"trainer.project_name": "2025-01-01"}


def test_an_unknown_recipe_names_the_nearest():
    with pytest.raises(UnknownName, match="mindchat_ecot"):
        load_recipe("mindchat")
