"""The papers' tables over our rows, beside the papers' own figures: M Table 1 and E Table 1; and C's candidates beside
the labels of their sources.
"""

from collections.abc import Mapping

import polars as pl

from pipelines.operations.agreement import agreement
from pipelines.operations.diversity import diversity
from pipelines.release.publish.card import PaperTable
from pipelines.store import Store, Version
from pipelines.text import keys
from schemas.taxonomy import CATEGORIES, CATEGORY_OF

# M Table 1: count, percentage, mean length of the description.
_M_TABLE_1: dict[str, tuple[int, float, float]] = {
    "Interpersonal": (474, 11.85, 288.44),
    "Other": (167, 4.18, 268.31),
    "Marriage": (381, 9.53, 357.37),
    "Family": (448, 11.20, 384.48),
    "Romantic Relationship": (399, 9.98, 326.90),
    "Emotion": (446, 11.15, 280.74),
    "Growth": (448, 11.20, 271.60),
    "Therapy": (361, 9.03, 296.57),
    "Career": (330, 8.25, 286.52),
    "Behavior": (539, 13.48, 226.81),
}
_M_TOTAL = 4000

# E Table 1: PsyQA, Empathy-QA.
_E_TABLE_1: dict[str, tuple[float | None, float | None]] = {
    "questions": (22_346, 40_959),
    "answers": (56_063, 168_470),
    "main topics": (9, 29),
    "subtopics": (None, 182),
    "characters a question": (21.6, 22.7),
    "characters a description": (168.9, 275.9),
    "characters an answer": (524.6, 775.6),
    "answers a question": (2.51, 4.11),
}


def dialogue_diversity(store: Store, version: Version) -> pl.DataFrame:
    """`rewrite.diversity` of a version of `rewritten_dialogues`, beside the dialogues that it was made from."""
    source = version.manifest.runs[-1].parents["coherent_dialogues"]
    rewritten = store.read("rewritten_dialogues", version.version).collect()
    return diversity(store.read("coherent_dialogues", source).collect(), rewritten)


def with_topics(posts: pl.DataFrame, topics: pl.DataFrame) -> pl.DataFrame:
    """Rows of `unique_posts`, with the topic that `topics` gives where their source gives none of the taxonomy's."""
    judged = topics.select(post_id="row_id", judged="topic")
    ours = pl.when(pl.col("topic").is_in(list(CATEGORY_OF))).then("topic")
    return (
        posts.join(judged, on="post_id", how="left", maintain_order="left")
        .with_columns(topic=pl.coalesce(ours, "judged", "topic"))
        .drop("judged")
    )


def c_agreement(candidates: pl.DataFrame, turns: pl.DataFrame) -> PaperTable:
    """How far candidates agree with the labels of their sources (`pipelines.operations.agreement`)."""
    lines = agreement(candidates, turns)
    rows = [(*row[:4], *map(_rounded, row[4:5]), row[5], _rounded(row[6])) for row in lines.iter_rows()]
    return PaperTable(
        "C: candidates beside the labels of their sources",
        ("source", "model", "field", "labelled", "agreeing", "with one label", "kappa"),
        rows,
        set(),
        [
            "Agreeing: the share whose label is among the source's. Kappa (Cohen's) is over rounds with one label.",
            "Several strategies may be right at one moment: this is no score to be raised.",
        ],
    )


def paper_tables(
    store: Store, against: str | None = None, pins: Mapping[str, str] | None = None
) -> dict[str, PaperTable]:
    """The papers' tables over a home, by paper; C's only where there are candidates, or it is asked for.

    `pins`, table → version, are those of a release; without them what is current counts.
    """

    def there(table: str) -> bool:
        return store.pointer(table) is not None if pins is None else table in pins

    def read(table: str) -> pl.DataFrame:
        return store.read(table, None if pins is None else pins[table]).collect()

    wanted = ("M", "E", "C") if against is None else (against.upper(),)
    posts = read("unique_posts")
    if there("topics"):
        posts = with_topics(posts, read("topics"))
    tables = {name: make(posts) for name, make in (("M", m_table_1), ("E", e_table_1)) if name in wanted}
    if "C" in wanted and (against or there("cer_candidates")):
        candidates, turns = read("cer_candidates"), read("sampled_turns")
        tables["C"] = c_agreement(candidates, turns)
    return tables


def m_table_1(posts: pl.DataFrame) -> PaperTable:
    """M Table 1 over rows of `unique_posts`: posts, percentage and mean description length by primary category."""
    ours = {
        name: (count, mean)
        for name, count, mean in posts.with_columns(
            category=pl.col("topic").replace_strict(CATEGORY_OF, default=None, return_dtype=pl.String)
        )
        .group_by("category")
        .agg(pl.len(), keys.n_chars(pl.col("description")).mean().alias("mean"))
        .iter_rows()
    }
    total = posts.height
    names: list[str | None] = [*CATEGORIES, *([None] if None in ours else [])]
    rows = []
    for name in names:
        count, mean = ours.get(name, (0, None))
        paper = _M_TABLE_1.get(name or "", (None, None, None))
        rows.append((name or "no topic given", count, _share(count, total), _rounded(mean), *paper))
    counted = sum(count for count, _, _ in _M_TABLE_1.values())
    shares = round(sum(share for _, share, _ in _M_TABLE_1.values()), 2)
    overall = _rounded(posts.select(keys.n_chars(pl.col("description")).mean()).item()) if total else None
    rows.append(("all", total, _share(total, total), overall, counted, shares, None))
    last = len(rows) - 1
    return PaperTable(
        "M Table 1: primary categories",
        ("category", "posts", "%", "mean length", "M: posts", "M: %", "M: mean length"),
        rows,
        {(last, 4), (last, 5)},
        [
            f"M's counts sum to {counted:,}, its percentages are of {_M_TOTAL:,}: one of the two cannot be.",
            "Mean length: characters of the description, white space not counted.",
        ],
    )


def e_table_1(posts: pl.DataFrame) -> PaperTable:
    """E Table 1 over rows of `unique_posts`: how many questions and answers, and how long they are."""
    answers = (
        posts.select(pl.col("answers").explode(empty_as_null=False)).to_series().struct.field("text").to_frame("t")
    )

    def mean(frame: pl.DataFrame, column: str) -> float | None:
        return _rounded(frame.select(keys.n_chars(pl.col(column)).mean()).item()) if frame.height else None

    subtopics = posts["subtopics"].explode(empty_as_null=False)
    ours: dict[str, float | None] = {
        "questions": posts.height,
        "answers": answers.height,
        "main topics": posts["topic"].drop_nulls().n_unique(),
        "subtopics": subtopics.n_unique(),
        "characters a question": mean(posts, "title"),
        "characters a description": mean(posts, "description"),
        "characters an answer": mean(answers, "t"),
        "answers a question": round(answers.height / posts.height, 2) if posts.height else None,
    }
    return PaperTable(
        "E Table 1: the data set",
        ("criterion", "ours", "E: PsyQA", "E: Empathy-QA"),
        [(name, ours[name], *_E_TABLE_1[name]) for name in _E_TABLE_1],
        {
            (place, column)
            for place, name in enumerate(_E_TABLE_1)
            for column in (2, 3)
            if name == "answers a question" and not _quotient_holds(column - 2)
        },
        ["Characters: white space not counted. A label that the taxonomy does not list counts as a subtopic."],
    )


def _quotient_holds(column: int) -> bool:
    """Whether E's answers a question is its answers by its questions."""
    questions, answers, quotient = (_E_TABLE_1[name][column] for name in ("questions", "answers", "answers a question"))
    return None in (questions, answers, quotient) or round((answers or 0) / (questions or 1), 2) == quotient


def _share(count: int, total: int) -> float | None:
    return round(100 * count / total, 2) if total else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
