"""Which answers of a post may teach, and the one that is drawn for it (papers.md §4)."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from schemas.dropped import Lost, Row
from schemas.ids import unit_interval

Answer = Mapping[str, Any]


class Reference(NamedTuple):
    """The answer that was drawn: its text, its id, how likely it was drawn. An empty text and None where none was."""

    text: str
    answer_id: str | None
    probability: float | None


def may_teach(answer: Answer, *, allow_risk: bool = False) -> bool:
    """Whether an answer may be a reference: by nobody under 18, and of no risk unless that is allowed."""
    return not answer["under_18"] and (allow_risk or not answer["risk"])


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
