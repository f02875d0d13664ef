"""The life of a row."""

from itertools import product

from pipelines.operations.lineage import why
from schemas.ids import candidate_id, round_id


def _life(store, row_id):
    return {(event.table, event.row_id, event.what, event.reason) for event in why(store, row_id)}


def test_a_round_that_was_not_drawn(real_store):
    row_id = real_store.read_dropped("sampled_turns").collect()["row_id"][0]
    life = _life(real_store, row_id)
    assert ("imported_dialogues", row_id.split("#")[0], "kept", None) in life
    assert ("sampled_turns", row_id, "dropped", "not_sampled") in life


def test_an_answer_that_moved_to_the_survivor(sample_store):
    """p083 repeats p012: its answers live on there."""
    moved = next(
        answer["answer_id"]
        for row in sample_store.read("unique_posts").collect().iter_rows(named=True)
        for answer in row["answers"]
        if not answer["answer_id"].startswith(row["post_id"] + "/")
    )
    assert ("unique_posts", moved, "kept", None) in _life(sample_store, moved)
    details = [event.detail or "" for event in why(sample_store, moved) if event.table == "unique_posts"]
    assert any(detail.startswith("of sample:") for detail in details)


def test_a_candidate_has_the_id_that_its_drops_bear_and_comes_with_its_round(sample_store):
    row = sample_store.read("cer_candidates").collect().row(0, named=True)
    candidate = candidate_id(row["dialogue_id"], row["round"], row["candidate"])
    of_round = round_id(row["dialogue_id"], row["round"])
    for row_id in (candidate, of_round):
        life = _life(sample_store, row_id)
        assert ("cer_candidates", candidate, "kept", None) in life
        assert ("sampled_turns", of_round, "kept", None) in life
        assert ("imported_dialogues", row["dialogue_id"], "kept", None) in life


def test_a_dialogue_with_its_speakers_and_what_was_rewritten_from_it(sample_store):
    source = sample_store.read("rewritten_dialogues").collect()["source_dialogue_id"][0]
    life = _life(sample_store, source)
    for table, role in product(("disc_profiles", "personas"), ("seeker", "supporter")):
        assert (table, f"{source}/{role}", "kept", None) in life
    assert ("rewritten_dialogues", f"{source}~P", "kept", None) in life
    asked = {row for table, row, what, _ in life if (table, what) == ("sampled_rewrites", "kept")}
    assert asked
    assert {("grpo_cer", row, "kept", None) for row in asked} <= life
    assert ("imported_dialogues", source, "kept", None) in _life(sample_store, f"{source}~P")
