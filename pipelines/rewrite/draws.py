"""Which persona a dialogue is rewritten to: one of the same cluster, never its own (C), the same at every draw.

The draw is by highest random weight (rendezvous hashing, Thaler and Ravishankar 1998): each persona of the pool has a
weight for each speaker that follows from the seed and the two ids, and the greatest wins. So no other row moves a draw:
a persona that is gone takes only those draws with it that had fallen on it.
"""

from collections import defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from schemas.ids import digest

Row = dict[str, Any]
_Words = npt.NDArray[np.uint64]


class Draws:
    """The personas that were drawn for the speakers of dialogues.

    Args:
        personas: Rows of `personas`. Only `fitted` ones are drawn. Other columns may stand beside and come back.
        seed: Another seed, other draws.
    """

    def __init__(self, personas: pl.DataFrame, seed: int) -> None:
        self._seed = seed
        self._rows = {row["persona_id"]: row for row in personas.iter_rows(named=True)}
        like: dict[tuple[str, int, str], list[str]] = defaultdict(list)
        for persona_id in sorted(self._rows):
            row = self._rows[persona_id]
            if row["fitted"]:
                like[_alike(row)].append(persona_id)
        self._pools = {kind: _Pool([self._rows[one] for one in ids]) for kind, ids in like.items()}

    def of(self, dialogue_id: str, role: str) -> Row | None:
        """The persona for a speaker: of the cluster, role and language of the speaker's own, and of another group.

        So neither its own nor that of a near-duplicate. None where the speaker has no persona of their own, or the pool
        holds no other.
        """
        own = self._rows.get(f"{dialogue_id}/{role}")
        pool = self._pools.get(_alike(own)) if own else None
        return pool.drawn(_word(str(self._seed), dialogue_id, role), own["group_id"]) if own and pool else None


class _Pool:
    """Personas of one cluster, role and language."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows
        self._groups = np.array([row["group_id"] for row in rows])
        self._words = np.array([_word(row["persona_id"]) for row in rows], np.uint64)

    def drawn(self, speaker: np.uint64, group_id: str) -> Row | None:
        """The row with the greatest weight for the speaker among those of other groups."""
        others = np.flatnonzero(self._groups != group_id)
        if not len(others):
            return None
        return self._rows[int(others[np.argmax(_mixed(self._words[others] ^ speaker))])]


def _alike(row: Row) -> tuple[str, int, str]:
    return row["role"], row["cluster"], row["lang"]


def _word(*parts: str) -> np.uint64:
    return np.uint64(int(digest("\x1f".join(parts), 16), 16))


def _mixed(words: _Words) -> _Words:
    """The finalizer of splitmix64 (Steele et al. 2014): a digest of each pair would take hours for a large pool."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: _Words = words ^ (words >> np.uint64(31))
    return mixed
