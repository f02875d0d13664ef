"""The table of an experiment: a figure that an ablation has not is empty, and what each measures stands below."""

import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from pipelines.cli.render import ablations
from pipelines.train.experiment import Result, summarise
from pipelines.train.recipe import load_recipe
from pipelines.train.trainers import TRAINERS

REWARDED = Result(
    *("compeer_cer", "ur", 2, 12, 40, 25, "reward compeer of a step's outputs, judged by qwen-plus"),
    *("critic/score/mean", "reward", -3.0, 1.25, 0.5, "reward", 2.5, None),
)
IMITATING = Result(
    *("compeer_cer", "sft", 2, 12, 40, 25, "loss of compeer_sft; no reward"),
    *("train/loss", "loss", 6.0, 4.125, None, None, None, None),
)


def drawn(*rows: Result) -> list[str]:
    console = Console(file=io.StringIO(), width=200)
    console.print(ablations(rows))
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def cells(ablation: str, *rows: Result) -> list[str]:
    columns = [[str(cell) for cell in column.cells] for column in ablations(rows).columns]
    return [column[columns[1].index(ablation)] for column in columns]


def test_an_ablation_without_a_reward_leaves_its_columns_empty_and_what_each_measures_stands_below():
    assert cells("ur", REWARDED, IMITATING)[5:] == ["-3.000", "1.250 ± 0.500", "", "", "2.500"]
    assert cells("sft", REWARDED, IMITATING)[5:] == ["", "", "6.000", "4.125", ""]
    text = "\n".join(drawn(REWARDED, IMITATING))
    assert "compeer_cer ur: reward compeer of a step's outputs, judged by qwen-plus" in text
    assert "compeer_cer sft: loss of compeer_sft; no reward" in text
    assert "loss" not in "".join(drawn(REWARDED)), "a figure that no ablation has has no column"


def test_fewer_rows_than_were_asked_for_are_noted():
    for asked, noted in ((40, True), (12, False), (None, False)):
        text = "\n".join(drawn(REWARDED._replace(asked_rows=asked)))
        assert ("rows were asked for, and the release has 12" in text) == noted


def run_of(*losses: float) -> Any:
    metrics = {step: {"train/loss": loss} for step, loss in enumerate(losses, 1)}
    recipe = load_recipe("compeer_sft")
    return SimpleNamespace(recipe=recipe, trainer=TRAINERS["sft"], rows=12, metrics=lambda: metrics)


def test_a_result_is_the_mean_of_the_seeds_with_their_deviation():
    result = summarise("compeer_cer", "sft", None, [run_of(6.0, 5.0, 3.0), run_of(8.0, 5.0)], None)
    assert (result.seeds, result.steps, result.first, result.last) == (2, 2, 7.0, 4.0)
    assert result.last_deviation == pytest.approx(2**0.5)
    assert (result.validation, result.validation_deviation) == (None, None)
    assert summarise("compeer_cer", "sft", None, [run_of(6.0)], None).last_deviation is None
