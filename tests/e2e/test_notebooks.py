"""Every notebook runs from top to bottom, and is committed without output."""

import json

import matplotlib as mpl
import pytest

from pipelines.settings import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_is_committed_without_output(path, in_home):
    mpl.use("agg")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert cells
    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count") is not None] == []
    names: dict = {}
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{path.name}[{number}]", "exec"), names)
