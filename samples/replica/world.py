"""What there is on the site at a moment: a clock, and the posts and answers that have appeared by it.

Every post and answer appears, with the next free number, when the clock reaches its time: so the numbers ascend with
time as on the real sites, and a late answer is nothing special.
"""

import heapq
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

SAMPLES = Path(__file__).resolve().parents[1] / "posts.jsonl"
SHANGHAI = ZoneInfo("Asia/Shanghai")


@dataclass(slots=True, eq=False)
class Answer:
    """One answer. `number` counts all answers of the site in the order in which they appeared, from 1."""

    text: str
    author: str | None
    author_role: str
    posted_at: datetime
    likes: int
    recommended: bool
    number: int = 0


@dataclass(slots=True, eq=False)
class Post:
    """One post with the answers that have appeared so far, in their order; `coming` are those of a later time."""

    key: str
    title: str
    description: str
    topic: str
    subtopics: tuple[str, ...]
    author: str | None
    posted_at: datetime
    notice: bool = False
    number: int = 0
    answers: list[Answer] = field(default_factory=list)
    coming: list[Answer] = field(default_factory=list)

    @property
    def active_at(self) -> datetime:
        """When the post or its last answer was written."""
        return max([self.posted_at, *(answer.posted_at for answer in self.answers)])

    @property
    def quote(self) -> str:
        """The beginning of the description, as answers quote it."""
        return " ".join(self.description.split())[:40]


def read_posts(path: Path = SAMPLES) -> list[Post]:
    """The posts of a file in the form of samples/posts.jsonl; times without a zone are Shanghai's."""
    with path.open(encoding="utf-8") as lines:
        return [_post(json.loads(line)) for line in lines if line.strip()]


def _post(row: dict[str, Any]) -> Post:
    return Post(
        key=str(row["id"]),
        subtopics=tuple(row["subtopics"]),
        posted_at=_instant(row["posted_at"]),
        notice="notice" in row.get("shows", ()),
        coming=[_answer(answer) for answer in row["answers"]],
        **{name: row[name] for name in ("title", "description", "topic", "author")},
    )


def _answer(row: dict[str, Any]) -> Answer:
    likes, recommended = int(row["likes"] or 0), bool(row["recommended"])
    return Answer(row["text"], row["author"], row["author_role"], _instant(row["posted_at"]), likes, recommended)


def _instant(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return (at if at.tzinfo else at.replace(tzinfo=SHANGHAI)).astimezone(UTC)


class World:
    """Posts and answers up to the clock. Not for threads: the server is one loop."""

    def __init__(self, posts: Iterable[Post], now: datetime | None = None) -> None:
        """A site with `posts`; a given `now` (aware) stands still."""
        self.version = 0
        self._still = now is not None
        self._at = (now or datetime.now(UTC)).astimezone(UTC)
        self._since = time.monotonic()
        self._events: list[tuple[datetime, int, Post, Answer | None]] = []
        self._n_events = self._n_answers = 0
        self._by_number: list[Post] = []
        for post in posts:
            self.add(post)
        self.advance()

    def now(self) -> datetime:
        """The clock, aware UTC."""
        return self._at if self._still else self._at + timedelta(seconds=time.monotonic() - self._since)

    def add(self, post: Post) -> None:
        """`post` and its answers appear when their time has come."""
        self._push(post.posted_at, post, None)
        for answer in post.coming:
            # An answer never appears before its post, whatever the file says.
            self._push(max(answer.posted_at, post.posted_at), post, answer)
        post.coming = []

    def advance(self) -> None:
        """Shows what has come by now."""
        now = self.now()
        while self._events and self._events[0][0] <= now:
            _, _, post, answer = heapq.heappop(self._events)
            if answer is None:
                self._by_number.append(post)
                post.number = len(self._by_number)
            else:
                self._n_answers += 1
                answer.number = self._n_answers
                post.answers.append(answer)
            self.version += 1

    def post(self, number: int) -> Post | None:
        """The post with this number, None where there is none (yet)."""
        return self._by_number[number - 1] if 0 < number <= len(self._by_number) else None

    def newest(self) -> Sequence[Post]:
        """All posts, newest first."""
        return self._by_number[::-1]

    def _push(self, at: datetime, post: Post, answer: Answer | None) -> None:
        self._n_events += 1
        heapq.heappush(self._events, (at, self._n_events, post, answer))
