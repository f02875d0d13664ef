"""Which persona a dialogue is rewritten to."""

from collections import Counter
from typing import Any

import polars as pl
import rewrite_rows
from hypothesis import given
from hypothesis import strategies as st

from pipelines.rewrite.rewriting import Draws
from schemas.personas import Personas


def persona(persona_id: str, **more: Any) -> dict[str, Any]:
    dialogue_id, role = persona_id.split("/")
    return rewrite_rows.persona(dialogue_id, role, group_id=f"g/{dialogue_id}") | more


def frame(*rows: dict[str, Any]) -> pl.DataFrame:
    return Personas.validate(pl.DataFrame(rows, schema=Personas.polars_schema()))


def drawn(draws: Draws, persona_id: str) -> str | None:
    row = draws.of(*persona_id.split("/"))
    return None if row is None else row["persona_id"]


IDS = st.builds("s:{}/{}".format, st.integers(0, 40), st.sampled_from(["seeker", "supporter"]))
OF = {"cluster": st.integers(0, 2), "lang": st.sampled_from(["zh", "en"]), "fitted": st.booleans()}
ANY = st.builds(persona, IDS, **OF, group_id=st.integers(0, 6).map("g{}".format))
ROWS = st.lists(ANY, min_size=1, max_size=40, unique_by=lambda row: row["persona_id"])


def might_be_drawn(own: dict[str, Any], other: dict[str, Any]) -> bool:
    alike = all(own[name] == other[name] for name in ("role", "cluster", "lang"))
    return alike and other["fitted"] and other["group_id"] != own["group_id"]


@given(ROWS, st.integers(0, 5))
def test_it_is_of_the_same_cluster_role_and_language_and_never_of_the_same_group(rows: list[dict[str, Any]], seed: int):
    draws = Draws(frame(*rows), seed)
    for own in rows:
        found = draws.of(*own["persona_id"].split("/"))
        others = [other for other in rows if might_be_drawn(own, other)]
        assert (found in others) if others else (found is None)


@given(ROWS, st.integers(0, 5), st.randoms())
def test_the_same_seed_draws_the_same_whatever_the_order_of_rows(rows: list[dict[str, Any]], seed: int, random: Any):
    one = Draws(frame(*rows), seed)
    random.shuffle(rows)
    other = Draws(frame(*rows), seed)
    assert [drawn(one, row["persona_id"]) for row in rows] == [drawn(other, row["persona_id"]) for row in rows]


@given(ROWS, st.integers(0, 40))
def test_a_persona_that_is_gone_moves_only_the_draws_that_fell_on_it(rows: list[dict[str, Any]], number: int):
    gone = rows[number % len(rows)]["persona_id"]
    before, after = Draws(frame(*rows), 0), Draws(frame(*(row for row in rows if row["persona_id"] != gone)), 0)
    for row in rows:
        fell = drawn(before, row["persona_id"])
        if row["persona_id"] != gone and fell != gone:
            assert drawn(after, row["persona_id"]) == fell


def test_each_persona_is_drawn_about_as_often_and_another_seed_draws_others():
    rows = [persona(f"s:{n}/seeker") for n in range(400)]
    pool = frame(*rows[:20], *(row | {"fitted": False} for row in rows[20:]))
    one, other = Draws(pool, 0), Draws(pool, 1)
    speakers = [row["persona_id"] for row in rows]
    counts = Counter(drawn(one, speaker) for speaker in speakers)
    # 400 draws of 20: 20 each, give or take a standard deviation of 4.4; the bounds lie four away.
    assert set(counts) == set(speakers[:20])
    assert max(counts.values()) <= 38
    assert min(counts.values()) >= 3
    same = sum(drawn(one, speaker) == drawn(other, speaker) for speaker in speakers)
    assert same <= 40  # of 400; by chance 20


def test_a_speaker_without_a_persona_draws_none():
    draws = Draws(frame(persona("s:1/seeker"), persona("s:2/seeker")), 0)
    assert draws.of("s:3", "seeker") is None
    assert draws.of("s:1", "supporter") is None
