"""What can be measured of the data of a release, set by set: how varied, how balanced, how alike across splits, how
much of it is copied, written like a machine, or still personal.

What is learnt of a row is its `output`: the answer of a prompt set, the last reply of a chat. The rest is its `input`.
Rules that judge a text are those of the pipeline itself (`text.artefacts`, `text.pii`), nothing is judged twice.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import log
from typing import Any

import numpy as np
import polars as pl
from pydantic import ValidationError

from pipelines.core.estimates import Estimate, estimate_share
from pipelines.dedup import find_duplicates
from pipelines.rewards.format import section
from pipelines.text.artefacts import kinds
from pipelines.text.pii.redaction import find
from pipelines.text.runs import Runs
from schemas.ids import parse_candidate_id, round_id
from schemas.reasoning import CER_TAGS, Cer, FormatError

# A run of so many characters out of a reference is copied: in `text.artefacts` twelve are no accident, and this is the
# length of a whole sentence. Ours.
COPIED = 20
NEAR = (0.5, 0.8)  # Jaccard of 5-grams; from 0.8 on rows are duplicates to the pipeline
# What a model leaves in a text, by what the field calls it (`text.artefacts.KINDS`).
MACHINE_MADE = {
    "formula": ("ai_phrase", "boilerplate", "remark", "persona"),
    "list": ("list", "enumeration", "markdown"),
    "refusal_or_ai": ("ai",),
}
Row = dict[str, Any]


def evaluate_sets(sets: Mapping[str, pl.DataFrame], *, seed: int = 0) -> list[Row]:
    """Rows of `evaluations`, suite `data`, of the sets of a release, by name: `model` is the set. Figures that are
    means over rows have intervals by group.

    Args:
        sets: Rows as a release has them. Prompt sets and chats are measured; others (triplets) are left out.
        seed: Of the intervals.
    """
    references = {row_id: texts for name, frame in sets.items() for row_id, texts in _references(name, frame)}
    learnt = [
        texts[0].filter(frame["split"] == "train")
        for name, frame in sets.items()
        if (texts := _texts(name, frame)) is not None
    ]
    train = pl.concat([pl.Series([], dtype=pl.String), *learnt]).unique(maintain_order=True)
    rows: list[Row] = []
    for name, frame in sets.items():
        if (texts := _texts(name, frame)) is None or frame.is_empty():
            continue
        there = texts[1] != ""  # of a prompt set that needs no reference
        inputs, outputs = (one.filter(there) for one in texts)
        for metric, mode, subset, n, estimate in _measured(
            name, frame.filter(there), inputs, outputs, references, train, seed
        ):
            about = {"suite": "data", "model": name, "judge": "", "metric": metric, "mode": mode, "subset": subset}
            rows.append(about | {"n": n} | estimate._asdict())
    return rows


def _measured(
    name: str,
    frame: pl.DataFrame,
    inputs: pl.Series,
    outputs: pl.Series,
    references: Mapping[str, Sequence[str]],
    train: pl.Series,
    seed: int,
) -> Iterator[tuple[str, str, str, int, Estimate]]:
    groups = frame["group_id"] if "group_id" in frame.columns else frame["row_id"]

    def share(values: Sequence[float] | pl.Series, chosen: pl.Series | None = None, times: float = 1.0) -> Estimate:
        of_groups = groups if chosen is None else groups.filter(chosen)
        found = estimate_share(np.asarray(values, np.float64), of_groups.to_list(), seed=seed)
        return Estimate(*(None if one is None else one * times for one in found))

    for n in (1, 2):
        grams = [gram for text in outputs for gram in zip(*(text[at:] for at in range(n)), strict=False)]
        yield f"distinct_{n}", "characters", "all", len(grams), _single(len(set(grams)) / len(grams) if grams else None)
    held_out = frame["split"] != "train"
    for threshold in NEAR:
        alike = find_duplicates(outputs, threshold)["cluster_size"] > 1
        yield "near_duplicate_outputs", f"jaccard {threshold}", "all", len(alike), share(alike)
        asked = inputs.filter(held_out)
        clusters = find_duplicates(pl.concat([asked, train]), threshold)["cluster_id"]
        crossing = clusters.head(len(asked)).is_in(clusters.tail(len(train)).implode())
        yield "held_out_inputs_near_train", f"jaccard {threshold}", "all", len(crossing), share(crossing, held_out)
    for what, labels in _labels(name, frame, outputs).items():
        yield f"{what}_entropy", "of the most there is", "all", sum(labels.values()), _single(_entropy(labels))
        most = max(labels.values()) / sum(labels.values())
        yield f"{what}_commonest", "its share", "all", sum(labels.values()), _single(most)
    written = _written(name, frame, outputs, references)
    if (known := pl.Series([one is not None for one in written], dtype=pl.Boolean)).any():
        pairs = [one for one in written if one is not None]
        copied = [_repeats(text, of) for text, of in pairs]
        yield "copies_a_reference", f"{COPIED} characters", "all", len(pairs), share(copied, known)
        for threshold in NEAR:
            near = [max(contained(text, one) for one in of) >= threshold for text, of in pairs]
            yield "repeats_a_reference", f"of its 5-grams {threshold}", "all", len(pairs), share(near, known)
    found = [kinds(text) for text in outputs]
    for what, of in MACHINE_MADE.items():
        has = [float(not one.isdisjoint(of)) for one in found]
        yield what, "outputs of a thousand", "all", len(has), share(has, times=1000)
    spans = find(pl.concat([inputs, outputs]), names="wide")
    per_row = Counter(row % len(frame) for row in spans["row"].to_list())
    has = [float(place in per_row) for place in range(len(frame))]
    yield "personal_data", "rows of a thousand", "all", len(frame), share(has, times=1000)


def _texts(name: str, frame: pl.DataFrame) -> tuple[pl.Series, pl.Series] | None:
    """Inputs and outputs of a set; None of one that holds neither prompts nor chats."""
    if "reward_model" in frame.columns:
        inputs = frame["extra_info"].struct.field("dialogue").list.last().struct.field("text")
        return inputs, frame["reward_model"].struct.field("ground_truth")
    if "messages" in frame.columns and name.startswith("sft_"):
        contents = frame["messages"].list.eval(pl.element().struct.field("content"))
        return contents.list.get(-2, null_on_oob=True).fill_null(""), contents.list.last().fill_null("")
    return None


def _references(name: str, frame: pl.DataFrame) -> Iterator[tuple[str, list[str]]]:
    if "reward_model" in frame.columns and not name.startswith("grpo_ecot"):
        yield from zip(frame["row_id"], frame["extra_info"].struct.field("references").to_list(), strict=True)


def _written(
    name: str, frame: pl.DataFrame, outputs: pl.Series, references: Mapping[str, Sequence[str]]
) -> list[tuple[str, Sequence[str]] | None]:
    """Of each row what a model wrote, and the human answers that it may repeat; None where there is nothing of either.
    Of a chain (E) it is what stands before the answer, for that is the human one; of C's candidates the response.
    """
    if name not in ("sft_coe", "sft_cer"):
        return [None] * len(frame)
    found: list[tuple[str, Sequence[str]] | None] = []
    for made_from, output in zip(frame["made_from"], outputs, strict=True):
        if name == "sft_coe":
            written, known = output.partition("<answer>")[0], references.get(made_from)
        else:
            dialogue_id, number, _ = parse_candidate_id(made_from)
            written, known = section(output, "answer", CER_TAGS), references.get(round_id(dialogue_id, number))
        found.append((written, known) if written is not None and known else None)
    return found


def _repeats(written: str, references: Sequence[str]) -> bool:
    """Whether a text has a run of COPIED characters of a reference."""
    runs = Runs([(str(place), text) for place, text in enumerate(references)], COPIED)
    return any(run.end - run.start >= COPIED for run in runs.find(written))


def contained(text: str, reference: str, n: int = 5) -> float:
    """Which share of a text's n-grams stands in a reference, without marks and white space; 0 of a text without any."""
    grams, known = (
        {clean[at : at + n] for at in range(len(clean) - n + 1)} for clean in map(_letters, (text, reference))
    )
    return len(grams & known) / len(grams) if grams else 0.0


def _letters(text: str) -> str:
    """A text without tags, marks and white space."""
    return "".join(one for one in re.sub(r"</?\w+>", "", text) if one.isalnum())


def _labels(name: str, frame: pl.DataFrame, outputs: pl.Series) -> dict[str, Counter[str]]:
    """What the rows are about, and which strategies C's outputs name; without those that say nothing."""
    found: dict[str, Counter[str]] = {}
    if "extra_info" in frame.columns:
        found["topic"] = Counter(frame["extra_info"].struct.field("topic").drop_nulls().to_list())
    if name == "sft_cer":
        found["strategy"] = Counter(one for text in outputs if (one := _strategy(text)) is not None)
    return {what: labels for what, labels in found.items() if labels}


def _strategy(output: str) -> str | None:
    try:
        return Cer.parse(output).strategy
    except (FormatError, ValidationError):
        return None


def _entropy(labels: Counter[str]) -> float | None:
    """Shannon's, as a share of the most that so many labels can have; None of one label."""
    if len(labels) < 2:
        return None
    total = sum(labels.values())
    return -sum(n / total * log(n / total) for n in labels.values()) / log(len(labels))


def _single(value: float | None) -> Estimate:
    """A figure without an interval: a draw with repetitions repeats itself."""
    return Estimate(value, None, None)
