"""The rounds to train on, drawn from every dialogue, and the same rounds of what was rewritten from it."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import polars as pl

from pipelines.core.stage import stage
from pipelines.settings import Sampling, Settings
from pipelines.split.gaussian import round_probabilities, sample_rounds
from schemas.dropped import Lost, Row, dropped
from schemas.ids import round_id
from schemas.table import Table
from schemas.training import SampledRewrites, SampledTurns

_COPIED = ("dialogue_id", "lang", "source", "topic", "situation", "risk", "under_18", "group_id")
_OF_REWRITE = ("source_dialogue_id", "variant")


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
    rows = dialogues.lazy().collect().iter_rows(named=True)
    rounds = (one for row in rows for one in _rounds(row, row["dialogue_id"], sampling, seed))
    return _result("sampled_turns", SampledTurns, rounds)


def sample_rewrites(
    rewritten: pl.DataFrame, dialogues: pl.DataFrame, sampling: Sampling | None = None, seed: int = 0
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rounds of rewritten dialogues that their sources give: of D, R and P the same ones, drawn once.

    Args:
        rewritten: Rows of `rewritten_dialogues`; `dialogues`: of `coherent_dialogues`, their sources.
        sampling, seed: Those of the sources; `sampling.variants` names the variants that are wanted.

    Returns `(kept, dropped)`: rows of `sampled_rewrites`, with the group of their source and its need of clips, and
    drops in the unit `round`: not_sampled, variant_not_wanted, and source_lost, where the source is gone or has other
    turns.
    """
    sampling = sampling or Sampling()
    source_of = {row["dialogue_id"]: row for row in dialogues.iter_rows(named=True)}

    def rounds(row: Row) -> Iterator[Row | Lost]:
        source = source_of.get(row["source_dialogue_id"])
        if row["variant"] not in sampling.variants:
            yield from _lost(row, "variant_not_wanted", row["variant"])
        elif source is None or _roles(source) != _roles(row):
            yield from _lost(row, "source_lost", row["source_dialogue_id"])
        else:
            pairs = zip(row["turns"], source["turns"], strict=True)
            turns = [turn | {"media": of_source["media"]} for turn, of_source in pairs]
            whole = source | {"dialogue_id": row["dialogue_id"], "turns": turns}
            for one in _rounds(whole, source["dialogue_id"], sampling, seed):
                yield one if isinstance(one, Lost) else one | {name: row[name] for name in _OF_REWRITE}

    every = (one for row in rewritten.iter_rows(named=True) for one in rounds(row))
    return _result("sampled_rewrites", SampledRewrites, every)


def answered_rounds(turns: list[dict[str, Any]]) -> list[int]:
    """The places of the seeker turns that a supporter turn answers, in order.

    What a supporter says before the seeker's first turn opens no round; a last seeker turn without an answer is none.
    """
    return [
        place
        for place, (turn, after) in enumerate(pairwise(turns))
        if turn["role"] == "seeker" and after["role"] == "supporter"
    ]


def _rounds(row: Row, key: str, sampling: Sampling, seed: int) -> Iterator[Row | Lost]:
    """Every round of a dialogue, in order: as a row where it is drawn by `key`, or lost."""
    rounds = answered_rounds(row["turns"])
    law = round_probabilities(len(rounds), centred=sampling.centred)
    drawn = set(sample_rounds(len(rounds), sampling.n_samples, key, seed, centred=sampling.centred))
    for number, place in enumerate(rounds, 1):
        if number in drawn:
            yield _sampled(row, number, place, float(law[number - 1]), len(rounds))
        else:
            detail = f"{len(drawn)} of {len(rounds)} rounds were drawn"
            yield Lost("round", round_id(row["dialogue_id"], number), "not_sampled", detail)


def _sampled(row: Row, number: int, place: int, probability: float, n_rounds: int) -> Row:
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
        "needs_media": any(clip["needed"] for turn in history for clip in turn["media"]),
        "has_media": any(turn["media"] for turn in history),
    }


def _lost(row: Row, reason: str, detail: str) -> Iterator[Lost]:
    """Every round of a dialogue, as lost."""
    for number in range(1, len(answered_rounds(row["turns"])) + 1):
        yield Lost("round", round_id(row["dialogue_id"], number), reason, detail)


def _roles(row: Row) -> list[str]:
    return [turn["role"] for turn in row["turns"]]


def _result(name: str, table: type[Table], rounds: Iterable[Row | Lost]) -> tuple[pl.DataFrame, pl.DataFrame]:
    every = list(rounds)
    kept = [one for one in every if not isinstance(one, Lost)]
    lost = [one for one in every if isinstance(one, Lost)]
    return pl.DataFrame(kept, schema=table.polars_schema()), dropped(name, lost)


@stage(
    "sampled_turns",
    group="sample",
    reads=("sampling.n_samples", "sampling.centred", "seed"),
    units={"sampled_turns": {"round": ("coherent_dialogues",)}},
    by_row=True,
)
def make_sampled_turns(coherent_dialogues: pl.DataFrame, settings: Settings) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`sampled_turns`: the rounds drawn from each dialogue."""
    return sample_turns(coherent_dialogues, settings.sampling, settings.seed)


@stage(
    "sampled_rewrites",
    group="rewrite",
    reads=("sampling", "seed"),
    units={"sampled_rewrites": {"round": ("rewritten_dialogues",)}},
)
def make_sampled_rewrites(
    rewritten_dialogues: pl.DataFrame, coherent_dialogues: pl.DataFrame, settings: Settings
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`sampled_rewrites`: the same rounds of what was rewritten."""
    return sample_rewrites(rewritten_dialogues, coherent_dialogues, settings.sampling, settings.seed)
