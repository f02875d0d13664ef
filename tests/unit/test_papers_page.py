"""docs/papers.md: every requirement of the papers, where it is, which test holds it."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from pydantic import ValidationError

from pipelines.settings import ROOT
from tools.papers import PAPERS, Requirement, listing, requirements

# The numbered equations and tables of each paper.
NUMBERED = {
    "M": [*(f"eq. {number}" for number in range(1, 10)), "Table 1", "Table 2", "Table 3"],
    "E": [*(f"eq. {number}" for number in range(1, 7)), "Table 1", "Table 2"],
    "C": [*(f"eq. {number}" for number in range(1, 8)), "Table 1", "Table 2", "Table 3"],
}


def test_the_page_is_what_the_list_says():
    assert (ROOT / "docs" / "papers.md").read_text(encoding="utf-8") == listing()


def test_every_place_and_every_test_is_there():
    asked = [one for of_paper in requirements().values() for one in of_paper]
    assert len(asked) > 90
    missing = [place for one in asked for place in one.code if not _stands(ROOT, place)]
    missing += [test for one in asked for test in one.tests if not _stands(ROOT / "tests", test)]
    assert missing == []


def test_no_numbered_equation_or_table_of_a_paper_is_missing():
    places = {paper: " ".join(one.at for one in asked) for paper, asked in requirements().items()}
    assert [(p, at) for p, numbers in NUMBERED.items() for at in numbers if not re.search(rf"{at}\b", places[p])] == []


def test_what_a_docstring_cites_stands_on_the_page():
    listed = {(paper, at) for paper, asked in requirements().items() for one in asked for at in one.at.split(", ")}
    cited = {
        (paper, at)
        for folder in ("pipelines", "schemas", "crawlers")
        for path in (ROOT / folder).rglob("*.py")
        for paper, at in re.findall(r"\b([MEC]) (§\d[\d.]*\d|§\d|eq\. \d|Table \d)", path.read_text(encoding="utf-8"))
    }
    assert len(cited) >= 16
    assert sorted(cited - listed) == []


def test_what_is_done_has_a_place_and_a_test_and_what_is_not_says_what_is_missing():
    for wrong in ({}, {"code": ("a.py",)}, {"state": "not yet"}):
        with pytest.raises(ValidationError):
            Requirement(at="§1", asks="something", **wrong)
    assert set(requirements()) == set(PAPERS)


def _stands(root: Path, place: str) -> bool:
    path, _, name = place.partition("::")
    file = root / path
    return file.exists() and (not name or name in _names(file))


@cache
def _names(path: Path) -> frozenset[str]:
    """What a module defines at its top, and the methods of its classes."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(target.id for target in targets if isinstance(target, ast.Name))
    return frozenset(names)
