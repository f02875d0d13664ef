"""verl's GRPO is the papers' by hand: advantages (eq. 1) on rewards of every kind, the loss (eq. 2) on outputs of
different lengths.
"""

import random
import statistics
from math import log
from typing import Any

import pytest
from train_env import script_result

from pipelines.train.recipe import build_overrides, load_recipe

pytestmark = [pytest.mark.xdist_group("training"), pytest.mark.timeout(300)]

GROUPS = 400
EPSILON = 1e-6  # verl's, on the sample standard deviation (papers.md §6)
ROUNDING = 2.0**-22  # verl counts in float32: a mean is right to about this share of the largest reward

Group = list[float]

# Of eq. 2
AGGREGATION = "actor_rollout_ref.actor.loss_agg_mode"
CLIP, BETA = 0.2, 0.001
RATIOS = [[1.5, 0.5], [1.0, 1.1, 0.7, 1.3, 0.9]]  # π/π_old of each token of two outputs
REFERENCE = [[0.5, 2.0], [1.0, 1.0, 4.0, 0.25, 1.0]]  # π_ref/π
ADVANTAGES = [1.0, -1.0]


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
    from verl.trainer.ppo.core_algos import (
        agg_loss, compute_grpo_outcome_advantage, get_adv_estimator_fn, get_policy_loss_fn, kl_penalty,
    )
    from verl.workers.config import ActorConfig
    given = json.load(sys.stdin)

    # Eq. 1
    assert get_adv_estimator_fn("grpo") is compute_grpo_outcome_advantage
    groups = given["groups"]
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

    # Eq. 2
    padded = lambda rows, pad: torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], True, pad)
    ratio, reference = padded(given["ratios"], 9.0), padded(given["reference"], 9.0)
    mask = padded([[1.0] * len(row) for row in given["ratios"]], 0.0)
    advantages = torch.tensor(given["advantages"])[:, None] * mask
    config = ActorConfig(strategy="fsdp2", rollout_n=2, clip_ratio=given["clip"], ppo_micro_batch_size_per_gpu=1)
    zeros = torch.zeros_like(ratio)

    def loss(mode, rows, **whole):
        config.global_batch_info.update(whole)
        old, new = zeros[rows], ratio[rows].log()
        policy, _ = get_policy_loss_fn("vanilla")(old, new, advantages[rows], mask[rows], mode, config)
        kl = kl_penalty(zeros[rows], reference[rows].log(), "low_var_kl")
        return float(policy + given["beta"] * agg_loss(kl, mask[rows], mode, **whole))

    tokens = int(mask.sum())
    losses = {mode: loss(mode, slice(0, 2)) for mode in ("seq-mean-token-mean", "token-mean")}
    apart = {mode: sum(loss(mode, slice(at, at + 1), global_batch_size=2, batch_num_tokens=tokens) for at in (0, 1))
             for mode in losses}
print(json.dumps({"advantages": back.tolist(), "losses": [losses, apart]}))
"""


@pytest.fixture(scope="module")
def of_verl() -> dict[str, Any]:
    """What verl makes of both: its advantages of all outputs, which were shuffled, and its losses."""
    given = {"ratios": RATIOS, "reference": REFERENCE, "advantages": ADVANTAGES, "clip": CLIP, "beta": BETA}
    found: dict[str, Any] = script_result(SCRIPT, stdin={"groups": groups(), **given})
    return found


@pytest.fixture(scope="module")
def advantages(of_verl: dict[str, Any]) -> list[tuple[Group, list[float]]]:
    """Each group of rewards, with the advantages that verl gives them."""
    found = iter(of_verl["advantages"])
    return [(group, [next(found) for _ in group]) for group in groups()]


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


# --- eq. 2: 1/G Σ_i of the clipped ratio of output i, times its advantage, and of the KL term


def worth(ratio: float, reference: float, advantage: float) -> float:
    """What a token adds to the objective: min(ratio A, clip(ratio) A) − β (π_ref/π − ln(π_ref/π) − 1)."""
    clipped = min(max(ratio, 1 - CLIP), 1 + CLIP)
    return min(ratio * advantage, clipped * advantage) - BETA * (reference - log(reference) - 1)


def test_the_loss_is_eq_2_each_output_counting_once_however_long_and_in_batches_of_any_size(of_verl: dict[str, Any]):
    outputs = [
        [worth(ratio, reference, advantage) for ratio, reference in zip(ratios, references, strict=True)]
        for ratios, references, advantage in zip(RATIOS, REFERENCE, ADVANTAGES, strict=True)
    ]
    assert statistics.fmean(outputs[0]) == pytest.approx((1.2 + 0.5) / 2 - BETA / 4)
    expected = {
        "seq-mean-token-mean": -statistics.fmean(statistics.fmean(output) for output in outputs),
        "token-mean": -statistics.fmean(token for output in outputs for token in output),
    }
    assert abs(expected["seq-mean-token-mean"] - expected["token-mean"]) > 0.1, "else little is shown"
    whole, apart = of_verl["losses"]
    assert whole == pytest.approx(expected, abs=1e-6)
    assert apart == pytest.approx(expected, abs=1e-6)
    for name in ("mindchat_ecot", "empathy_coe", "compeer_cer"):
        recipe = load_recipe(name)
        assert recipe.paper[AGGREGATION] == build_overrides(recipe, "gpu")[AGGREGATION] == "seq-mean-token-mean"
