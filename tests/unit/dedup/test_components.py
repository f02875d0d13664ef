"""Union-find gives what scipy gives, whatever the order of the unions."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from near_texts import components, partition

from pipelines.dedup.components import roots, singletons, unite_pairs

N = 30
EDGES = st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)), max_size=40)


def united(edges: list[tuple[int, int]]) -> list[int]:
    parents = singletons(N)
    unite_pairs(parents, *np.array(edges, np.uint32).reshape(-1, 2).T.copy())
    return roots(parents).tolist()


@given(EDGES, st.randoms(use_true_random=False))
def test_components_are_those_of_scipy_in_any_order(edges: list[tuple[int, int]], random) -> None:
    found = united(edges)
    assert partition(found) == components(N, edges)
    assert all(name == min(row for row in range(N) if found[row] == name) for name in found)
    random.shuffle(edges)
    assert united([edge[::-1] for edge in edges]) == found


def test_a_long_chain_is_one_component() -> None:
    n = 200_000
    parents = singletons(n)
    rows = np.arange(n, dtype=np.uint32)
    unite_pairs(parents, rows[1:][::-1].copy(), rows[:-1][::-1].copy())
    assert not roots(parents).any()
