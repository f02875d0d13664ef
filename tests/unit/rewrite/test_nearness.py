"""What a rewrite shares with its source, and another dialogue does not."""

import os
import subprocess
import sys
import tomllib
from itertools import combinations, permutations
from math import inf
from pathlib import Path
from statistics import fmean

import pytest
import rewrite_rows
from hypothesis import given
from hypothesis import strategies as st
from rewrite_rows import good_rewrites, good_scripts

from pipelines.llm.language import Lang
from pipelines.text.nearness import LEAST_OWN, likeness, moved, own, shared

GOOD, REWRITES = good_scripts(), good_rewrites()
LINES = {name: [line.text for line in script.lines] for name, script in GOOD.items()}
LISTS = st.lists(st.text(), max_size=5)
FLOOR = 0.12  # of `shared`: no dialogue of good_rewrites shares so much with another, and each rewrite more

_SHORT = tomllib.loads((Path(rewrite_rows.__file__).parent / "short_rewrites.toml").read_text(encoding="utf-8"))
SHORT = {name: [line.split(" / ") for line in chat["lines"].splitlines()] for name, chat in _SHORT.items()}


def test_rewrites_by_hand_share_enough_with_their_own_sources_and_other_dialogues_do_not():
    for name, lines in LINES.items():
        assert min(shared(lines, texts) for texts in REWRITES[name].values()) > 1.5 * FLOOR, name
        assert min(own(lines, texts) for texts in REWRITES[name].values()) > 1.4 * LEAST_OWN[GOOD[name].lang], name
    shares = [
        shared(LINES[one][:length], texts[:length])
        for one, other in permutations(GOOD, 2)
        if GOOD[one].lang == GOOD[other].lang
        for texts in REWRITES[other].values()
        for length in [min(len(LINES[one]), len(texts))]
    ]
    assert len(shares) == 240
    assert max(shares) < FLOOR


def test_short_lines_in_quite_other_words_are_their_own_sources_and_no_others():
    for name, pairs in SHORT.items():
        before, after = zip(*pairs, strict=True)
        assert min(own(before, after), own(after, before)) > LEAST_OWN[_lang(name)], name
    others = [(one, other) for one, other in permutations(SHORT, 2) if _lang(one) == _lang(other)]
    assert len(others) == 12
    for one, other in others:
        pairs = list(zip(SHORT[one], SHORT[other], strict=False))
        assert own([before for (before, _), _ in pairs], [after for _, (_, after) in pairs]) < LEAST_OWN[_lang(one)]


@given(st.lists(st.sampled_from(SHORT["night (zh)"]), min_size=1, max_size=30))
def test_some_lines_said_again_and_again_are_still_ones_own(pairs: list[list[str]]):
    """Fewer than four lines that differ say nothing."""
    assert own([before for before, _ in pairs], [after for _, after in pairs]) > LEAST_OWN["zh"]


def test_a_text_that_shares_nothing_is_nobodys():
    before = ["我睡不着", "你还好吗", "他走了", "天黑了"]
    assert own(before, ["……"] * 4) == 0
    assert own(before, before) > 10
    assert own(before[:3], ["……"] * 3) == inf


def _lang(name: str) -> Lang:
    return "zh" if name.endswith("(zh)") else "en"


def test_what_stands_in_any_text_does_not_count():
    assert shared(["I am so happy for you"], ["You are not what I am"]) == 0
    assert shared(["I slept BADLY, don\u2019t ask"], ["don't... badly?"]) == pytest.approx(2 / 8**0.5)
    assert shared(["我，睡。"], ["睡！我？"]) == 1  # marks and order are nothing to it


def test_lines_count_by_their_length_and_empty_ones_not_at_all():
    assert shared(["睡不着睡不着", "烦"], ["睡不着睡不着", "乱"]) == pytest.approx(6 / 7)
    assert shared(["睡不着", "……"], ["睡不着", "嗯"]) == 1
    assert shared(["睡不着"], ["……"]) == 0
    assert shared(["……", "I do"], ["嗯", "yes"]) == 1


@given(LISTS)
def test_a_text_shares_all_with_itself(lines: list[str]):
    assert shared(lines, lines) == pytest.approx(1)


def test_lines_that_were_exchanged_are_told_from_lines_that_were_put_in_other_words():
    """Measured: 750 of 880; the rest are of few words."""
    seen = pairs = 0
    for name, rewrites in REWRITES.items():
        for texts in rewrites.values():
            assert moved(LINES[name], texts) == 0
            for one, other in combinations(range(len(texts)), 2):
                exchanged = list(texts)
                exchanged[one], exchanged[other] = texts[other], texts[one]
                pairs += 1
                seen += moved(LINES[name], exchanged) >= 2
    assert seen >= 0.8 * pairs


@given(st.lists(st.text(alphabet="睡不着烦 ab", max_size=12), min_size=2, max_size=6))
def test_likeness_is_the_mean_over_all_pairs(texts: list[str]):
    """Texts of which nothing counts are like nothing, themselves included."""
    pairs = [shared([one], [other]) if likeness([one, one]) else 0.0 for one, other in combinations(texts, 2)]
    assert likeness(texts) == pytest.approx(fmean(pairs), abs=1e-9)


_FIGURES = """
from pipelines.text.nearness import likeness, own
before = "我室友每天打游戏打到很晚 你跟他谈过这件事吗 谈过两次可是他不听我的 那确实很累很烦 我都不想回宿舍".split()
after = "室友天天夜里打游戏 这件事你同他谈过没有 说了两回他都不听 这样的确又累又烦 宿舍我都不愿意回".split()
print(repr(own(before, after)), repr(likeness(before + after)))
"""


def test_the_last_digit_is_the_same_in_every_run():
    """Strings are hashed otherwise in each; a detail that is stored holds the figure."""
    printed = {
        subprocess.check_output(
            [sys.executable, "-c", _FIGURES], env={**os.environ, "PYTHONHASHSEED": str(seed)}, text=True
        )
        for seed in range(3)
    }
    assert len(printed) == 1, printed
