"""C's reweighting: an output is worth less for repeating its group, or the conversation before it (C eq. 5–7)."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from pipelines.core.overlap import windows

Vectors: TypeAlias = NDArray[np.float64]
Encode: TypeAlias = Callable[[Sequence[str]], Vectors]
Mode: TypeAlias = Literal["paper", "shift"]

# The lowest sum of C's five terms: shifted by it no reward is negative.
_LOWEST = 5.0


class Redundancy(NamedTuple):
    """How redundant the outputs of one group are: `s_in` [G] with each other, `s_hi` [G] with the history, both in
    [0, 1], and `tau`, how much that counts, in (0, 1).
    """

    s_in: Vectors
    s_hi: Vectors
    tau: float

    @property
    def divisor(self) -> Vectors:
        """[G], what a reward is divided by: at least 1 (C eq. 5)."""
        return (1 + self.tau * self.s_in) * (1 + self.tau * self.s_hi)


def reweight(
    rewards: Sequence[float],
    outputs: Sequence[str],
    history: Sequence[str],
    alpha: float = 0.5,
    beta: float = 5.0,
    *,
    encode: Encode | None = None,
    length: Callable[[str], int] = len,
    mode: Mode = "paper",
) -> Vectors:
    """r̃ of one group (C eq. 5).

    Args:
        rewards: r of each output, [G].
        outputs: The responses (what stands inside ``<answer>``), [G].
        history: The utterances before, H of eq. 6, of any length.
        alpha: α of eq. 7.
        beta: β of eq. 7, in the unit of `length`.
        encode: Texts to vectors [n, d]; default: counts of character pairs, which need no model.
        length: Of a response; the paper's unit is tokens. Default: characters.
        mode: `paper` as printed: a negative reward then *gains* by redundancy. `shift` divides r + 5, and takes 5
            away again: a group that is redundant all through keeps the order of its rewards.

    Returns:
        float64 [G].

    Raises ValueError where there is not one output for each reward, or a vector holds what is no number.
    """
    if len(rewards) != len(outputs):
        raise ValueError(f"{len(rewards)} rewards for {len(outputs)} outputs")
    return reweighted(rewards, redundancy(outputs, history, alpha, beta, encode=encode, length=length), mode)


def reweighted(rewards: Sequence[float], repeats: Redundancy, mode: Mode = "paper") -> Vectors:
    """r̃ of one group [G] whose redundancy is known: C eq. 5, in a mode of `reweight`."""
    if mode not in get_args(Mode):
        raise ValueError(f"there is no mode {mode!r}: {' or '.join(get_args(Mode))}")
    shift = _LOWEST if mode == "shift" else 0.0
    divided: Vectors = (np.asarray(rewards, np.float64) + shift) / repeats.divisor - shift
    return divided


def redundancy(
    outputs: Sequence[str],
    history: Sequence[str],
    alpha: float = 0.5,
    beta: float = 5.0,
    *,
    encode: Encode | None = None,
    length: Callable[[str], int] = len,
) -> Redundancy:
    """C eq. 6 and 7; arguments and errors are those of `reweight`. G = 1 has s_in = 0, and no history s_hi = 0."""
    n = len(outputs)
    vectors = _unit((encode or character_pairs)([*outputs, *history]))
    alike = np.clip(vectors[:n] @ vectors.T, 0, 1)
    others = alike[:, :n].sum(axis=1) - alike[:, :n].diagonal()
    s_in: Vectors = others / (n - 1) if n > 1 else np.zeros(n)
    s_hi: Vectors = alike[:, n:].mean(axis=1) if history else np.zeros(n)
    mean_length = sum(map(length, outputs)) / n if n else 0.0
    tau = float(np.exp(-np.logaddexp(0.0, -alpha * (mean_length - beta))))  # 1 / (1 + e^−x), for any x
    return Redundancy(s_in, s_hi, tau)


def decided_alone(rewards: Sequence[float], reweighted: Sequence[float]) -> bool:
    """Whether outputs of equal reward differ by their redundancy alone."""
    return len(set(rewards)) == 1 and not np.allclose(reweighted, reweighted[0], rtol=0, atol=1e-12)


def character_pairs(texts: Sequence[str]) -> Vectors:
    """Counts of pairs of neighbouring characters, [n, d]; of a single character its own count. White space is none."""
    bare = ["".join(text.split()) for text in texts]
    counts = [Counter(windows(one, 2)) or Counter(one) for one in bare]
    column = {pair: place for place, pair in enumerate(dict.fromkeys(pair for one in counts for pair in one))}
    vectors = np.zeros((len(texts), len(column)))
    for row, count in enumerate(counts):
        for pair, times in count.items():
            vectors[row, column[pair]] = times
    return vectors


def _unit(vectors: Vectors) -> Vectors:
    """Vectors of length 1; one of zeros stays, and is like nothing. Raises ValueError for what is no number."""
    vectors = np.asarray(vectors, np.float64)
    if not np.isfinite(vectors).all():
        raise ValueError(
            "an encoder gives vectors with NaN or infinity: they would pass for texts that are like nothing"
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit
