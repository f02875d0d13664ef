"""Broken pages: each gives a right record or an error of ours, and never another exception.

A record is right when its ids and texts are some of those of the whole page. White space is left out of the comparison:
a page that lost a <br> has a line less, and is no less right.
"""

import random
import re
from typing import Any

import pytest
from mutations import ID, mutated
from saved_pages import SavedPage, saved_pages

from crawlers.records import PageError

N_PAGES = 2_000
SEED = 20250314


def bare(text: str) -> str:
    return re.sub(r"\s+", "", text)


def texts_of(record: Any) -> set[tuple[str | None, str]]:
    """The ids of a page, each with its text."""
    pairs = {(post.source_id, "") for post in getattr(record, "posts", ())}
    pairs |= {(answer.source_id, bare(answer.text)) for answer in getattr(record, "answers", ())}
    question = getattr(record, "question", None)
    if question is not None:
        pairs |= {(question.source_id, bare(question.title)), (question.source_id, bare(question.description))}
    return pairs


PAGES = saved_pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_broken_page_gives_a_right_record_or_an_error_of_ours(page: SavedPage):
    whole = texts_of(page.parse(page.source()))
    texts = {text for _, text in whole}
    numbers = {source_id for source_id, _ in whole} | set(ID.findall(page.source()))
    outcomes = {"record": 0, "error": 0}
    for number in range(N_PAGES // len(PAGES)):
        rng = random.Random(f"{SEED}\x1f{page.name}\x1f{number}")
        name, body = mutated(page.source(), rng, is_json=page.is_json)
        try:
            record = page.parse(body) if isinstance(body, str) else page.parser(body, page.url, page.fetched_at)
        except PageError:
            outcomes["error"] += 1
            continue
        outcomes["record"] += 1
        pairs = texts_of(record)
        if name == "with_doubled_ids":
            # An id that took another's place everywhere makes a page without fault.
            right = {text for _, text in pairs} <= texts and {source_id for source_id, _ in pairs} <= numbers
        else:
            right = pairs <= whole
        assert right, f"{name} {number}: {sorted(source_id or '' for source_id, _ in pairs - whole)}"
    assert min(outcomes.values()) > 0, outcomes
