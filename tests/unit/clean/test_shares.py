"""A frame cut into shares gives what it gives in one piece."""

from functools import partial

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipelines.clean import dialogues, posts
from pipelines.clean.dialogues import clean_dialogues
from pipelines.clean.posts import clean_posts
from pipelines.settings import Cleaning
from pipelines.text.chunks import in_shares


def shares_of(frame: pl.DataFrame, **sizes: int) -> list[int]:
    """The rows of each share."""
    seen: list[int] = []
    in_shares(lambda some: (seen.append(len(some)), some)[1], frame, **sizes)
    return sorted(seen)


def test_every_thread_has_as_many_shares_and_small_frames_are_not_cut(monkeypatch):
    frame, threads = pl.DataFrame({"row": range(1200)}), 4
    monkeypatch.setattr(pl, "thread_pool_size", lambda: threads)
    assert shares_of(frame) == [1200]
    size = frame.estimated_size()
    for most, a_thread in ((size, 1), (size // threads, 1), (size // threads // 2, 2), (size // threads // 3, 3)):
        shares = shares_of(frame, least=0, most=most)
        assert len(shares) == a_thread * threads
        assert sum(shares) == 1200
        assert max(shares) - min(shares) <= len(shares)


@pytest.mark.parametrize(
    ("module", "clean", "table"),
    [(posts, clean_posts, "imported_posts"), (dialogues, clean_dialogues, "imported_dialogues")],
)
def test_cleaning_in_shares_gives_what_it_gives_at_once(module, clean, table, sample_store, monkeypatch):
    frame = sample_store.read(table).collect()
    cleaning = Cleaning(names="none")  # that no row sees its neighbours' names, test_names shows
    whole = clean(frame, cleaning=cleaning)
    monkeypatch.setattr(pl, "thread_pool_size", lambda: 3)
    monkeypatch.setattr(module, "in_shares", partial(in_shares, least=0, most=frame.estimated_size() // 7))
    for cut, of_whole in zip(clean(frame, cleaning=cleaning), whole, strict=True):
        assert_frame_equal(cut, of_whole)
