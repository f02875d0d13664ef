"""Who can be known by what a text tells together."""

import pytest
from released_rows import few_rows
from unique_rows import post, sampled_round

from pipelines.release.checks.anonymity import K, k_anonymity

SPLITS = {"g1": "train"}


def _few(*texts):
    told = [post(number, text) for number, text in enumerate(texts)]
    return [(one.severity, one.count) for one in k_anonymity(few_rows(*told, split_of=SPLITS))]


@pytest.mark.parametrize(
    "text",
    ["我32岁，在成都做护士，最近睡不好。", "I am a nurse from Seattle, 34 years old, and I can't sleep."],
)
def test_an_age_a_place_and_a_job_together_point_at_somebody(text):
    assert _few(text) == [("warn", 1)]


@pytest.mark.parametrize("text", ["我32岁，最近睡不好。", "在成都生活，最近睡不好。", "最近总是睡不好，白天没精神。"])
def test_one_of_them_alone_does_not(text):
    assert _few(text) == []


def test_who_has_enough_company_is_left_alone():
    alike = [f"我32岁，在成都做护士，第{number}次来这里。" for number in range(K)]
    assert _few(*alike) == []
    assert _few(*alike[1:]) == [("warn", K - 1)]


def test_rounds_of_one_dialogue_are_one_seeker():
    history = ["seeker: 我32岁，在成都做护士，最近睡不好。"]
    later = [*history, "supporter: 嗯。", "seeker: 真的很累。"]
    said = (sampled_round(3, 1, history, "先抱抱你。"), sampled_round(3, 2, later, "辛苦了。"))
    (found,) = k_anonymity(few_rows(said=said, split_of=SPLITS))
    assert (found.count, found.examples) == (1, ["s:3"])
