"""Where a released row comes from: the post or the dialogue that its id begins with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.release.checks.released import EXAMPLES, finding, origin

KNOWN = {"s:1", "s:12", "s:a/b", "smile:7", "set:x-1"}


@pytest.mark.parametrize(
    ("row_id", "found"),
    [
        ("s:1", "s:1"),
        ("s:1/sft_coe", "s:1"),
        ("s:12/9f2c01ab/generic", "s:12"),
        ("s:123", None),  # another post, though its id begins like two that are there
        ("s:a/b", "s:a/b"),  # an id of a source may hold a mark itself
        ("s:a/b/1", "s:a/b"),
        ("smile:7#3/2", "smile:7"),
        ("smile:7~P#3/2/rm_process/1", "smile:7"),
        ("set:x-1", "set:x-1"),
        ("set:x", None),
        ("", None),
    ],
)
def test_the_longest_id_that_it_begins_with(row_id, found):
    assert origin(row_id, KNOWN) == found


@given(st.sampled_from(sorted(KNOWN)), st.text("#/~", min_size=1, max_size=1), st.text(max_size=8))
def test_whatever_part_of_a_row_is_made_from_that_row(whole, mark, part):
    found = origin(whole + mark + part, KNOWN)
    assert found is not None
    assert (whole + mark + part).startswith(found)
    assert len(found) >= len(whole)


def test_a_finding_counts_all_and_names_the_first_ids_sorted_and_each_once():
    assert finding("c", "w", "h", ["b", "a", "b"]).examples == ["a", "b"]
    many = finding("c", "w", "h", [str(number) for number in range(2 * EXAMPLES)])
    assert (many.count, len(many.examples)) == (2 * EXAMPLES, EXAMPLES)
