"""Runs of characters that two texts share: found however they lie, and none that is too short."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.release.publish.private import has_quotes, quoted, restored
from pipelines.text.runs import Runs
from schemas.ids import digest

KNOWN = "我最近总是睡不着觉，一想到明天要上班就心慌得厉害，不知道该怎么办才好。"
OTHER = "孩子上初中以后就不爱说话了，我问他什么他都说没事，我很担心他。"


@pytest.fixture(scope="module")
def runs():
    return Runs([("x:1", KNOWN), ("x:2", OTHER)], least=15)


def test_runs_do_not_overlap_and_several_are_found(runs):
    assert runs.find(KNOWN[-10:] + OTHER[:10]) == [], "none goes from one known text into the next"
    assert [(run.key, run.offset, run.end) for run in runs.find(KNOWN[5:20] + KNOWN[:14])] == [("x:1", 5, 15)]
    text = KNOWN + OTHER + KNOWN
    assert [(run.start, run.end, run.key) for run in runs.find(text)] == [
        (0, len(KNOWN), "x:1"),
        (len(KNOWN), len(KNOWN + OTHER), "x:2"),
        (len(KNOWN + OTHER), len(text), "x:1"),
    ]


def test_a_known_text_is_found_however_short():
    short = Runs([("x:3", "失恋了")], least=15)
    assert [run.key for run in short.find("失恋了")] == ["x:3"]
    assert short.find("我失恋了") == []
    assert Runs([], least=15).find(KNOWN) == []


def brute_force(known, text, least):
    """Every place where a window of `least` characters of a known text begins."""
    windows = {one[at : at + least] for one in known for at in range(len(one) - least + 1)}
    return {at for at in range(len(text) - least + 1) if text[at : at + least] in windows}


few = st.text(alphabet="ab\U0001f642", max_size=40)


@given(known=st.lists(few, max_size=4), text=few, least=st.integers(2, 16))
def test_runs_cover_every_window_that_is_known_and_are_what_they_say(known, text, least):
    """However long a run must be: an even number of characters and an odd one are cut into windows differently."""
    found = Runs(((str(place), one) for place, one in enumerate(known)), least).find(text)
    for run in found:
        assert text[run.start : run.end] == run.known[run.offset : run.offset + run.end - run.start]
    covered = {place for run in found for place in range(run.start, run.end)}
    assert all(covered.issuperset(range(at, at + least)) for at in brute_force(known, text, least))
    assert all(one.end <= other.start for one, other in pairwise(found))


@given(known=st.lists(few, max_size=4), text=few)
def test_references_are_undone_without_a_loss(known, text):
    runs = Runs(((f"x:{place}", one) for place, one in enumerate(known)), least=5)
    told = quoted(text, runs.find(text))
    assert restored(told, {digest(one): one for one in known}) == (text, [])


def test_a_reference_names_its_text_and_stays_where_that_is_unknown(runs):
    told = quoted(f"问：{KNOWN}", runs.find(f"问：{KNOWN}"))
    assert told == f"问：⟦{digest(KNOWN)} 0:{len(KNOWN)} x:1⟧"
    assert has_quotes(told)
    assert restored(told, {}) == (told, ["x:1"])
    assert restored(told, {digest(KNOWN): KNOWN[:5]}) == (told, ["x:1"]), "no text of that length"
    assert not has_quotes("⟦no reference⟧")
