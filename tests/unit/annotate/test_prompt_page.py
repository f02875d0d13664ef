"""docs/prompts.md cannot rot."""

import re

from pipelines import annotate
from pipelines.llm.label_sets import names, prompt
from pipelines.settings import ROOT
from tools.prompts import listing

PAGE = ROOT / "docs" / "prompts.md"


def test_the_page_is_what_is_sent_and_what_was_written_to_it():
    assert PAGE.read_text(encoding="utf-8") == listing(), "run: python -m tools.prompts > docs/prompts.md"


def test_every_prompt_stands_there_whole_with_an_input():
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert [section.splitlines()[0] for section in sections] == [
        f"`annotate.{name}`" for name in names(annotate.__file__)
    ]
    for name, section in zip(names(annotate.__file__), sections, strict=True):
        assert prompt(name, annotate.__file__).text in section
        assert prompt(name, annotate.__file__).name in section
        assert section.count("~~~~") >= 4
