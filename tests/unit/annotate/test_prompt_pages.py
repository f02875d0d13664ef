"""docs/prompts.md, docs/rewriting-prompts.md and docs/judging-prompts.md show the prompts as they are sent."""

import re

import pytest

from pipelines import annotate, judge, rewrite
from pipelines.llm.prompts import names, prompt
from pipelines.settings import ROOT
from tools import judge_prompts, prompts, rewriting_prompts

PAGES = {
    "prompts": (prompts, "annotate", annotate.__file__, 4),
    "rewriting-prompts": (rewriting_prompts, "rewrite", rewrite.__file__, 2),
    "judging-prompts": (judge_prompts, "judging", judge.__file__, 4),
}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_every_prompt_whole_with_an_input(page):
    tool, stage, module, fences = PAGES[page]
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert text == tool.listing(), f"run: python -m {tool.__name__} > docs/{page}.md"
    sections = dict(re.findall(r"^## `(\S+)`\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    shown = [name for name in names(module) if not name.startswith("rm_")]
    assert list(sections) == [f"{stage}.{name}" for name in shown]
    for name, section in zip(shown, sections.values(), strict=True):
        assert prompt(name, module).text in section
        assert section.count("~~~~") >= fences
