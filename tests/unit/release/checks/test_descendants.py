"""What is made from a row has the split of its group, and a group one split."""

import polars as pl
import pytest
from released_rows import few_rows
from unique_rows import answer, post, splits

from pipelines.release.checks.leaks import MADE_OF_TRAINING_ROWS, descendants, groups
from schemas.tables import TABLES

SPLITS = {"g1": "train", "g2": "test"}
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


@pytest.mark.parametrize(
    ("positive", "negatives", "found"),
    [
        ("s:1/a", ["s:1/a"], []),
        ("s:1/a", ["s:1/a", "s:7/b"], ["s:1/generic"]),
        ("s:7/b", ["s:1/a"], ["s:1/generic"]),
        ("s:1/a", ["s:9/c"], ["s:1/generic"]),
    ],
)
def test_a_triplet_holds_no_answer_of_another_split_however_short(positive, negatives, found):
    row = {"row_id": "s:1/generic", "split": "train", "positive_id": positive, "negative_ids": negatives}
    triplets = pl.DataFrame([row], schema=TABLES["rm_triplets"].polars_schema())
    told = descendants(few_rows(*ANSWERED, split_of=SPLITS, rm_triplets=triplets))
    assert [one.examples for one in told] == [found] * bool(found)


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
    asked_of_all = {"coherent_dialogues"}
    made = {
        name
        for name, table in TABLES.items()
        if {"provider", "group_id"} <= set(table.column_names()) and name not in asked_of_all
    }
    assert made <= set(MADE_OF_TRAINING_ROWS)


def test_a_group_with_rows_in_two_splits_and_two_groups_that_share_a_key_are_torn():
    told = (*POSTS, post(3, "我也和室友处不来，天天躲在图书馆。", group_id="g2"))
    rows = _moved(few_rows(*told, split_of=SPLITS), **{"s:3": "train"})
    (found,) = groups(few_rows(*told, split_of=SPLITS, grpo_ecot=rows))
    assert (found.check, found.count, found.examples) == ("groups", 1, ["g2"])
    given = splits(**SPLITS).with_columns(members=pl.lit(["t:shared"]))
    (found,) = groups(few_rows(*POSTS, split_of=SPLITS, splits=given))
    assert found.examples == ["g1", "g2"]
