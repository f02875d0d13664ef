"""What people and models wrote, on a terminal: drawn, and never obeyed."""

import io
import json
import unicodedata

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from pipelines.cli.render import as_json, changed_keys, events, findings, row, visible
from pipelines.operations.lineage import Event
from pipelines.store.release_manifest import Finding

HOSTILE = "\x1b[2J\x1b]8;;http://a.example\x07好\u202e\u2066坏\x9b1m\x7f\r[red]no markup[/]:warning:"
DRAWN = r"␛[2J␛]8;;http://a.example␇好\u202e\u2066坏\u009b1m␡␍[red]no markup[/]:warning:"
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def terminal() -> Console:
    """A terminal that knows no colours: every escape code in it is somebody's text."""
    return Console(file=io.StringIO(), force_terminal=True, color_system=None, width=1000)


def drawn(what: RenderableType) -> str:
    console = terminal()
    console.print(what)
    return written(console)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


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
def test_codes_of_terminals_and_markup_in_a_text_are_drawn_and_do_nothing(what: RenderableType):
    shown = drawn(what)
    assert obeyed(shown) == set()
    assert DRAWN in shown


def test_keys_of_a_difference_are_drawn_too():
    console = terminal()
    changed_keys(pl.DataFrame({"row_id": [HOSTILE], "columns": [["a"]]}), ["row_id"], console, "~")
    assert written(console) == f"~ {DRAWN}  (a)\n"


def test_line_breaks_tabs_and_every_language_stay_as_they_are():
    said = "我睡不着。\n\t— “Слово” שלום مرحبا 👩\u200d👧 e\u0301"
    assert visible(said) == said


@given(said=st.text())
def test_no_text_has_anything_that_a_terminal_obeys(said: str):
    assert obeyed(visible(said)) == set()
    assert visible(visible(said)) == visible(said)


@given(said=st.text(st.characters(exclude_categories=["Cs"])))
def test_json_says_the_same_and_has_nothing_that_a_terminal_obeys(said: str):
    told = as_json([{"output": said}])
    assert obeyed(told) == set()
    assert json.loads(told) == [{"output": said}]


@pytest.mark.parametrize("one", BIDI)
def test_what_turns_the_order_of_characters_is_named(one: str):
    assert visible(one) == f"\\u{ord(one):04x}"
    assert json.loads(as_json(one)) == one
