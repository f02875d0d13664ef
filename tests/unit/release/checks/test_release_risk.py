"""Risk and minors: by the flags of the tables, and by the rules read again."""

import polars as pl
import pytest
from released_rows import few_rows
from unique_rows import RISK, answer, post, sampled_round

from pipelines.release.checks.people import minors, risks
from pipelines.settings import Settings

SPLITS = {"g1": "train"}
CALM = "我最近睡不好，总是想工作上的事情，白天也没有精神。"
DANGER = "我不想活了，想自杀。"
YOUNG = "我今年16岁，上高一，和同桌吵架了。"
REPLY = "先抱抱你，睡不好的日子真的很难熬，愿意说说最近发生了什么吗？"


def _ids(check, *told, **more):
    return [one.examples for one in check(few_rows(*told, split_of=SPLITS, **more))]


@pytest.mark.parametrize(
    ("check", "told"),
    [
        (risks, post(1, CALM + DANGER)),
        (risks, post(1, CALM, risk=RISK)),
        (risks, post(1, CALM, answer("s:1/a", REPLY + DANGER))),
        (minors, post(1, YOUNG)),
        (minors, post(1, CALM, answer("s:1/a", f"{YOUNG}{REPLY}"))),
    ],
)
def test_risk_and_age_are_found_in_posts_and_answers(check, told):
    (found,) = check(few_rows(told, split_of=SPLITS))
    assert (found.count, found.examples) == (1, ["s:1"])


def test_who_is_calm_and_grown_is_left_alone():
    told = post(1, CALM, answer("s:1/a", REPLY))
    assert _ids(risks, told) == _ids(minors, told) == []


def test_a_flag_of_the_tables_is_enough():
    released = few_rows(post(1, CALM), split_of=SPLITS)
    flagged = released.table("unique_posts").with_columns(under_18=pl.lit(True))
    assert _ids(minors, post(1, CALM), unique_posts=flagged, grpo_ecot=released.table("grpo_ecot")) == [["s:1"]]


def test_the_second_opinion_counts():
    said = {"row_id": ["s:1"], "risk": [["self_harm"]]}
    assert _ids(risks, post(1, CALM), topics=pl.DataFrame(said)) == [["s:1"]]


def test_a_supporter_may_ask_whether_somebody_is_in_danger():
    said = (sampled_round(3, 2, [f"seeker: {CALM}", "supporter: 你有想过自杀吗？", "seeker: 没有，就是累。"], REPLY),)
    assert _ids(risks, said=said) == []


def test_several_turns_of_a_seeker_are_read_together():
    said = (sampled_round(3, 2, ["seeker: 我今年16岁。", "supporter: 嗯。", "seeker: 上高一，和同桌吵架了。"], REPLY),)
    assert _ids(minors, said=said) == [["s:3#2"]]


def test_risk_warns_where_the_settings_let_it_train():
    told = post(1, CALM + DANGER)
    (allowed,) = risks(few_rows(told, split_of=SPLITS))
    rows = few_rows(told, split_of=SPLITS).table("grpo_ecot")
    (refused,) = risks(few_rows(told, split_of=SPLITS, grpo_ecot=rows, settings=Settings()))
    assert (allowed.severity, refused.severity) == ("warn", "refuse")
