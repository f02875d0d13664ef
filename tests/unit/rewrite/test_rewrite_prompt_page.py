"""docs/rewriting-prompts.md cannot rot."""

import re

from pipelines import rewrite
from pipelines.llm.label_sets import names, prompt
from pipelines.settings import ROOT
from tools.rewriting_prompts import listing

PAGE = ROOT / "docs" / "rewriting-prompts.md"


def test_the_page_is_what_is_sent_and_what_was_written_to_it():
    made = "python -m tools.rewriting_prompts > docs/rewriting-prompts.md"
    assert PAGE.read_text(encoding="utf-8") == listing(), f"run: {made}"


def test_every_prompt_stands_there_whole():
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert [section.splitlines()[0] for section in sections] == [
        f"`rewrite.{name}`" for name in names(rewrite.__file__)
    ]
    for name, section in zip(names(rewrite.__file__), sections, strict=True):
        assert prompt(name, rewrite.__file__).text in section
        assert section.count("~~~~") >= 2
