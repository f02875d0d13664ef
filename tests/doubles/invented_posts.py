"""Posts and answers made up by the number, and a site of as many as are wanted: each follows from its number."""

import random
import tomllib
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from samples.replica.world import SAMPLES, SHANGHAI, Answer, Post, World, read_posts
from schemas.taxonomy import TAXONOMY

SENTENCES = Path(__file__).with_suffix(".toml")

# Shares of posts by number of answers: (share, fewest, most).
_ANSWERS = ((0.12, 0, 0), (0.42, 1, 1), (0.31, 2, 4), (0.11, 5, 10), (0.04, 11, 26))
# One post in so many has more than a hundred short answers: what it takes to see a second page of a Douban topic.
_CROWDED_EVERY = 400


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


class InventedWorld(World):
    """A site with `posts`, and `invented` more over the `days` before `now`."""

    def __init__(
        self, posts: Iterable[Post], now: datetime | None = None, *, invented: int = 0, days: float = 14
    ) -> None:
        super().__init__([], now)
        self._n_invented = 0
        for post in posts:
            self.add(post)
        for _ in range(invented):
            # From the index alone, not from how many there are: more posts move none.
            share = random.Random(f"0\x1ftime\x1f{self._n_invented}").random()
            self.add_invented(self._at - timedelta(days=days * share, seconds=1))
        self.advance()

    def add_invented(self, posted_at: datetime) -> None:
        """One more invented post, whose answers follow it."""
        self.add(invent(0, self._n_invented, posted_at))
        self._n_invented += 1


def make_world(
    posts: int | None = None, now: datetime | None = None, *, file: Path = SAMPLES, days: float = 14
) -> InventedWorld:
    """The site with `posts` in all: those of `file` (None: them alone), then invented ones over the `days` before now.

    A given `now` (naive: Shanghai) stands still.
    """
    if now is not None and now.tzinfo is None:
        now = now.replace(tzinfo=SHANGHAI)
    samples = read_posts(file)
    n_posts = len(samples) if posts is None else posts
    return InventedWorld(samples[:n_posts], now, invented=max(0, n_posts - len(samples)), days=days)
