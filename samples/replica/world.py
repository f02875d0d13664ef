"""What there is on the site at a moment: a clock, and the posts and answers that have appeared by it.

Posts are those of samples/posts.jsonl, then as many invented ones as are wanted; these follow from seed and number.
Every post and answer appears, with the next free number, when the clock reaches its time: so the numbers ascend with
time as on the real sites, and a late answer is nothing special.
"""

import heapq
import json
import random
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from schemas.taxonomy import TAXONOMY

SAMPLES = Path(__file__).resolve().parents[1] / "posts.jsonl"
SENTENCES = Path(__file__).with_name("sentences.toml")
SHANGHAI = ZoneInfo("Asia/Shanghai")

# Shares of posts by number of answers: (share, fewest, most).
_ANSWERS = ((0.12, 0, 0), (0.42, 1, 1), (0.31, 2, 4), (0.11, 5, 10), (0.04, 11, 26))
# One post in so many has more than a hundred short answers: what it takes to see a second page of a Douban topic.
_CROWDED_EVERY = 400


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


@cache
def _sentences() -> dict[str, Any]:
    return tomllib.loads(SENTENCES.read_text(encoding="utf-8"))


class _Writer:
    """Fills sentences from the slots, with a random generator of its own."""

    def __init__(self, *key: str | int) -> None:
        self.random = random.Random("\x1f".join(map(str, key)))
        self.slots: dict[str, list[str]] = _sentences()["slots"]
        # A post keeps to one person and one feeling; places and things change from sentence to sentence.
        self.kept = {name: self.random.choice(self.slots[name]) for name in ("who", "mood")}

    def write(self, templates: list[str], n: int = 1) -> str:
        """`n` different sentences of `templates`, filled."""
        chosen = self.random.sample(templates, min(n, len(templates)))
        return "".join(self._fill(template) for template in chosen)

    def _fill(self, template: str) -> str:
        if "{" not in template:
            return template
        words = {name: self.random.choice(values) for name, values in self.slots.items()}
        return template.format(**{**words, **self.kept})


def invent(seed: int, index: int, posted_at: datetime) -> Post:
    """The invented post number `index`, posted at `posted_at` (aware). Its answers come minutes to days later."""
    writer, sentences = _Writer(seed, "post", index), _sentences()
    rng, seeker = writer.random, sentences["seeker"]
    topic = rng.choice(list(TAXONOMY))
    subtopics = tuple(rng.sample(TAXONOMY[topic], rng.choice((1, 1, 2, 3))))
    parts = [
        writer.write(seeker["opening"]),
        writer.write(sentences["scenes"][topic], rng.choice((1, 2, 3, 3))),
        writer.write(seeker["detail"], rng.choice((0, 1, 2, 3, 4))),
        writer.write(seeker["feeling"], rng.choice((1, 1, 2))),
        writer.write(seeker["tried"], rng.choice((0, 1, 1))),
        writer.write(seeker["question"], rng.choice((1, 1, 2))),
    ]
    if rng.random() < 0.5:
        parts.insert(rng.randint(1, len(parts) - 1), "\n")
    post = Post(
        key=f"g{index}",
        title=writer.write(sentences["titles"][topic]) + writer.write(seeker["title_end"], rng.choice((0, 1))),
        description="".join(parts),
        topic=topic,
        subtopics=subtopics,
        author=None if rng.random() < 0.3 else f"member-{rng.randint(1000, 9999)}",
        posted_at=posted_at,
    )
    crowded = index % _CROWDED_EVERY == _CROWDED_EVERY // 2
    if crowded:
        n_answers = 105 + index % 20
    else:
        ((_, fewest, most),) = rng.choices(_ANSWERS, [share for share, _, _ in _ANSWERS])
        n_answers = rng.randint(fewest, most)
    at = posted_at
    for k in range(n_answers):
        at += timedelta(seconds=int(rng.lognormvariate(8.5, 1.6)) + 20) / (20 if crowded else 1)
        post.coming.append(invent_answer(seed, index, k, at, short=crowded or (k > 0 and rng.random() < 0.2)))
    return post


def invent_answer(seed: int, index: int, k: int, posted_at: datetime, *, short: bool = False) -> Answer:
    """Answer `k` to the invented post `index`: a line (`short`) or several paragraphs."""
    writer, supporter = _Writer(seed, "answer", index, k), _sentences()["supporter"]
    rng = writer.random
    professional = not short and rng.random() < 0.4
    if short:
        text = writer.write(supporter["short"])
    else:
        middle = writer.write(supporter["explain" if professional else "story"], rng.randint(1, 5))
        paragraphs = [
            writer.write(supporter["greeting"]) + writer.write(supporter["empathy"], rng.randint(3, 7)),
            writer.write(supporter["reflect"], rng.randint(3, 8)) + middle,
            writer.write(supporter["suggest"], rng.randint(4, 10)),
            writer.write(supporter["closing"], rng.choice((1, 2))),
        ]
        text = "\n".join(paragraphs)
    anonymous = rng.random() < 0.04
    role = "professional" if professional else "member"
    name = f"counsellor-{rng.randint(100, 299)}" if professional else f"member-{rng.randint(1000, 9999)}"
    return Answer(
        text=text,
        author=None if anonymous else name,
        author_role="unknown" if anonymous else role,
        posted_at=posted_at,
        likes=int(rng.expovariate(1 / 6)),
        recommended=not short and rng.random() < 0.35,
    )


class World:
    """Posts and answers up to the clock. Not for threads: the server is one loop."""

    def __init__(
        self, posts: Iterable[Post], now: datetime | None = None, *, invented: int = 0, days: float = 14
    ) -> None:
        """A site with `posts` and `invented` more over the `days` before `now`; a given `now` (aware) stands still."""
        self.version = 0
        self._still = now is not None
        self._at = (now or datetime.now(UTC)).astimezone(UTC)
        self._since = time.monotonic()
        self._events: list[tuple[datetime, int, Post, Answer | None]] = []
        self._n_events = self._n_answers = self._n_invented = 0
        self._by_number: list[Post] = []
        for post in posts:
            self.add(post)
        for _ in range(invented):
            # From the index alone, not from how many there are: more posts move none.
            share = random.Random(f"0\x1ftime\x1f{self._n_invented}").random()
            self.add_invented(self._at - timedelta(days=days * share, seconds=1))
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

    def add_invented(self, posted_at: datetime) -> None:
        """One more invented post, whose answers follow it."""
        self.add(invent(0, self._n_invented, posted_at))
        self._n_invented += 1

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

    def most_active(self) -> Sequence[Post]:
        """All posts, the one with the latest post or answer first: how forums order their lists."""
        return sorted(self._by_number, key=lambda post: (post.active_at, post.number), reverse=True)

    def _push(self, at: datetime, post: Post, answer: Answer | None) -> None:
        self._n_events += 1
        heapq.heappush(self._events, (at, self._n_events, post, answer))
