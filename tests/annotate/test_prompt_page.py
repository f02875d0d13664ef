"""docs/prompts.md cannot rot."""

import re

from pipelines.annotate.listing import listing
from pipelines.annotate.prompting import names, prompt
from pipelines.settings import ROOT

PAGE = ROOT / "docs" / "prompts.md"


def test_the_page_is_what_is_sent_and_what_the_rules_reply():
    assert PAGE.read_text(encoding="utf-8") == listing(), "run: python -m pipelines.annotate.listing > docs/prompts.md"


def test_every_prompt_stands_there_whole_with_an_input_and_a_reply():
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert [section.splitlines()[0] for section in sections] == [f"`annotate.{name}`" for name in names()]
    for name, section in zip(names(), sections, strict=True):
        assert prompt(name).text in section
        assert prompt(name).name in section
        assert section.count("~~~~") == 6
