"""Nothing vanishes: a step whose rows do not add up is stopped, and told which unit went wrong."""

import polars as pl
import pytest

from pipelines.errors import Unaccounted
from pipelines.store.reconciliation import Reconciliation, count, reconcile, require_balance
from schemas.dropped import drops, gather
from schemas.table import Dropped


def test_the_error_names_the_table_and_only_the_units_that_are_wrong():
    units = (("post", 3, 2, 1), ("answer", 9, 5, 3), ("reply", 2, 2, 1))
    with pytest.raises(Unaccounted) as caught:
        require_balance("clean_posts", [Reconciliation(*unit) for unit in units])
    assert "clean_posts" in str(caught.value)
    assert "answer: 9 in, 5 kept, 3 dropped" in str(caught.value)
    assert "reply: 2 in, 2 kept, 1 dropped" in str(caught.value)
    assert "post: 3" not in str(caught.value)


POSTS = pl.DataFrame({"post_id": ["a", "b", "c"], "answers": [["x", "y"], [], ["z"]]})
SAID = [["supporter", "seeker", "supporter", "seeker"], ["seeker", "supporter", "seeker", "supporter"]]
TURNS = [[{"role": role, "text": "x"} for role in said] for said in SAID]
DIALOGUES = pl.DataFrame({"dialogue_id": ["a", "b"], "turns": TURNS})
ROUNDS = pl.DataFrame({"dialogue_id": ["a", "a"], "round": [1, 2], "n_rounds": [3, 3]})

TRIPLETS = pl.DataFrame({"row_id": ["a/x", "a/y", "b/x"], "made_from": ["a", "a", "b"], "negative": ["", "", ""]})
CHATS = pl.DataFrame({"row_id": ["a/1", "a/2", "b/1"], "made_from": ["a", "a", "b"], "messages": [[], [], []]})


def test_a_unit_is_counted_where_it_lives():
    of_posts = [(POSTS, "post", 3), (POSTS, "answer", 3), (POSTS.clear(), "answer", 0), (TRIPLETS, "post", 2)]
    of_dialogues = [(DIALOGUES, "dialogue", 2), (DIALOGUES, "round", 3), (DIALOGUES.clear(), "round", 0)]
    of_rounds = [(ROUNDS, "round", 2), (CHATS, "candidate", 2), (ROUNDS, "candidate", 2)]
    for frame, unit, number in (*of_posts, *of_dialogues, *of_rounds):
        assert count(frame, unit) == number, (frame.columns, unit)


def test_a_reconciliation_counts_all_parents_and_the_drops_of_its_unit_alone():
    dropped = gather(
        drops(POSTS.head(1), "s", "post", "post_id", pl.lit("too_short"), pl.lit("2 characters")),
        drops(POSTS, "s", "answer", "post_id", pl.lit("post_dropped"), pl.lit(None)),
    )
    assert Dropped.is_valid(dropped)
    assert reconcile("post", [POSTS, POSTS.head(1)], POSTS, dropped) == Reconciliation("post", 4, 3, 1)
    assert reconcile("answer", [POSTS], POSTS.tail(1), dropped) == Reconciliation("answer", 3, 1, 3)
    assert gather().schema == Dropped.polars_schema()
