"""The first filters of posts: what passes, what does not and why, and that nothing vanishes."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dataframely as dy
import polars as pl
import pytest
from clean_rows import post, posts
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.clean import clean_posts
from pipelines.ingest.importing import read
from pipelines.settings import Cleaning, Filters
from pipelines.store.reconciliation import reconcile, require_balance
from schemas.posts import CleanPosts, ImportedPosts, RawPosts
from schemas.table import Dropped


def require_accounted(frame: pl.DataFrame, kept: pl.DataFrame, dropped: pl.DataFrame) -> None:
    require_balance("clean_posts", [reconcile(unit, [frame], kept, dropped) for unit in ("post", "answer")])
    assert CleanPosts.is_valid(kept)
    assert Dropped.is_valid(dropped)
    assert set(dropped["stage"]) <= {"clean_posts"}


def reasons(dropped: pl.DataFrame) -> dict[tuple[str, str], tuple[str, str]]:
    return {(unit, row): (reason, detail) for _, unit, row, reason, detail in dropped.iter_rows()}


def test_a_post_has_at_least_twenty_characters():
    long = ["难" * 20, "难" * 19 + "。"]
    short = ["难" * 19, "难" * 19 + " \n\u3000\u200b", "难" * 19 + "😀[泪]", ""]  # what is not seen, or removed
    kept, dropped = clean_posts(posts(*(post(n, "", text) for n, text in enumerate([*long, *short]))))
    assert kept["post_id"].to_list() == ["s:0", "s:1"]
    assert dropped["reason"].to_list() == ["too_short"] * 4


def test_the_text_is_title_and_description_once_each():
    cases = [
        ("我很难过", "", "我很难过"),
        ("", "我很难过", "我很难过"),
        ("我很难过", "我很难过", "我很难过"),
        ("我很难过", "我很难过，睡不着", "我很难过，睡不着"),  # a site that repeats the title
        (" 我很难过 ", "\n睡不着\u3000", "我很难过\n睡不着"),
    ]
    frame = posts(*(post(n, title, body) for n, (title, body, _) in enumerate(cases)))
    assert clean_posts(frame, Filters(min_post_chars=0))[0]["text"].to_list() == [text for *_, text in cases]


def test_an_answer_has_more_than_a_hundred_characters_and_those_that_stay_are_whole_and_in_order():
    frame = posts(post(1, "", "难" * 20, "甲" * 101, "答" * 100, "乙" * 300))
    kept, dropped = clean_posts(frame)
    assert reasons(dropped) == {("answer", "s:1/1"): ("too_short", "100 characters")}
    before, after = frame["answers"].to_list()[0], kept["answers"].to_list()[0]
    for answer in before:
        del answer["spans"]
        answer |= {"risk": [], "under_18": False}
    assert after == [before[0], before[2]]


def test_a_post_is_mandarin():
    cases = [
        ("难" * 10 + "a" * 10, None),
        ("难" * 10 + "a" * 11, "not_chinese"),
        ("难" * 15 + "！" * 30 + "😀" * 30, None),  # neither raises nor lowers the share
        ("ただいまつかれましたからねむりたいです", "japanese"),
        ("나는 요즘 너무 힘들어요 잠이 안 와요 정말로", "korean"),
        ("I have been feeling so lonely since we moved here", "english"),
        ("我哋噉樣落去點算呀，佢日日都唔理我，我好唔開心", "cantonese"),
        ("⼀⼆⼈" * 10, None),
    ]
    frame = posts(*(post(n, "", text) for n, (text, _) in enumerate(cases)))
    _, dropped = clean_posts(frame, Filters(min_post_chars=15))
    wanted = {f"s:{n}": reason for n, (_, reason) in enumerate(cases) if reason}
    assert dict(dropped.select("row_id", "reason").iter_rows()) == wanted


STORY = "我最近很难过，和家里人吵架以后一直睡不着，不知道该怎么办。"


def test_personal_data_are_replaced_alike_in_all_of_a_post_and_counted():
    answer = "谢谢你愿意说出来。" * 12 + "我的电话也是13812345678，另一个是13987654321。"
    kept, _ = clean_posts(posts(post(1, "打13812345678找我", STORY, answer), post(2, "", STORY + "13700001111")))
    assert kept["title"].to_list() == ["打[电话]找我", ""]
    assert kept["answers"].to_list()[0][0]["text"].endswith("我的电话也是[电话]，另一个是[电话2]。")
    assert kept["text"].to_list()[1] == STORY + "[电话]"  # another post, another person
    assert kept["pii"].to_list() == [[{"kind": "phone", "count": 3}], [{"kind": "phone", "count": 1}]]


def test_artefacts_are_removed_before_anything_is_measured():
    kept, _ = clean_posts(posts(post(1, "#情感# 求助😭", f"@小明 {STORY}[泪] https://example.com/1 展开全文")))
    assert kept["text"].to_list() == [f"求助\n{STORY}"]
    assert kept["n_chars"].to_list() == [len(STORY) + 2]


def test_traditional_script_is_simplified_and_remembered():
    kept, _ = clean_posts(posts(post(1, "我該怎麼辦", "看著窗外的時候總是覺得自己很孤單，沒有人可以說話。")))
    assert kept["script"].to_list() == ["traditional"]
    assert kept["text"].to_list() == ["我该怎么办\n看着窗外的时候总是觉得自己很孤单，没有人可以说话。"]


def test_what_is_cut_from_an_answer_is_recorded_unless_the_answer_is_dropped():
    honest, claim = "我看到你一个人撑了很久，这真的不容易，也谢谢你愿意把这些说出来。" * 4, "我是国家二级心理咨询师。"
    kept, dropped = clean_posts(posts(post(1, "", STORY, claim + honest, claim + "抱抱你。" * 20)))
    assert [answer["text"] for answer in kept["answers"][0]] == [honest]
    assert kept["edits"].to_list() == [[{"row_id": "s:1/0", "rule": "credential", "removed": claim}]]
    assert dropped["reason"].to_list() == ["too_short"]


def test_what_is_no_trouble_of_a_grown_person_is_dropped_with_its_reason():
    cases = [
        ("专业代写论文，包过，价格优惠，加微信abc12345详聊，先到先得，名额有限，欢迎咨询下单。", "advertisement"),
        ("我今年12岁，最近在学校被同学欺负，每天都不想去上学，很难过。", "under_14"),
    ]
    kept, dropped = clean_posts(posts(*(post(n, "", text) for n, (text, _) in enumerate([*cases, (STORY, None)]))))
    assert dropped["reason"].to_list() == [reason for _, reason in cases]
    assert kept["post_id"].to_list() == ["s:2"]


@pytest.mark.parametrize("profile", ["default", "paper"])
def test_no_profile_hides_a_child_or_a_danger(profile: str):
    """What `paper` takes away, figures and Latin, tells of ages and of dangers."""
    rows = [
        post(1, "", "我今年13岁，每天都睡不着，不知道怎么办才好，很难过。"),
        post(2, "", "我今年16岁，每天都睡不着，不知道怎么办才好，很难过。"),
        post(3, "", "每天都睡不着，不知道怎么办才好，很难过，I want to kill myself。"),
    ]
    kept, dropped = clean_posts(posts(*rows), cleaning=Cleaning(profile=profile))
    assert dropped.select("row_id", "reason").rows() == [("s:1", "under_14")]
    assert kept["under_18"].to_list() == [True, False]
    assert [[sign["kind"] for sign in signs] for signs in kept["risk"].to_list()] == [[], ["self_harm"]]


def test_answers_are_judged_for_ages_and_risk_too():
    """The names of the schools say the ages, and placeholders hide them."""
    answers = ("我是阳光小学四年级的学生，", "我在市一中读高二，", "我当时割腕了，", "")
    kept, dropped = clean_posts(posts(post(1, "", "难" * 20, *(answer + "答" * 101 for answer in answers))))
    assert dropped.select("row_id", "reason").rows() == [("s:1/0", "under_14")]
    verdicts = [(one["under_18"], [sign["kind"] for sign in one["risk"]]) for one in kept["answers"][0]]
    assert verdicts == [(True, []), (False, ["self_harm"]), (False, [])]


def test_topics_are_cleaned_as_well():
    frame = posts(post(1, "", "难" * 20, topic="加微信 abc_12345", subtopics=["恋爱", "电话13812345678"]))
    row = clean_posts(frame)[0].row(0, named=True)
    assert (row["topic"], row["subtopics"]) == ("加微信 [微信]", ["恋爱", "电话[电话]"])


def test_a_year_of_birth_counts_where_it_is_known_when_the_post_was_written():
    when = datetime(2025, 3, 1, tzinfo=UTC)
    frame = posts(*(post(n, "", f"我是{year}年的，" + STORY, posted_at=when) for n, year in enumerate(("09", "99"))))
    assert clean_posts(frame)[0]["under_18"].to_list() == [True, False]


def test_how_much_of_a_post_must_be_chinese_is_a_setting():
    frame = posts(post(1, "", "难aaa" * 5))
    assert clean_posts(frame, FEW)[1]["reason"].to_list() == ["not_chinese"]
    assert clean_posts(frame, FEW.model_copy(update={"min_han_ratio": 0.2}))[0].height == 1


QUESTION = "什么是首因效应？首因效应在教学中有哪些应用，请各位老师举一些例子"


def test_how_much_feeling_a_post_must_show_is_a_setting():
    frame = posts(post(1, "", QUESTION), post(2, "", STORY))
    kept, dropped = clean_posts(frame)
    assert kept["post_id"].to_list() == ["s:2"]
    assert dropped.select("row_id", "reason").rows() == [("s:1", "little_emotional_context")]
    assert dropped["detail"].to_list()[0].startswith("score 0.0")
    assert clean_posts(frame, Filters(min_emotional_context=0))[0]["doubts"].to_list() == [["not_psychological"], []]


WORDS = st.lists(st.sampled_from(["难", "难过", "a", "1", "😀", " ", "\u3000", "\u200b", "\n"]), max_size=14)
TEXT = WORDS.map("".join)
FEW = Filters(min_post_chars=6, min_answer_chars=4)


def naive(row: dict[str, Any]) -> tuple[str | None, list[str]]:
    """Why a post goes (None: it stays), and the ids of the answers that stay."""
    title, body = (row[name].replace("😀", "").replace("\u200b", "").strip() for name in ("title", "description"))
    text = body if body.startswith(title) else f"{title}\n{body}".strip()
    seen = [character for character in text if character not in " \u3000\u200b\n"]
    letters = [character for character in seen if character in "难过a1"]
    if len(seen) < FEW.min_post_chars:
        return "too_short", []
    if sum(character in "难过" for character in letters) < FEW.min_han_ratio * len(letters) or not letters:
        return "not_chinese", []
    long = [sum(one not in "😀 \u3000\u200b\n" for one in answer["text"]) > 4 for answer in row["answers"]]
    return None, [answer["answer_id"] for answer, stays in zip(row["answers"], long, strict=True) if stays]


@settings(deadline=None, max_examples=8)
@given(st.lists(st.tuples(TEXT, TEXT, st.lists(TEXT, max_size=3)), max_size=6))
def test_it_does_what_a_plain_loop_does(drawn: list[tuple[str, str, list[str]]]):
    rows = [post(number, title, body, *answers) for number, (title, body, answers) in enumerate(drawn)]
    frame = posts(*rows)
    kept, dropped = clean_posts(frame, FEW)
    require_accounted(frame, kept, dropped)
    expected = {row["post_id"]: naive(row) for row in rows}
    stayed = {row["post_id"]: [answer["answer_id"] for answer in row["answers"]] for row in kept.iter_rows(named=True)}
    assert stayed == {row: answers for row, (reason, answers) in expected.items() if reason is None}
    actual = {row: reason for (unit, row), (reason, _) in reasons(dropped).items() if unit == "post"}
    actual = {row: "not_chinese" if reason == "english" else reason for row, reason in actual.items()}  # "a" is a word
    assert actual == {row: reason for row, (reason, _) in expected.items() if reason is not None}


def sampled(table: type[ImportedPosts], seed: int) -> pl.DataFrame:
    """Whatever the schema allows, half of it with a body that passes; ids of answers as readers make them."""
    bodies = [("我今天很难过" * 4 if number % 2 else "x") for number in range(30)]
    frame = table.sample(30, generator=dy.random.Generator(seed), overrides={"description": bodies})
    rows = frame.to_dicts()
    for row in rows:
        for number, answer in enumerate(row["answers"]):
            answer["answer_id"] = f"{row['post_id']}/{number}"
    return table.validate(pl.DataFrame(rows, schema=table.polars_schema()))


@pytest.mark.parametrize("table", [ImportedPosts, RawPosts])
def test_whatever_the_schema_allows_is_accounted_for(table: type[ImportedPosts]):
    frame = sampled(table, 0)
    before = frame.clone()
    kept, dropped = clean_posts(frame, Filters(min_answer_chars=5))
    require_accounted(frame, kept, dropped)
    assert 0 < kept.height < 30
    assert set(dropped["unit"]) == {"post", "answer"}
    assert frame.equals(before)


def test_psyqa_passes(shared: Path):
    frame = read("psyqa", shared / "zh_qa" / "PsyQA_example.json").kept
    kept, dropped = clean_posts(frame)
    require_accounted(frame, kept, dropped)
    assert dropped["reason"].to_list() == ["little_emotional_context", "post_dropped"]  # one asks whether love is so
    assert (kept.height, kept["answers"].list.len().sum()) == (99, 267)
    assert set(kept["script"]) == {"simplified"}
