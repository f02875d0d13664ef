"""Gaussian turn sampling (C eq. 1)."""

import numpy as np
import numpy.typing as npt

from schemas.ids import unit_interval


def round_probabilities(n_rounds: int, *, centred: bool = False) -> npt.NDArray[np.float64]:
    """p(i) for the rounds i = 1 … `n_rounds` (C eq. 1), shape `[n_rounds]`, summing to 1.

    μ = N_r/2 and σ = N_r/4, as printed: with rounds counted from 1 the law sits half a round early. `centred` puts μ
    at (N_r + 1)/2.

    Raises ValueError where there is no round.
    """
    if n_rounds < 1:
        raise ValueError(f"a dialogue to sample from has at least one round, not {n_rounds}")
    mean = (n_rounds + 1) / 2 if centred else n_rounds / 2
    weights = np.exp(-((np.arange(1, n_rounds + 1) - mean) ** 2) / (2 * (n_rounds / 4) ** 2))
    return np.asarray(weights / weights.sum())


def sample_rounds(n_rounds: int, n_samples: int, key: str, seed: int = 0, *, centred: bool = False) -> list[int]:
    """`n_samples` different rounds of a dialogue, from 1, in their order in the dialogue.

    Drawn one after the other without replacement, the law renormalised after each draw; all of them where
    `n_samples` is at least `n_rounds`. Follows from `seed` and `key` (the dialogue's id) alone.

    The draws are a race of exponential clocks, round i ringing at rate p(i): the order in which they ring has
    exactly the law of successive renormalised draws.
    """
    if n_samples < 1:
        raise ValueError(f"at least one round is sampled, not {n_samples}")
    if n_samples >= n_rounds:
        return list(range(1, n_rounds + 1))
    uniform = np.array([unit_interval(seed, "round", key, number) for number in range(1, n_rounds + 1)])
    rings_at = -np.log1p(-uniform) / round_probabilities(n_rounds, centred=centred)
    return sorted(int(index) + 1 for index in np.argsort(rings_at, kind="stable")[:n_samples])
