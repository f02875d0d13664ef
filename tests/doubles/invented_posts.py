"""Posts and answers made up by the number, and a site of as many as are wanted: each follows from its number."""

import random
import tomllib
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from samples.replica.world import SAMPLES, SHANGHAI, Answer, Post, World, read_posts
from schemas.taxonomy import TAXONOMY


@cache
def _sentences() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _write(rng: random.Random, templates: list[str], n: int = 1) -> str:
    """`n` different sentences of `templates`, their slots filled."""
    slots = {name: rng.choice(values) for name, values in _sentences()["slots"].items()}
    return "".join(rng.sample(templates, n)).format(**slots)


def invent(index: int, posted_at: datetime) -> Post:
    """The invented post number `index`, posted at `posted_at` (aware). Its answers come minutes to days later."""
    rng, sentences = random.Random(f"post {index}"), _sentences()
    seeker, topic = sentences["seeker"], rng.choice(list(TAXONOMY))
    first = _write(rng, seeker["opening"]) + _write(rng, sentences["scenes"][topic], rng.randint(1, 3))
    then = "".join(_write(rng, seeker[part], rng.randint(1, 2)) for part in ("detail", "feeling", "tried", "question"))
    n_answers = 24 if index % 20 == 7 else rng.choice((0, 1, 1, 1, 2, 4, 8))  # 24: two pages on every site
    times = sorted(posted_at + timedelta(hours=12 * n_answers * rng.random(), seconds=20) for _ in range(n_answers))
    return Post(
        key=f"g{index}",
        title=_write(rng, sentences["titles"][topic]) + _write(rng, seeker["title_end"]),
        description=first + rng.choice(("", "\n")) + then,
        topic=topic,
        subtopics=tuple(rng.sample(TAXONOMY[topic], rng.randint(1, 3))),
        author=None if rng.random() < 0.3 else f"member-{rng.randint(1000, 9999)}",
        posted_at=posted_at,
        coming=[invent_answer(f"{index} {k}", at) for k, at in enumerate(times)],
    )


def invent_answer(key: str, posted_at: datetime) -> Answer:
    """The invented answer of this key: several paragraphs."""
    rng, supporter = random.Random(f"answer {key}"), _sentences()["supporter"]
    role = rng.choice(("professional", "member", "member"))
    parts = {
        "greeting": 1,
        "empathy": 4,
        "reflect": 5,
        "explain" if role == "professional" else "story": 3,
        "suggest": 6,
    }
    return Answer(
        text="\n".join(_write(rng, supporter[part], n) for part, n in parts.items()),
        author=f"{role}-{rng.randint(1000, 9999)}" if rng.random() > 0.04 else None,
        author_role=role,
        posted_at=posted_at,
        likes=int(rng.expovariate(1 / 6)),
        recommended=rng.random() < 0.3,
    )


def make_world(
    posts: int | None = None, now: datetime | None = None, *, file: Path = SAMPLES, days: float = 14
) -> World:
    """The site with `posts` in all: those of `file` (None: them alone), then invented ones over the `days` before now.

    A given `now` (naive: Shanghai) stands still.
    """
    if now is not None and now.tzinfo is None:
        now = now.replace(tzinfo=SHANGHAI)
    world, samples = World([], now), read_posts(file)
    for post in samples[:posts]:
        world.add(post)
    for index in range((posts or 0) - len(samples)):
        share = random.Random(index).random()
        world.add(invent(index, world.now() - timedelta(days=days * share, seconds=1)))
    world.advance()
    return world
