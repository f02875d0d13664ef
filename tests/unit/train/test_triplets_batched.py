"""Triplets: which answers are held against which questions."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import RequestError
from pipelines.train.contrastive import Triplet, apart, plan_batches, read_triplets, require_several

triplets = st.lists(
    st.builds(Triplet, *(st.sampled_from(names) for names in ("abc", "ghi", "k", "qrs", "xyz", "n"))),
    min_size=1,
    max_size=8,
)


@given(triplets)
def test_no_answer_of_a_question_or_of_its_group_is_its_negative(rows):
    mask = apart(rows)
    for i, one in enumerate(rows):
        for j, other in enumerate(rows):
            alike = [one.made_from == other.made_from, one.group_id == other.group_id]
            alike += [one.positive == other.positive, one.query == other.query]
            assert mask[i, j] == (not any(alike))


@given(st.integers(1, 40), st.integers(1, 9), st.integers(0, 3), st.integers(0, 5))
def test_every_epoch_has_every_row_once_in_batches_of_nearly_one_size(n, size, epochs, seed):
    plan = plan_batches([None] * n, size, epochs, seed)
    per = len(plan) // epochs if epochs else 0
    for epoch in range(epochs):
        steps = plan[epoch * per : (epoch + 1) * per]
        assert sorted(row for step in steps for row in step) == list(range(n))
        assert max(map(len, steps)) <= size
        assert max(map(len, steps)) - min(map(len, steps)) <= 1
    assert plan_batches([None] * n, size, epochs, seed) == plan


@pytest.mark.parametrize("n", [0, 2])
def test_too_few_questions_are_refused(n):
    one = Triplet("p", "g", "generic", "问", "答", "不")
    with pytest.raises(RequestError, match=f"{n} triplets of {min(n, 1)} groups"):
        require_several([one] * n, "train")


def test_a_file_of_something_else_is_refused(tmp_path: Path):
    (tmp_path / "a.parquet").write_text("no Parquet")
    with pytest.raises(RequestError, match="no rows of rm_triplets"):
        read_triplets([tmp_path / "a.parquet"])
