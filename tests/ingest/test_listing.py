"""docs/data-sets.md cannot rot."""

from pipelines.ingest.listing import listing
from pipelines.settings import ROOT


def test_the_page_is_what_the_readers_state():
    page = (ROOT / "docs" / "data-sets.md").read_text(encoding="utf-8")
    assert page == listing(), "run: python -m pipelines.ingest.listing > docs/data-sets.md"
