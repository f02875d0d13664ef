"""Every notebook runs from top to bottom, and is committed without output."""

import json

import matplotlib as mpl
import pytest

from pipelines.settings import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path, in_home):
    mpl.use("agg")
    names: dict = {}
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{path.name}[{number}]", "exec"), names)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_committed_without_output(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert cells
    for cell in cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
