"""The exact Jaccard similarity of two texts as sets of char-5-grams, and the links that it makes among candidates."""

from typing import NamedTuple

import numpy as np

from pipelines.core.kernels import Bytes, Keys, Places, Shares, Slots, Words, by_range, kernel, part
from pipelines.dedup.components import Runs, root, singletons, unite
from pipelines.dedup.minhash import shingle_hash
from pipelines.dedup.shingles import SIZE, read_characters

_SKETCH = 16  # words
_LEAST = 256  # runs or pairs, for a thread


class Links(NamedTuple):
    """For n rows: the row that each was last linked to (uint32 [n]; itself if none), and their similarity (float64);
    and what most comparisons end with, made when a text is first compared.

    sketches: uint64 [n, 16], a bit for each shingle, by its hash.
    lengths: uint32 [n], the characters of a text; 0 where its sketch was not made yet.
    unlike: uint32 [n], the row that each was last compared with and not linked to.
    """

    row: Words
    similarity: Shares
    sketches: Keys
    lengths: Words
    unlike: Words


def no_links(n: int) -> Links:
    """Of n rows, none of which was linked."""
    return Links(singletons(n), np.ones(n), np.zeros((n, _SKETCH), np.uint64), np.zeros(n, np.uint32), singletons(n))


def similarities(data: Bytes, offsets: Places, left: Words, right: Words, links: Links | None = None) -> Shares:
    """Jaccard similarity of texts `left[i]` and `right[i]` (rows, uint32 [m]), float64 [m] in 0 … 1.

    Two texts without a shingle have similarity 1. Fastest where equal rows of `left` stand together; what is among
    `links` is not computed again.
    """
    if links is None:
        longest = _longest(offsets, np.concatenate([left, right]))

        def measure(begin: int, end: int) -> Shares:
            return _similarities(data, offsets, left[begin:end], right[begin:end], longest)

        return np.concatenate(by_range(measure, len(left), _LEAST))
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
    only mutually different texts cost a square. The similarities are noted in `links`. No row may be in two runs.
    """
    rows, links = runs.rows.copy(), links or no_links(len(parents))
    linked, others, shares = np.empty_like(rows), np.empty_like(rows), np.empty(len(rows))
    longest = _longest(offsets, rows)

    def find_some(begin: int, end: int) -> tuple[int, int]:
        starts = runs.starts[begin : end + 1]
        return starts[0], _find(data, offsets, rows, starts, threshold, parents, links, longest, linked, others, shares)

    for begin, n in by_range(find_some, len(runs.starts) - 1, _LEAST):
        _unite(parents, links, linked[begin : begin + n], others[begin : begin + n], shares[begin : begin + n])


def _longest(offsets: Places, rows: Words) -> int:
    """Bytes of the longest of the texts."""
    return int((offsets[1:][rows] - offsets[:-1][rows]).max(initial=0))


class _Text(NamedTuple):
    """Room for a text whose shingles are looked up, or for one that is compared with it."""

    characters: Words
    sizes: Words
    hashes: Words  # of the shingle that begins at each place
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
    """Reads a text into its room, and hashes its shingles; returns the number of its characters."""
    characters, hashes = text.characters, text.hashes
    _, n = read_characters(data, start, stop, characters, text.sizes, 0, stop - start)
    for place in range(n - SIZE + 1):
        hashes[place] = shingle_hash(characters, place)
    return n


@part
def _slot(
    table: Slots, entered: Words, their_hashes: Words, mask: int, characters: Words, hashes: Words, place: int
) -> int:
    """The slot of the shingle at `place` of a text in the table of the text that is `entered`: or where it would be."""
    slot = int(hashes[place] & mask)
    while table[slot] != 0:
        there = table[slot] - 1
        if their_hashes[there] == hashes[place]:
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
    characters, hashes, table = text.characters, text.hashes, text.table
    firsts, counted = text.firsts, text.counted
    mask = _n_slots(n) - 1
    table[: mask + 1] = 0
    distinct = 0
    for place in range(n - SIZE + 1):
        slot = _slot(table, characters, hashes, mask, characters, hashes, place)
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
    our_characters, our_hashes, our_table = ours.characters, ours.hashes, ours.table
    firsts, counted = ours.firsts, ours.counted
    characters, hashes, table = theirs.characters, theirs.hashes, theirs.table
    if n < SIZE or m < SIZE:  # a shingle of fewer than five characters is a whole text, and part of no other
        if n != m:
            return 0.0
        for i in range(n):
            if our_characters[i] != characters[i]:
                return 0.0
        return 1.0
    our_mask, mask = _n_slots(n) - 1, _n_slots(m) - 1
    table[: mask + 1] = 0
    shared = 0
    union = distinct
    after = n  # the place after that of their last shingle, where their next one most likely is
    for place in range(m - SIZE + 1):
        if after <= n - SIZE and our_characters[after + SIZE - 1] == characters[place + SIZE - 1]:
            match = after  # its first four characters are the last four of the shingle before
        else:
            match = our_table[_slot(our_table, our_characters, our_hashes, our_mask, characters, hashes, place)] - 1
        if match >= 0:
            first = firsts[match]
            if counted[first] != comparison:
                counted[first] = comparison
                shared += 1
            after = match + 1
        else:
            slot = _slot(table, characters, hashes, mask, characters, hashes, place)
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
def _find(
    data: Bytes,
    offsets: Places,
    rows: Words,
    starts: Places,
    threshold: float,
    parents: Words,
    links: Links,
    longest: int,
    linked: Words,
    others: Words,
    shares: Shares,
) -> int:
    """Writes which rows are linked, to which others, and their similarity, from `starts[0]` on; returns how many links.
    Of `links` it fills what ends later comparisons: sketches, lengths, unlike. `rows` are brought into another order
    within their run.
    """
    sketches, lengths, unlike = links.sketches, links.lengths, links.unlike
    ours = _room(longest)
    theirs = _room(longest)
    entered, n, distinct, comparison = -1, 0, 0, 0  # a text that leads several runs after one another is read once
    first = end = starts[0]
    for run in range(starts.shape[0] - 1):
        # rows[begin:reached] are one component, of which rows[begin:leader] have been compared with all others; what
        # belongs to it is moved to its end.
        begin = starts[run]
        stop = starts[run + 1]
        while begin < stop:
            leader = begin
            reached = begin + 1
            while leader < reached < stop:
                lead = rows[leader]
                of_leader = root(parents, lead)
                for i in range(reached, stop):
                    row = rows[i]
                    same = root(parents, row) == of_leader
                    if same or unlike[row] == lead:
                        pass
                    elif _far(data, offsets, sketches, lengths, lead, row, threshold, theirs):
                        unlike[row] = lead
                    else:
                        if entered != lead:
                            entered, comparison = lead, 0
                            n = _read(data, offsets[entered], offsets[entered + 1], ours)
                            distinct = _enter(ours, n)
                        m = _read(data, offsets[row], offsets[row + 1], theirs)
                        similarity = _similarity(ours, n, distinct, theirs, m, comparison, threshold)
                        comparison += 1
                        same = similarity >= threshold
                        if same:
                            linked[end], others[end], shares[end] = row, lead, similarity
                            end += 1
                        else:
                            unlike[row] = lead
                    if same:
                        rows[i] = rows[reached]
                        rows[reached] = row
                        reached += 1
                leader += 1
            begin = reached
    return int(end - first)


@kernel
def _far(
    data: Bytes, offsets: Places, sketches: Keys, lengths: Words, one: int, other: int, threshold: float, room: _Text
) -> bool:
    """Whether the sketches of two rows, made here where there is none yet, show that the similarity of their texts is
    below `threshold`.

    Each bit in which they differ stands for a shingle, or more, that only one of the texts has. With d such shingles of
    at most S in both together the similarity is at most (S - d) / (S + d).
    """
    for row in (one, other):
        if lengths[row] == 0:
            hashes = room.hashes
            lengths[row] = _read(data, offsets[row], offsets[row + 1], room)
            for place in range(int(lengths[row]) - SIZE + 1):
                bit = np.uint64(hashes[place]) & np.uint64(64 * _SKETCH - 1)
                sketches[row, bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))
    n, m = int(lengths[one]), int(lengths[other])
    if n < SIZE or m < SIZE:
        return False
    differing = np.uint64(0)
    for word in range(_SKETCH):
        differing += _bits(sketches[one, word] ^ sketches[other, word])
    most = n + m - 2 * SIZE + 2
    return float(differing) * (1 + threshold) > most * (1 - threshold) + 1e-6  # which rounding must not decide


@part
def _bits(word: np.uint64) -> np.uint64:
    """How many bits are set; LLVM knows this sum as one instruction."""
    word -= word >> np.uint64(1) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + (word >> np.uint64(2) & np.uint64(0x3333333333333333))
    word = word + (word >> np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return word * np.uint64(0x0101010101010101) >> np.uint64(56)


@kernel
def _unite(parents: Words, links: Links, linked: Words, others: Words, shares: Shares) -> None:
    """Joins the components of rows that are linked, and notes the links."""
    for i in range(linked.shape[0]):
        unite(parents, linked[i], others[i])
        links.row[linked[i]], links.similarity[linked[i]] = others[i], shares[i]
