"""The three reasoning formats: what is written can be read back, and what cannot be read says why."""

import doctest
import pickle
import re
import subprocess
import sys
from itertools import pairwise, product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas import reasoning
from schemas.labels import SENTIMENTS, STAGES, STRATEGIES
from schemas.reasoning import (
    CER_TAGS,
    COE_TAGS,
    ECOT_TAGS,
    FORMATS,
    Cer,
    Coe,
    Ecot,
    FormatError,
    Reasoning,
    blank,
    tags,
)

ECOT = Ecot(situation="您失眠了", motivation="想被理解", strategy="先共情", answer="您辛苦了。")
COE = Coe(L1="难过", L2="觉得自己没用", L3="想被认可", L4="先倾听", answer="抱抱你。")
CER = Cer(
    lang="zh", stage="exploration", history_reasoning="刚说到考试。", sentiment="negative", emotion="焦虑", intensity=3,
    emotion_reasoning="反复说睡不着。", strategy="Reflection of feelings", strategy_reasoning="先让对方觉得被听见。",
    response="听起来你很紧张。",
)  # fmt: skip
RECORDS: tuple[Reasoning, ...] = (ECOT, COE, CER)
NAMES = {Ecot: ECOT_TAGS, Coe: COE_TAGS, Cer: CER_TAGS}
# Every section of every format, as (record, tag); the first name of a format is the one that holds the others.
SECTIONS = [(one, tag) for one in RECORDS for tag in NAMES[type(one)][1:]]


def element(text: str, tag: str) -> str:
    """``<tag>…</tag>`` as it stands in `text`."""
    return text[text.index(f"<{tag}>") : text.index(f"</{tag}>") + len(f"</{tag}>")]


def refusal(record: Reasoning, text: str) -> tuple[str, str]:
    with pytest.raises(FormatError) as caught:
        type(record).parse(text)
    return caught.value.problem, caught.value.tag


# --- what the formats look like


def test_the_formats_are_what_the_papers_show():
    assert ECOT.render() == (
        "<thinking><situation>您失眠了</situation><motivation>想被理解</motivation><strategy>先共情</strategy></thinking>"
        "<answer>您辛苦了。</answer>"
    )
    assert COE.render() == (
        "<empathy_think><L1>难过</L1><L2>觉得自己没用</L2><L3>想被认可</L3><L4>先倾听</L4></empathy_think>"
        "<answer>抱抱你。</answer>"
    )
    assert CER.render() == (
        "<cer_think><history>阶段：探索\n刚说到考试。</history>"
        "<emotion>情感：消极；情绪：焦虑；强度：3\n反复说睡不着。</emotion>"
        "<strategy>策略：情感反映\n先让对方觉得被听见。</strategy></cer_think><answer>听起来你很紧张。</answer>"
    )


def test_cer_of_an_english_dialogue_is_english():
    english = Cer.model_validate({**CER.model_dump(), "lang": "en", "emotion": "anxiety"}).render()
    assert "<history>Stage: exploration\n" in english
    assert "<emotion>Sentiment: negative; Emotion: anxiety; Intensity: 3\n" in english
    assert "<strategy>Strategy: Reflection of feelings\n" in english
    assert Cer.parse(english).lang == "en"


def test_the_example_in_the_docstring_runs():
    assert doctest.testmod(reasoning).failed == 0


# --- what parse refuses: the same eight rules for every format


def test_each_tag_that_is_missing_or_too_many():
    misses = []
    for record in RECORDS:
        text = record.render()
        for tag in NAMES[type(record)]:
            opening, closing, whole = f"<{tag}>", f"</{tag}>", element(text, tag)
            for problem, broken in (
                ("missing", text.replace(opening, "").replace(closing, "")),
                ("unclosed", text.replace(closing, "")),
                ("unopened", text.replace(opening, "")),
                ("unopened", text.replace(closing, closing * 2)),
                ("doubled", text.replace(whole, whole * 2)),
            ):
                if (actual := refusal(record, broken)) != (problem, tag):
                    misses.append((problem, tag, actual))
    assert misses == []


def test_out_of_order_names_the_tag_that_comes_too_late():
    for record in RECORDS:
        text, names = record.render(), NAMES[type(record)]
        for first, second in [*pairwise(names[1:-1]), (names[0], "answer")]:  # that stand side by side
            one, other = element(text, first), element(text, second)
            assert refusal(record, text.replace(one + other, other + one)) == ("out_of_order", first)


def test_what_stands_in_or_before_a_section():
    for record, tag in SECTIONS:
        text, opening = record.render(), f"<{tag}>"
        for stray in NAMES[type(record)]:
            for written in (f"<{stray}>", f"</{stray}>", f"<{stray}>…</{stray}>"):
                if written != f"</{tag}>":  # that one closes the section
                    assert refusal(record, text.replace(opening, opening + written)) == ("nested", stray)
        assert refusal(record, text.replace(opening, f"好的。{opening}")) == ("outside", tag)
        assert refusal(record, text + "好的。") == ("outside", "answer")
        for unseen in ("", " ", "\n\u3000\t", "\u200b", " \ufeff\n\x00", "\u3164\u0301"):
            assert refusal(record, text.replace(element(text, tag), f"{opening}{unseen}</{tag}>")) == ("empty", tag)


S, M, T = "<situation>s</situation>", "<motivation>m</motivation>", "<strategy>t</strategy>"
ALL = f"<thinking>{S}{M}{T}</thinking>"
A = "<answer>a</answer>"


def test_malformed_ecot():
    for text, problem, tag in (
        ("", "missing", "thinking"),
        (f"<thinking>{S}", "missing", "motivation"),  # cut off: the first tag that never comes
        (f"<thinking>{S}<motivation>m", "unclosed", "motivation"),
        (f"<thinking>{S}{M}{T}{A}</thinking>", "nested", "answer"),
        (f"{A}{ALL}", "out_of_order", "thinking"),
        (f"<thinking>{S}{M}</thinking>{T}{A}", "out_of_order", "strategy"),
        (f"{ALL}{A}{ALL}{A}", "doubled", "thinking"),
        (f"</answer>{ALL}{A}", "unopened", "answer"),
        (f"{ALL}{A}</thinking>", "unopened", "thinking"),
        # A tag is exact; what merely looks like one is text, and so its closing tag closes nothing.
        (f"<thinking a=1>{S}{M}{T}</thinking>{A}", "unopened", "thinking"),
        (f"{ALL}<answer>a</ answer>", "unclosed", "answer"),
        (f"<think>\n\n</think>{ALL}{A}", "outside", "thinking"),  # Qwen3's own tag is none of ours
        # Tags are looked at before the text between them.
        (f"好的。<thinking>{S}{M}{T}</thinking>", "missing", "answer"),
    ):
        assert refusal(ECOT, text) == (problem, tag), text


# --- what parse refuses in the fields of CER


def test_a_field_that_is_missing_or_not_in_its_set():
    text = CER.render()
    for step, right, wrong, message in (
        ("history", "阶段：探索", "探索", "阶段 is missing"),
        ("history", "阶段：探索", "阶段：探索；阶段：行动", "'阶段：行动' is not one of its fields"),
        ("history", "阶段：探索", "Stage: end", "'Stage: exploration|comforting|action'"),
        ("emotion", "消极", "悲观", "情感：积极|消极|中性；情绪：…；强度：1|2|3|4|5"),
        ("emotion", "强度：3", "强度：6", "强度 may not be '6'"),
        ("emotion", "情感：消极；情绪：焦虑", "情绪：焦虑；情感：消极", "情感 is missing"),
        ("strategy", "策略：", "Strategy: ", "策略 is missing"),  # one language throughout
        ("strategy", "情感反映", "解释", "提问|复述或释义|情感反映|自我暴露|肯定与安慰|提供建议|提供信息|其他'"),
    ):
        assert right in text
        with pytest.raises(FormatError, match=re.escape(message)) as caught:
            Cer.parse(text.replace(right, wrong))
        assert (caught.value.problem, caught.value.tag) == ("field", step)


# --- what parse accepts


def test_white_space_around_tags_is_nothing_and_what_is_no_tag_of_the_format_is_text():
    for record in RECORDS:
        spaced = "\n " + re.sub("(<[^>]+>)", "\u3000\r\n\\1 \n", record.render())
        assert type(record).parse(spaced) == record
    for text in ("<3", "我<b>很</b>好", "1 < 2 > 0", "</", "<thinking", "answer>", "<L1>", "<Answer>", "<answer >"):
        record = Ecot(situation=text, motivation=text, strategy=text, answer=text)
        assert Ecot.parse(record.render()) == record


def test_aliases_and_marks_of_either_width():
    text = CER.render()
    for right, also in (
        ("阶段：探索", " 阶段 ： 探索 "),
        ("阶段：探索", "阶段：Exploration"),
        ("情感：消极；情绪：焦虑；强度：3", "情感:消极;情绪:焦虑;强度:3"),
        ("情感：消极；情绪：焦虑；强度：3", "情感：负面; 情绪：焦虑 ;强度: 3\r"),
        ("策略：情感反映", "策略：reflection_of_feelings"),
    ):
        assert right in text
        assert Cer.parse(text.replace(right, also)) == CER


# --- what a record refuses, so that whatever is rendered can be parsed


def test_a_record_holds_no_tag_of_its_own_format_no_empty_section_and_no_other_field_and_stays_as_it_is():
    for record, tag in SECTIONS:
        for field, written in product(record.model_fields_set, (f"<{tag}>", f"</{tag}>")):
            if isinstance(getattr(record, field), str):
                with pytest.raises(ValidationError):
                    type(record).model_validate({**record.model_dump(), field: getattr(record, field) + written})
    for record in RECORDS:
        for field in type(record).model_fields:
            with pytest.raises(ValidationError):
                type(record).model_validate({**record.model_dump(), field: " \u3000\n"})
        with pytest.raises(ValidationError, match="Extra inputs"):
            type(record).model_validate({**record.model_dump(), "mood": "x"})
        with pytest.raises(ValidationError, match="frozen"):
            record.answer = "x"  # type: ignore[attr-defined]


def test_cer_refuses_what_its_sets_do_not_hold():
    for field, value, message in (
        ("strategy", "Interpretation", "must be one of Question, "),
        ("emotion", "焦虑；紧张", "semicolon or a line break"),
        ("intensity", 6, "less than or equal to 5"),
        ("lang", "fr", "'zh' or 'en'"),
    ):
        with pytest.raises(ValidationError, match=message):
            Cer.model_validate({**CER.model_dump(), field: value})


# --- laws

# What may come close to a tag, to a field, or to white space; a lone surrogate is what a bad decoder leaves.
FRAGMENTS = st.one_of(
    st.sampled_from("<>/；：;: \n\r\x1c\u3000\u2028\ud800"),
    st.sampled_from(["<3", "</", "answer", "answer>", "<answ", "<history", "<ANSWER>", "😀", "阶段：", "Stage:"]),
)
TEXT = st.lists(st.one_of(FRAGMENTS, st.text(max_size=3)), min_size=1, max_size=8).map("".join)
ALL_TAGS = tuple(dict.fromkeys(ECOT_TAGS + COE_TAGS + CER_TAGS))
PROSE = TEXT.filter(lambda text: not blank(text) and not tags(text, ALL_TAGS))
WORD = PROSE.filter(lambda text: not re.search("[;；\n]", text.strip()))
CLOSED = {
    "lang": st.sampled_from(["zh", "en"]), "stage": st.sampled_from(STAGES.en), "intensity": st.integers(1, 5),
    "sentiment": st.sampled_from(SENTIMENTS.en), "emotion": WORD,
    "strategy": st.sampled_from(STRATEGIES.en),
}  # fmt: skip
ANY = st.one_of(
    *(st.builds(kind, **dict.fromkeys(kind.model_fields, PROSE)) for kind in (Ecot, Coe)),
    st.builds(Cer, **dict.fromkeys(Cer.model_fields, PROSE) | CLOSED),
)


@given(ANY)
def test_what_is_rendered_is_parsed_back(record: Reasoning):
    assert type(record).parse(record.render()) == record


# Mostly tokens of the formats themselves, so that some texts come close to being well formed.
TOKENS = st.one_of(st.sampled_from([f"<{mark}{name}>" for name in ALL_TAGS for mark in ("", "/")]), PROSE)


@given(st.sampled_from(list(FORMATS.values())), st.lists(TOKENS, max_size=30).map("".join))
@example(Ecot, ALL + A)
def test_any_text_is_a_record_or_a_format_error(kind: type[Reasoning], text: str):
    try:
        record = kind.parse(text)
    except FormatError as refused:
        assert refused.tag in NAMES[kind]  # noqa: PT017
    else:
        assert kind.parse(record.render()) == record


# --- the tags alone, for rewards that count them in malformed text


@given(st.lists(TOKENS, max_size=30).map("".join))
def test_tags_are_where_they_say_and_all_of_them(text: str):
    matches = tags(text, ALL_TAGS)
    assert all(text[tag.start : tag.end] == str(tag) for tag in matches)
    assert all(one.end <= other.start for one, other in pairwise(matches))
    for name in ALL_TAGS:
        for closing, written in ((False, f"<{name}>"), (True, f"</{name}>")):
            assert sum(tag.name == name and tag.closing is closing for tag in matches) == text.count(written)


# --- hostile sizes: a reader whose cost grew with the square of the length would not end within the time given here


@pytest.mark.timeout(120)
def test_hostile_text_costs_one_pass_and_a_short_message():
    for text, n_tags, problem, tag in (
        ("<" * 1_000_000, 0, "missing", "thinking"),
        ("<answer>" * 100_000, 100_000, "missing", "thinking"),
        (f"{ALL}{'<answer>' * 10_000}{'</answer>' * 10_000}", 20_008, "nested", "answer"),
        ((ALL + A) * 10_000, 100_000, "doubled", "thinking"),
        (f"{ALL}{A}{' ' * 1_000_000}x", 10, "outside", "answer"),
    ):
        assert len(tags(text, ECOT_TAGS)) == n_tags
        assert refusal(ECOT, text) == (problem, tag)
    for line in ("；" * 1_000_000, "：" * 1_000_000, "阶段：探索" + "；阶段：探索" * 200_000):
        with pytest.raises(FormatError) as caught:
            Cer.parse(CER.render().replace("阶段：探索", line))
        assert (caught.value.problem, caught.value.tag) == ("field", "history")
        assert len(str(caught.value)) < 300


def test_the_message_says_what_is_wrong_and_where():
    order = "the order is thinking, situation, motivation, strategy, answer"
    for text, message in (
        (f"{ALL}<answer>a", "<answer> is never closed: there is no </answer> after it"),
        (f"<thinking>{M}{S}{T}</thinking>{A}", f"<situation> comes only after <motivation>; {order}"),
        (f"{ALL}<answer>a<thinking>b</answer>", "<thinking> stands inside <answer>, which may not hold it"),
        (f"{ALL}{A}{'好' * 1000}", f"text stands outside the tags, after </answer>: '{'好' * 40}…'"),
    ):
        with pytest.raises(FormatError) as caught:
            Ecot.parse(text)
        assert str(caught.value) == message
        again = pickle.loads(pickle.dumps(caught.value))  # it travels between processes
        assert (again.problem, again.tag, str(again)) == (caught.value.problem, caught.value.tag, message)


def test_verl_workers_import_nothing_heavy_with_it():
    check = "import sys, schemas.reasoning; print({'polars', 'dataframely', 'numpy', 'dagster'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", check], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"
