"""How things are named: stable, apart from each other, and not to be undone."""

import hashlib

import pytest

from schemas import ids

KEY = b"sixteen bytes or"


def test_ids_of_published_rows_never_change():
    """Written down once: a change here renames every row of every corpus."""
    assert ids.source_row_id("psyqa", 4394) == "psyqa:4394"
    assert ids.round_id("smile:10071", 3) == "smile:10071#3"
    assert ids.digest("共情") == hashlib.sha256("共情".encode()).hexdigest()[:16] == "7be26791835e9622"
    assert ids.answer_id("psyqa:4394", "抱抱你") == "psyqa:4394/c1a40716"
    assert ids.stable_int("psyqa:4394") == 2555851887856841133
    assert ids.pseudonym("xinli001", "小明", KEY) == "u_f3fdcb67cc0e6f44"
    assert ids.unit_interval(0, "round", "smile:1", 1) == pytest.approx(0.053721375081832945, abs=1e-15)


def test_draws_are_uniform_and_the_greatest_digest_does_not_round_up_to_one(monkeypatch: pytest.MonkeyPatch):
    from scipy.stats import kstest

    assert kstest([ids.unit_interval(0, "row", number) for number in range(20_000)], "uniform").pvalue > 0.001
    for digest, drawn in (("0" * 16, 0.0), ("f" * 16, 1 - 2**-53)):
        monkeypatch.setattr(ids, "digest", lambda text, length, digest=digest: digest)
        assert ids.unit_interval("any") == drawn


def test_a_pseudonym_follows_from_source_author_and_key():
    authors = (("xinli001", "小明"), ("douban", "小明"), ("xinli001", "小红"), ("xinli00", "1小明"))
    names = {ids.pseudonym(*author, key) for author in authors for key in (KEY, KEY[::-1])}
    assert len(names) == 8
    assert {len(name) for name in names} == {18}
    with pytest.raises(ValueError, match="at least 16 bytes"):
        ids.pseudonym("xinli001", "小明", b"fifteen bytes..")
