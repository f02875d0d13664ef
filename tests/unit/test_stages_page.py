"""docs/stages.md: every stage, every table, every column."""

from pipelines.settings import ROOT
from schemas.tables import TABLES
from tools.stages import listing


def test_the_page_is_what_the_code_says():
    assert (ROOT / "docs" / "stages.md").read_text(encoding="utf-8") == listing(), "python -m tools.stages"


def test_every_table_and_column_stands_once_and_says_what_it_holds():
    page = listing()
    assert {name for name in TABLES if page.count(f"\n### `{name}`") != 1} == set()
    assert "|  |" not in page, "a column without a description"
