"""Where a run is not as its paper says: the paper's numbers beside the composed configuration."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pipelines.train.recipe import Recipe, number, recipe
from pipelines.train.runs import MODEL, NOTE, configuration, note
from pipelines.train.trainers import TRAINERS


class Difference(NamedTuple):
    """A number of a paper's, and what stands in its place."""

    key: str
    paper: Any
    here: Any


def differences(told: Recipe, config: Mapping[str, Any]) -> list[Difference]:
    """The numbers of the paper for which something else stands in a composed configuration, in the paper's order: what
    the recipe sets (`paper`), and what the trainer makes of it or has by default (`implied`).

    A model of a run of ours counts as what that run, or the first before it, has started from: E's policy starts from
    its warm start, as in the paper.
    """
    model = TRAINERS[told.trainer].model
    found = []
    for written, paper in (told.paper | told.implied).items():
        key = written.removeprefix("+")
        here = _at(config, key)
        if key == model and isinstance(here, str):
            here = _first(here)
        if number(here) != number(paper):
            found.append(Difference(key, paper, here))
    return found


def of_run(run: Path) -> list[Difference]:
    """Those of the run in a folder; none before its configuration is composed."""
    return differences(recipe(note(run)["recipe"]), found) if (found := configuration(run)) else []


def _at(config: Any, key: str) -> Any:
    for part in key.split("."):
        config = config.get(part) if isinstance(config, Mapping) else None
    return config


def _first(model: str) -> str:
    """What the weights of a model were first of all, as far as runs say."""
    run = Path(model).parent
    if Path(model).name != MODEL or not (run / NOTE).exists():
        return model
    asked = note(run)
    before = asked["overrides"].get(TRAINERS[recipe(asked["recipe"]).trainer].model)
    return model if before is None else _first(before)
