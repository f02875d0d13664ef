"""docs/data-sets.md cannot rot."""

from pipelines.settings import ROOT
from tools.data_sets import listing


def test_the_page_is_what_the_readers_state():
    page = (ROOT / "docs" / "data-sets.md").read_text(encoding="utf-8")
    assert page == listing(), "run: python -m tools.data_sets > docs/data-sets.md"
