"""The exact Jaccard similarity of two texts as sets of char-5-grams, and the links that it makes among candidates."""

from typing import NamedTuple

import numpy as np

from pipelines.core.kernels import Bytes, Places, Shares, Slots, Words, kernel, part
from pipelines.dedup.components import Runs, find, singletons, unite
from pipelines.dedup.minhash import shingle_hash
from pipelines.dedup.shingles import SIZE, read_characters


class Links(NamedTuple):
    """For n rows: the row that each was last linked to (uint32 [n]; itself if none), and their similarity (float64)."""

    row: Words
    similarity: Shares


def no_links(n: int) -> Links:
    """Of n rows, none of which was linked."""
    return Links(singletons(n), np.ones(n))


def similarities(data: Bytes, offsets: Places, left: Words, right: Words, links: Links | None = None) -> Shares:
    """Jaccard similarity of texts `left[i]` and `right[i]` (rows, uint32 [m]), float64 [m] in 0 … 1.

    Two texts without a shingle have similarity 1. Fastest where equal rows of `left` stand together; what is among
    `links` is not computed again.
    """
    if links is None:
        return _similarities(data, offsets, left, right, _longest(offsets, np.concatenate([left, right])))
    known = np.where(links.row[left] == right, links.similarity[left], np.nan)
    known = np.where(links.row[right] == left, links.similarity[right], known)
    new = np.isnan(known)
    known[new] = similarities(data, offsets, left[new], right[new])
    return known


def link(
    data: Bytes, offsets: Places, runs: Runs, threshold: float, parents: Words, links: Links | None = None
) -> None:
    """Unites in `parents` the rows of each run that are linked by pairs of similarity ≥ `threshold`.

    Afterwards any two rows of a run that are similar enough are in one component. Rows that are united already are not
    compared: what was united before decides the work, not the components. There is no limit to the length of a run;
    only mutually different texts cost a square. The similarities are noted in `links`.
    """
    rows = runs.rows.copy()
    _link(
        data, offsets, rows, runs.starts, threshold, parents, links or no_links(len(parents)), _longest(offsets, rows)
    )


def _longest(offsets: Places, rows: Words) -> int:
    """Bytes of the longest of the texts."""
    return int((offsets[1:][rows] - offsets[:-1][rows]).max(initial=0))


class _Text(NamedTuple):
    """Room for a text whose shingles are looked up, or for one that is compared with it."""

    characters: Words
    sizes: Words
    table: Slots  # open addressing; a slot holds the place of a shingle, counted from 1, or 0
    firsts: Slots  # for each place the first one with the same shingle
    counted: Slots  # for each first place the number of the comparison that counted it last


@kernel
def _room(longest: int) -> _Text:
    """Room for a text of so many bytes."""
    length = longest + SIZE
    return _Text(
        np.empty(length, np.uint32),
        np.empty(length, np.uint32),
        np.empty(_n_slots(longest), np.int32),
        np.empty(length, np.int32),
        np.empty(length, np.int32),
    )


@part
def _n_slots(n: int) -> int:
    """Slots of a table for n shingles: a power of 2, of which at most half will be taken."""
    slots = 16
    while slots < 2 * n:
        slots *= 2
    return slots


@kernel
def _read(data: Bytes, start: int, stop: int, text: _Text) -> int:
    """Reads a text into its room and empties its table; returns the number of its characters."""
    _, n = read_characters(data, start, stop, text.characters, text.sizes, 0, stop - start)
    text.table[: _n_slots(n)] = 0
    return n


@part
def _slot(table: Slots, entered: Words, mask: int, characters: Words, place: int) -> int:
    """The slot of the shingle at `place` of `characters` in the table of the text `entered`: or where it would be."""
    slot = int(shingle_hash(characters, place) & mask)
    while table[slot] != 0:
        there = table[slot] - 1
        differing = np.uint32(0)
        for i in range(SIZE):
            differing |= entered[there + i] ^ characters[place + i]
        if differing == 0:
            break
        slot = (slot + 1) & mask
    return slot


@kernel
def _enter(text: _Text, n: int) -> int:
    """Enters all shingles of a text of n characters into its table; returns how many distinct ones there are."""
    # An array is taken out of its tuple once: in a loop this would cost more than the loop.
    characters, table, firsts, counted = text.characters, text.table, text.firsts, text.counted
    mask = _n_slots(n) - 1
    distinct = 0
    for place in range(n - SIZE + 1):
        slot = _slot(table, characters, mask, characters, place)
        if table[slot] == 0:
            table[slot] = place + 1
            counted[place] = -1
            distinct += 1
        firsts[place] = table[slot] - 1
    return distinct


@kernel
def _similarity(ours: _Text, n: int, distinct: int, theirs: _Text, m: int, comparison: int, threshold: float) -> float:
    """Jaccard similarity of a text of n characters whose shingles are entered with one of m that is read only. Every
    comparison with the same `ours` needs a number of its own, from 0 on. Where the similarity is certain to be below
    `threshold`, 0 may be returned instead.
    """
    our_characters, our_table, firsts, counted = ours.characters, ours.table, ours.firsts, ours.counted
    characters, table = theirs.characters, theirs.table
    if n < SIZE or m < SIZE:  # a shingle of fewer than five characters is a whole text, and part of no other
        if n != m:
            return 0.0
        for i in range(n):
            if our_characters[i] != characters[i]:
                return 0.0
        return 1.0
    our_mask, mask = _n_slots(n) - 1, _n_slots(m) - 1
    shared = 0
    union = distinct
    after = n  # the place after that of their last shingle, where their next one most likely is
    for place in range(m - SIZE + 1):
        if after <= n - SIZE and our_characters[after + SIZE - 1] == characters[place + SIZE - 1]:
            match = after  # its first four characters are the last four of the shingle before
        else:
            match = our_table[_slot(our_table, our_characters, our_mask, characters, place)] - 1
        if match >= 0:
            first = firsts[match]
            if counted[first] != comparison:
                counted[first] = comparison
                shared += 1
            after = match + 1
        else:
            slot = _slot(table, characters, mask, characters, place)
            if table[slot] == 0:
                table[slot] = place + 1
                union += 1
                if distinct / union < threshold:
                    return 0.0
            after = n
    return shared / union


@kernel
def _similarities(data: Bytes, offsets: Places, left: Words, right: Words, longest: int) -> Shares:
    made = np.empty(left.shape[0], np.float64)
    ours = _room(longest)
    theirs = _room(longest)
    n = 0
    distinct = 0
    begin = 0
    for i in range(left.shape[0]):
        if i == 0 or left[i] != left[i - 1]:
            n = _read(data, offsets[left[i]], offsets[left[i] + 1], ours)
            distinct = _enter(ours, n)
            begin = i
        m = _read(data, offsets[right[i]], offsets[right[i] + 1], theirs)
        made[i] = _similarity(ours, n, distinct, theirs, m, i - begin, 0.0)
    return made


@kernel
def _link(
    data: Bytes,
    offsets: Places,
    rows: Words,
    starts: Places,
    threshold: float,
    parents: Words,
    links: Links,
    longest: int,
) -> None:
    ours = _room(longest)
    theirs = _room(longest)
    entered, n, distinct, comparison = -1, 0, 0, 0  # a text that leads several runs after one another is read once
    for run in range(starts.shape[0] - 1):
        # rows[begin:reached] are one component, of which rows[begin:leader] have been compared with all others; what
        # belongs to it is moved to its end.
        begin = starts[run]
        stop = starts[run + 1]
        while begin < stop:
            leader = begin
            reached = begin + 1
            while leader < reached < stop:
                for i in range(reached, stop):
                    row = rows[i]
                    linked = find(parents, row) == find(parents, rows[leader])
                    if not linked:
                        if entered != rows[leader]:
                            entered, comparison = rows[leader], 0
                            n = _read(data, offsets[entered], offsets[entered + 1], ours)
                            distinct = _enter(ours, n)
                        m = _read(data, offsets[row], offsets[row + 1], theirs)
                        similarity = _similarity(ours, n, distinct, theirs, m, comparison, threshold)
                        comparison += 1
                        linked = similarity >= threshold
                        if linked:
                            unite(parents, row, rows[leader])
                            links.row[row], links.similarity[row] = rows[leader], similarity
                    if linked:
                        rows[i] = rows[reached]
                        rows[reached] = row
                        reached += 1
                leader += 1
            begin = reached
