"""Openings and closings of answers that are repeated over the corpus: signatures, greetings, forms of a site.

A formula stands at either end of answers to many different questions, beside many different neighbouring clauses
(accessor variety, Feng et al. 2004): a copied answer always has the same, and so has half a formula.
"""

from functools import partial
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipelines.core.spill import spilled_by_slices
from pipelines.text.clauses import MARKS, clauses, ends_strongly
from pipelines.text.keys import n_chars
from schemas.dropped import drops
from schemas.posts import EDIT, CleanPosts

# What is recorded of clauses that were cut out of answers: schemas.posts.EDIT.
EDITS = pl.Schema({"row_id": pl.String, "rule": pl.String, "removed": pl.String})

# Words that lead over to what has been cut off.
_LEADING_OVER = (
    rf"(^|[{MARKS}])\s*(?:最后|最后的最后|总之|总而言之|无论如何|不管怎么?样|另外|还有|以上|ε?我在)[，,：:\s]*$"
)


_SIDES = ("opening", "closing")
_FIELDS = [field.name for field in CleanPosts.columns()["answers"].dtype.inner.fields]  # type: ignore[attr-defined]

# A formula is so many clauses at most.
_MOST_CLAUSES = 4
# How many characters of each end of an answer are looked at.
_REACH = 100
_LEAST = 3
# The least share of its occurrences as separate sentences: what mostly is a part of one cannot be cut out of it.
_ON_ITS_OWN = 1 / 3
_PARTICLES = "呀啊哦呢吧喔哟噢哈啦嘛"

_EDIT = pl.struct("row_id", "rule", "removed").cast(EDIT.dtype)


def cut_formulas(
    posts: pl.DataFrame, min_answer_chars: int, scratch: Path | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Posts whose answers have lost their formulas; an answer that has no more characters left than that is dropped.

    Args:
        posts: Rows of `clean_posts`.
        min_answer_chars: White space is not counted.
        scratch: Where to keep what is read of all answers (`pipelines.core.spill`).

    Returns `(posts, dropped)`: all posts, with what was cut among their `edits`, and the answers that are too short.
    """
    answers = posts.select("post_id", "source", "answers").explode("answers", empty_as_null=False).unnest("answers")
    came = answers.select("author", "source", "text", row_id="answer_id", group="post_id")
    plain, edits = without_signatures(came, scratch)
    if edits.is_empty():
        return posts, drops(answers.clear(), "unique_posts", "answer", "answer_id", pl.lit(""), pl.lit(""))
    left = answers.with_columns(text=plain["text"]).with_row_index("row")
    cut = left.filter(pl.col("answer_id").is_in(edits["row_id"].implode()))
    short = cut.with_columns(n_chars=n_chars(pl.col("text"))).filter(pl.col("n_chars") <= min_answer_chars)
    stays = left.join(short, on="row", how="anti", maintain_order="left")
    known = posts.select(edits=pl.col("edits").explode(empty_as_null=False)).unnest("edits")
    of_post = stays.select("post_id", row_id="answer_id")
    edited = of_post.join(pl.concat([known, edits]), on="row_id", maintain_order="left_right")
    changed = {
        "answers": stays.group_by("post_id", maintain_order=True).agg(answers=pl.struct(_FIELDS)),
        "edits": edited.group_by("post_id", maintain_order=True).agg(
            edits=pl.struct("row_id", "rule", "removed").cast(EDIT.dtype)
        ),
    }
    for column, lists in changed.items():
        empty = pl.lit(pl.Series([[]], dtype=posts.schema[column]))
        joined = posts.drop(column).join(lists, on="post_id", how="left", maintain_order="left")
        posts = joined.with_columns(pl.col(column).fill_null(empty)).select(posts.columns)
    too_short = pl.format("{} characters", pl.col("n_chars"))
    return posts, drops(short, "unique_posts", "answer", "answer_id", pl.lit("too_short"), too_short)


class Threshold(NamedTuple):
    """A formula of at least `n_chars` stands under at least `n_questions` and this share of the questions."""

    n_chars: int
    n_questions: int
    share: float


# A short formula must be more frequent than a long one. A writer's signature is weighed against the writer's answers.
OF_ALL = (Threshold(12, 3, 0.0002), Threshold(6, 5, 0.001), Threshold(4, 5, 0.02))
OF_ONE_WRITER = (Threshold(4, 3, 0.05),)


def without_signatures(answers: pl.DataFrame, scratch: Path | None = None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The answers without openings and closings that are repeated under different questions.

    In rounds until there are no more: what stands behind a formula comes to an end once it is cut, and may be one
    itself.

    Args:
        answers: `row_id`, `group` (the question), `author` and `source` (each may be null), `text`.
        scratch: As of `cut_formulas`.

    Returns `(answers, edits)`: the same rows with `text` cut, and EDITS with the rule "signature", one row a cut.
    """
    left = _Answers(answers, scratch)
    cuts = [pl.DataFrame(schema={"row": pl.UInt32, "removed": pl.String})]
    known: list[pl.DataFrame] = []
    while not (formulas := pl.concat([left.formulas(side) for side in _SIDES])).is_empty():
        known.append(formulas)
        cuts += left.cut(formulas, pl.concat(known))
    numbered = answers.select("row_id").with_row_index("row")
    edits = pl.concat(cuts).join(numbered, on="row", maintain_order="left")
    return (
        answers.with_columns(left.texts.sort("row")["text"]),
        edits.select("row_id", rule=pl.lit("signature"), removed="removed"),
    )


class _Answers:
    """Answers that are being cut: `texts`, and the clauses at each of their `ends`, kept up with them."""

    def __init__(self, answers: pl.DataFrame, scratch: Path | None) -> None:
        owner = pl.concat_str("source", "author", separator=":")
        self.texts = answers.select("group", "text", owner=owner).with_row_index("row")
        self.ends = {side: spilled_by_slices(partial(_ends, side=side), self.texts, scratch) for side in _SIDES}
        self._n_questions = self.texts["group"].n_unique()
        of_writers = self.texts.drop_nulls("owner").group_by("owner")
        self._of_writers = of_writers.agg(n_of_writer=pl.col("group").n_unique())

    def formulas(self, side: str) -> pl.DataFrame:
        """The formulas at one end of the answers as they are now: `side`, `key`, `edges` (the keys of the outermost
        clause), `owner` (whose signature it is, null for everybody's).
        """
        ends = self.ends[side]
        # What ends with a rare clause is rare: only the others are looked at any further.
        edges = ends.group_by("edge").agg(seen=pl.col("group").n_unique()).filter(pl.col("seen") >= _LEAST)
        candidates = _candidates(ends.join(edges, on="edge", how="semi"), side)
        of_all = _counted(candidates, ["key"]).filter(_often(OF_ALL, pl.lit(self._n_questions)))
        of_one = _counted(candidates.drop_nulls("owner"), ["key", "owner"]).join(self._of_writers, on="owner")
        of_one = of_one.filter(_often(OF_ONE_WRITER, pl.col("n_of_writer"))).join(of_all, on="key", how="anti")
        columns = ("side", "key", "edges", "owner")
        of_all = of_all.with_columns(owner=pl.lit(None, pl.String))
        return pl.concat([frame.with_columns(side=pl.lit(side)).select(columns) for frame in (of_all, of_one)])

    def cut(self, formulas: pl.DataFrame, known: pl.DataFrame) -> list[pl.DataFrame]:
        """Cuts `formulas` off all answers, then all `known` ones off these until none is left: `row`, `removed`."""
        cuts, changed = [], self.texts.select("row")
        while not changed.is_empty():
            made = []
            for side in _SIDES:
                ends = self.ends[side].join(changed, on="row", how="semi")
                made.append(self._cut(ends, formulas.filter(side=side), side))
            cuts += made
            changed, formulas = pl.concat(made).select("row").unique(), known
        return cuts

    def _cut(self, ends: pl.DataFrame, formulas: pl.DataFrame, side: str) -> pl.DataFrame:
        """Cuts the longest formula off each of the answers that have one at this end."""
        edges = formulas.select(edge="edges").explode("edge")
        candidates = _candidates(ends.join(edges, on="edge", how="semi"), side)
        matches = candidates.join(formulas.select("key", of="owner"), on="key", maintain_order="left")
        matches = matches.filter(pl.col("of").is_null() | (pl.col("of") == pl.col("owner")))
        longest = matches.select("row", "words").unique("row", keep="first", maintain_order=True)
        cut = longest.join(self.texts, on="row", maintain_order="left")
        text, n_cut = pl.col("text"), pl.col("words").str.len_chars()
        if side == "opening":
            rest = text.str.slice(n_cut).str.strip_chars_start(f"{MARKS}、：: ").str.strip_chars()
            cut = cut.with_columns(text=rest, removed="words")
        else:
            # The word that led over to what is cut ("最后，…") goes with it, and a full stop replaces a comma.
            rest = text.str.head(text.str.len_chars() - n_cut).str.replace(_LEADING_OVER, "${1}")
            whole = rest.str.strip_chars().str.replace(r"[，,、；;：:\s]+$", "。").str.replace(r"^。$", "")
            cut = cut.with_columns(text=whole, removed=text.str.slice(rest.str.len_chars()))
        changed = cut.select(self.texts.columns)
        self.texts = pl.concat([self.texts.join(changed, on="row", how="anti"), changed])
        for end, outer in self.ends.items():
            self.ends[end] = pl.concat([outer.join(changed, on="row", how="anti"), _ends(changed, end)])
        return cut.select("row", pl.col("removed").str.strip_chars())


def _ends(answers: pl.DataFrame, side: str) -> pl.DataFrame:
    """The outermost clauses of each answer, from the end inwards, their `keys`, and how many of them are `whole`."""
    text = pl.col("text")
    near = clauses(text.str.head(_REACH)) if side == "opening" else clauses(text.str.tail(_REACH)).list.reverse()
    reaches_over = (text.str.len_chars() > _REACH).cast(pl.Int64)
    return (
        answers.select(
            "row", "group", "owner", clauses=near.list.head(_MOST_CLAUSES + 1), whole=near.list.len() - reaches_over
        )
        .with_columns(keys=pl.col("clauses").list.eval(_letters(pl.element())))
        .with_columns(edge=pl.col("keys").list.first())
    )


def _candidates(ends: pl.DataFrame, side: str) -> pl.DataFrame:
    """What the outermost clauses of each answer are, one to four of them, the most first."""
    return pl.concat([_outermost(ends, side, n_clauses) for n_clauses in range(_MOST_CLAUSES, 0, -1)])


def _outermost(ends: pl.DataFrame, side: str, n_clauses: int) -> pl.DataFrame:
    clause, key = pl.col("clauses").list, pl.col("keys").list
    words, letters = clause.head(n_clauses), key.head(n_clauses)
    if side == "closing":
        words, letters = words.list.reverse(), letters.list.reverse()
    boundary = clause.get(n_clauses - 1) if side == "opening" else clause.get(n_clauses, null_on_oob=True)
    return (
        ends.filter(pl.col("whole") >= n_clauses)
        .filter(~key.get(n_clauses - 1).str.contains(rf"^[{_PARTICLES}]+$"))  # 哈哈 belongs to what follows
        .select(
            "row",
            "group",
            "owner",
            "edge",
            key=letters.list.join("").str.replace(rf"[{_PARTICLES}]+$", ""),
            words=words.list.join(""),
            neighbour=key.get(n_clauses, null_on_oob=True).fill_null(pl.format("\n{}", "row")),
            alone=ends_strongly(boundary).fill_null(True),
        )
    )


def _letters(words: pl.Expr) -> pl.Expr:
    """Letters and digits in lower case; 您 read as 你, placeholders without their number."""
    numberless = words.str.replace_all(r"\[(\p{Han}+)\d+\]", "[$1]")
    return (
        numberless.str.replace_all(r"[^\p{L}\p{N}]+", "").str.to_lowercase().str.replace_all("您", "你", literal=True)
    )


def _counted(candidates: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Each candidate with how often it occurs: under how many questions, beside how many neighbours, how much alone."""
    return candidates.group_by(by).agg(
        edges=pl.col("edge").unique(),
        n_questions=pl.col("group").n_unique(),
        variety=pl.col("neighbour").n_unique(),
        alone=pl.col("alone").mean(),
    )


def _often(thresholds: tuple[Threshold, ...], n_questions: pl.Expr) -> pl.Expr:
    n_chars = pl.col("key").str.len_chars()
    seen = pl.min_horizontal("n_questions", "variety")
    enough = pl.any_horizontal(
        (n_chars >= one.n_chars) & (seen >= one.n_questions) & (seen >= one.share * n_questions) for one in thresholds
    )
    return enough & (pl.col("alone") >= _ON_ITS_OWN)
