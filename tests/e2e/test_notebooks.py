"""Every notebook runs from top to bottom in a kernel, and is committed without output; with them the site is built."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.settings import ROOT
from pipelines.store import Store
from tools.docs_site import write_notebooks

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_committed_without_output(path: Path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert cells
    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count") is not None] == []


def test_the_site_is_built_strictly_with_every_notebook_run(labelled_store: Store, tmp_path: Path, monkeypatch):
    """Every page stands in the menu, no link leads nowhere, and nothing is fetched from elsewhere."""
    monkeypatch.setenv("GONGQING_HOME", str(labelled_store.storage.root.parent))
    for name in ("docs", "tools"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("notebooks"))
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    write_notebooks(tmp_path / "docs" / "notebooks", run=True)
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (tmp_path / "docs" / "notebooks").glob("*.md")}
    assert sorted(pages) == [path.stem for path in NOTEBOOKS]
    assert all("Traceback" not in page and page.count("\n    ") > 5 for page in pages.values()), "what a cell says"
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    for page in ("index", "zh/index", "stages", "notebooks/rewards"):
        html = (tmp_path / "site" / f"{page}.html").read_text(encoding="utf-8")
        assert 'src="http' not in html
        assert 'rel="stylesheet" href="http' not in html
