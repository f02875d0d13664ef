"""Text reuse: SMILE-style expansions are found, unrelated stories and formulas are not."""

import pytest
from opencc import OpenCC
from released_rows import few_rows
from unique_rows import post

from pipelines.release.checks.leaks import Document, shingles, text_reuse

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


def document(split, *turns, unit="dialogue", source="smile", lineage=()):
    return Document(
        turns[0][:4], split, unit, source, lineage, shingles(turns[0]), frozenset().union(*map(shingles, turns))
    )


QUESTIONER = document("test", QUESTION, unit="post", source="psyqa")


def test_an_expansion_in_other_words_is_found_also_by_its_opening_alone():
    for turns in (RETOLD, (RETOLD[1], *STRANGER[1:])):
        assert document("train", *turns).reuses(QUESTIONER)
        assert QUESTIONER.reuses(document("train", *turns))
    assert not document("train", *STRANGER).reuses(QUESTIONER), "another story in the same manner"


@pytest.mark.parametrize(("lineage", "found"), [((), False), (("esconv",), True)])
def test_two_dialogues_may_open_alike_unless_one_set_was_made_from_the_other(lineage, found):
    one = document("train", RETOLD[1], *STRANGER[1:], source="esconv_tsv", lineage=lineage)
    other = document("test", RETOLD[1], QUESTION[:40], source="esconv")
    assert one.reuses(other) is found
    assert other.reuses(one) is found


def test_a_dialogue_whose_turns_stand_in_another_is_found_whatever_opens_it():
    whole = document("test", *RETOLD)
    assert document("train", "老师您好，最近遇到了一些事，想和您聊聊。", *RETOLD).reuses(whole)
    assert not document("train", RETOLD[0], *STRANGER[1:]).reuses(whole)


@pytest.mark.parametrize(("lineage", "found"), [(("psyqa", "xinli001"), True), (("reports",), False), ((), False)])
def test_two_expansions_of_one_question_are_found_where_both_sets_come_from_it(lineage, found):
    first = document("test", QUESTION, RETOLD[2], lineage=("psyqa", "xinli001"))
    other = document(
        "train", "您好。" + QUESTION[20:60] + "".join(STRANGER), STRANGER[0], source="soulchat", lineage=lineage
    )
    assert first.reuses(other) is found
    assert other.reuses(first) is found


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
    one = document("train", other, unit="post", source="xinli001")
    assert one.reuses(QUESTIONER) is found
    assert QUESTIONER.reuses(one) is found


def test_posts_are_compared_without_marks_and_in_one_script():
    half = OpenCC("s2t").convert(QUESTION[40:]).replace("，", "")
    rows = post(1, QUESTION), post(2, half, group_id="g2")
    (finding,) = text_reuse(few_rows(*rows, split_of={"g1": "train", "g2": "test"}))
    assert finding.examples == ["s:1 (train) ~ s:2 (test)"]
    assert not list(text_reuse(few_rows(*rows, split_of={"g1": "test", "g2": "test"})))


def test_punctuation_case_and_width_do_not_count():
    assert shingles("我，今天！很 累。") == shingles("我今天很累")
    assert shingles("Ｉ Lost my JOB, last week!") == {"i lost my job last", "lost my job last week"}, "English: words"
