"""Which persona a dialogue is rewritten to: one of the same cluster, never its own (C), the same at every draw.

By highest random weight (rendezvous hashing, Thaler and Ravishankar 1998), so that no other row moves a draw.
"""

from collections import defaultdict

import numpy as np
import numpy.typing as npt
import polars as pl

from schemas.dropped import Row
from schemas.ids import digest

_Words = npt.NDArray[np.uint64]


class Draws:
    """The personas that are drawn for the speakers of dialogues.

    Args:
        personas: Rows of `personas`. Only `fitted` ones are drawn. Other columns come back as they are.
        seed: Another seed, other draws.
    """

    def __init__(self, personas: pl.DataFrame, seed: int) -> None:
        self._seed = seed
        self._rows = {row["persona_id"]: row for row in personas.iter_rows(named=True)}
        self._pools: dict[tuple[str, int, str], list[Row]] = defaultdict(list)
        for _, row in sorted(self._rows.items()):
            if row["fitted"]:
                self._pools[_pool_key(row)].append(row)
        self._words = {
            key: np.array([_word(row["persona_id"]) for row in rows], np.uint64) for key, rows in self._pools.items()
        }
        self._groups = {key: np.array([row["group_id"] for row in rows]) for key, rows in self._pools.items()}

    def of(self, dialogue_id: str, role: str) -> Row | None:
        """The persona for a speaker: of the same cluster, role and language, and of another group.

        So neither its own nor that of a near-duplicate. None where the speaker has no persona, or the pool no other.
        """
        own = self._rows.get(f"{dialogue_id}/{role}")
        key = _pool_key(own) if own else None
        if own is None or key not in self._words:
            return None
        others = np.flatnonzero(self._groups[key] != own["group_id"])
        if not len(others):
            return None
        weights = _mixed(self._words[key][others] ^ _word(str(self._seed), dialogue_id, role))
        return self._pools[key][int(others[np.argmax(weights)])]


def _pool_key(row: Row) -> tuple[str, int, str]:
    return row["role"], row["cluster"], row["lang"]


def _word(*parts: str) -> np.uint64:
    return np.uint64(int(digest("\x1f".join(parts), 16), 16))


def _mixed(words: _Words) -> _Words:
    """The finalizer of splitmix64 (Steele et al. 2014): a digest of each pair would take hours for a large pool."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: _Words = words ^ (words >> np.uint64(31))
    return mixed
