"""Who tells whose story again: SMILE-style expansions are found, strangers and formulas are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opencc import OpenCC
from released_rows import few_rows
from unique_rows import post

from pipelines.release.checks.retold import Teller, retold, shingles

QUESTION = (
    "三十岁了还觉得自己是个冒牌货，升职了反而更睡不着。上个月升了组长，做结构设计的。通知下来那天同事起哄让我请客，"
    "我笑着请了，回家在浴室蹲了半小时。总觉得是领导看走眼了，等哪天大家发现我其实啥也不会，就完了。"
)
RETOLD = (
    "老师，我上个月刚升了组长，可我总觉得是领导看走眼了。",
    "嗯，通知下来那天同事起哄，让我请客，我笑着请了，回家却在浴室蹲了半小时。",
    "我怕等哪天大家发现我什么都不会。",
)
STRANGER = (
    "老师，我上个月刚和女朋友分手，总觉得是我的错。",
    "她走的那天下着雨，我在楼下站了半小时，回家以后一直睡不着。",
    "我怕以后再也遇不到这样的人了。",
)


def teller(split, *turns, unit="dialogue", source="smile", lineage=()):
    return Teller(
        turns[0][:4], split, unit, source, lineage, shingles(turns[0]), frozenset().union(*map(shingles, turns))
    )


QUESTIONER = teller("test", QUESTION, unit="post", source="psyqa")


def test_an_expansion_in_other_words_is_found():
    assert teller("train", *RETOLD).retells(QUESTIONER)
    assert QUESTIONER.retells(teller("train", *RETOLD))


def test_an_opening_that_tells_a_part_is_found_though_the_rest_is_new():
    assert teller("train", RETOLD[1], *STRANGER[1:]).retells(QUESTIONER)


def test_another_story_in_the_same_manner_is_not():
    assert not teller("train", *STRANGER).retells(QUESTIONER)


def test_rows_of_one_split_are_not_compared():
    assert teller("train", *RETOLD).may_tell_of(QUESTIONER)
    assert not teller("test", *RETOLD).may_tell_of(QUESTIONER)


@pytest.mark.parametrize(("lineage", "found"), [((), False), (("esconv",), True)])
def test_two_dialogues_may_open_alike_unless_one_set_was_made_from_the_other(lineage, found):
    one = teller("train", RETOLD[1], *STRANGER[1:], source="esconv_tsv", lineage=lineage)
    other = teller("test", RETOLD[1], QUESTION[:40], source="esconv")
    assert one.retells(other) is found
    assert other.retells(one) is found


def test_a_dialogue_whose_turns_stand_in_another_is_found_whatever_opens_it():
    whole = teller("test", *RETOLD)
    assert teller("train", "老师您好，最近遇到了一些事，想和您聊聊。", *RETOLD).retells(whole)
    assert not teller("train", RETOLD[0], *STRANGER[1:]).retells(whole)


@pytest.mark.parametrize(("lineage", "found"), [(("psyqa", "xinli001"), True), (("reports",), False), ((), False)])
def test_two_expansions_of_one_question_are_found_where_both_sets_come_from_it(lineage, found):
    first = teller("test", QUESTION, RETOLD[2], lineage=("psyqa", "xinli001"))
    other = teller(
        "train", "您好。" + QUESTION[20:60] + "".join(STRANGER), STRANGER[0], source="soulchat", lineage=lineage
    )
    assert first.retells(other) is found
    assert other.retells(first) is found


@pytest.mark.parametrize(
    ("other", "found"),
    [
        (QUESTION[: len(QUESTION) // 2], True),
        (QUESTION[: len(QUESTION) // 2] + "不过我后来想了想，也有自己不对的地方，想问问大家有没有办法。", True),
        ("有人说：“" + QUESTION + "”" + "".join(STRANGER) * 3, True),
        (QUESTION[:20] + "".join(STRANGER), False),
    ],
)
def test_a_post_that_holds_half_of_another_is_found(other, found):
    one = teller("train", other, unit="post", source="xinli001")
    assert one.retells(QUESTIONER) is found
    assert QUESTIONER.retells(one) is found


def test_posts_are_compared_without_marks_and_in_one_script():
    half = OpenCC("s2t").convert(QUESTION[40:]).replace("，", "")
    rows = post(1, QUESTION), post(2, half, group_id="g2")
    (told,) = retold(few_rows(*rows, split_of={"g1": "train", "g2": "test"}))
    assert told.examples == ["s:1 (train) ~ s:2 (test)"]


def test_punctuation_case_and_width_do_not_count():
    assert shingles("我，今天！很 累。") == shingles("我今天很累")
    assert shingles("Ｉ Lost my JOB last week") == shingles("i lost my job, last week!")


def test_english_is_read_by_words():
    assert shingles("I lost my job last week") == {"i lost my job last", "lost my job last week"}


@given(st.text("我你他今天很累，。 ab", max_size=30))
def test_a_text_has_as_many_shingles_as_places_at_most(text):
    assert len(shingles(text)) <= max(0, len(text) - 4)
