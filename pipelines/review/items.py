"""What people judge, item by item: chains with their question (E), candidates with their dialogue (C), and answers of
several models to one question (M, E).

An item is the same for everybody; in which order somebody sees its texts is drawn in `pipelines.review.tasks`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import polars as pl
from pydantic import BaseModel, ConfigDict, Field

from pipelines.review.contract import Kind, Text, hash_of
from pipelines.split.eligible import Eligibility
from schemas.dropped import Lost, Row
from schemas.ids import candidate_id, unit_interval
from schemas.reasoning import CER, CER_STEPS, Cer

# E §3.2: so many reviewed chains were kept.
REVIEWED_CHAINS = 200
LEVELS = ("L1", "L2", "L3", "L4")
# The field of each kind whose texts are shown in an order of their own to everybody.
SHUFFLED: dict[Kind, str] = {"cer": "replies", "rank": "answers", "compare": "answers"}

# From the rows of a candidate and of its round to the hash that `cer_labels` knows it by.
CandidateHash = Callable[[Mapping[str, Any], Mapping[str, Any]], str]
Items = tuple[list["Item"], list[Lost]]


@dataclass(frozen=True, slots=True)
class Item:
    """What is judged. `hash` tells its content from any other of its id; `models` answered, in the item's own order;
    `answer_id` is that of the human answer that a chain leads to.
    """

    kind: Kind
    item_id: str
    hash: str
    content: Mapping[str, Any]
    models: tuple[str, ...] = ()
    answer_id: str | None = None

    @property
    def n_shuffled(self) -> int:
        """How many texts are shown in an order that is drawn; 0 where none is."""
        return len(self.content[SHUFFLED[self.kind]]) if self.kind in SHUFFLED else 0

    def shown(self, order: Sequence[int]) -> dict[str, Any]:
        """The content as it is shown: of the shuffled texts number `order[0]` first, and so on."""
        if self.kind not in SHUFFLED:
            return dict(self.content)
        name = SHUFFLED[self.kind]
        return {**self.content, name: [self.content[name][place] for place in order]}


def drawn(items: Iterable[Item], size: int | None, seed: int) -> list[Item]:
    """`size` items, or all of them, in the order of a uniform draw by seed and id: a greater size keeps what a smaller
    one has drawn.
    """
    in_order = sorted(items, key=lambda item: (unit_interval(seed, "review", item.kind, item.item_id), item.item_id))
    return in_order[:size]


def chain_hash(chain: Mapping[str, Any], question: str) -> str:
    """The hash of a chain, a row of `coe_chains`, with its question and its answer: what a review is tied to."""
    return hash_of("coe", _of_chain(chain, question))


def _of_chain(chain: Mapping[str, Any], question: str) -> dict[str, str]:
    return {"question": question, "answer": chain["answer"], **{level: chain[level] for level in LEVELS}}


def coe_items(chains: pl.DataFrame, posts: pl.DataFrame, splits: pl.DataFrame, topics: pl.DataFrame | None) -> Items:
    """E §3.2: the chains that may teach, each with its question.

    Takes rows of `coe_chains`, `unique_posts`, `splits` and, where there is any, `topics`.

    Returns the items and, in the unit `post`, what is left out: no_question, no_answer (the post has lost it),
    not_train, under_18, risk, not_relevant.

    Raises RequestError for a post whose group has no split.
    """
    eligibility = Eligibility(splits, topics)
    post_of = {row["post_id"]: row for row in posts.iter_rows(named=True)}
    items: list[Item] = []
    lost: list[Lost] = []
    for chain in chains.iter_rows(named=True):
        post_id = chain["post_id"]
        if (post := post_of.get(post_id)) is None:
            lost.append(Lost("post", post_id, "no_question"))
        elif chain["answer_id"] not in {answer["answer_id"] for answer in post["answers"]}:
            lost.append(Lost("post", post_id, "no_answer"))
        elif (exclusion := eligibility.exclusion_reason(post_id, post)) is not None:
            lost.append(Lost("post", post_id, *exclusion))
        else:
            content = _of_chain(chain, post["text"])
            items.append(Item("coe", post_id, hash_of("coe", content), content, answer_id=chain["answer_id"]))
    return items, lost


def cer_items(candidates: pl.DataFrame, turns: pl.DataFrame, splits: pl.DataFrame, hash_: CandidateHash) -> Items:
    """C: the candidates of every split (held-out ones measure reward models), each with its dialogue.

    Text 0 of the two replies is the source's, the reference; text 1 the candidate's.

    Args:
        candidates: Rows of `cer_candidates`; `turns`: of `sampled_turns`; `splits`: of `splits`.
        hash_: Gives the hash of a candidate and its round: that of `cer_labels`.

    Returns the items and, in the unit `candidate`, what is left out: no_round, under_18, risk.
    """
    eligibility = Eligibility(splits)
    turn_of = {(row["dialogue_id"], row["round"]): row for row in turns.iter_rows(named=True)}
    items: list[Item] = []
    lost: list[Lost] = []
    for row in candidates.iter_rows(named=True):
        item_id = candidate_id(row["dialogue_id"], row["round"], row["candidate"])
        if (turn := turn_of.get((row["dialogue_id"], row["round"]))) is None:
            lost.append(Lost("candidate", item_id, "no_round"))
        elif (exclusion := eligibility.unfit(item_id, turn)) is not None:
            lost.append(Lost("candidate", item_id, *exclusion))
        else:
            items.append(Item("cer", item_id, hash_(row, turn), _of_candidate(row, turn)))
    return items, lost


def _of_candidate(candidate: Row, turn: Row) -> dict[str, Any]:
    record = Cer(**{name: candidate[name] for name in Cer.model_fields})
    sections = CER.read(record.render())  # each step in the dialogue's language: closed labels, then the free text
    return {
        "history": [{"role": one["role"], "text": one["text"]} for one in turn["history"]],
        "steps": [sections[step] for step in CER_STEPS],
        "replies": [turn["reference"], candidate["response"]],
    }


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ModelAnswer(_Part):
    """What a model answered. Nobody who judges sees its name."""

    model: Text
    text: Text


class ModelQuestion(_Part):
    """A question, and the answers that are to be ranked or compared: a line of the file that is handed in."""

    question_id: Text
    question: Text
    answers: Annotated[list[ModelAnswer], Field(min_length=2)]


def question_items(kind: Kind, questions: Iterable[ModelQuestion]) -> list[Item]:
    """M, E: questions with answers of several models, `rank` or `compare`."""
    items = []
    for one in questions:
        content = {"question": one.question, "answers": [answer.text for answer in one.answers]}
        models = tuple(answer.model for answer in one.answers)
        items.append(Item(kind, one.question_id, hash_of(kind, content | {"models": models}), content, models))
    return items
