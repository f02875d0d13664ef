"""What a model leaves in a text: on lines that we invented (artefacts.toml)."""

import re
import tomllib
from pathlib import Path
from time import process_time

from pipelines import text as room
from pipelines.text.artefacts import KINDS, artefacts, kinds, script_of
from pipelines.text.lexicon import lexicon

CASES = tomllib.loads(Path(__file__).with_name("artefacts.toml").read_text(encoding="utf-8"))["case"]
CAUGHT = [(case["kind"], line) for case in CASES for line in case["caught"]]
PASSED = [(case["kind"], line) for case in CASES for line in case["passed"]]
PLAIN = "我最近一直睡不好，也不想说话。"
PROMPT = "你会看到一段谈话，请把每一行换一种说法，意思不能变。\nPut every line in other words and keep what it means."


def test_artefacts_are_caught_and_near_misses_pass():
    assert len(CAUGHT) + len(PASSED) >= 80
    assert {kind for kind, _ in CAUGHT} == {kind for kind, _ in PASSED} == set(KINDS) - {"instructions"}
    assert [(kind, line) for kind, line in CAUGHT if kind not in artefacts([(PLAIN, line)], PROMPT)] == []
    assert [line for _, line in PASSED if artefacts([(PLAIN, line)], PROMPT)] == []


def test_what_the_source_holds_as_well_is_no_artefact():
    """People count, quote and label too."""
    assert [line for _, line in CAUGHT if artefacts([(line, line)], PROMPT)] == []
    assert [line for kind, line in CAUGHT if kind in artefacts([(line, f"{line}是吧")], PROMPT)] == []


def test_copied_instructions_are_caught():
    """12 characters of Chinese, or 6 words; punctuation and case do not matter."""
    copies = [
        "请把每一行换一种说法意思不能变",
        "好的，会把每一行，换一种说法；意思…不能变，我睡不着",
        "please put every line in OTHER words and I am tired",
    ]
    for line in copies:
        assert "instructions" in artefacts([(PLAIN, line)], PROMPT), line
        assert artefacts([(f"老师说，{line}", f"唉，老师说，{line}")], PROMPT) == {}
    for line in ("换一种说法，我就是睡不着。", "I keep what it means to me, in other words."):
        assert artefacts([(PLAIN, line)], PROMPT) == {}, line


def test_what_the_source_has_in_another_form_is_no_artefact():
    same = [
        ("要不要去找咨询师聊聊？", "建议你寻求专业心理帮助。"),
        ("Did you see a doctor?", "Did you seek professional help?"),
        ("首先早点睡，其次少喝咖啡。", "第一，早点睡；第二，少喝咖啡。"),  # who counts may count in another way
        ("（温柔地）慢慢来。", "不急，（轻声）慢慢来。"),
        ("听起来你很難過。", "聽得出你很難過。"),
        ("我很难过😊", "我心里难过😊"),
    ]
    assert [pair for pair in same if artefacts([pair], PROMPT)] == []
    assert artefacts([("我很难过😊", "我心里难过😭")], PROMPT) == {"emoji": 1}
    # Traditional characters are an artefact unless the source has some anywhere.
    assert artefacts([("我睡不着。", "我睡不好。"), ("听起来很累。", "聽起來很累。")], PROMPT) == {"traditional": 1}
    assert artefacts([("我睡不著，好難過。", "我睡不好。"), ("听起来很累。", "聽起來很累。")], PROMPT) == {}


def test_a_hostile_line_takes_no_more_than_its_length():
    """Each of these once took minutes, or years."""
    for text in (
        *("- a" + "\n" * 400 + "x", "\n" * 20_000 + "好x", "首先，" * 800 + "其次，" * 800, "好 1.a" * 8_000),
        *("[" * 20_000, "①" * 20_000, "（一）" * 8_000, "firstly, " * 3_000, "a) x " * 4_000, '"}' + " " * 9_999 + "x"),
        *("。" + " " * 20_000 + "x", "ai" + " " * 4_000 + "x", "~~~" + " " * 4_000 + "x", "a. x " * 4_000),
    ):
        started = process_time()
        artefacts([(PLAIN, text)], PROMPT)
        assert process_time() - started < 5, text[:8]


def test_the_alternatives_of_a_pattern_are_of_one_script():
    """A text without it is not looked at: an English word in a Chinese pattern would never match."""
    assert kinds("我的DISC测出来了") == kinds("My DISC profile says I am dominant") == {"persona"}
    lists = [one for one in lexicon("artefacts", room.__file__).values() if isinstance(one, list)]
    patterns = [pattern for one in lists for pattern in one]
    assert patterns
    for pattern in patterns:
        assert len({script_of(one) for one in at_the_top(pattern)} - {"any"}) <= 1, pattern


def at_the_top(pattern: str) -> list[str]:
    """The alternatives between the bars of a pattern that stand in no group and no class."""
    alternatives, depth = [""], 0
    for token in re.findall(r"\\.|\[(?:\\.|[^\]\\])[^\]\\]*(?:\\.[^\]\\]*)*\]|.", pattern, re.DOTALL):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == "|" and depth == 0:
            alternatives.append("")
        else:
            alternatives[-1] += token
    return alternatives
