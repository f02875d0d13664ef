"""What a rewrite is refused for without asking a model: on lines that we invented (artefacts.toml)."""

import re
import tomllib
from pathlib import Path
from time import process_time
from typing import get_args

import pytest
import rewrite_rows
from hypothesis import example, given
from hypothesis import strategies as st
from rewrite_rows import script

from pipelines import rewrite
from pipelines.llm.label_sets import prompt
from pipelines.rewrite.artefacts import KINDS, artefacts, kinds, script_of
from pipelines.rewrite.checks import Fault, spoiled
from pipelines.rewrite.copies import is_copy
from pipelines.rewrite.facts import changed
from pipelines.text.lexicon import lexicon

CASES = tomllib.loads(Path(__file__).with_name("artefacts.toml").read_text(encoding="utf-8"))["case"]
CAUGHT = [(case["kind"], line) for case in CASES for line in case["caught"]]
PASSED = [(case["kind"], line) for case in CASES for line in case["passed"]]
PLAIN = "我最近一直睡不好，也不想说话。"
PROMPT = "你会看到一段谈话，请把每一行换一种说法，意思不能变。\nPut every line in other words and keep what it means."


def test_there_are_lines_enough():
    assert len(CAUGHT) + len(PASSED) >= 80
    assert {kind for kind, _ in CAUGHT} == {kind for kind, _ in PASSED} == set(KINDS) - {"instructions"}


@pytest.mark.parametrize(("kind", "line"), CAUGHT, ids=[line[:24] for _, line in CAUGHT])
def test_an_artefact_is_caught(kind, line):
    assert kind in artefacts([(PLAIN, line)], PROMPT)


@pytest.mark.parametrize(("kind", "line"), CAUGHT, ids=[line[:24] for _, line in CAUGHT])
def test_what_the_source_says_as_well_is_none(kind, line):
    """People count, quote and label too."""
    assert artefacts([(line, line)], PROMPT) == {}
    assert kind not in artefacts([(line, f"{line}是吧")], PROMPT)


@pytest.mark.parametrize(("kind", "line"), PASSED, ids=[line[:24] for _, line in PASSED])
def test_a_near_miss_passes(kind, line):
    assert artefacts([(PLAIN, line)], PROMPT) == {}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("请把每一行换一种说法意思不能变", True),
        ("好的，会把每一行，换一种说法；意思…不能变，我睡不着", True),
        ("换一种说法，我就是睡不着。", False),
        ("please put every line in OTHER words and I am tired", True),
        ("I keep what it means to me, in other words.", False),
    ],
)
def test_instructions_that_were_copied_are_caught(line, found):
    """12 characters of Chinese, or 6 words; punctuation and case do not matter."""
    assert ("instructions" in artefacts([(PLAIN, line)], PROMPT)) is found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("要不要去找咨询师聊聊？", "建议你寻求专业心理帮助。"),
        ("Did you see a doctor?", "Did you seek professional help?"),
        ("首先早点睡，其次少喝咖啡。", "第一，早点睡；第二，少喝咖啡。"),  # who counts may count in another way
        ("我很难过😊", "我心里难过😊"),
        ("（温柔地）慢慢来。", "不急，（轻声）慢慢来。"),
        ("听起来你很難過。", "聽得出你很難過。"),
    ],
)
def test_what_was_there_in_another_form_is_none(before, after):
    assert artefacts([(before, after)], PROMPT) == {}


@pytest.mark.parametrize(
    "text",
    [
        *("- a" + "\n" * 400 + "x", "\n" * 20_000 + "好x", "首先，" * 800 + "其次，" * 800, "好 1.a" * 8_000),
        *("[" * 20_000, "①" * 20_000, "（一）" * 8_000, "firstly, " * 3_000, "a) x " * 4_000, '"}' + " " * 9_999 + "x"),
        *("。" + " " * 20_000 + "x", "ai" + " " * 4_000 + "x", "~~~" + " " * 4_000 + "x", "a. x " * 4_000),
    ],
    ids=lambda text: repr(text[:8]),
)  # fmt: skip
def test_a_hostile_line_takes_no_more_than_its_length(text):
    """Each of these once took minutes, or years."""
    started = process_time()
    artefacts([(PLAIN, text)], PROMPT)
    assert process_time() - started < 5


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("My DISC profile says I am dominant", {"persona"}),
        ("我的DISC测出来了", {"persona"}),
        ("a. 多喝水 b. 早点睡", {"list"}),
        ("1. drink water 2. sleep", {"list"}),
    ],
)
def test_an_artefact_is_caught_in_either_script(line, found):
    assert kinds(line) == found


def test_the_alternatives_of_a_pattern_are_of_one_script():
    """A text without it is not looked at: an English word in a Chinese pattern would never be found."""
    lists = [one for one in lexicon("artefacts", rewrite.__file__).values() if isinstance(one, list)]
    patterns = [pattern for one in lists for pattern in one]
    assert patterns
    for pattern in patterns:
        scripts = {script_of(one) for one in at_the_top(pattern)} - {"any"}
        assert len(scripts) <= 1, pattern


def at_the_top(pattern: str) -> list[str]:
    """The alternatives between the bars of a pattern that stand in no group and no class."""
    found, depth = [""], 0
    for token in re.findall(r"\\.|\[(?:\\.|[^\]\\])[^\]\\]*(?:\\.[^\]\\]*)*\]|.", pattern, re.DOTALL):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == "|" and depth == 0:
            found.append("")
        else:
            found[-1] += token
    return found


def test_a_character_is_new_where_its_own_line_had_another():
    assert artefacts([("我很难过😊", "我心里难过😭")], PROMPT) == {"emoji": 1}
    assert artefacts([("我很难过😊", "我心里难过"), ("慢慢来。", "别急😊")], PROMPT) == {"emoji": 1}


def test_one_line_in_the_other_script_is_no_accident():
    """Where the source writes Traditional somewhere, a rewrite may write it anywhere."""
    assert artefacts([("我睡不着。", "我睡不好。"), ("听起来很累。", "聽起來很累。")], PROMPT) == {"traditional": 1}
    assert artefacts([("我睡不著，好難過。", "我睡不好。"), ("听起来很累。", "聽起來很累。")], PROMPT) == {}


def test_a_run_of_the_prompt_that_the_source_has_is_none():
    said = "老师说，请把每一行换一种说法，意思不能变，我不会。"
    assert artefacts([(said, f"唉，{said}")], PROMPT) == {}


@pytest.mark.parametrize("name", ["rewrite.zh", "rewrite.en", "rewrite_persona.zh", "rewrite_persona.en"])
def test_no_good_rewrite_copies_our_own_prompts(name):
    good = rewrite_rows.good_rewrites()
    assert good
    for source, rewrites in good.items():
        lines = rewrite_rows.good_scripts()[source].lines
        assert rewrites, source
        for written in rewrites.values():
            found = artefacts(
                [(line.text, text) for line, text in zip(lines, written, strict=True)],
                prompt(name, rewrite.__file__).text,
            )
            assert found == {}, source


# --- copies


@pytest.mark.parametrize(
    ("same", "lines", "copied"),
    [(10, 10, True), (9, 10, True), (8, 10, False), (4, 4, True), (3, 4, False), (0, 4, False), (1, 1, True)],
)
def test_more_than_four_lines_of_five_make_a_copy(same, lines, copied):
    before = [f"我第{n}次跟他说这件事情的时候" for n in range(lines)]
    after = [f"{text}。" if n < same else f"我又跟他讲了，{n}" for n, text in enumerate(before)]
    assert is_copy(list(zip(before, after, strict=True))) == (f"{same} of {lines} lines" if copied else None)


def test_short_lines_do_not_count_beside_long_ones():
    """嗯 and 好的 have hardly another wording."""
    pairs = [("嗯", "嗯"), ("好的", "好的"), ("是的", "是的"), ("我最近一直睡不着觉", "最近我总也睡不好")]
    assert is_copy(pairs) is None
    assert is_copy(pairs[:3]) == "3 of 3 lines"


@given(
    st.lists(st.text(alphabet="我你睡不着了很难过，。！ aBc", min_size=1, max_size=30), min_size=1, max_size=6),
    st.data(),
)
def test_the_source_with_other_punctuation_is_a_copy(texts, data):
    marks = st.sampled_from(["", "，", "。", "！", " ", "…", "?"])
    lines = [f"seeker: {text}" for text in texts]
    written = ["".join(one + data.draw(marks) for one in text if one.isalnum()) for text in texts]
    found = spoiled(script(1, *lines), written, PROMPT)
    assert found is not None
    assert found[0] == "unchanged"


# --- together


def test_the_first_fault_wins():
    source = script(1, "seeker: 我在北京三年没跟他说过话了", "supporter: 听起来你心里很委屈，是吗？")
    copied = [line.text for line in source.lines]
    listed = ["1. 在上海五年没理他\n2. 我难过", "你是不是觉得很受伤？"]
    changed = ["在上海，已经五年不跟他说话了，唉", "你是不是觉得很受伤？"]
    good = ["北京这三年，我跟他没讲过话，唉", "你是不是觉得很受伤？"]
    assert spoiled(source, copied, PROMPT) == ("unchanged", "2 of 2 lines")
    assert spoiled(source, listed, PROMPT) == ("artefact", "list 1")
    assert spoiled(source, changed, PROMPT) == ("facts_changed", "number 1, name 1")
    assert spoiled(source, good, PROMPT) is None


def test_a_detail_holds_nothing_that_somebody_wrote():
    source = script(1, "seeker: [姓名]说我得了抑郁症，我吃了三年舍曲林", "supporter: 辛苦了，你愿意多说说吗？")
    written = ["作为一个AI，**我**不知道", "求助者：愿意"]
    reason, detail = spoiled(source, written, PROMPT)
    assert (reason, detail) == ("artefact", "ai_phrase 1, markdown 1, speaker_label 1")
    assert spoiled(source, ["别人说我病了，我吃了很久的药", "愿意说吗？"], PROMPT) == (
        "facts_changed",
        "number 1, placeholder 1",
    )


def test_lines_that_are_missing_are_an_error_of_whoever_asks():
    with pytest.raises(ValueError, match="shorter"):
        spoiled(script(1, "seeker: 我睡不着", "supporter: 多久了？"), ["睡不好"], PROMPT)


def test_good_rewrites_pass():
    """The fifty of good_rewrites.toml, which people would write."""
    scripts = rewrite_rows.good_scripts()
    found = {
        (name, manner): spoiled(scripts[name], written, prompt(f"rewrite.{scripts[name].lang}", rewrite.__file__).text)
        for name, rewrites in rewrite_rows.good_rewrites().items()
        for manner, written in rewrites.items()
    }
    assert len(found) >= 50
    assert {key: fault for key, fault in found.items() if fault} == {}


@given(
    st.lists(st.tuples(st.text(max_size=80), st.text(max_size=80)), min_size=1, max_size=4),
    st.sampled_from(["zh", "en"]),
    st.text(max_size=200),
)
def test_no_text_is_too_odd(pairs, lang, told):
    source = script(1, *(f"seeker: {before}" for before, _ in pairs), lang=lang)
    found = spoiled(source, [after for _, after in pairs], told)
    assert found is None or found[0] in get_args(Fault)
    assert found == spoiled(source, [after for _, after in pairs], told)


@example(".4多0四九")  # its two figures once stood in the order of a set
@given(st.text(alphabet="零一二两三四五六七八九十百千万亿半第几多个年月天周次岁点分块0123456789.,:-%", max_size=24))
def test_no_figure_is_too_odd(text):
    assert changed([(text, f"「{text}」")], "zh") == {}
