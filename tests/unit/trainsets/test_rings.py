"""Draws on a ring: whatever comes or goes, the others' draws stay."""

from hypothesis import given
from hypothesis import strategies as st

from pipelines.trainsets.rings import Ring
from schemas.ids import unit_interval

IDS = st.lists(st.text(alphabet="abcdef", min_size=1, max_size=4), min_size=1, max_size=30, unique=True)
START = st.floats(0, 1, exclude_max=True)


def ring(ids: list[str]) -> Ring[str]:
    return Ring(((one, one) for one in ids), 0, "ring")


def draw(ids: list[str], start: float, but: frozenset[str] = frozenset()) -> str | None:
    drawn = ring(ids).draw(start, lambda one: one not in but)
    return drawn.item if drawn else None


@given(IDS, START)
def test_the_order_in_which_items_come_decides_nothing(ids, start):
    assert draw(ids, start) == draw(ids[::-1], start)


@given(IDS, START, st.text(alphabet="abcdef", min_size=1, max_size=4))
def test_an_item_that_comes_takes_draws_and_moves_no_other(ids, start, new):
    assert draw([*dict.fromkeys([*ids, new])], start) in (draw(ids, start), new)


@given(IDS, START, st.data())
def test_an_item_that_goes_is_missed_by_those_alone_who_drew_it(ids, start, data):
    gone = data.draw(st.sampled_from(ids))
    if (before := draw(ids, start)) != gone:
        assert draw([one for one in ids if one != gone], start) == before


@given(IDS, START, st.data())
def test_what_does_not_fit_is_passed_over_as_if_it_were_not_there(ids, start, data):
    unfit = frozenset(data.draw(st.lists(st.sampled_from(ids))))
    assert draw(ids, start, unfit) == draw([one for one in ids if one not in unfit], start)
    assert (draw(ids, start, unfit) is None) == (unfit == set(ids))


@given(IDS, START)
def test_the_distance_is_how_far_onwards_the_item_stands(ids, start):
    drawn = ring(ids).draw(start, lambda one: True)
    assert 0 <= drawn.distance < 1
    assert drawn.distance == min((unit_interval(0, "ring", one) - start) % 1.0 for one in ids)


def test_every_item_is_drawn_by_some():
    ids = [str(number) for number in range(10)]
    assert {draw(ids, unit_interval("who", number)) for number in range(2000)} == set(ids)


def test_rings_of_other_names_stand_otherwise():
    ids = [str(number) for number in range(50)]
    one, other = (Ring(((name, name) for name in ids), salt) for salt in ("a", "b"))
    starts = [number / 50 for number in range(50)]
    assert [one.draw(at, bool).item for at in starts] != [other.draw(at, bool).item for at in starts]
