"""The rounds to train on, drawn from every dialogue."""

from itertools import pairwise
from typing import Any

import polars as pl

from pipelines.core.stage import stage
from pipelines.settings import Sampling, Settings
from pipelines.split.gaussian import round_probabilities, sample_rounds
from schemas.dropped import Lost, dropped
from schemas.ids import round_id
from schemas.training import SampledTurns

STAGE = "sampled_turns"

_COPIED = ("dialogue_id", "lang", "source", "topic", "situation", "risk", "under_18", "group_id")


def sample_turns(
    dialogues: pl.DataFrame | pl.LazyFrame, sampling: Sampling | None = None, seed: int = 0
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The sampled rounds of each dialogue, with their history.

    Args:
        dialogues: Rows of `unique_dialogues`.
        sampling: How many rounds a dialogue gives, and where the law sits.
        seed: The draw follows from it and from the dialogue's id.

    Returns `(kept, dropped)`: rows of `sampled_turns`, and drops in the unit `round` for the rounds not drawn.
    """
    sampling = sampling or Sampling()
    kept: list[dict[str, Any]] = []
    passed_over: list[Lost] = []
    for row in dialogues.lazy().collect().iter_rows(named=True):
        rounds = answered_rounds(row["turns"])
        law = round_probabilities(len(rounds), centred=sampling.centred)
        drawn = set(sample_rounds(len(rounds), sampling.n_samples, row["dialogue_id"], seed, centred=sampling.centred))
        for number, place in enumerate(rounds, 1):
            if number in drawn:
                kept.append(_sampled(row, number, place, float(law[number - 1]), len(rounds)))
            else:
                detail = f"{len(drawn)} of {len(rounds)} rounds were drawn"
                passed_over.append(Lost("round", round_id(row["dialogue_id"], number), "not_sampled", detail))
    return pl.DataFrame(kept, schema=SampledTurns.polars_schema()), dropped(STAGE, passed_over)


def answered_rounds(turns: list[dict[str, Any]]) -> list[int]:
    """The places of the seeker turns that a supporter turn answers, in order.

    What a supporter says before the seeker's first turn opens no round; a last seeker turn without an answer is none.
    """
    return [
        place
        for place, (turn, after) in enumerate(pairwise(turns))
        if turn["role"] == "seeker" and after["role"] == "supporter"
    ]


def _sampled(row: dict[str, Any], number: int, place: int, probability: float, n_rounds: int) -> dict[str, Any]:
    history, reply = row["turns"][: place + 1], row["turns"][place + 1]
    return {
        **{name: row[name] for name in _COPIED},
        "round": number,
        "n_rounds": n_rounds,
        "probability": probability,
        "history": [{"role": turn["role"], "text": turn["text"]} for turn in history],
        "reference": reply["text"],
        "reference_origin": reply["origin"],
        "strategies": reply["strategies"],
        "emotion": history[-1]["emotion"],
        "needs_media": any(turn["media"] for turn in history),
    }


@stage(
    "sampled_turns",
    group="sample",
    reads=("sampling", "seed"),
    units={"sampled_turns": {"round": ("coherent_dialogues",)}},
)
def make_sampled_turns(coherent_dialogues: pl.DataFrame, settings: Settings) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`sampled_turns`: the rounds drawn from each dialogue."""
    return sample_turns(coherent_dialogues, settings.sampling, settings.seed)
