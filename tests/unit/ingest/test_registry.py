"""What holds for every data set."""

import subprocess
import sys

from pipelines.ingest.registry import READERS
from pipelines.settings import ROOT
from schemas.labels import CONSENTS
from tools.data_sets import listing

NAMES = (
    "psyqa smile cpsycoun cpsycoune esconv esconv_tsv emollm sharegpt soulchat llama_factory mesc avamerg qa_csv mapped"
)


def test_listing_the_sets_is_light() -> None:
    code = "import sys, pipelines.ingest.registry; print(*{'polars', 'dataframely', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_the_page_is_what_the_readers_state() -> None:
    assert list(READERS) == NAMES.split()
    assert {one.consent for one in READERS.values() if one.name != "mapped"} <= set(CONSENTS)
    page = (ROOT / "docs" / "data-sets.md").read_text(encoding="utf-8")
    assert page == listing(), "run: python -m tools.data_sets > docs/data-sets.md"
