"""What people and models wrote, on a terminal: drawn, and never obeyed."""

import io
import json
import unicodedata
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from pipelines.cli.render import as_json, changed_keys, events, findings, row, visible
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
