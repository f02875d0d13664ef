"""The list of what never comes back."""

import polars as pl
import pytest

from pipelines.durable import write_whole
from pipelines.errors import Busy
from pipelines.kept_out import KeptOut, require_no_erasure
from schemas.tables import TABLES


def rows(*names: str) -> pl.DataFrame:
    table = TABLES["imported_dialogues"]
    made = [{"dialogue_id": f"s:{name}", "source": "s", "source_id": name} for name in names]
    return (
        pl.DataFrame(made)
        .select("dialogue_id", "source", "source_id")
        .cast({name: table.polars_schema()[name] for name in ("dialogue_id", "source", "source_id")})
    )


def test_a_home_where_nothing_was_erased_keeps_all_and_makes_no_file(tmp_path):
    kept, dropped = KeptOut(tmp_path).sift(rows("1", "2"), "imported_dialogues")
    assert (kept.height, dropped.height, list(tmp_path.iterdir())) == (2, 0, [])


def test_rows_are_kept_out_for_good_and_the_list_names_nobody(tmp_path):
    KeptOut(tmp_path).add(["s:1"])
    KeptOut(tmp_path).add(["s:3"])
    kept, dropped = KeptOut(tmp_path).sift(rows("1", "2", "3"), "imported_dialogues")
    assert kept["dialogue_id"].to_list() == ["s:2"]
    assert dropped["reason"].to_list() == ["erased", "erased"]
    assert "s:" not in (tmp_path / "erasures" / "kept-out").read_text(encoding="ascii")
    assert all("s:" not in name for name in dropped["row_id"])


def test_codes_are_those_of_the_home(tmp_path):
    """A list that somebody else has leads to nobody, even for one who guesses ids."""
    assert KeptOut(tmp_path / "a").code("s:1") == KeptOut(tmp_path / "a").code("s:1")
    assert KeptOut(tmp_path / "a").code("s:1") != KeptOut(tmp_path / "b").code("s:1")


def test_its_files_are_for_their_owner_alone(tmp_path):
    KeptOut(tmp_path).add(["s:1"])
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "erasures").iterdir()}
    assert modes == {"key": 0o600, "kept-out": 0o600}


def test_an_unfinished_erasure_stops_everything_else(tmp_path):
    require_no_erasure(tmp_path)
    write_whole(tmp_path / "erasures" / "20260101T000000-abcdef.plan", b"{}")
    with pytest.raises(Busy, match="gongqing erase --resume"):
        require_no_erasure(tmp_path)
