"""What people and models wrote, on a terminal: drawn, and never obeyed."""

import io
import json
import re
import unicodedata
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from pipelines.cli.render import TextTable, as_json, estimates, findings, spend, visible
from pipelines.cli.rows import changed_keys, changed_rows, differing_words, event_record, events, row
from pipelines.llm.interface import Estimate, ModelEstimate
from pipelines.llm.ledger.records import PaidCall, Spend
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
EVENT = Event("rollouts", HOSTILE, "v", HOSTILE, "dropped", HOSTILE, HOSTILE, text=HOSTILE)
DIALOGUE = {"history": [{"role": "seeker", "text": HOSTILE}], "reference": HOSTILE}
FINDING = Finding(check="c", severity="refuse", count=1, what=HOSTILE, hint="r", examples=[HOSTILE])


@pytest.mark.parametrize(
    "what",
    [
        *(row("rollouts", ROLLOUT), row("rollouts", ROLLOUT, DIALOGUE), events([EVENT]), findings([FINDING])),
        *(TextTable("rows" * 30, title=HOSTILE), TextTable("rows" * 30, caption=HOSTILE), TextTable(HOSTILE)),
    ],
)
def test_codes_of_terminals_and_markup_in_a_text_are_drawn_and_do_nothing(what: RenderableType, terminal: Any):
    terminal.print(what)
    shown = terminal.file.getvalue()
    assert obeyed(shown) == set()
    assert DRAWN in shown


def test_keys_of_a_difference_are_drawn_and_every_language_stays_as_it_is(terminal: Any):
    changed_keys(pl.DataFrame({"row_id": [HOSTILE]}), ["row_id"], terminal, "+")
    assert terminal.file.getvalue() == f"+ {DRAWN}\n"
    before, after = (pl.DataFrame({"row_id": [HOSTILE], "a": [one]}) for one in (HOSTILE, f"{HOSTILE}x"))
    changed_rows(pl.DataFrame({"row_id": [HOSTILE], "columns": [["a"]]}), before, after, ["row_id"], terminal)
    assert obeyed(terminal.file.getvalue()) == set()
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


def test_a_difference_shows_the_old_and_the_new_words_and_leaves_out_what_is_far_from_them():
    assert differing_words("我很难过", "我很伤心", in_colour=False).plain == "我很[-难过-]{+伤心+}"
    assert differing_words("one word", "one bird", in_colour=False).plain == "one [-word-]{+bird+}", "words stay whole"
    assert differing_words("a b c", "d e c", in_colour=False).plain == "[-a b-]{+d e+} c", "blanks part no change"
    assert differing_words("", "3", in_colour=False).plain == "{+3+}"
    coloured = differing_words("one word", "one bird", in_colour=True)
    marked = {coloured.plain[at.start : at.end]: at.style for at in coloured.spans if at.style != "not bold default"}
    assert (marked["word"], marked["bird"]) == ("red strike", "green")
    far = "甲" * 100
    assert differing_words(f"一{far}二", f"三{far}二", in_colour=False).plain == f"[-一-]{{+三+}}{'甲' * 12} … "


def test_rows_that_changed_stand_with_the_columns_that_differ(terminal: Any):
    before = pl.DataFrame({"row_id": ["s:1", "s:2"], "n": [1, 2], "turns": [[{"role": "seeker", "text": "好"}]] * 2})
    after = before.with_columns(n=pl.lit(3), turns=pl.lit([{"role": "seeker", "text": "坏"}]).first())
    changed = pl.DataFrame({"row_id": ["s:1", "s:2"], "columns": [["n", "turns"], ["n"]]})
    changed_rows(changed, before, after, ["row_id"], terminal, most=1)
    shown = [line.rstrip() for line in terminal.file.getvalue().splitlines()]
    assert shown == ["~ s:1", "  n: [-1-]{+3+}", "  turns: role seeker, text [-好-]{+坏+}", "~ … and 1 more"]


def test_who_made_a_row_stands_last_and_the_dialogue_beside_it_or_above():
    candidate = {
        "provider": "openai",
        "model_asked": "m",
        "request_key": "k",
        "dialogue_id": "d",
        "round": 1,
        "response": "回答",
    }
    dialogue = {"history": [{"role": "seeker", "text": "我睡不着"}], "reference": "原来的回答"}
    wide, narrow = (lines_of(row("cer_candidates", candidate, dialogue, width), width) for width in (120, 80))
    for lines in (wide, narrow):
        assert "made by: provider openai, model_asked m, request_key k" in "\n".join(lines)
        assert "response" not in "".join(lines[next(at for at, line in enumerate(lines) if "made by" in line) :])
    assert any("history" in line and "response" in line for line in wide)
    places = [
        next(at for at, line in enumerate(narrow) if word in line) for word in ("我睡不着", "原来的回答", "response")
    ]
    assert places == sorted(places)


def test_the_life_of_a_row_shows_a_text_where_it_is_another_and_what_was_asked():
    at = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
    call = PaidCall("k", "qwen-plus", "qwen-plus-2025", at, "answered", 1200, 34, Decimal("0.00045"), Decimal(0), "CNY")
    raw = Event("raw_posts", "s@2026-03-04", "v", "s:1", "kept", None, None, at, at, at, "写给老师的信")
    clean = raw._replace(table="clean_posts", partition=None, text="写给某人的信")
    same = clean._replace(table="unique_posts")
    topic = Event("topics", None, "v", "s:1", "kept", None, None, at, text="why: 学业", calls=(call,))
    gone = Event("emotions", None, "v", "s:1", "dropped", "risk", "in the post", at)
    shown = "\n".join(lines_of(events([raw, clean, same, topic, gone]), 100))
    assert (shown.count("写给老师的信"), shown.count("写给某人的信"), shown.count("crawled")) == (1, 1, 1)
    asked = "asked qwen-plus, answered by qwen-plus-2025, "
    assert re.search(rf"{asked}.*: answered, 1,200 tokens in, 34 out, 0.000450 CNY", " ".join(shown.split()))
    assert "s:1  dropped  risk: in the post" in shown
    whole = raw._replace(text="长" * 1000)
    assert "(1,000 characters: gongqing show raw_posts --id s:1)" in " ".join(lines_of(events([whole]), 100))
    assert event_record(topic)["calls"][0]["cost"] == Decimal("0.00045")


def _spend(stage: str, cost: str, **others: Any) -> Spend:
    figures = {"failed": 0, "unsettled": 0, "repairs": 7, "at_risk": Decimal(0)}
    figures |= {"calls": 12_345, "tokens_in": 1_234_567, "tokens_cached": 0, "tokens_out": 987_654}
    figures |= {"model_served": "Qwen/Qwen2.5-72B-Instruct-AWQ", **others}
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
    assert "7 were repairs, 3 tries failed, 0.5000 at risk" in " ".join(" ".join(lines_of(spent, width)).split())
    assert "13.3456 CNY" in "\n".join(lines_of(spent, width))
