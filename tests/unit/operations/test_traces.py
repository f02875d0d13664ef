"""Runs of characters: what is a quote, what is a trace, what is neither."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.operations.erase.cells import texts
from pipelines.operations.erase.lineage import Gone, made_as
from pipelines.operations.erase.scrub import Scrub
from pipelines.operations.erase.traces import LENGTH, QUOTE, Runs, plain

SAID = "我把钥匙交给门房的那天下着小雪谁也没有出来送我"
FEW = st.text(alphabet="甲乙丙丁", max_size=40)


def test_fifteen_characters_in_a_row_are_a_quote_and_fourteen_are_none():
    runs = Runs.of([SAID])
    others = ["他说：" + SAID[3 : 3 + QUOTE] + "。", SAID[3 : 2 + QUOTE], None, "", SAID[:10] + "，" + SAID[10:20]]
    assert runs.quoting(others).tolist() == [0]


def test_what_others_wrote_as_well_is_no_quote_of_the_erased():
    runs = Runs.of([SAID])
    runs.elsewhere(["开头" + SAID[:20]], source=True)
    assert runs.quoting([SAID[:20]]).tolist() == []
    assert runs.quoting([SAID[:21]]).tolist() == [0], "one character more is nobody else's"


def test_what_was_made_from_it_is_quoted_by_nobody():
    """Rules use the same sentences for many: only what people wrote can be quoted."""
    assert Runs.of(["别的话"], [SAID]).quoting([SAID]).tolist() == []
    assert Runs.of(["别的话"], [SAID]).traced(SAID)


def test_a_text_that_others_have_as_well_is_no_trace():
    runs = Runs.of([SAID])
    assert runs.traced("……" + SAID[5 : 5 + LENGTH])
    runs.elsewhere([SAID[:15]], source=False)
    assert not runs.traced(SAID[:15])
    assert runs.traced(SAID[:16])


def test_runs_do_not_reach_from_one_text_into_the_next():
    assert len(Runs.of([SAID[:7], SAID[7:14]]).values) == 0


@given(st.lists(FEW, max_size=4), FEW)
def test_a_text_is_traced_where_it_shares_a_run_and_nowhere_else(said, text):
    own = {one[at : at + LENGTH] for one in said for at in range(len(one) - LENGTH + 1)}
    shares = any(text[at : at + LENGTH] in own for at in range(len(text) - LENGTH + 1))
    assert Runs.of(said).traced(text) == shares


@given(st.lists(FEW, min_size=1, max_size=3), st.lists(FEW, min_size=1, max_size=6))
def test_quotes_are_found_in_the_text_that_holds_them(said, others):
    runs = Runs.of(said)
    quotes = {one[at : at + QUOTE] for one in said for at in range(len(one) - QUOTE + 1)}
    certain = [n for n, text in enumerate(others) if any(quote in text for quote in quotes)]
    assert set(certain) <= set(runs.quoting(others).tolist())


def test_a_reply_that_escapes_its_characters_twice_is_read():
    assert plain(rb'{"content": "{\"why\": \"\\u6211\\u628a\ud83d\ude00"}') == '{"content": "{"why": "我把😀"}'


POEM = "雪落在桥上\n桥下没有水\n\n我站了很久\n灯都灭了"  # every line is shorter than a run


@pytest.mark.parametrize("between", ["\n", " ", "\t", "\u3000"])
def test_a_text_of_short_lines_is_a_trace_whatever_space_stands_between_them(between):
    assert Runs.of([POEM]).traced(POEM.replace("\n", between))


def test_a_text_of_short_lines_is_found_in_a_question_within_a_question():
    body = json.dumps({"content": json.dumps({"text": f'他说"{POEM}"'})}).encode()
    assert Runs.of([POEM]).traced(plain(body))


def test_quotation_marks_within_a_text_hide_no_trace():
    said = '他说"好吧"我说"不行"了'
    assert Runs.of([said]).traced(plain(json.dumps({"content": json.dumps({"text": said})}).encode()))


def test_lines_of_a_log_are_erased_together_where_a_run_goes_from_one_into_the_next():
    scrub = Scrub(Runs.of([POEM]), Gone(["s:1"]), lambda name: "<gone>")
    told = scrub(f"reading s:1\n{POEM}\ndone")
    assert told == "reading <gone>\n[erased]\n[erased]\n\n[erased]\n[erased]\ndone"
    assert scrub(told) == told


def test_names_within_json_are_cleaned_as_its_values_are():
    scrub = Scrub(Runs.of([SAID]), Gone(["s:1"]), lambda name: "<gone>")
    cleaned = scrub(json.dumps({"s:1": {SAID: 2}, "s:2": [SAID]}))
    assert json.loads(cleaned) == {"<gone>": {"[erased]": 2}, "s:2": ["[erased]"]}


def test_strings_are_found_however_deep_they_stand_and_ids_are_left_out():
    frame = pl.DataFrame(
        {"post_id": ["s:1", "s:2"], "text": ["甲", None], "turns": [[], [{"role": "seeker", "media": [{"uri": "u"}]}]]}
    )
    found = [(int(row), text) for rows, column in texts(frame) for row, text in zip(rows, column, strict=True)]
    assert found == [(0, "甲"), (1, None), (1, "seeker"), (1, "u")]


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("s:1", True),
        ("s:1/a", True),
        ("s:1#3/2", True),
        ("s:1~P", True),
        ("s:12", False),
        ("t:1", False),
        (None, False),
    ],
)
def test_a_part_of_what_is_gone_is_gone(name, gone):
    assert (name in Gone(["s:1"])) is gone


def test_ids_of_a_site_may_hold_the_marks_of_parts():
    assert "s:a/b#c/1" in Gone(["s:a/b#c"])
    assert "s:a/b" not in Gone(["s:a/b#c"])


def test_a_post_whose_id_looks_like_a_part_of_another_is_its_own():
    gone = Gone(["s:1"], namesakes=["s:1/2"])
    assert ["s:1/2" in gone, "s:1/2/r0" in gone, "s:1/3" in gone] == [False, False, True]


def test_ids_are_masked_as_words():
    masked = Gone(["s:1"]).masked("0.93 like s:1, not s:12 (s:1/a)", lambda name: f"<{len(name)}>")
    assert masked == "0.93 like <3>, not s:12 (<5>)"


@pytest.mark.parametrize(
    ("gone", "told", "masked"),
    [
        ("s:a b,c", "same text as s:a b,c", "same text as <s:a b,c>"),
        ('s:x"y', 'like s:x"y.', 'like <s:x"y>.'),
        ("s:（1）", "见s:（1）。", "见<s:（1）>。"),
        ("s:1", "[s:1] `s:1`: s:1|s:1… s:1的回答", "[<s:1>] `<s:1>`: <s:1>|<s:1>… <s:1>的回答"),
        ("s:1", "s:12 s:1-2 s:1.5 as:1 a-s:1 s:1:2", "s:12 s:1-2 s:1.5 as:1 a-s:1 s:1:2"),
        ("s:小明", "s:小明明 s:小明", "s:小明明 <s:小明>"),
        ("s:1", "s:1#2/1~P, s:1/2 stands", "<s:1#2/1~P>, s:1/2 stands"),
    ],
)
def test_ids_are_masked_whatever_they_hold_and_whatever_stands_around_them(gone, told, masked):
    assert Gone([gone], namesakes=["s:1/2"]).masked(told, lambda name: f"<{name}>") == masked


def test_an_id_that_was_found_later_is_masked_as_well():
    gone = Gone(["s:1"])
    assert gone.masked("t:2", str.upper) == "t:2"
    gone.ids.add("t:2")
    assert gone.masked("t:2", str.upper) == "T:2"


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"unit": "label", "row_id": "s:1#2/1", "variant": "P"}, "s:1#2/1~P"),
        ({"dialogue_id": "s:1", "round": 2, "candidate": 1}, "s:1#2/1"),
        ({"dialogue_id": "s:1~R", "source_dialogue_id": "s:1"}, "s:1~R"),
        ({"post_id": "s:1"}, None),
    ],
)
def test_what_a_row_is_called_when_it_was_made_from_another(row, name):
    made = made_as(pl.DataFrame([row]))
    assert (None if made is None else made.to_list()) == (name and [name])


def test_runs_that_were_saved_find_the_same():
    runs = Runs.of([SAID])
    runs.elsewhere([SAID[:12]], source=True)
    again = Runs(np.array(runs.traces), runs.base)
    assert [again.traced(text) for text in (SAID[:12], SAID[:13])] == [False, True]
