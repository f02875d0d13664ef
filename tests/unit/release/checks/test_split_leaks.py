"""Leaks between splits: nearly equal texts, retellings, and rows in another split than what they are made from."""

from dataclasses import replace

import labelled_rows
import polars as pl
import pytest
from opencc import OpenCC
from released_rows import few_rows
from unique_rows import answer, post, sampled_round, splits

from pipelines.dedup.group_keys import FORMULA
from pipelines.release.checks.leaks import (
    MADE_OF_TRAINING_ROWS,
    Document,
    descendants,
    groups,
    near_duplicates,
    shared_passages,
    shingles,
    text_reuse,
)
from pipelines.release.checks.released import Released
from pipelines.trainsets.labelled import labelled
from pipelines.trainsets.reward_sets import reward_samples
from pipelines.trainsets.warm_starts import cer_samples
from schemas.tables import TABLES

STORY = "上个月升了组长，通知下来那天同事起哄让我请客，我笑着请了，回家在浴室蹲了半小时，总觉得是领导看走眼了。"
NEAR = STORY + "谢谢大家。"
LONG = "听到你这样说，我能感到你这些日子有多不容易，一个人把事情都扛在肩上，还要在别人面前装作没事的样子，真的很累。"
SPLITS = {"g1": "train", "g2": "test"}


def _found(*told, **more):
    return list(near_duplicates(few_rows(*told, split_of=SPLITS, **more)))


def test_nearly_equal_questions_are_listed_as_a_pair_whatever_their_marks_pictures_and_script():
    for other in (NEAR, STORY.replace("，", ", "), OpenCC("s2t").convert(STORY), STORY.replace("，", "😭")):
        (found,) = _found(post(1, STORY), post(2, other, group_id="g2"))
        assert (found.check, found.severity, found.count) == ("near_duplicates", "leave_out", 1)
        assert found.examples == ["s:1 (train) ~ s:2 (test)"]
        assert found.origins == ["s:1"], "the side that trains"
    assert _found(post(1, STORY), post(2, NEAR)) == [], "of one split"


def test_an_opening_may_repeat_a_question():
    said = (sampled_round(3, 1, [f"seeker: {STORY}"], LONG),)
    (found,) = _found(post(2, NEAR, group_id="g2"), said=said)
    assert found.examples == ["s:2 (test) ~ s:3#1 (train)"]


def test_validation_goes_for_test_and_train_for_both():
    rows = [post(n, text, group_id=f"g{n}") for n, text in ((1, STORY), (2, NEAR), (3, STORY + "谢谢各位。"))]
    splits = {"g1": "test", "g2": "train", "g3": "validation"}
    for some, origins in ((rows, ["s:2", "s:3"]), (rows[::2], ["s:3"]), (rows[1:], ["s:2"])):
        (found,) = near_duplicates(few_rows(*some, split_of=splits))
        assert found.origins == origins


def test_a_long_answer_counts_and_a_short_formula_does_not():
    def two(text):
        return _found(
            post(1, STORY, answer("s:1/a", text)),
            post(2, "男朋友和我分手以后，我每天都失眠，不知道该怎么走出来。", answer("s:2/a", text), group_id="g2"),
        )

    assert two("抱抱你，会好起来的，加油。") == []
    (found,) = two(LONG)
    assert found.count == 1


def test_a_reply_of_very_many_rows_is_counted_and_nothing_is_left_out_for_it():
    def pasted(number: int) -> Released:
        told = (f"{chr(0x4E00 + 7 * n)}{n * n}的事情让我想了很多" for n in range(number))
        rows = [post(n, text, answer(f"s:{n}/a", LONG), group_id=f"g{n % 2 + 1}") for n, text in enumerate(told)]
        return few_rows(*rows, split_of=SPLITS)

    assert [found.check for found in near_duplicates(pasted(FORMULA + 1))] == []
    (found,) = shared_passages(pasted(FORMULA + 1))
    assert (found.severity, found.count) == ("warn", FORMULA // 2)
    assert "25 of 25 held-out rows" in found.what
    (found,) = near_duplicates(pasted(FORMULA))
    assert found.count == (FORMULA // 2) ** 2
    assert list(shared_passages(few_rows(*POSTS, split_of=SPLITS))) == []


def test_ends_of_a_chain_are_no_pair():
    """Texts that hang together through a third alone: the third is of one side, and told with the other side only."""
    words = [f"第{number}件事情" for number in range(40)]
    chain = ["，".join(words[start : start + 34]) for start in (0, 3, 6)]
    (found,) = _found(post(1, chain[0]), post(2, chain[1], group_id="g2"), post(3, chain[2]))
    assert found.examples == ["s:1 (train) ~ s:2 (test)", "s:2 (test) ~ s:3 (train)"]


POSTS = (post(1, "我最近睡不好，总是想工作上的事情。"), post(2, "和室友吵架了，不想回宿舍。", group_id="g2"))


def _moved(released, **split_of):
    """The rows of the prompt set with other splits."""
    rows = released.table("grpo_ecot")
    return rows.with_columns(split=pl.col("row_id").replace_strict(split_of, default=pl.col("split")))


def test_a_row_of_another_split_than_its_group_is_named():
    rows = _moved(few_rows(*POSTS, split_of=SPLITS), **{"s:2": "train"})
    whole = few_rows(*POSTS, split_of=SPLITS)
    assert [*descendants(whole), *groups(whole)] == []
    (found,) = descendants(few_rows(*POSTS, split_of=SPLITS, grpo_ecot=rows))
    assert (found.check, found.count, found.examples) == ("descendants", 1, ["s:2"])


def test_a_row_without_an_origin_or_whose_group_has_no_split_is_named():
    rows = few_rows(*POSTS, split_of=SPLITS).table("grpo_ecot")
    lone = few_rows(*POSTS, split_of=SPLITS, grpo_ecot=rows, splits=splits(g1="train"))
    for released in (few_rows(POSTS[0], split_of=SPLITS, grpo_ecot=rows), lone):
        (found,) = descendants(released)
        assert found.examples == ["s:2"]
        assert "no post or dialogue" in found.what


REPLY = "会好起来的。"
ANSWERED = (
    post(1, "我最近睡不好，总是想工作上的事情。", answer("s:1/a", REPLY)),
    post(2, "和室友吵架了，不想回宿舍。", answer("s:7/b", REPLY), group_id="g2"),  # as one that was moved from s:7
)


def test_a_triplet_holds_no_answer_of_another_split_however_short():
    row = {
        "row_id": "s:1/generic",
        "made_from": "s:1",
        "split": "train",
        "positive_id": "s:1/a",
        "negative_ids": ["s:1/a"],
    }
    leaks = ({"negative_ids": ["s:1/a", "s:7/b"]}, {"positive_id": "s:7/b"}, {"negative_ids": ["s:9/c"]})
    for change, found in (({}, []), *((leak, [["s:1/generic"]]) for leak in leaks)):
        triplets = pl.DataFrame([row | change], schema=TABLES["rm_triplets"].polars_schema())
        told = descendants(few_rows(*ANSWERED, split_of=SPLITS, rm_triplets=triplets))
        assert [one.examples for one in told] == found, change


def test_a_reference_is_of_the_rows_own_split():
    rows = few_rows(*ANSWERED, split_of=SPLITS).table("grpo_ecot").to_dicts()
    rows[0]["extra_info"]["reference_id"] = rows[1]["extra_info"]["reference_id"]
    edited = pl.DataFrame(rows, schema=TABLES["grpo_ecot"].polars_schema())
    (found,) = descendants(few_rows(*ANSWERED, split_of=SPLITS, grpo_ecot=edited))
    assert found.examples == [rows[0]["row_id"]]


def test_nothing_is_made_of_held_out_rows():
    for table, column in MADE_OF_TRAINING_ROWS.items():
        ids = {"persona_id": "s:{}/seeker", "row_id": "s:{}#1/1"}.get(column, "s:{}")
        rows = pl.DataFrame({column: [ids.format(1), ids.format(2)]})
        made = pl.concat([TABLES[table].create_empty(), rows], how="diagonal")
        (found,) = descendants(few_rows(*POSTS, split_of=SPLITS, **{table: made}))
        assert (found.count, found.examples, table in found.what) == (1, [ids.format(2)], True), table


def test_every_table_with_a_group_and_a_provider_is_checked():
    """A new one has to be thought of: what is asked of held-out rows stands in the lists of those that may be."""
    made = {name for name, table in TABLES.items() if {"provider", "group_id"} <= set(table.column_names())}
    assert made - {"coherent_dialogues", "cer_candidates"} <= set(MADE_OF_TRAINING_ROWS)


HELD_OUT = sampled_round(
    1, 2, [f"{turn}，今天在地铁里也想着这件事" for turn in labelled_rows.HISTORY], "辛苦了。", group_id="g2"
)
ROUNDS = (HELD_OUT, sampled_round(3, 1, ["seeker: 孩子不肯上学，我和他爸爸天天为这个吵。"], "这样多久了？"))
CANDIDATE = labelled_rows.candidate(group_id="g2")
SAID = labelled_rows.label(CANDIDATE, HELD_OUT)
LEARNT = {"rm_process", "rm_outcome", "rm_unified", "sft_cer"}


def _of_held_out_round():
    """Every set that people's labels make, of one held-out round; the warm start as if that trained."""
    found = labelled_rows.tables([CANDIDATE], [SAID], (), ROUNDS, **SPLITS)
    made = {name: reward_samples(name, *labelled(**found))[0] for name in LEARNT - {"sft_cer"}}
    [one] = labelled(**found)[0]
    made["sft_cer"] = cer_samples(found["candidates"], [replace(one, split="train")], [])[0]
    assert all(rows.height for rows in made.values())
    return made


def test_a_release_with_held_out_candidates_in_their_split_is_whole():
    made = _of_held_out_round()
    made["sft_cer"] = made["sft_cer"].clear()
    whole = few_rows(said=ROUNDS, split_of=SPLITS, **made)
    assert [*descendants(whole), *groups(whole), *near_duplicates(whole), *text_reuse(whole)] == []
    assert set(whole.configs["rm_unified"]["split"]) == {"test"}


@pytest.mark.parametrize("name", sorted(LEARNT))
def test_a_held_out_round_that_is_planted_in_a_training_row_of_any_set_is_refused_or_left_out(name):
    """By its id; under another id, by what it says to be made from; and under none of its own, by its words."""
    made = _of_held_out_round()
    planted = made[name].with_columns(split=pl.lit("train"))
    others = {other: rows for other, rows in made.items() if other not in (name, "sft_cer")}
    ends = planted["row_id"].str.strip_prefix("s:1#2/1")
    elsewhere = planted.with_columns(row_id="s:3#1/1" + ends, group_id=pl.lit("g1"))
    for check, severity, rows in (
        (descendants, "refuse", planted),
        (descendants, "refuse", elsewhere),
        (near_duplicates, "leave_out", elsewhere.with_columns(made_from=pl.lit("s:3#1/1"))),
    ):
        found = list(check(few_rows(said=ROUNDS, split_of=SPLITS, **others, **{name: rows})))
        assert found, check
        assert {one.severity for one in found} == {severity}
        named = " ".join(example for one in found for example in one.examples)
        assert all(row_id in named for row_id in rows["row_id"])


def test_a_group_with_rows_in_two_splits_and_two_groups_that_share_a_key_are_torn():
    told = (*POSTS, post(3, "我也和室友处不来，天天躲在图书馆。", group_id="g2"))
    rows = _moved(few_rows(*told, split_of=SPLITS), **{"s:3": "train"})
    (found,) = groups(few_rows(*told, split_of=SPLITS, grpo_ecot=rows))
    assert (found.check, found.count, found.examples) == ("groups", 1, ["g2"])
    given = splits(**SPLITS).with_columns(members=pl.lit(["t:shared"]))
    (found,) = groups(few_rows(*POSTS, split_of=SPLITS, splits=given))
    assert found.examples == ["g1", "g2"]


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


def reuse(one, other):
    assert one.reuses(other) is other.reuses(one)
    return one.reuses(other)


QUESTIONER = document("test", QUESTION, unit="post", source="psyqa")


def test_an_expansion_in_other_words_is_found_also_by_its_opening_alone():
    for turns in (RETOLD, (RETOLD[1], *STRANGER[1:])):
        assert reuse(document("train", *turns), QUESTIONER)
    assert not document("train", *STRANGER).reuses(QUESTIONER), "another story in the same manner"


def test_two_dialogues_may_open_alike_unless_one_set_was_made_from_the_other():
    other = document("test", RETOLD[1], QUESTION[:40], source="esconv")
    for lineage in ((), ("esconv",)):
        one = document("train", RETOLD[1], *STRANGER[1:], source="esconv_tsv", lineage=lineage)
        assert reuse(one, other) is bool(lineage)


def test_a_dialogue_whose_turns_stand_in_another_is_found_whatever_opens_it():
    whole = document("test", *RETOLD)
    assert document("train", "老师您好，最近遇到了一些事，想和您聊聊。", *RETOLD).reuses(whole)
    assert not document("train", RETOLD[0], *STRANGER[1:]).reuses(whole)


def test_two_expansions_of_one_question_are_found_where_both_sets_come_from_it():
    first = document("test", QUESTION, RETOLD[2], lineage=("psyqa", "xinli001"))
    turns = "您好。" + QUESTION[20:60] + "".join(STRANGER), STRANGER[0]
    for lineage, found in ((("psyqa", "xinli001"), True), (("reports",), False), ((), False)):
        assert reuse(first, document("train", *turns, source="soulchat", lineage=lineage)) is found


def test_a_post_that_holds_half_of_another_is_found():
    half = QUESTION[: len(QUESTION) // 2]
    for other, found in (
        (half, True),
        (half + "不过我后来想了想，也有自己不对的地方，想问问大家有没有办法。", True),
        ("有人说：“" + QUESTION + "”" + "".join(STRANGER) * 3, True),
        (QUESTION[:20] + "".join(STRANGER), False),
    ):
        assert reuse(document("train", other, unit="post", source="xinli001"), QUESTIONER) is found


def test_posts_are_compared_without_marks_and_in_one_script():
    half = OpenCC("s2t").convert(QUESTION[40:]).replace("，", "")
    rows = post(1, QUESTION), post(2, half, group_id="g2")
    (finding,) = text_reuse(few_rows(*rows, split_of={"g1": "train", "g2": "test"}))
    assert finding.examples == ["s:1 (train) ~ s:2 (test)"]
    assert finding.origins == ["s:1"]
    assert not list(text_reuse(few_rows(*rows, split_of={"g1": "test", "g2": "test"})))


def test_punctuation_case_and_width_do_not_count():
    assert shingles("我，今天！很 累。") == shingles("我今天很累")
    assert shingles("Ｉ Lost my JOB, last week!") == {"i lost my job last", "lost my job last week"}, "English: words"
