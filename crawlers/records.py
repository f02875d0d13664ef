"""The records that `crawlers.pages` reads from a page and the spider puts together.

They hold no avatar, no link to a profile and no province of an IP address: what is not here can not be stored.
"""

from dataclasses import dataclass
from datetime import datetime


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


class PageError(ValueError):
    """Raised by `crawlers.pages`: a layout of ours in which something needed is missing, or stands twice.

    Its message holds no word of the page.
    """


class UnknownLayout(PageError):
    """Raised by `crawlers.pages`: no layout of ours, so the page is kept for the author of the next one."""
