"""Nearly equal texts in different splits."""

import pytest
from opencc import OpenCC
from released_rows import few_rows
from unique_rows import answer, post, sampled_round

from pipelines.release.checks.leaks import near_duplicates

STORY = "上个月升了组长，通知下来那天同事起哄让我请客，我笑着请了，回家在浴室蹲了半小时，总觉得是领导看走眼了。"
NEAR = STORY + "谢谢大家。"
LONG = "听到你这样说，我能感到你这些日子有多不容易，一个人把事情都扛在肩上，还要在别人面前装作没事的样子，真的很累。"
SPLITS = {"g1": "train", "g2": "test"}


def _found(*told, **more):
    return list(near_duplicates(few_rows(*told, split_of=SPLITS, **more)))


def test_nearly_equal_questions_are_listed_as_a_pair():
    (found,) = _found(post(1, STORY), post(2, NEAR, group_id="g2"))
    assert (found.check, found.severity, found.count) == ("near_duplicates", "refuse", 1)
    assert found.examples == ["s:1 (train) ~ s:2 (test)"]
    assert _found(post(1, STORY), post(2, NEAR)) == [], "of one split"


def test_an_opening_may_repeat_a_question():
    said = (sampled_round(3, 1, [f"seeker: {STORY}"], LONG),)
    (found,) = _found(post(2, NEAR, group_id="g2"), said=said)
    assert found.examples == ["s:2 (test) ~ s:3#1 (train)"]


def test_a_long_answer_counts_and_a_short_formula_does_not():
    def two(text):
        return _found(
            post(1, STORY, answer("s:1/a", text)),
            post(2, "男朋友和我分手以后，我每天都失眠，不知道该怎么走出来。", answer("s:2/a", text), group_id="g2"),
        )

    assert two("抱抱你，会好起来的，加油。") == []
    (found,) = two(LONG)
    assert found.count == 1


@pytest.mark.parametrize("other", [STORY.replace("，", ", "), OpenCC("s2t").convert(STORY), STORY.replace("，", "😭")])
def test_marks_pictures_and_script_hide_nothing(other):
    (found,) = _found(post(1, STORY), post(2, other, group_id="g2"))
    assert found.count == 1


def test_ends_of_a_chain_are_no_pair():
    """Texts that hang together through a third alone: the third is of one side, and told with the other side only."""
    words = [f"第{number}件事情" for number in range(40)]
    chain = ["，".join(words[start : start + 34]) for start in (0, 3, 6)]
    (found,) = _found(post(1, chain[0]), post(2, chain[1], group_id="g2"), post(3, chain[2]))
    assert found.examples == ["s:1 (train) ~ s:2 (test)", "s:2 (test) ~ s:3 (train)"]
