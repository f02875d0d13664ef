"""Risk, age and language are judged on what was written: a placeholder hides no sign, and no raw text is returned."""

import tomllib
from pathlib import Path

import polars as pl
import pytest
from clean_rows import dialogue, dialogues, post, posts

from pipelines.clean import clean_dialogues, clean_posts
from pipelines.clean.cells import as_written
from pipelines.settings import Cleaning

_SIGNS = tomllib.loads(Path(__file__).with_name("signs_named.toml").read_text(encoding="utf-8"))["sentences"]
_TEXTS = [one["text"] for one in _SIGNS]
_RULES = [set(one["rules"]) for one in _SIGNS]
_STORY = "。我最近很难过，和家里人说不上话，一直睡不着，不知道该怎么办才好。"


def rules(signs: list[list[dict[str, str]]]) -> list[set[str]]:
    return [{sign["rule"] for sign in one} for one in signs]


def missed(signs: list[list[dict[str, str]]]) -> list[str]:
    return [text for text, wanted, shown in zip(_TEXTS, _RULES, rules(signs), strict=True) if wanted - shown]


@pytest.mark.parametrize("profile", ["default", "paper"])
def test_a_post_and_its_answers_show_the_signs_that_were_written(profile: str):
    frame = posts(*(post(n, "", text + _STORY, text + _STORY * 4) for n, text in enumerate(_TEXTS)))
    kept, _ = clean_posts(frame, cleaning=Cleaning(profile=profile))
    assert missed(kept["risk"].to_list()) == []
    assert missed([answers[0]["risk"] for answers in kept["answers"].to_list()]) == []


def test_a_dialogue_shows_the_signs_that_were_written_by_either_side_and_in_its_situation():
    turns = [dialogue(n, f"seeker: {text}", "supporter: 我在听。") for n, text in enumerate(_TEXTS)]
    replies = [dialogue(n, "seeker: 很难过", f"supporter: 你说{text}？") for n, text in enumerate(_TEXTS)]
    situations = [dialogue(n, "seeker: 很难过", "supporter: 嗯。", situation=text) for n, text in enumerate(_TEXTS)]
    for rows in (turns, replies, situations):
        assert missed(clean_dialogues(dialogues(*rows))[0]["risk"].to_list()) == []


def test_an_age_is_read_before_the_name_of_the_school_goes():
    """The school says which age it is, and a placeholder hides it."""
    minors = ["我在市一中读高二，压力很大", "我是实验中学初二的，不想上学"]
    texts = ["我是阳光小学四年级的学生", *minors, "我是实验中学的老师，带初二"]
    talks = [dialogue(n, f"seeker: {text}", "supporter: 嗯。") for n, text in enumerate(texts)]
    for kept, dropped in (
        clean_posts(posts(*(post(n, "", text + _STORY) for n, text in enumerate(texts)))),
        clean_dialogues(dialogues(*talks)),
    ):
        assert dropped.select("row_id", "reason").rows() == [("s:0", "under_14")]
        assert kept["under_18"].to_list() == [True, True, False]


def test_no_personal_data_are_in_what_is_returned():
    private = ("陈国强", "13812345678", "abc_12345", "杭州第二中学", "南京路88号")
    text = "我叫陈国强，爷爷陈国强打我，电话13812345678，微信：abc_12345，我在杭州第二中学，我想从南京路88号跳下去"
    returned = [
        *clean_posts(posts(post(1, text, text + _STORY, text + _STORY * 4), post(2, "", text[:12]))),
        *clean_dialogues(dialogues(dialogue(1, f"seeker: {text}", f"supporter: {text}", situation=text))),
    ]
    assert sum(frame.height for frame in returned) > 2
    for frame in returned:
        whole = frame.write_json()
        assert [one for one in private if one in whole] == []


def test_artefacts_and_addresses_are_gone_before_anything_is_judged():
    addresses = "https://example.com/a?b=1 或 www点example点com 或 nobody@example.com"
    text = f"我想\u200b死[泪] 看 {addresses}，李叔叔摸我，電話13812345678"
    frame = pl.DataFrame({"text": [text, None, ""]}).select(written=as_written(pl.col("text")))
    written = frame["written"].to_list()
    assert written[1:] == [None, ""]
    assert "example" not in written[0]
    assert all(kept in written[0] for kept in ("我想死", "李叔叔摸我", "电话13812345678"))


def test_what_was_cleaned_is_cleaned_to_the_same_texts_and_shows_no_new_sign():
    """The verdicts of the first cleaning are the ones to keep: what a placeholder took away is not there any more."""
    kept, _ = clean_posts(posts(*(post(n, "", text + _STORY, text + _STORY * 4) for n, text in enumerate(_TEXTS))))
    again, dropped = clean_posts(kept)
    assert dropped.is_empty()
    assert again["text"].to_list() == kept["text"].to_list()
    assert not any(a - b for a, b in zip(rules(again["risk"]), rules(kept["risk"]), strict=True))
