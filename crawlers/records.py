"""The records that `crawlers.pages` reads from a page, and the row of `schemas.posts.RawPosts` that a post becomes.

They hold no avatar, no link to a profile and no province of an IP address: what is not here can not be stored.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from crawlers.sites import Site
from schemas.ids import answer_id, pseudonym, source_row_id


@dataclass(frozen=True, slots=True)
class Moment:
    """A time as a page tells it."""

    at: datetime  # aware, UTC; the beginning of the second, minute … that the page names
    precision: str  # one of schemas.labels.PRECISIONS
    text: str  # as it stands on the page


@dataclass(frozen=True, slots=True)
class Listed:
    """One post of a list page."""

    source_id: str
    url: str  # absolute
    fingerprint: str | None = None  # changes whenever an answer came; None: the list shows nothing of that kind
    posted: Moment | None = None  # only where the list shows the time of posting, not that of the last answer
    active: Moment | None = None  # the time of the last activity, where the list shows that
    pinned: bool = False  # stuck on top, whatever its age
    n_answers: int | None = None  # as the list states it; only where the pages of a post state none


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list of posts."""

    posts: tuple[Listed, ...]
    next_url: str | None
    refused: int = 0  # links of posts that lead to another host, a file, a script: counted, never followed
    counted: bool = False  # nothing links `next_url`: it has the number after this page's, and may not be there
    n_posts: int | None = None  # of the whole list, as the page states it


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer with text."""

    source_id: str | None
    author: str | None  # the site's own id of the user, not yet a pseudonym; None: anonymous
    author_role: str  # one of schemas.labels.AUTHOR_ROLES
    text: str
    posted: Moment | None
    likes: int | None = None
    recommended: bool | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """The seeker's post."""

    source_id: str
    url: str
    title: str
    description: str
    topic: str | None
    subtopics: tuple[str, ...]
    author: str | None  # as in Answer
    posted: Moment | None


@dataclass(frozen=True, slots=True)
class PostPage:
    """One page of a post: the first has the question, every page some of the answers."""

    question: Question | None
    answers: tuple[Answer, ...]
    next_urls: tuple[str, ...]  # the further pages that this one names
    layout: str
    n_answers: int | None = None  # as the page states it
    n_found: int = 0  # answers on this page, also those without text: an image alone, hidden, removed
    counted: bool = False  # as in ListPage
    n_unread: int = 0  # answers on this page that can not be read, and are not among those


class PageError(ValueError):
    """Raised by `crawlers.pages`: a layout of ours in which something needed is missing, or stands twice.

    Its message holds no word of the page.
    """


class AnswerError(PageError):
    """Raised by `crawlers.pages`: one answer of a page can not be read; the others can."""


class UnknownLayout(PageError):
    """Raised by `crawlers.pages`: no layout of ours, so the page is kept for the author of the next one."""


def row_of(
    site: Site,
    question: Question,
    answers: Iterable[Answer],
    key: bytes,
    fetched_at: datetime,
    layout: str,
    topic: str | None = None,
) -> dict[str, Any]:
    """The row of one post, as JSON has it, with all its answers, each once: one that moved on may come twice.

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
