"""C's reweighting against its equations, term by term."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.rewards.redundancy import character_pairs, redundancy, reweight

HISTORY = ["我在听。", "您愿意多说一点吗？"]

texts = st.lists(st.text(alphabet="我在听您慢说。ab ", max_size=12), min_size=1, max_size=6)


def cosine(one, other):
    across = float(one @ other)
    return across / math.sqrt(float(one @ one) * float(other @ other)) if across else 0.0


def by_hand(rewards, outputs, history, alpha, beta):
    vectors = character_pairs([*outputs, *history])
    mine, theirs = vectors[: len(outputs)], vectors[len(outputs) :]
    tau = 1 / (1 + math.exp(-alpha * (sum(map(len, outputs)) / len(outputs) - beta)))
    found = []
    for i, r in enumerate(rewards):
        others = [cosine(mine[i], mine[j]) for j in range(len(outputs)) if j != i]
        s_in = sum(others) / len(others) if others else 0.0
        s_hi = sum(cosine(mine[i], u) for u in theirs) / len(theirs) if len(theirs) else 0.0
        found.append(r / ((1 + tau * s_in) * (1 + tau * s_hi)))
    return found


@given(texts, st.lists(st.text(alphabet="我在听", max_size=5), max_size=3), st.floats(0, 2), st.floats(0, 20))
def test_any_group_is_reweighted_by_the_equations(outputs, history, alpha, beta):
    rewards = [float(place % 11 - 5) for place in range(len(outputs))]
    found = reweight(rewards, outputs, history, alpha, beta)
    assert found == pytest.approx(by_hand(rewards, outputs, history, alpha, beta), abs=1e-9)
    assert np.isfinite(found).all()
    assert (np.abs(found) <= np.abs(rewards) + 1e-12).all()


def test_as_printed_a_negative_reward_gains_by_redundancy_and_shifted_it_does_not():
    outputs = ["您愿意多说一点吗？", "今天先吃一点热的。"]
    echo, new = reweight([-5.0, -5.0], outputs, HISTORY)
    assert echo > new
    echo, new = reweight([-3.0, -3.0], outputs, HISTORY, mode="shift")
    assert echo < new
    assert reweight([-5.0, -5.0], outputs, HISTORY, mode="shift") == pytest.approx([-5.0, -5.0])


def test_a_group_of_one_text_keeps_its_advantages_when_shifted():
    """Dividing by one number scales the rewards; GRPO's advantages do not see that."""
    rewards = np.array([-5.0, -1.0, 3.0, 5.0])
    found = reweight(rewards.tolist(), ["我在听。"] * 4, HISTORY, mode="shift")
    assert (found - found.mean()) / found.std(ddof=1) == pytest.approx((rewards - rewards.mean()) / rewards.std(ddof=1))


def test_how_much_it_counts_follows_from_the_length():
    short, even, long = ([text * 4] for text in ("我", "我在", "我在听您慢慢说"))
    assert redundancy(["我在听您说"] * 3, []).tau == pytest.approx(0.5)  # L = β
    assert redundancy(short, []).tau < redundancy(even, []).tau < redundancy(long, []).tau < 1
    assert redundancy(["字" * 100_000], []).tau == 1
    assert redundancy([""], [], beta=10_000).tau == 0
    words = redundancy(["我 在 听"], [], length=lambda text: len(text.split()))
    assert words.tau == pytest.approx(1 / (1 + math.exp(-0.5 * (3 - 5))))


def test_an_encoder_may_be_named_and_its_cosines_are_clipped():
    def opposite(texts):
        return np.array([[1.0, 0.0], [-1.0, 0.0]])[: len(texts)]

    assert reweight([1.0, 1.0], ["a", "b"], [], encode=opposite) == pytest.approx([1.0, 1.0])


def test_a_vector_that_is_no_number_and_an_output_without_a_reward_are_refused():
    for broken in (math.nan, math.inf):
        with pytest.raises(ValueError, match="NaN or infinity"):
            reweight([1.0, 1.0], ["a", "b"], [], encode=lambda _, v=broken: np.array([[1.0, 0.0], [v, 0.0]]))
    with pytest.raises(ValueError, match="1 rewards for 2 outputs"):
        reweight([1.0], ["a", "b"], [])
