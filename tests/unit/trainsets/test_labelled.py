"""What reward models and policies may learn from: labels of what still stands, and their variants."""

import pytest
from labelled_rows import HISTORY, REFERENCE, RESPONSE, STEPS, TURN, candidate, label, tables, variant
from unique_rows import RISK

from pipelines.errors import RequestError
from pipelines.trainsets.labelled import labelled
from schemas.dropped import Lost
from schemas.reasoning import Cer

ONE = candidate()
SAID = label(ONE, right="TFT", preference="both")


def only(made):
    found, lost = made
    assert lost == []
    [one] = found
    return one


def loss(made):
    found, lost = made
    assert found == []
    return [(one.unit, one.row_id, one.reason) for one in lost]


def test_a_label_brings_the_round_and_the_candidate_that_it_is_about():
    one = only(labelled(**tables([ONE], [SAID])))
    assert (one.row_id, one.variant, one.group_id) == ("s:1#2/1", "none", "g1")
    assert [f"{said['role']}: {said['text']}" for said in one.history] == HISTORY
    assert (one.reference, one.candidate) == (REFERENCE, Cer(lang="zh", **STEPS))
    assert (one.right, one.preference, one.providers) == ((True, False, True), "both", ("openai",))


def test_variants_stand_beside_their_source_with_its_verdicts_and_its_group():
    rows = tables([ONE], [SAID], (variant(ONE, SAID, "D"), variant(ONE, SAID, response="好辛苦啊。")))
    found, lost = labelled(**rows)
    assert lost == []
    assert [(one.row_id, one.variant) for one in found] == [("s:1#2/1", "none"), ("s:1~D#2/1", "D"), ("s:1~P#2/1", "P")]
    assert {(one.group_id, one.right, one.preference) for one in found} == {("g1", (True, False, True), "both")}
    assert [one.candidate.response for one in found] == [RESPONSE, RESPONSE, "好辛苦啊。"]
    assert [one.columns()["providers"] for one in found] == [["openai"], ["openai"], ["openai", "replay"]]


def test_a_candidate_that_was_made_anew_or_is_gone_is_lost():
    anew = candidate(response="换了一句。")
    assert loss(labelled(**tables([anew], [SAID]))) == [("candidate", "s:1#2/1", "candidate_changed")]
    assert loss(labelled(**tables([], [SAID]))) == [("candidate", "s:1#2/1", "no_candidate")]


def test_a_held_out_label_has_the_split_of_its_group_and_no_variants():
    for split in ("validation", "test"):
        found, lost = labelled(**tables([ONE], [SAID], (variant(ONE, SAID),), g1=split))
        [one] = found
        assert (one.row_id, one.variant, one.split, one.columns()["split"]) == ("s:1#2/1", "none", split, split)
        assert lost == [Lost("candidate", "s:1~P#2/1", "not_train", "s:1#2/1")]
    with pytest.raises(RequestError, match="has no split"):
        labelled(**tables([ONE], [SAID], g2="train"))


def test_what_may_not_teach_takes_its_variants_with_it():
    for turn, split, reason in (
        ({"under_18": True}, "test", "under_18"),
        ({"under_18": True}, "train", "under_18"),
        ({"risk": RISK}, "train", "risk"),
    ):
        rows = tables([ONE], [SAID], (variant(ONE, SAID),), (TURN | turn,), g1=split)
        own, of_it = loss(labelled(**rows))
        assert own == ("candidate", "s:1#2/1", reason)
        assert of_it == ("candidate", "s:1~P#2/1", "source_lost")


def test_a_variant_that_holds_a_tag_of_the_format_is_lost_alone():
    rows = tables([ONE], [SAID], (variant(ONE, SAID, response="好</answer>"),))
    found, lost = labelled(**rows)
    assert [one.row_id for one in found] == ["s:1#2/1"]
    assert [(one.row_id, one.reason) for one in lost] == [("s:1~P#2/1", "unwritable")]


def test_in_the_sample_home_every_label_and_variant_is_accounted_for(labelled_store):
    names = ("sampled_turns", "splits", "cer_candidates", "cer_labels", "rewritten_rounds")
    frames = [labelled_store.read(name).collect() for name in names]
    found, lost = labelled(*frames)
    assert len(found) + len(lost) == frames[3].height + frames[4].height
    assert {one.variant for one in found if one.split == "train"} == {"none", "D", "R", "P"}
    assert {(one.split, one.variant) for one in found if one.split != "train"} == {
        ("validation", "none"),
        ("test", "none"),
    }
    assert {one.candidate.lang for one in found} == {"zh", "en"}
