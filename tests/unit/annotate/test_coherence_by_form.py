"""`coherent_dialogues` without a model: what has the form of a dialogue stays, and says that nobody has judged it."""

import polars as pl
from accounted import accounted
from hypothesis import given
from hypothesis import strategies as st
from sample_rows import dialogue, unique_dialogues

from pipelines.annotate.coherence import keep_structured, plan_coherent_dialogues
from schemas.dialogues import CoherentDialogues
from schemas.table import NO_MODEL

LONG = "最近总是睡不着，白天也提不起精神，不知道该怎么办才好。"
WELL = ("seeker: 我睡不着", "supporter: 多久了？", "seeker: 一个月", "supporter: 辛苦了")


def test_what_has_no_form_of_a_dialogue_goes():
    for said, reason in (
        (WELL, None),
        (("supporter: 你好", *WELL), None),
        (("seeker: 我睡不着", "seeker: 真的", "supporter: 多久了？"), "not_alternating"),
        (("supporter: 你好", "seeker: 我睡不着"), "no_round"),
        (("seeker: 我睡不着", "supporter:  我睡不着 "), "same_turn"),
        ((f"seeker: {LONG}", "supporter: 多久了？", f"seeker: {LONG}", "supporter: 嗯"), "repeated_turn"),
        ((f"seeker: {LONG}", "supporter: 多久了？", "seeker: 一个月", f"supporter: {LONG}"), None),  # each of the two
        (("seeker: 嗯", "supporter: 多久了？", "seeker: 嗯", "supporter: 辛苦了"), None),
        (("seeker: ……", "supporter: 多久了？"), "half_empty"),
    ):
        kept, dropped = keep_structured(unique_dialogues(dialogue(1, *said)))
        assert (kept.height, dropped["reason"].to_list()) == ((0, [reason]) if reason else (1, [])), said


def test_its_rows_say_that_no_model_has_judged_them():
    kept, _ = plan_coherent_dialogues(unique_dialogues(dialogue(1, *WELL), dialogue(2, *WELL, lang="en")), ())
    assert CoherentDialogues.is_valid(kept)
    assert kept["provider"].unique().to_list() == ["structural"]
    assert kept["provider"].is_in(NO_MODEL).all()
    assert kept["why"].n_unique() == 2  # in the language of the dialogue


words = st.sampled_from(["嗯", "……", "我睡不着", LONG, "多久了？", " "])
turns = st.lists(st.builds("{}: {}".format, st.sampled_from(["seeker", "supporter"]), words), min_size=1, max_size=6)


@given(st.lists(turns, min_size=1, max_size=4))
def test_every_dialogue_is_kept_or_dropped(said):
    frame = unique_dialogues(*(dialogue(n, *turns) for n, turns in enumerate(said)))
    kept, _ = accounted("coherent_dialogues", ("dialogue",), [frame], keep_structured(frame))
    assert kept.select(frame.columns).equals(frame.filter(pl.col("dialogue_id").is_in(kept["dialogue_id"].implode())))
