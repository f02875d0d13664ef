"""Draws by consistent hashing: whatever comes or goes, the others' draws stay."""

from hypothesis import given
from hypothesis import strategies as st

from pipelines.trainsets.negatives import HashRing
from schemas.ids import unit_interval

IDS = st.lists(st.text(alphabet="abcdef", min_size=1, max_size=4), min_size=1, max_size=30, unique=True)
START = st.floats(0, 1, exclude_max=True)


def draw(ids: list[str], start: float, unfit: frozenset[str] = frozenset(), salt: str = "ring") -> str | None:
    return HashRing(((one, one) for one in ids), 0, salt).draw(start, lambda one: one not in unfit)


@given(IDS, START)
def test_onwards_every_item_comes_once_with_its_distance_the_nearest_first(ids, start):
    onwards = list(HashRing(((one, one) for one in ids), 0, "ring").onwards(start))
    assert sorted(item for _, item in onwards) == sorted(ids)
    assert onwards == sorted(onwards)
    assert all(far == (unit_interval(0, "ring", item) - start) % 1.0 for far, item in onwards)


@given(IDS, START, st.text(alphabet="abcdef", min_size=1, max_size=4))
def test_the_order_of_items_decides_nothing_and_a_new_one_moves_no_other(ids, start, new):
    assert draw(ids, start) == draw(ids[::-1], start)
    assert draw([*dict.fromkeys([*ids, new])], start) in (draw(ids, start), new)


@given(IDS, START, st.data())
def test_an_item_that_is_gone_or_does_not_fit_moves_its_own_draws_alone(ids, start, data):
    gone = frozenset(data.draw(st.lists(st.sampled_from(ids))))
    left = [one for one in ids if one not in gone]
    assert draw(ids, start, gone) == draw(left, start)
    assert (draw(left, start) is None) == (not left)
    if (before := draw(ids, start)) not in gone:
        assert draw(left, start) == before


def test_rings_of_other_names_draw_otherwise():
    ids = [str(number) for number in range(50)]
    assert [draw(ids, n / 50, salt="a") for n in range(50)] != [draw(ids, n / 50, salt="b") for n in range(50)]
