"""docs/rewriting-prompts.md cannot rot."""

import re

from pipelines.rewrite.listing import listing
from pipelines.rewrite.prompting import names, prompt
from pipelines.settings import ROOT

PAGE = ROOT / "docs" / "rewriting-prompts.md"


def test_the_page_is_what_is_sent_and_what_the_rules_reply():
    made = "python -m pipelines.rewrite.listing > docs/rewriting-prompts.md"
    assert PAGE.read_text(encoding="utf-8") == listing(), f"run: {made}"


def test_every_prompt_stands_there_whole_with_an_input_and_a_reply():
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert [section.splitlines()[0] for section in sections] == [f"`rewrite.{name}`" for name in names()]
    for name, section in zip(names(), sections, strict=True):
        assert prompt(name).text in section
        assert section.count("~~~~") == 6
