"""The life of a row."""

import pytest

from pipelines.errors import RequestError
from pipelines.operations.lineage import why
from schemas.ids import candidate_id, round_id


def _told(events):
    return [(event.table, event.row_id, event.what, event.reason) for event in events]


def test_a_round_that_was_not_drawn(real_store):
    dropped = real_store.read_dropped("sampled_turns").collect()
    row_id = dropped["row_id"][0]
    dialogue = row_id.split("#")[0]
    told = _told(why(real_store, row_id))
    assert ("imported_dialogues", dialogue, "kept", None) in told
    assert ("sampled_turns", row_id, "dropped", "not_sampled") in told


def test_an_answer_that_moved_to_the_survivor(sample_store):
    """p083 repeats p012: its answers live on there."""
    dropped = sample_store.read_dropped("clean_posts").collect()["row_id"]
    moved = next(
        answer["answer_id"]
        for row in sample_store.read("unique_posts").collect().iter_rows(named=True)
        for answer in row["answers"]
        if not answer["answer_id"].startswith(row["post_id"] + "/")
    )
    assert moved not in set(dropped)
    events = why(sample_store, moved)
    assert ("unique_posts", moved, "kept", None) in _told(events)
    assert any(event.table == "unique_posts" and (event.detail or "").startswith("of sample:") for event in events)


def test_every_row_has_a_life_that_ends_in_a_table_or_with_a_reason(sample_store):
    for table in ("imported_posts", "imported_dialogues"):
        ids = sample_store.read(table, partition="sample").collect().to_series(0)
        assert len(ids) >= 6
        for row_id in ids[:6]:
            events = [event for event in why(sample_store, row_id) if event.row_id == row_id]
            assert events[0].table == table
            assert all(event.reason for event in events if event.what == "dropped")


def test_a_candidate_has_the_id_that_its_drops_bear_and_comes_with_its_round(sample_store):
    row = sample_store.read("cer_candidates").collect().row(0, named=True)
    candidate = candidate_id(row["dialogue_id"], row["round"], row["candidate"])
    told = _told(why(sample_store, candidate))
    assert ("cer_candidates", candidate, "kept", None) in told
    assert ("sampled_turns", round_id(row["dialogue_id"], row["round"]), "kept", None) in told
    assert ("imported_dialogues", row["dialogue_id"], "kept", None) in told
    of_round = _told(why(sample_store, round_id(row["dialogue_id"], row["round"])))
    assert ("cer_candidates", candidate, "kept", None) in of_round


def test_an_unknown_row_is_refused(sample_store):
    with pytest.raises(RequestError, match="ids begin with"):
        why(sample_store, "sample:p000")


def test_a_dialogue_with_its_speakers_and_what_was_rewritten_from_it(sample_store):
    source = sample_store.read("rewritten_dialogues").collect()["source_dialogue_id"][0]
    told = _told(why(sample_store, source))
    for role in ("seeker", "supporter"):
        assert ("disc_profiles", f"{source}/{role}", "kept", None) in told
        assert ("personas", f"{source}/{role}", "kept", None) in told
    assert ("rewritten_dialogues", f"{source}~P", "kept", None) in told
    assert ("imported_dialogues", source, "kept", None) in _told(why(sample_store, f"{source}~P"))
