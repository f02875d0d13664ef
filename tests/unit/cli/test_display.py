"""What people and models wrote, on a terminal: drawn, and never obeyed."""

import io
import json
import unicodedata
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from pipelines.cli.render import as_json, changed_keys, estimates, events, findings, row, spend, visible
from pipelines.llm.interface import Estimate, ModelEstimate
from pipelines.llm.ledger.records import Spend
from pipelines.operations.lineage import Event
from pipelines.store.release_manifest import Finding

HOSTILE = "\x1b[2J\x1b]8;;http://a.example\x07好\u202e\u2066坏\x9b1m\x7f\r[red]no markup[/]:warning:"
DRAWN = r"␛[2J␛]8;;http://a.example␇好\u202e\u2066坏\u009b1m␡␍[red]no markup[/]:warning:"
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@pytest.fixture
def terminal() -> Console:
    """A terminal that knows no colours: every escape code in it is somebody's text."""
    return Console(file=io.StringIO(), force_terminal=True, color_system=None, width=1000)


def obeyed(text: str) -> set[str]:
    """The characters of a text that a terminal would act on, but for line breaks and tabs."""
    return {one for one in text if unicodedata.category(one) == "Cc" or one in BIDI} - {"\n", "\t"}


ROLLOUT = {
    "run_id": HOSTILE, "step": 1, "output_index": 0, "output": HOSTILE, "judge": HOSTILE,
    "rewards": [{"name": HOSTILE, "value": 1.0}], "ids": [HOSTILE], "made": {HOSTILE: HOSTILE},
    "turns": [{"role": HOSTILE, "text": HOSTILE, "emotion": HOSTILE}],
}  # fmt: skip
EVENT = Event("rollouts", HOSTILE, "v", HOSTILE, "dropped", HOSTILE, HOSTILE)
FINDING = Finding(check="c", severity="refuse", count=1, what=HOSTILE, hint="r", examples=[HOSTILE])


@pytest.mark.parametrize("what", [row("rollouts", ROLLOUT), events([EVENT]), findings([FINDING])])
def test_codes_of_terminals_and_markup_in_a_text_are_drawn_and_do_nothing(what: RenderableType, terminal: Any):
    terminal.print(what)
    shown = terminal.file.getvalue()
    assert obeyed(shown) == set()
    assert DRAWN in shown


def test_keys_of_a_difference_are_drawn_and_every_language_stays_as_it_is(terminal: Any):
    changed_keys(pl.DataFrame({"row_id": [HOSTILE], "columns": [["a"]]}), ["row_id"], terminal, "~")
    assert terminal.file.getvalue() == f"~ {DRAWN}  (a)\n"
    text = "我睡不着。\n\t— “Слово” שלום مرحبا 👩\u200d👧 e\u0301"
    assert visible(text) == text


@given(text=st.text(st.characters(exclude_categories=["Cs"])))
@example(text=BIDI)
def test_no_text_has_anything_that_a_terminal_obeys_and_json_says_the_same(text: str):
    assert obeyed(visible(text)) == set()
    assert visible(visible(text)) == visible(text)
    printed = as_json([{"output": text}])
    assert obeyed(printed) == set()
    assert json.loads(printed) == [{"output": text}]
    assert all(visible(one) == f"\\u{ord(one):04x}" for one in BIDI)


def _spend(stage: str, cost: str, **others: Any) -> Spend:
    figures = {"failed": 0, "unsettled": 0, "at_risk": Decimal(0), "model_served": "Qwen/Qwen2.5-72B-Instruct-AWQ"}
    figures |= {"calls": 12_345, "tokens_in": 1_234_567, "tokens_cached": 0, "tokens_out": 987_654, **others}
    return Spend(stage, "qwen2.5-72b", "q", day="2026-11-26", currency="CNY", cost=Decimal(cost), **figures)


def lines_of(what: RenderableType, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(what)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [80, 120])
def test_money_is_legible_and_no_figure_is_cut(width: int):
    part = ModelEstimate(12_345, 6_789, 1_234_567, 987_654, Decimal("12.3456"))
    estimated = estimates([("rewrite_judgements", Estimate.of({"qwen2.5-72b": part}, "CNY")), ("topics", "waits")])
    spent = spend([_spend("rewrite_judgements", "12.3456", failed=3, at_risk=Decimal("0.5")), _spend("topics", "1")])
    for table in (estimated, spent):
        lines = lines_of(table, width)
        assert all(len(line.rstrip()) <= width for line in lines)
        words = " ".join(lines).split()
        assert {"rewrite_judgements", "12,345", "1,234,567", "987,654", "12.3456", "CNY", "all"} <= set(words)
    assert "3 tries failed, 0.5000 at risk" in " ".join(" ".join(lines_of(spent, width)).split())
    assert "13.3456 CNY" in "\n".join(lines_of(spent, width))
