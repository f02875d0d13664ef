"""A reward model against people's labels, by sklearn's figures; what length alone tells; an encoder by negatives."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, recall_score, roc_auc_score

from pipelines.errors import RequestError
from pipelines.evaluate.reward_model import (
    SAME_TOPIC,
    STEPS,
    score_encoder,
    score_lengths,
    score_triplets,
    score_verdicts,
)
from schemas.labels import PREFERENCES

STEP, PREFERENCE = st.booleans(), st.sampled_from(PREFERENCES)
ROWS = st.lists(
    st.tuples(
        st.tuples(STEP, STEP, STEP, PREFERENCE),
        st.tuples(*[st.none() | STEP] * 3, st.none() | PREFERENCE),
        st.integers(0, 5),
    ),
    min_size=1,
    max_size=25,
)
COLUMNS = dict.fromkeys(STEPS, pl.Boolean) | {"preference": pl.String}


def frame(rows, dialogues) -> pl.DataFrame:
    keys = pl.DataFrame(
        {"dialogue_id": [f"d{one}" for one in dialogues], "round": [*range(1, len(rows) + 1)], "candidate": 1}
    )
    return keys.hstack(pl.DataFrame(rows, schema=COLUMNS, orient="row"))


def values(table: pl.DataFrame) -> dict[tuple[str, str], float | None]:
    return {(row["question"], row["figure"]): row["value"] for row in table.iter_rows(named=True)}


@given(ROWS)
def test_figures_are_sklearns_and_what_cannot_be_read_is_wrong(rows):
    truths, verdicts, dialogues = zip(*rows, strict=True)
    table = score_verdicts(frame(truths, dialogues), frame(verdicts, dialogues), draws=20)
    expected = {}
    for place, step in enumerate((*STEPS, "preference")):
        truth = [str(one[place]) for one in truths]
        said = [str(one[place]) for one in verdicts]
        name = "response" if step == "preference" else step
        labels = sorted(set(truth))
        expected[name, "weighted_f1"] = f1_score(truth, said, labels=labels, average="weighted", zero_division=0)
        if name == "response":
            expected[name, "accuracy"] = accuracy_score(truth, said)
        else:
            recall = recall_score(truth, said, labels=["False"], average=None, zero_division=np.nan)[0]
            expected[name, "recall_false"] = None if np.isnan(recall) else recall
    found = values(table)
    assert found.keys() == expected.keys()
    for figure, value in expected.items():
        assert found[figure] is None if value is None else found[figure] == pytest.approx(value, abs=1e-9), figure
    unread = table.unique("question", maintain_order=True)["unread"].to_list()
    assert unread == [sum(one[place] is None for one in verdicts) for place in range(4)]


def test_a_label_without_a_verdict_is_wrong_and_the_order_of_rows_is_nothing():
    truths = [(True, False, True, "second"), (True, True, False, "both"), (False, False, False, "first")]
    labels = frame(truths, [1, 1, 2])
    full = values(score_verdicts(labels, labels.reverse()))
    assert set(full.values()) == {1.0}
    part = values(score_verdicts(labels, labels[:2]))
    assert part["step1", "recall_false"] == 0
    assert part["response", "accuracy"] == pytest.approx(2 / 3)


def test_what_is_no_label_and_a_candidate_twice_are_refused():
    labels = frame([(True, False, True, "second")], [1])
    for labelled, said, problem in (
        (labels.with_columns(step1=None), labels, "step1 is None"),
        (labels, labels.with_columns(preference=pl.lit("third")), "preference is 'third'"),
        (pl.concat([labels, labels]), labels, "labelled twice"),
        (labels, pl.concat([labels, labels]), "labelled twice"),
    ):
        with pytest.raises(RequestError, match=problem):
            score_verdicts(labelled, said)


def test_vectors_that_are_no_numbers_have_no_figure():
    triplets = pl.DataFrame({name: ["a"] for name in ("query", "positive", "negative", "made_from", "kind")})
    triplets = triplets.with_columns(same_topic=pl.lit(value=True))
    with pytest.raises(RequestError, match="no numbers"):
        score_triplets(triplets, lambda texts, _: np.full((len(texts), 2), np.nan))


def test_without_labels_every_figure_is_undefined():
    table = score_verdicts(frame([], []), frame([], []))
    assert set(values(table).values()) == {None}
    assert table["n"].to_list() == [0] * 8


def test_intervals_hold_the_truth_in_93_to_97_of_100_studies():
    """A judge that is right about a dialogue more or less: of 80 dialogues with three candidates each."""
    rng = np.random.default_rng(3)

    def study(n: int) -> tuple[np.ndarray, np.ndarray]:
        truth = rng.random((n, 3)) > 0.23
        right = rng.random((n, 3)) < rng.beta(8, 3, (n, 1))
        return truth, np.where(right, truth, ~truth)

    truth, said = study(200_000)
    true = f1_score(truth.ravel(), said.ravel(), average="weighted"), (~said & ~truth).sum() / (~truth).sum()
    held, studies, n = np.zeros(2), 400, 80
    keys = {"dialogue_id": np.repeat([f"d{one}" for one in range(n)], 3), "round": [1, 2, 3] * n, "candidate": 1}
    rest = {"step2": True, "step3": True, "preference": "both"}
    for _ in range(studies):
        labels, verdicts = (pl.DataFrame({**keys, "step1": one.ravel(), **rest}) for one in study(n))
        table = score_verdicts(labels, verdicts, draws=300).filter(question="step1")
        held += [low <= one <= high for one, low, high in zip(true, table["low"], table["high"], strict=True)]
    assert held / studies == pytest.approx([0.95, 0.95], abs=0.02)


@given(st.lists(st.tuples(STEP, PREFERENCE, st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=20))
def test_what_length_alone_tells_is_sklearns_area(rows):
    labels = frame([(right, True, False, better) for right, better, *_ in rows], range(len(rows)))
    lengths = labels.select("dialogue_id", "round", "candidate").with_columns(
        step1=pl.Series([one[2] for one in rows]), step2=1, step3=1,
        response=pl.Series([one[2] for one in rows]), reference=pl.Series([one[3] for one in rows]),
    )  # fmt: skip
    found = values(score_lengths(labels, lengths, draws=20))
    decided = [(better == "second", own - other) for _, better, own, other in rows if better in ("first", "second")]
    for question, scored in (("step1", [(right, own) for right, _, own, _ in rows]), ("response", decided)):
        truth = [one for one, _ in scored]
        expected = roc_auc_score(truth, [one for _, one in scored]) if len({*truth}) == 2 else None
        area = found[question, "auc_of_length"]
        assert area is None if expected is None else area == pytest.approx(expected, abs=1e-9)
    assert found["step2", "auc_of_length"] is None, "all are right"


def test_a_planted_bias_for_what_is_long_shows():
    rng = np.random.default_rng(0)
    own, other = rng.integers(50, 400, (2, 200))
    labels = frame(
        [(True, True, True, "second" if a > b else "first") for a, b in zip(own, other, strict=True)], range(200)
    )
    lengths = labels.select("dialogue_id", "round", "candidate").with_columns(
        step1=1, step2=1, step3=1, response=pl.Series(own), reference=pl.Series(other)
    )
    [row] = score_lengths(labels, lengths).filter(question="response").rows(named=True)
    assert row["value"] == 1.0
    shuffled = lengths.with_columns(
        response=pl.Series(rng.permutation(own)), reference=pl.Series(rng.permutation(other))
    )
    [row] = score_lengths(labels, shuffled).filter(question="response").rows(named=True)
    assert row["low"] < 0.5 < row["high"]


def test_an_encoder_is_measured_by_kind_of_negative_and_among_the_same_topic():
    kinds, topics = ["mismatched_emotion", "generic", "mismatched_emotion"], [True, None, False]
    rng = np.random.default_rng(0)
    rows = [
        {"question_id": f"q{n}", "kind": kind, "same_topic": topic, "positive": positive, "negative": rng.normal(0, 1)}
        for n, positive in enumerate(rng.normal(1, 1, 60))
        for kind, topic in zip(kinds, topics, strict=True)
        if n % 4 or kind == "generic"
    ]
    scores = pl.DataFrame(rows, schema_overrides={"same_topic": pl.Boolean})
    table = score_encoder(scores)
    assert table["kind"].to_list() == ["generic", "mismatched_emotion", SAME_TOPIC]
    assert table["n_negatives"].to_list() == [60, 90, 45]
    once = scores.unique("question_id", keep="first", maintain_order=True)["positive"].to_list()
    alike = scores.filter(pl.col("same_topic"))
    groups = [
        (once, scores.filter(kind="generic")["negative"].to_list()),
        (once, scores.filter(kind="mismatched_emotion")["negative"].to_list()),
        (alike["positive"].to_list(), alike["negative"].to_list()),
    ]
    for row, (positives, negatives) in zip(table.iter_rows(named=True), groups, strict=True):
        labels = [1] * len(positives) + [0] * len(negatives)
        assert row["auc"] == pytest.approx(roc_auc_score(labels, [*positives, *negatives]), abs=1e-9)
        assert row["low"] < row["auc"] < row["high"]
        assert row["n_positives"] == len(positives)
