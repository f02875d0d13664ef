"""docs/NAME.zh.md says what docs/NAME.md says: the same headings, blocks, tables and links, in the same order."""

import re
from pathlib import Path

import pytest

from pipelines.settings import ROOT

CHINESE = sorted((ROOT / "docs").glob("*.zh.md"))


def _shape(path: Path) -> dict[str, list[str]]:
    text = path.read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```.*?^ *```$", text, flags=re.DOTALL | re.MULTILINE)
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return {
        "blocks": blocks,
        "commands": re.findall(
            r"^ {4,}((?:\$ )?(?:[A-Z_]+=\S+ )*(?:gongqing|python|scrapy|make) .*?)(?:  +#.*)?$", prose, re.MULTILINE
        ),
        "headings": re.findall(r"^#+ ", prose, flags=re.MULTILINE),
        "rows": [str(row.count("|")) for row in re.findall(r"^\|.*\|$", prose, flags=re.MULTILINE)],
        "links": sorted(link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", prose)),
        "code": sorted(set(re.findall(r"`([^`]+)`", re.sub(r"\s+", " ", prose)))),
    }


@pytest.mark.parametrize("path", CHINESE, ids=lambda path: path.name)
def test_a_page_has_the_shape_of_the_english_one(path: Path):
    english = path.with_name(path.name.replace(".zh.md", ".md"))
    assert _shape(path) == _shape(english)
