"""Who can be known by what a text tells together."""

import pytest
from released_rows import few_rows
from unique_rows import post, sampled_round

from pipelines.release.checks.people import K, k_anonymity

SPLITS = {"g1": "train"}


def _few(*texts):
    told = [post(number, text) for number, text in enumerate(texts)]
    return [(one.severity, one.count) for one in k_anonymity(few_rows(*told, split_of=SPLITS))]


@pytest.mark.parametrize(
    "text", ["我32岁，在成都做护士，最近睡不好。", "I am a nurse from Seattle, 34 years old, and I can't sleep."]
)
def test_age_place_and_job_together_identify_a_person(text):
    assert _few(text) == [("warn", 1)]


def test_who_has_enough_company_is_left_alone():
    alike = [f"我32岁，在成都做护士，第{number}次来这里。" for number in range(K)]
    assert _few(*alike) == []
    assert _few(*alike[1:]) == [("warn", K - 1)]


def test_a_class_includes_seekers_with_more_quasi_identifiers():
    alike = [f"我32岁，做护士，第{number}次来这里。" for number in range(K - 1)]
    assert _few(*alike, "我32岁，在成都做护士。") == [("warn", 1)]


def test_an_age_is_the_same_in_words_and_in_figures():
    ages = {"三十二岁": "32岁", "二十岁": "20岁", "十九岁": "19岁", "十岁": "10岁"}
    for words, figures in ages.items():
        assert _few(*[f"我{age}，做护士，最近睡不好。" for age in (words, figures, words, figures, words)]) == []


@pytest.mark.parametrize(
    "text", ["艾薇医生，我22岁，最近睡不好。", "我22岁，去医院看了医生。", "我22岁，心理测试说我焦虑。"]
)
def test_a_doctor_who_is_spoken_to_is_no_job_of_the_seekers(text):
    assert _few(text) == []
    assert _few("我22岁，是一名医生，最近睡不好。") == [("warn", 1)]


def test_rounds_of_one_dialogue_are_one_seeker():
    history = ["seeker: 我32岁，在成都做护士，最近睡不好。"]
    later = [*history, "supporter: 嗯。", "seeker: 真的很累。"]
    said = (sampled_round(3, 1, history, "先抱抱你。"), sampled_round(3, 2, later, "辛苦了。"))
    (found,) = k_anonymity(few_rows(post(1, "最近总是睡不好。"), said=said, split_of=SPLITS))
    assert (found.count, found.examples) == (1, ["s:3"])
    assert found.what == (
        "1 of 2 seekers tell 2 or more of age, school, job, place, and fewer than 5 of the release tell the same"
    )
