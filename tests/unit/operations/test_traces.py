"""What counts as a quotation and as a trace of erased text, and which ids are erased."""

import json
import re

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pipelines.operations.erase.rows import ErasedIds
from pipelines.operations.erase.traces import LENGTH, QUOTE, Scrub, TextTraces, texts_of, unescape
from pipelines.store.derived import derived_ids

TEXT = "我把钥匙交给门房的那天下着小雪谁也没有出来送我"
FEW = st.text(alphabet="甲乙丙丁", max_size=40)
POEM = "雪落在桥上\n桥下没有水\n\n我站了很久\n灯都灭了"  # every line is shorter than an n-gram


def test_fifteen_characters_in_a_row_are_a_quotation_unless_others_wrote_them_too_or_they_are_derived():
    traces = TextTraces.of([TEXT])
    others = ["他说：" + TEXT[3 : 3 + QUOTE] + "。", TEXT[3 : 2 + QUOTE], None, "", TEXT[:10] + "，" + TEXT[10:20]]
    assert traces.quoting(traces.find(others)).tolist() == [0]
    traces.add_elsewhere(["开头" + TEXT[:20]], source=True)
    assert traces.quoting(traces.find([TEXT[:20], TEXT[:21]])).tolist() == [1]
    # Rules use the same sentences for many: only what people wrote can be quoted.
    traces = TextTraces.of(["别的话"], [TEXT])
    assert traces.quoting(traces.find([TEXT])).tolist() == []
    assert traces.is_trace(TEXT)


def test_a_text_that_others_have_as_well_is_no_trace_also_after_saving():
    traces = TextTraces.of([TEXT])
    assert traces.is_trace("……" + TEXT[5 : 5 + LENGTH])
    traces.add_elsewhere([TEXT[:15]], source=False)
    for each in (traces, TextTraces(np.array(traces.unique), traces.base)):
        assert [each.is_trace(text) for text in (TEXT[:15], TEXT[:16])] == [False, True]


@given(st.lists(FEW, max_size=4), FEW)
def test_a_text_is_a_trace_where_it_shares_an_n_gram_of_one_text(erased, text):
    own = {one[at : at + LENGTH] for one in erased for at in range(len(one) - LENGTH + 1)}
    shares = any(text[at : at + LENGTH] in own for at in range(len(text) - LENGTH + 1))
    assert TextTraces.of(erased).is_trace(text) == shares


SPACED = st.text(alphabet="甲乙 \n\t\u3000🙂", max_size=40)


def grams(texts: list[str | None]) -> set[str]:
    spaced = [re.sub(r"\s", " ", text or "") for text in texts]
    return {text[at : at + LENGTH] for text in spaced for at in range(len(text) - LENGTH + 1)}


@given(st.lists(SPACED, max_size=4), st.lists(st.none() | SPACED, max_size=6), SPACED)
def test_it_is_none_where_rows_of_a_column_have_all_of_its_n_grams(erased, others, text):
    traces = TextTraces.of(erased)
    traces.add_elsewhere(others, source=False)
    assert traces.is_trace(text) == bool(grams([text]) & (grams(erased) - grams(others)))


@given(st.lists(FEW, min_size=1, max_size=3), st.lists(FEW, min_size=1, max_size=6))
def test_every_quotation_is_attributed_to_its_text(erased, others):
    quotes = {one[at : at + QUOTE] for one in erased for at in range(len(one) - QUOTE + 1)}
    certain = {n for n, text in enumerate(others) if any(quote in text for quote in quotes)}
    traces = TextTraces.of(erased)
    assert certain <= set(traces.quoting(traces.find(others)).tolist())


def test_replies_that_escape_characters_twice_are_read():
    assert unescape(rb'{"content": "{\"why\": \"\\u6211\\u628a\ud83d\ude00"}') == '{"content": "{"why": "我把😀"}'
    for text in (POEM, '他说"好吧"我说"不行"了'):
        body = json.dumps({"content": json.dumps({"text": f"引：{text}"})}).encode()
        assert TextTraces.of([text]).is_trace(unescape(body))


def test_short_lines_are_a_trace_whatever_space_separates_them():
    assert all(TextTraces.of([POEM]).is_trace(POEM.replace("\n", space)) for space in ("\n", " ", "\t", "\u3000"))


def test_lines_of_a_log_are_erased_where_an_n_gram_spans_them():
    scrub = Scrub(TextTraces.of([POEM]), ErasedIds(["s:1"]), lambda name: "<erased>")
    clean = scrub(f"reading s:1\n{POEM}\ndone")
    assert clean == "reading <erased>\n[erased]\n[erased]\n\n[erased]\n[erased]\ndone"
    assert scrub(clean) == clean
    scrub = Scrub(TextTraces.of([TEXT]), ErasedIds(["s:1"]), lambda name: "<erased>")
    names = scrub(json.dumps({"s:1": {TEXT: 2}, "s:2": [TEXT]}))
    assert json.loads(names) == {"<erased>": {"[erased]": 2}, "s:2": ["[erased]"]}, "names in JSON like values"


def test_strings_are_read_at_any_depth_and_ids_are_left_out():
    frame = pl.DataFrame(
        {"post_id": ["s:1", "s:2"], "text": ["甲", None], "turns": [[], [{"role": "seeker", "media": [{"uri": "u"}]}]]}
    )
    strings = [
        (int(row), text) for rows, column in texts_of(frame) for row, text in zip(rows, column.to_pylist(), strict=True)
    ]
    assert strings == [(0, "甲"), (1, None), (1, "seeker"), (1, "u")]


def test_parts_of_an_erased_row_are_erased_and_its_namesakes_are_not():
    erased = ErasedIds(["s:1", "s:a/b#c"], namesakes=["s:1/2"])
    inside = ["s:1", "s:1/a", "s:1#3/2", "s:1~P", "s:1/3", "s:a/b#c/1"]
    outside = ["s:12", "t:1", None, "s:1/2", "s:1/2/r0", "s:a/b"]
    assert [name for name in [*inside, *outside] if name in erased] == inside


def test_ids_are_masked_whatever_they_hold_and_whatever_surrounds_them_also_one_that_is_added_later():
    for erased, masked in (
        ("s:1", "0.93 like <s:1>, not s:12 (<s:1/a>)"),
        ("s:a b,c", "same text as <s:a b,c>"),
        ('s:x"y', 'like <s:x"y>.'),
        ("s:（1）", "见<s:（1）>。"),
        ("s:1", "[<s:1>] `<s:1>`: <s:1>|<s:1>… <s:1>的回答"),
        ("s:1", "s:12 s:1-2 s:1.5 as:1 a-s:1 s:1:2"),
        ("s:小明", "s:小明明 <s:小明>"),
        ("s:1", "<s:1#2/1~P>, s:1/2 stands"),
    ):
        text = masked.replace("<", "").replace(">", "")
        ids = ErasedIds([], namesakes=["s:1/2"])
        assert ids.masked(text, str.upper) == text
        ids.ids.add(erased)
        assert ids.masked(text, lambda name: f"<{name}>") == masked


def test_the_id_of_a_derived_row():
    for row, name in (
        ({"unit": "label", "row_id": "s:1#2/1", "variant": "P"}, "s:1#2/1~P"),
        ({"dialogue_id": "s:1", "round": 2, "candidate": 1}, "s:1#2/1"),
        ({"dialogue_id": "s:1~R", "source_dialogue_id": "s:1"}, "s:1~R"),
    ):
        assert derived_ids(pl.DataFrame([row])).to_list() == [name]
    assert derived_ids(pl.DataFrame([{"post_id": "s:1"}])) is None
