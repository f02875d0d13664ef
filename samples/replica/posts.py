"""The posts that the replica shows: those of samples/posts.jsonl, then as many invented ones as are wanted.

An invented post follows from (seed, its number) alone, so that asking for more of them changes none. Lengths and
numbers of answers are near those of PsyQA's public sample (title 23, body 180, answer 609 characters, 2.7 answers).
"""

import json
import random
import tomllib
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
        title=row["title"],
        description=row["description"],
        topic=row["topic"],
        subtopics=tuple(row["subtopics"]),
        author=row["author"],
        posted_at=_instant(row["posted_at"]),
        notice="notice" in row.get("shows", ()),
        coming=[
            Answer(
                text=answer["text"],
                author=answer["author"],
                author_role=answer["author_role"],
                posted_at=_instant(answer["posted_at"]),
                likes=int(answer["likes"] or 0),
                recommended=bool(answer["recommended"]),
            )
            for answer in row["answers"]
        ],
    )


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
        cut = rng.randint(1, len(parts) - 1)
        parts.insert(cut, "\n")
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
    n_answers = 105 + index % 20 if crowded else _number_of_answers(rng)
    at = posted_at
    for k in range(n_answers):
        at += timedelta(seconds=int(rng.lognormvariate(8.5, 1.6)) + 20) / (20 if crowded else 1)
        post.coming.append(invent_answer(seed, index, k, at, short=crowded or (k > 0 and rng.random() < 0.2)))
    return post


def _number_of_answers(rng: random.Random) -> int:
    low, high = rng.choices([(low, high) for _, low, high in _ANSWERS], [share for share, _, _ in _ANSWERS])[0]
    return rng.randint(low, high)


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
