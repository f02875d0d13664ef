"""Turns alternate, whatever was said."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest.forms import Unfit
from pipelines.ingest.records import Origin, Utterance
from pipelines.ingest.rows import ALIASES, join, n_rounds, role_of

ORIGIN = Origin("human", "model")

conversations = st.lists(
    st.builds(
        Utterance,
        st.sampled_from(["seeker", "client", "来访者", "supporter", "Therapist", "gpt"]),
        st.sampled_from(["", " ", "\n", "a", " b ", "c\nd"]),
        strategies=st.sampled_from([(), ("Question",), ("Questions", "Mirroring")]),
        emotion=st.sampled_from([None, "joy", "fear"]),
        feedback=st.sampled_from([None, 1, 5]),
    ),
    max_size=12,
)


@given(conversations)
def test_joined_turns_alternate_and_lose_no_word(utterances: list[Utterance]) -> None:
    spoken = [utterance for utterance in utterances if utterance.text.strip()]
    if not spoken:
        with pytest.raises(Unfit):
            join(utterances, ORIGIN)
        return
    joined = join(utterances, ORIGIN)
    roles = [turn["role"] for turn in joined.turns]
    assert all(one != other for one, other in pairwise(roles))
    assert "\n".join(turn["text"] for turn in joined.turns) == "\n".join(one.text.strip() for one in spoken)
    assert joined.notes["empty_turns"] == len(utterances) - len(spoken)
    assert joined.notes["joined_turns"] == len(spoken) - len(roles)
    assert joined.unknown_strategies["Mirroring"] == sum("Mirroring" in one.strategies for one in spoken)
    assert {turn["origin"] for turn in joined.turns} <= {"human", "model"}
    assert n_rounds(roles) == sum(pair == ("seeker", "supporter") for pair in pairwise(roles))


def test_labels_of_a_joined_turn() -> None:
    utterances = [
        Utterance("seeker", "a", emotion="joy", feedback=1),
        Utterance("seeker", "b", emotion="fear", feedback=4),
        Utterance("seeker", "c", emotion="fear"),
        Utterance("supporter", "d", strategies=("Questions",)),
        Utterance("supporter", "e", strategies=("Question", "Questions")),
    ]
    joined = join(utterances, ORIGIN)
    assert (joined.turns[0]["emotion"], joined.turns[0]["feedback"]) == ("fear", 4)
    assert joined.attributes == [("turns.0.emotions", "joy|fear|fear"), ("turns.0.feedback", "1|4")]
    assert joined.turns[1]["strategies"] == ["Question"]
    assert joined.turns[1]["source_strategies"] == ["Questions", "Question"]


def test_every_alias_stands_for_one_side() -> None:
    sides = [(alias, role) for role, aliases in ALIASES.items() for alias in aliases.split()]
    assert len(sides) > 20
    assert all(role_of(f" {alias.upper()} ") == role for alias, role in sides)
    assert role_of("system") is None
