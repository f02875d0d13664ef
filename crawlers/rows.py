"""The row of `schemas.posts.RawPosts` that a post becomes, with pseudonyms in the place of authors.

Written as JSON: times are ISO 8601 in UTC, absent values null.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from crawlers.records import Answer, Moment, Question
from crawlers.sites import Site
from schemas.ids import answer_id, pseudonym, source_row_id


def row_of(
    site: Site,
    question: Question,
    answers: Iterable[Answer],
    key: bytes,
    fetched_at: datetime,
    layout: str,
    topic: str | None = None,
) -> dict[str, Any]:
    """The row of one post with all its answers, each once: one that moved on between two requests comes twice.

    `key` is that of the pseudonyms; `fetched_at` (aware) is the time of the first page; `topic` is our main topic of
    the board, where the site's file has one: otherwise the page's counts.
    """
    post_id = source_row_id(site.name, question.source_id)
    rows: dict[str, Mapping[str, Any]] = {}
    for answer in answers:
        name = f"{post_id}/{answer.source_id}" if answer.source_id else answer_id(post_id, answer.text)
        rows.setdefault(name, _answer(site, answer, name, key))
    return {
        "post_id": post_id,
        "source": site.name,
        "source_id": question.source_id,
        "url": question.url,
        "title": question.title,
        "description": question.description,
        "topic": topic or (site.topics.get(question.topic, question.topic) if question.topic else None),
        "subtopics": list(question.subtopics),
        "author": _author(site, question.author, key),
        "posted_at": _time(question.posted),
        "posted_at_precision": question.posted.precision if question.posted else None,
        "fetched_at": fetched_at.astimezone(UTC).isoformat(),
        "lang": site.lang,
        "origin": site.origin,
        "lineage": list(site.lineage),
        "licence": site.licence,
        "consent": site.consent,
        "layout": layout,
        "answers": list(rows.values()),
    }


def _answer(site: Site, answer: Answer, name: str, key: bytes) -> dict[str, Any]:
    return {
        "answer_id": name,
        "author": _author(site, answer.author, key),
        "author_role": answer.author_role,
        "text": answer.text,
        "posted_at": _time(answer.posted),
        "likes": answer.likes,
        "recommended": answer.recommended,
        "spans": [],
    }


def _author(site: Site, author: str | None, key: bytes) -> str | None:
    return None if author is None else pseudonym(site.name, author, key)


def _time(moment: Moment | None) -> str | None:
    return None if moment is None else moment.at.astimezone(UTC).isoformat()
