"""docs/drills.md says which areas of drills there are, and which tests hold what."""

import re

from pipelines.settings import ROOT

PAGE = (ROOT / "docs" / "drills.md").read_text(encoding="utf-8")


def test_every_area_of_a_drill_is_on_the_page():
    marked = {
        area
        for path in (ROOT / "tests").rglob("test_*.py")
        for area in re.findall(r"mark\.drill\(\"([^\"]+)\"\)", path.read_text(encoding="utf-8"))
    }
    assert marked
    assert marked <= set(re.findall(r"^\| `([a-zA-Z ]+)` \|", PAGE, flags=re.MULTILINE))


def test_the_page_names_every_module_with_a_drill_and_no_other():
    tests = ROOT / "tests"
    modules = {
        path.relative_to(tests).as_posix(): path.read_text(encoding="utf-8") for path in tests.rglob("test_*.py")
    }
    marked = {name for name, source in modules.items() if 'mark.drill("' in source} - {"unit/test_drills_page.py"}
    assert marked
    assert set(re.findall(r"`([a-z0-9_/]*test_[a-z_]+\.py)`", PAGE)) == marked
