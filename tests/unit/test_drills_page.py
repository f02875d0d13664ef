"""docs/drills.md says which areas of drills there are, and which tests hold what."""

import re

from pipelines.settings import ROOT

PAGE = (ROOT / "docs" / "drills.md").read_text(encoding="utf-8")


def test_the_page_names_every_area_and_every_module_with_a_drill_and_no_other_module():
    tests = ROOT / "tests"
    marked = {
        path.relative_to(tests).as_posix(): areas
        for path in tests.rglob("test_*.py")
        if (areas := re.findall(r"mark\.drill\(\"([^\"]+)\"\)", path.read_text(encoding="utf-8")))
    }
    assert marked
    assert set(re.findall(r"`([a-z0-9_/]*test_[a-z_]+\.py)`", PAGE)) == set(marked)
    areas = {area for of_module in marked.values() for area in of_module}
    assert areas <= set(re.findall(r"^\| `([a-zA-Z ]+)` \|", PAGE, flags=re.MULTILINE))
