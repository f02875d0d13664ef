"""How well a reward model judges: C's Table 1, E's encoder by kind of negative, and length alone.

Labels are rows of `cer_labels`; verdicts have the same columns, null where a model's words could not be read. Such a
verdict is wrong, whatever was right: a model gains nothing by what nobody can read. Intervals are by dialogue, or by
question: all that was labelled of one is drawn together.
"""

from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipelines.core.estimates import DRAWS, Estimate, Floats, bootstrap, bounded_share, weighted_auc
from pipelines.errors import RequestError
from pipelines.train.serving import Encode
from schemas.labels import PREFERENCES

STEPS = ("step1", "step2", "step3")
KEYS = ("dialogue_id", "round", "candidate")
# A figure of a question. `n` labels, of whose verdicts `unread` could not be read.
FIGURES = pl.Schema(
    {"question": pl.String, "figure": pl.String, "n": pl.Int64, "unread": pl.Int64}
    | dict.fromkeys(("value", "low", "high"), pl.Float64)
)
# An area of the encoder: over negatives of a kind, or of SAME_TOPIC.
AREAS = pl.Schema(
    {"kind": pl.String, "n_positives": pl.Int64, "n_negatives": pl.Int64}
    | dict.fromkeys(("auc", "low", "high"), pl.Float64)
)
SAME_TOPIC = "mismatched_emotion/same_topic"


def score_verdicts(labels: pl.DataFrame, verdicts: pl.DataFrame, *, draws: int = DRAWS, seed: int = 0) -> pl.DataFrame:
    """C Table 1: of each step weighted F1 and the recall of False; of the response weighted F1 over the four
    preferences and accuracy.

    F1 of each class is weighted by how many labels it has, as sklearn's `average="weighted"`.

    Args:
        labels: KEYS, `step1` … `step3` (bool) and `preference`.
        verdicts: The same of a model. Of labels without a row it is as if it could not be read.
        draws: Of the intervals; `seed`: of the draws.

    Returns rows of FIGURES. A figure is null where there are no labels, the recall where none is False. Raises
    RequestError for a label or a verdict that is none, and for two of one candidate.
    """
    for frame, lacks in ((labels, False), (verdicts, True)):
        _require_answers(frame, lacks=lacks)
    both = labels.join(verdicts, on=KEYS, how="left", suffix="_verdict", validate="1:1")
    dialogues = _numbered(both["dialogue_id"])
    lines = []
    for column in (*STEPS, "preference"):
        classes = list(PREFERENCES) if column == "preference" else [False, True]
        truth, given = both[column].to_list(), both[f"{column}_verdict"].to_list()
        unread = given.count(None)
        place = {label: number for number, label in enumerate(classes)} | {None: len(classes)}
        counts = np.zeros((int(dialogues.max(initial=-1)) + 1, len(classes), len(classes) + 1))
        rows, columns = (np.array([place[one] for one in of], np.int64) for of in (truth, given))
        np.add.at(counts, (dialogues, rows, columns), 1.0)
        second = "accuracy" if column == "preference" else "recall_false"
        f1, share = bootstrap(_from_confusion(counts, second), len(counts), draws=draws, seed=seed)
        if f1.low == f1.high:  # all right, or all wrong: of draws that never differ there is no interval
            f1 = Estimate(f1.value, None, None)
        right = np.diagonal(counts, axis1=1, axis2=2)
        of_class = slice(None) if second == "accuracy" else slice(1)  # of False, the first one
        labelled = counts.sum(axis=2)[:, of_class].sum(axis=1)
        estimates = f1, bounded_share(share, right[:, of_class].sum(axis=1), labelled)
        for figure, estimate in zip(("weighted_f1", second), estimates, strict=True):
            lines.append(("response" if column == "preference" else column, figure, len(both), unread, *estimate))
    return pl.DataFrame(lines, schema=FIGURES, orient="row")


def score_lengths(labels: pl.DataFrame, lengths: pl.DataFrame, *, draws: int = DRAWS, seed: int = 0) -> pl.DataFrame:
    """How much of the labels length alone tells: what a judge must beat.

    The AUC of each step is how often one that people call right is longer than one that they call wrong. Of the
    response it is over those of which people like one better: how often the candidate is longer than its reference by
    more where it is liked better than where the reference is.

    Args:
        labels: As for `score_verdicts`.
        lengths: KEYS, and how long each is: `step1` … `step3`, `response`, `reference`.
        draws: Of the intervals; `seed`: of the draws.

    Returns rows of FIGURES, `auc_of_length` each.
    """
    both = labels.join(lengths, on=KEYS, how="inner", suffix="_length", validate="1:1")
    scored = [(step, both.select("dialogue_id", score=f"{step}_length", positive=step)) for step in STEPS]
    decided = both.filter(pl.col("preference").is_in(["first", "second"]))
    longer, better = pl.col("response") - pl.col("reference"), pl.col("preference") == "second"
    scored.append(("response", decided.select("dialogue_id", score=longer, positive=better)))
    lines = []
    for question, rows in scored:
        right, wrong = rows.filter("positive"), rows.filter(~pl.col("positive"))
        estimate = _estimate_auc(right, wrong, "dialogue_id", draws, seed)
        lines.append((question, "auc_of_length", len(rows), 0, *estimate))
    return pl.DataFrame(lines, schema=FIGURES, orient="row")


def score_encoder(scores: pl.DataFrame, *, draws: int = DRAWS, seed: int = 0) -> pl.DataFrame:
    """E's encoder: how often an answer to the question is nearer to it than a negative, by kind of negative.

    Of SAME_TOPIC are triplets of mismatched emotion whose negative answers a question of the same topic, their
    positives against their negatives: what is left to tell when the subject is the same.

    Args:
        scores: A row a triplet of `rm_triplets` (held out): `question_id`, `kind`, `same_topic` (bool or null), and the
            cosines `positive` and `negative`. The positive of a question stands in each of its rows, and counts once.
        draws: Of the intervals; `seed`: of the draws.

    Returns rows of AREAS, by kind.
    """
    once = scores.unique("question_id", keep="first", maintain_order=True)
    groups = {kind: (once, scores.filter(kind=kind)) for kind in sorted(scores["kind"].unique())}
    alike = scores.filter(pl.col("same_topic").fill_null(value=False), kind="mismatched_emotion")
    if len(alike):
        groups[SAME_TOPIC] = alike, alike
    lines = []
    for kind, (positives, negatives) in groups.items():
        above, below = (
            frame.select("question_id", score=column)
            for frame, column in ((positives, "positive"), (negatives, "negative"))
        )
        estimate = _estimate_auc(above, below, "question_id", draws, seed)
        lines.append((kind, len(positives), len(negatives), *estimate))
    return pl.DataFrame(lines, schema=AREAS, orient="row")


def score_triplets(triplets: pl.DataFrame, encode: Encode) -> pl.DataFrame:
    """The scores of held-out rows of `rm_triplets`, as `score_encoder` wants them: cosines of the vectors of unit
    length that `encode` gives.
    """
    query = encode(triplets["query"].to_list(), "query")
    positive, negative = (encode(triplets[name].to_list(), "answer") for name in ("positive", "negative"))
    if not all(np.isfinite(vectors).all() for vectors in (query, positive, negative)):
        raise RequestError("the encoder gives vectors that are no numbers", hint="its training has failed: train anew")
    return triplets.select(
        *(pl.col("made_from").alias("question_id"), "kind", "same_topic"),
        positive=(query * positive).sum(axis=1),
        negative=(query * negative).sum(axis=1),
    )


def _from_confusion(counts: Floats, second: str) -> Callable[[Floats], Floats]:
    """Weighted F1, and accuracy or the recall of the first class, for `bootstrap`. `counts`: items x labels x verdicts,
    of which the last is that which could not be read.
    """
    n_classes = counts.shape[1]

    def figures(weights: Floats) -> Floats:
        table = np.einsum("di,ilv->dlv", weights, counts)
        labelled, given = table.sum(axis=2), table.sum(axis=1)[:, :n_classes]
        right = np.diagonal(table, axis1=1, axis2=2)
        n = labelled.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):  # no label, or none of a class: NaN
            f1 = np.where(right > 0, 2 * right / (labelled + given), 0.0)
            weighted = (labelled * f1).sum(axis=1) / n
            other = right.sum(axis=1) / n if second == "accuracy" else right[:, 0] / labelled[:, 0]
        return np.stack([weighted, other], axis=1)

    return figures


def _estimate_auc(positives: pl.DataFrame, negatives: pl.DataFrame, item: str, draws: int, seed: int) -> Estimate:
    """An area over frames of `score` and the item that each is of."""
    items = _numbered(pl.concat([positives[item], negatives[item]]))
    of_positives, of_negatives = items[: len(positives)], items[len(positives) :]
    high, low = (frame["score"].cast(pl.Float64).to_numpy() for frame in (positives, negatives))

    def figures(weights: Floats) -> Floats:
        return weighted_auc(high, low, weights[:, of_positives], weights[:, of_negatives])[:, None]

    [estimate] = bootstrap(figures, int(items.max(initial=-1)) + 1, draws=draws, seed=seed)
    return estimate


def _require_answers(frame: pl.DataFrame, *, lacks: bool) -> None:
    """`lacks`: whether an answer may be null."""
    known = {**dict.fromkeys(STEPS, (True, False)), "preference": PREFERENCES}
    for column, values in known.items():
        if other := set(frame[column]) - {*values, *((None,) if lacks else ())}:
            hint = f"one of {', '.join(map(str, values))}"
            raise RequestError(f"{column} is {', '.join(map(repr, other))}", where="labels and verdicts", hint=hint)
    if (twice := frame.select(KEYS).is_duplicated()).any():
        where = ", ".join(map(str, frame.filter(twice).select(KEYS).row(0)))
        raise RequestError("a candidate is labelled twice", where=where, hint="leave one of them")


def _numbered(names: pl.Series) -> NDArray[np.int64]:
    return np.unique(names.to_numpy(), return_inverse=True)[1].astype(np.int64)
