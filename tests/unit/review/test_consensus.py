"""Two equal votes decide, a third where they differ; where no two agree there is no label; some wait."""

from typing import Any

import pytest
from vote_rows import vote, votes

from pipelines.review.consensus import Consensus, Waiting, consensus
from schemas.dropped import Lost


def of(*said: str, third: str | None = None) -> Consensus:
    """The consensus on one candidate."""
    return consensus(votes(*map(vote, said), *([vote(third, role="adjudicator")] if third else [])))


def label(result: Consensus) -> dict[str, Any]:
    [row] = result.labels.drop("dialogue_id", "round", "candidate", "labelled").to_dicts()
    assert result.lost == result.waiting == []
    return row


def row(steps: str, preference: str, annotators: list[str], by: str) -> dict[str, Any]:
    right = {f"step{place}": letter == "T" for place, letter in enumerate(steps, 1)}
    return {**right, "preference": preference, "annotators": annotators, "consensus": by}


def test_two_equal_votes_decide():
    assert label(of("b TTF both", "a TTF both")) == row("TTF", "both", ["a", "b"], "agreed")
    # A third was asked before somebody's vote was mended: two agree by now, and its word does not count.
    assert label(of("a TTF both", "b TTF both", third="c FFF first")) == row("TTF", "both", ["a", "b"], "agreed")


def test_where_they_differ_a_third_decides_each_step_and_the_preference():
    assert label(of("a TTT first", "b FTT first", third="c FFF first")) == row(
        "FTT", "first", ["a", "b", "c"], "adjudicated"
    )
    assert label(of("a TTT first", "b TTT both", third="c TTF both")) == row(
        "TTT", "both", ["a", "b", "c"], "adjudicated"
    )
    # The first two agree on the preference, and the third says something else: two of three.
    assert label(of("a TTT first", "b TTF first", third="0 TTF both")) == row(
        "TTF", "first", ["a", "b", "0"], "adjudicated"
    )


def test_where_no_two_agree_it_is_dropped_with_the_reason():
    result = of("a TTT first", "b TTT second", third="c TTT neither")
    assert result.lost == [Lost("label", "s:1#1/1", "no_two_agree", "preference")]
    assert result.labels.is_empty()
    assert result.waiting == []


def test_what_lacks_a_vote_waits_and_is_no_drop():
    waiting = consensus(
        votes(
            vote("a TTT first", 1),
            *(vote(one, 2) for one in ("b TTT first", "a TTT both")),
            *(vote(one, 3) for one in ("b TFT first", "a TTT first")),
            vote("c TTT first", 4, role="adjudicator"),
        )
    )
    assert waiting.waiting == [
        Waiting("s:1#1/1", "second", ("a",)),
        Waiting("s:2#1/1", "third", ("a", "b")),
        Waiting("s:3#1/1", "third", ("a", "b")),
        Waiting("s:4#1/1", "second", ("c",)),
    ]
    assert waiting.labels.is_empty()
    assert waiting.lost == []


def test_gold_votes_never_count():
    gold = [vote(f"{who} TTT first", 1, role="gold") for who in "abc"]
    result = consensus(votes(*gold, *(vote(f"{who} TTT both", 2) for who in "ab")))
    assert result.labels["dialogue_id"].to_list() == ["s:2"]
    assert result.waiting == result.lost == []


def test_votes_on_another_version_do_not_count():
    old, new = (
        [vote(f"{who} TTT {reply}", labelled=version, task_id=f"{who}{version}") for who in people]
        for version, reply, people in (("v1", "first", "ab"), ("v2", "both", "ac"))
    )
    given = votes(*old, *new, *(vote(f"{who} TTT first", 2) for who in "ab"))
    assert consensus(given, {"s:1#1/1": "v2", "s:2#1/1": "v1"}).labels["preference"].to_list() == ["both", "first"]
    changed = consensus(given, {"s:1#1/1": "v3"})
    assert changed.lost == [Lost("label", "s:1#1/1", "candidate_changed"), Lost("label", "s:2#1/1", "no_candidate")]
    with pytest.raises(ValueError, match="s:1#1/1 has 4 votes"):
        consensus(given)
    with pytest.raises(ValueError, match="two versions of s:1#1/1"):
        consensus(votes(old[0], new[1]))


def test_order_of_the_votes_does_not_matter():
    rows = [
        vote(f"{who} TT{'TF'[who > 'c']} both", number) for number in range(1, 9) for who in ("abcd"[number % 3 :])[:2]
    ]
    one, other = consensus(votes(*rows)), consensus(votes(*reversed(rows)))
    assert one.labels.equals(other.labels)
    assert (one.waiting, one.lost) == (other.waiting, other.lost)
    assert one.labels.height + len(one.waiting) == 8
    assert 0 < one.labels.height < 8


def test_what_no_import_lets_in_is_refused():
    for wrong in (
        [vote("a TTT first"), vote("a TTT first", task_id="again")],
        [vote("a TTT first"), vote("b TTT first"), vote("c TTT first")],
        [vote("a TTT first"), vote("b TTF first"), vote("a TTT first", role="adjudicator", task_id="again")],
        [vote(f"{who} TT{step} first", role=role) for who, step, role in zip("abcd", "TFTT", ROLES, strict=True)],
    ):
        with pytest.raises(ValueError, match=r"s:1#1/1 has \d votes and \d of adjudicators, of \d people"):
            consensus(votes(*wrong))


ROLES = ("annotator", "annotator", "adjudicator", "adjudicator")
