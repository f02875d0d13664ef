"""verl's GRPO advantages are eq. 1 by hand, on rewards of every kind."""

import random
import statistics

import pytest
from train_env import script_result

pytestmark = [pytest.mark.xdist_group("training"), pytest.mark.timeout(300)]

GROUPS = 400
EPSILON = 1e-6  # verl's, on the sample standard deviation (papers.md §6)
ROUNDING = 2.0**-22  # verl counts in float32: a mean is right to about this share of the largest reward

Group = list[float]


def groups() -> list[Group]:
    """Rewards of outputs of one prompt, of every kind that a recipe gives; every third group is of equal rewards."""
    rng = random.Random(0)
    made = []
    for number in range(GROUPS):
        size = rng.choice((1, 2, 4, 4, 4, 8))
        # Form alone; C's five terms; M's form and judgement; what weighing by redundancy makes of these.
        weighed = [rng.uniform(-9, 9) for _ in range(4)]
        kind = rng.choice(([0.0, 1.0], [-5.0, -3.0, -1.0, 1.0, 3.0, 5.0], [n / 15 for n in range(31)], weighed))
        made.append([rng.choice(kind)] * size if number % 3 == 0 else rng.choices(kind, k=size))
    return made


def by_hand(group: Group) -> list[float]:
    """Eq. 1: each reward less the mean, over the deviation; of one output the reward itself, as verl has it."""
    if len(group) == 1:
        return [group[0] / (1 + EPSILON)]
    mean, deviation = statistics.fmean(group), statistics.stdev(group)
    return [(reward - mean) / (deviation + EPSILON) for reward in group]


def tolerance(group: Group) -> float:
    """How far rounding can move an advantage: the rounding of the mean, over the deviation."""
    deviation = statistics.stdev(group) if len(group) > 1 else 1.0
    return 1e-5 + ROUNDING * max(map(abs, group)) / (deviation + EPSILON)


SCRIPT = """
import contextlib, json, sys
with contextlib.redirect_stdout(sys.stderr):
    import numpy as np, torch
    from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage, get_adv_estimator_fn
    assert get_adv_estimator_fn("grpo") is compute_grpo_outcome_advantage
    groups = json.loads(sys.stdin.read())
    order = np.random.default_rng(0).permutation(sum(map(len, groups)))
    flat = [(f"uid-{place}", reward) for place, group in enumerate(groups) for reward in group]
    uid = np.array([flat[at][0] for at in order], dtype=object)
    lengths = torch.tensor([1 + int(at) % 5 for at in order])
    mask = (torch.arange(6)[None] < lengths[:, None]).float()
    rewards = torch.zeros_like(mask)  # a reward stands at the last token of its output
    rewards[torch.arange(len(order)), lengths - 1] = torch.tensor([flat[at][1] for at in order])
    advantages, _ = compute_grpo_outcome_advantage(rewards, mask, uid)
    assert torch.equal(advantages, advantages[:, :1] * mask), "every token of an output has its advantage, padding none"
    back = np.empty(len(order))
    back[order] = advantages[:, 0].numpy()
print(json.dumps(back.tolist()))
"""


@pytest.fixture(scope="module")
def advantages() -> list[tuple[Group, list[float]]]:
    """Each group of rewards, with the advantages that verl gives them; outputs of all groups were shuffled."""
    made = groups()
    found = iter(script_result(SCRIPT, stdin=made))
    return [(group, [next(found) for _ in group]) for group in made]


def test_the_advantages_are_those_of_eq_1_and_a_group_of_equal_rewards_teaches_nothing(
    advantages: list[tuple[Group, list[float]]],
):
    """Exactly 0 for the papers' G = 4; verl's mean of eight equal numbers may be off by a rounding."""
    assert len({reward for group, _ in advantages for reward in group}) > 100, "rewards of many kinds"
    equal = [group for group, _ in advantages if len(group) == 4 and len(set(group)) == 1]
    assert len(equal) > GROUPS / 10
    for group, found in advantages:
        assert found == pytest.approx(by_hand(group), rel=1e-4, abs=tolerance(group)), group
        assert group not in equal or found == [0] * 4
    apart = [group for group, _ in advantages if len(set(group)) > 1]
    assert max(map(tolerance, apart)) < 1e-3, "where rewards differ at all, rounding hides nothing"
