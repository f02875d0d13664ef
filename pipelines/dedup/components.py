"""Connected components over rows: union-find in one array, where the smallest row of a component stands for it."""

from typing import NamedTuple

import numpy as np

from pipelines.core.kernels import Places, Words, kernel, part


class Runs(NamedTuple):
    """Rows that share a key, run after run.

    rows: uint32 [m], rising within a run.
    starts: int64 [n_runs + 1]; run i is `rows[starts[i]:starts[i + 1]]`, two rows at least.
    """

    rows: Words
    starts: Places


def singletons(n: int) -> Words:
    """A forest of n rows, each alone: parent of each row, uint32 [n]."""
    return np.arange(n, dtype=np.uint32)


@part
def find(parents: Words, row: int) -> int:
    """The smallest row of the component of `row`; halves the path to it."""
    while parents[row] != row:
        parents[row] = parents[parents[row]]
        row = parents[row]
    return row


@part
def root(parents: Words, row: int) -> int:
    """What `find` gives, with nothing written: for threads that look at the same forest."""
    while parents[row] != row:
        row = parents[row]
    return row


@part
def unite(parents: Words, one: int, other: int) -> None:
    """Joins the components of two rows."""
    one = find(parents, one)
    other = find(parents, other)
    if one < other:
        parents[other] = one
    else:
        parents[one] = other


@kernel
def unite_pairs(parents: Words, left: Words, right: Words) -> None:
    """Joins the components of `left[i]` and `right[i]`, for all i."""
    for i in range(left.shape[0]):
        unite(parents, left[i], right[i])


@kernel
def roots(parents: Words) -> Words:
    """The smallest row of every row's component, uint32 [n]; the same whatever the order of the unions."""
    names = np.empty_like(parents)
    for row in range(parents.shape[0]):
        names[row] = find(parents, row)
    return names
