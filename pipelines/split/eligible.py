"""Which posts, rounds and answers may be part of a set that something learns from (DESIGN §2.8), and of which topic."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import polars as pl

from pipelines.errors import RequestError
from schemas.dropped import Lost, Row
from schemas.ids import unit_interval
from schemas.taxonomy import CATEGORY_OF

Reason = tuple[str, str | None]


class Eligibility:
    """The rows that may teach: of the train split, by nobody under 18, without signs of risk, and relevant.

    Signs of risk are those of the rules and those of the second opinion of `topics`: either of them is enough, and
    neither clears what the other one saw.
    """

    def __init__(self, splits: pl.DataFrame, topics: pl.DataFrame | None = None) -> None:
        self._split_of: dict[str, str] = dict(splits.select("group_id", "split").iter_rows())
        opinions = [] if topics is None else topics.select("row_id", "risk", "relevant").iter_rows(named=True)
        # Those that have something against a row.
        self._opinions: dict[str, Row] = {row["row_id"]: row for row in opinions if row["risk"] or not row["relevant"]}

    def exclusion_reason(self, row_id: str, row: Row) -> Reason | None:
        """Why a row of posts or of sampled rounds may not teach, as reason and detail; None where it may.

        Raises RequestError for a row whose group has no split.
        """
        split = self.split(row_id, row)
        return ("not_train", split) if split != "train" else self.unfit(row_id, row)

    def split(self, row_id: str, row: Row) -> str:
        """The split of a row, by its group. Raises RequestError where that has none."""
        split = self._split_of.get(row["group_id"])
        if split is None:
            raise RequestError(
                f"the group of {row_id} has no split",
                where="splits",
                hint="an older version of it was promoted: gongqing refresh, without --select",
            )
        return split

    def unfit(self, row_id: str, row: Row) -> Reason | None:
        """Why a row is out of what trains and of what that is measured on, whatever its split; None where it is not."""
        opinion = self._opinions.get(row_id)
        if (reason := exclusion(row)) is not None or opinion is None:
            return reason
        if opinion["risk"]:
            return "risk", f"second opinion: {', '.join(opinion['risk'])}"
        return None if opinion["relevant"] else ("not_relevant", "by topics")

    def posts(self, posts: pl.DataFrame) -> tuple[pl.DataFrame, list[Lost]]:
        """The rows of `unique_posts` that may teach, and why the others may not.

        Raises RequestError as `exclusion_reason` does.
        """
        eligible: list[bool] = []
        lost: list[Lost] = []
        for row in posts.select("post_id", "group_id", "under_18", "risk").iter_rows(named=True):
            exclusion = self.exclusion_reason(row["post_id"], row)
            eligible.append(exclusion is None)
            if exclusion is not None:
                lost.append(Lost("post", row["post_id"], *exclusion))
        return posts.filter(pl.Series(eligible, dtype=pl.Boolean)), lost


def exclusion(row: Row) -> Reason | None:
    """Why what somebody wrote is out of everything that trains, whatever its split; None where it is not."""
    if row["under_18"]:
        return "under_18", "the writer says to be younger than 18"
    if row["risk"]:
        return "risk", ", ".join(f"{sign['kind']}/{sign['rule']}" for sign in row["risk"])
    return None


def lacking_media(row: Row, media: Literal["text", "drop"]) -> Reason | None:
    """Why a sampled round cannot be read as text alone; None where it can. `media` is the setting under [prompts]."""
    if row["needs_media"]:
        return "needs_media", "the history holds a clip for which text does not do"
    if row["has_media"] and media == "drop":
        return "needs_media", "the history holds a clip, and the setting prompts.media drops it"
    return None


Answer = Mapping[str, Any]


class Reference(NamedTuple):
    """The answer that was drawn: its text, its id, how likely it was drawn. An empty text and None where none was."""

    text: str
    answer_id: str | None
    probability: float | None


def may_teach(answer: Answer, *, allow_risk: bool = False) -> bool:
    """Whether an answer may be a reference: by nobody under 18, and of no risk unless that is allowed."""
    return not answer["under_18"] and (allow_risk or not answer["risk"])


def answers_with(*fields: str) -> pl.Expr:
    """The answers of posts with these fields alone: what else they hold takes its time to become a row of Python."""
    return pl.col("answers").list.eval(pl.struct(pl.element().struct.field(*fields)))


def drawable_answers(post: Row, human_only: bool) -> list[Row] | Lost:
    """The answers of a row of `unique_posts` that may teach, or why the post has none.

    `human_only`: the answers of a data set count only where the set says that people wrote them.
    """
    if human_only and post["origin"] != "human":
        return Lost("post", post["post_id"], "no_human_answer", f"written by: {post['origin']}")
    if answers := [answer for answer in post["answers"] if may_teach(answer)]:
        return answers
    lacks = "a question without an answer" if not post["answers"] else "no answer without risk, by an adult"
    return Lost("post", post["post_id"], "no_human_answer", lacks)


def draw_reference(post_id: str, answers: Sequence[Answer], seed: int = 0) -> Reference:
    """The answer that is the ground truth of a post, drawn among `answers`.

    Uniform among the professionals' answers, or among all where no professional answered (papers.md §4). The draw
    follows from `seed` and `post_id`, so that the prompt sets and the chains draw the same answer of the same ones.
    """
    chosen = [answer for answer in answers if answer["author_role"] == "professional"] or answers
    if not chosen:
        return Reference("", None, None)
    answer = chosen[int(unit_interval(seed, "reference", post_id) * len(chosen))]
    return Reference(answer["text"], answer["answer_id"], 1 / len(chosen))


def with_topics(posts: pl.DataFrame, topics: pl.DataFrame) -> pl.DataFrame:
    """Rows of `unique_posts`, with the topic and subtopic that `topics` gives where their source gives no topic of the
    taxonomy.
    """
    judged = topics.select(post_id="row_id", judged="topic", narrower="subtopic")
    listed = pl.col("topic").is_in(list(CATEGORY_OF))
    with_narrower = pl.concat_list("subtopics", "narrower").list.unique(maintain_order=True)
    added = pl.col("narrower").is_not_null() & ~listed.fill_null(value=False)
    return (
        posts.join(judged, on="post_id", how="left", maintain_order="left")
        .with_columns(
            topic=pl.coalesce(pl.when(listed).then("topic"), "judged", "topic"),
            subtopics=pl.when(added).then(with_narrower).otherwise("subtopics"),
        )
        .drop("judged", "narrower")
    )
