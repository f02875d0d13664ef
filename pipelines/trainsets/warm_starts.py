"""The warm starts of policies before their reinforcement: `sft_coe` (E) and `sft_cer` (C).

Behind the prompts of `grpo_coe` and `grpo_cer`, message by message, so that a policy is asked as it was taught.
Training rows alone: a chain imitates (DESIGN §2.8).
"""

import datetime as dt
from collections.abc import Sequence

import polars as pl

from pipelines.core.stage import stage
from pipelines.llm.tasks import Result, rows
from pipelines.review.items import LEVELS, chain_hash
from pipelines.rewrite.scripts import label_id
from pipelines.settings import Settings
from pipelines.split.eligible import Eligibility
from pipelines.trainsets.labelled import Labelled, labelled
from pipelines.trainsets.prompt_sets import cer_system_prompt, chat_prompt, coe_system_prompt
from schemas.dropped import Lost, Row, dropped
from schemas.labels import MATCHING
from schemas.reasoning import Coe, Reasoning
from schemas.training import SftCer, SftCoe

_STRICTNESS = ("accept", "mend", "reject")
_NEVER = dt.datetime.min.replace(tzinfo=dt.UTC)


def coe_samples(
    chains: pl.DataFrame,
    posts: pl.DataFrame,
    splits: pl.DataFrame,
    reviews: pl.DataFrame,
    *,
    only_reviewed: bool = False,
) -> Result:
    """E §3.2: the question, and the chain that leads to the human answer, as professionals left it.

    Args:
        chains: Rows of `coe_chains`; `posts`: of `unique_posts`, with the questions; `splits`: of `splits`.
        reviews: Rows of `coe_reviews`; one of another version of a chain counts for nothing.
        only_reviewed: Whether a chain that nobody has reviewed is left out (E).

    Returns:
        `(kept, dropped)`. Drops are in the unit `post`: no_question (the post is there no more), not_train, under_18,
        risk, rejected, not_reviewed.

    Raises RequestError for a post whose group has no split.
    """
    eligibility = Eligibility(splits)
    verdicts = _verdicts(reviews)
    post_of = {row["post_id"]: row for row in posts.iter_rows(named=True)}
    system = coe_system_prompt()
    kept: list[Row] = []
    lost: list[Lost] = []
    for chain in chains.iter_rows(named=True):
        row_id, post = chain["post_id"], post_of.get(chain["post_id"])
        if post is None:
            lost.append(Lost("post", row_id, "no_question", "the post is there no more"))
            continue
        if (exclusion := eligibility.exclusion_reason(row_id, post)) is not None:
            lost.append(Lost("post", row_id, *exclusion))
            continue
        review = verdicts.get((row_id, chain_hash(chain, post["text"])))
        if review is None and only_reviewed:
            lost.append(Lost("post", row_id, "not_reviewed"))
            continue
        if review is not None and review["verdict"] == "reject":
            lost.append(Lost("post", row_id, "rejected", "by a professional"))
            continue
        prompt = chat_prompt(system, [{"role": "seeker", "text": post["text"]}])
        edits = {} if review is None else {level: review[level] for level in LEVELS if review[level] is not None}
        answer = Coe(**{name: chain[name] for name in Coe.model_fields} | edits)
        kept.append(
            {
                "row_id": f"{row_id}/sft_coe",
                "made_from": row_id,
                "group_id": post["group_id"],
                "split": "train",
                "variant": "none",
                "providers": [chain["provider"]],
                "messages": [*prompt, _reply(answer)],
                "reviewed": review is not None,
            }
        )
    return rows(SftCoe, kept), dropped("sft_coe", lost)


def _verdicts(reviews: pl.DataFrame) -> dict[tuple[str, str], Row]:
    """The review that decides of each chain, by post and hash: of several the strictest, of equally strict ones the
    last. A review of a chain whose right verdict is known decides nothing.
    """
    in_order = sorted(
        reviews.filter(role="annotator").iter_rows(named=True),
        key=lambda row: (_STRICTNESS.index(row["verdict"]), row["at"] is not None, row["at"] or _NEVER, row["task_id"]),
    )
    return {(row["post_id"], row["labelled"]): row for row in in_order}


def cer_samples(candidates: pl.DataFrame, labels: Sequence[Labelled], lost: Sequence[Lost]) -> Result:
    """C: a round, and a candidate whose three steps people judged right and whose response matches the reference.

    Without labels there is none: a chain that nobody vouches for is dropped, since what a policy imitates is what it
    will think; training without people is reinforcement from the start (`grpo_cer`). Of the chat the last reply alone
    is to be learnt: those of the source, before it, are not in the format.

    Takes rows of `cer_candidates`, and what `labelled` gives, rewritten candidates among it.

    Returns:
        `(kept, dropped)`. Drops are in the unit `candidate`, rewritten ones included: not_labelled, those of
        `labelled`, not_train (a held-out round), step_wrong (with the steps), not_preferred (with the preference).
    """
    made = set(map(label_id, candidates.iter_rows(named=True)))
    known = {one.row_id for one in labels} | {one.row_id for one in lost}
    out = [Lost("candidate", row_id, "not_labelled") for row_id in sorted(made - known)]
    # A label whose candidate is gone is no candidate.
    out += [one for one in lost if one.reason != "no_candidate" or one.row_id in made]
    kept: list[Row] = []
    for one in labels:
        wrong = [str(step) for step, right in enumerate(one.right, 1) if not right]
        if one.split != "train":
            out.append(Lost("candidate", one.row_id, "not_train", one.split))
        elif wrong:
            out.append(Lost("candidate", one.row_id, "step_wrong", ", ".join(wrong)))
        elif one.preference not in MATCHING:
            out.append(Lost("candidate", one.row_id, "not_preferred", one.preference))
        else:
            prompt = chat_prompt(cer_system_prompt(one.candidate.lang), one.history)
            messages = [*prompt, _reply(one.candidate)]
            kept.append({"row_id": f"{one.row_id}/sft_cer", "messages": messages, **one.columns()})
    return rows(SftCer, kept), dropped("sft_cer", out)


def _reply(record: Reasoning) -> dict[str, str]:
    return {"role": "assistant", "content": record.render()}


@stage(
    "sft_coe",
    group="training",
    reads=("review.only_reviewed",),
    units={"sft_coe": {"post": ("coe_chains",)}},
    optional_parents=("coe_reviews",),
)
def make_sft_coe(
    coe_chains: pl.DataFrame,
    unique_posts: pl.DataFrame,
    splits: pl.DataFrame,
    coe_reviews: pl.DataFrame,
    settings: Settings,
) -> Result:
    """`sft_coe`: what E's warm start learns."""
    only_reviewed = settings.review.only_reviewed
    return coe_samples(coe_chains, unique_posts, splits, coe_reviews, only_reviewed=only_reviewed)


@stage(
    "sft_cer",
    group="training",
    units={"sft_cer": {"candidate": ("cer_candidates", "rewritten_rounds")}},
    optional_parents=("cer_labels", "rewritten_rounds"),
)
def make_sft_cer(
    sampled_turns: pl.DataFrame,
    splits: pl.DataFrame,
    cer_candidates: pl.DataFrame,
    cer_labels: pl.DataFrame,
    rewritten_rounds: pl.DataFrame,
) -> Result:
    """`sft_cer`: what C's warm start learns."""
    return cer_samples(cer_candidates, *labelled(sampled_turns, splits, cer_candidates, cer_labels, rewritten_rounds))
