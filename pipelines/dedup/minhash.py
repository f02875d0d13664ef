"""MinHash signatures of char-5-gram sets: those of datasketch 2.0, bit for bit, or the same with a cheaper hash.

A shingle's 32-bit hash is mixed once, then each permutation p maps it to a_p · h + b_p mod 2^32, a_p odd; the signature
holds the smallest value of each permutation (datasketch 2.0's scheme "affine32", the source of the numbers here).

Modes: "exact" hashes a shingle by SHA-1, as datasketch does; "fast" by a sum of products, which costs almost nothing.
Both estimate the same Jaccard similarity with the same error; their signatures do not compare with each other.
"""

from functools import cache
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from pipelines.core.arrow import Texts, buffers
from pipelines.core.kernels import Bytes, Places, Words, kernel, part
from pipelines.dedup.shingles import BLOCK, LANES, ROOM, SIZE, read_characters
from pipelines.errors import RequestError, UnknownName

_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0)
_CONSTANTS = (0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6)  # one for each twenty of the eighty rounds
_WORD = ir.IntType(32)


def _emit_first_word(_context: Any, w0: Any, w1: Any, w2: Any, w3: Any, w4: Any, w5: Any, w15: Any) -> Any:
    """First word of the digest of a block whose words 0 … 5 and 15 are given and whose others are zero (uint32). A
    shingle has at most 20 bytes: one block of SHA-1 (FIPS 180-4), with its length in word 15. Emitted instruction by
    instruction: numba unrolls no loop, and a loop within would keep LLVM from taking several messages at a time.
    """

    def emit(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        def word(value: int) -> Any:
            return ir.Constant(_WORD, value)

        def rotated(value: Any, places: int) -> Any:
            return builder.or_(builder.shl(value, word(places)), builder.lshr(value, word(32 - places)))

        def total(*terms: Any) -> Any:
            first, *others = terms
            for term in others:
                first = builder.add(first, term)
            return first

        def parity(*terms: Any) -> Any:
            first, *others = terms
            for term in others:
                first = builder.xor(first, term)
            return first

        def choice(b: Any, c: Any, d: Any) -> Any:
            return parity(d, builder.and_(b, parity(c, d)))

        def majority(b: Any, c: Any, d: Any) -> Any:
            return builder.or_(builder.and_(b, c), builder.and_(d, builder.or_(b, c)))

        schedule = [*given[:6], *(word(0) for _ in range(9)), given[6]]
        for t in range(16, 80):
            schedule.append(rotated(parity(*(schedule[t - back] for back in (3, 8, 14, 16))), 1))

        a, b, c, d, e = map(word, _START)
        for t, scheduled in enumerate(schedule):
            mixed = (choice, parity, majority, parity)[t // 20](b, c, d)
            a, b, c, d, e = (
                total(rotated(a, 5), mixed, e, word(_CONSTANTS[t // 20]), scheduled),
                a,
                rotated(b, 30),
                c,
                d,
            )
        return builder.bswap(total(a, word(_START[0])))

    return types.uint32(w0, w1, w2, w3, w4, w5, w15), emit


_first_word: Any = intrinsic(_emit_first_word)


@part
def sha1_hashes(characters: Words, sizes: Words, n: int, words: Words, hashes: Words) -> None:
    """The first four bytes of the SHA-1 of shingles 0 … n - 1, as a little-endian number: datasketch's `sha1_hash32`.

    Shingle s is characters s … s + 4; a character of size 0 is none, and only the first may not be. `words` (uint32
    [7, n]) is room to work in.
    """
    all_bits = np.uint64(64)
    for s in range(n):
        # The five characters and the end mark (0x80) are joined, flush left, in three words of 64 bits. To shift by
        # 64 is undefined: what may come to that is shifted twice by half.
        bits_ab = np.uint64(8) * (np.uint64(sizes[s]) + np.uint64(sizes[s + 1]))
        bits_cd = np.uint64(8) * (np.uint64(sizes[s + 2]) + np.uint64(sizes[s + 3]))
        bits_e = np.uint64(8) * np.uint64(sizes[s + 4])
        half_ab = bits_ab >> np.uint64(1)
        half_cd = bits_cd >> np.uint64(1)
        half_free = np.uint64(32) - half_cd
        ab = np.uint64(characters[s]) << np.uint64(8) * np.uint64(sizes[s + 1]) | np.uint64(characters[s + 1])
        cd = np.uint64(characters[s + 2]) << np.uint64(8) * np.uint64(sizes[s + 3]) | np.uint64(characters[s + 3])
        e = (np.uint64(characters[s + 4]) << np.uint64(8) | np.uint64(0x80)) << (np.uint64(56) - bits_e)
        cd = cd << (half_free << np.uint64(1) & np.uint64(63)) | e >> half_cd >> half_cd
        e = e << half_free << half_free
        first = ab << (all_bits - bits_ab) | cd >> half_ab >> half_ab
        second = cd << (all_bits - bits_ab) | e >> half_ab >> half_ab
        third = e << (all_bits - bits_ab)
        words[0, s] = np.uint32(first >> np.uint64(32))
        words[1, s] = np.uint32(first)
        words[2, s] = np.uint32(second >> np.uint64(32))
        words[3, s] = np.uint32(second)
        words[4, s] = np.uint32(third >> np.uint64(32))
        words[5, s] = np.uint32(third)
        words[6, s] = np.uint32(bits_ab + bits_cd + bits_e)
    for s in range(n):
        hashes[s] = _first_word(
            words[0, s], words[1, s], words[2, s], words[3, s], words[4, s], words[5, s], words[6, s]
        )


Mode = Literal["exact", "fast"]

NOTHING = np.uint32(0xFFFFFFFF)  # what datasketch's MinHash holds before it has seen a shingle
NUM_PERM, SEED = 128, 1

# Odd numbers of 64 bits, drawn once, for the five places of a shingle.
_FACTORS = tuple(
    np.uint64(factor)
    for factor in (0xCE14ABEEABB8E5A9, 0xCED5352505CC99F5, 0x83EC603F7806ADC1, 0x492A477CA1570477, 0x0DCE670AFAC210ED)
)


def signatures(texts: Texts, num_perm: int = NUM_PERM, seed: int = SEED, mode: Mode = "exact") -> NDArray[np.uint32]:
    """MinHash signatures over UTF-8 char-5-grams, uint32 [n, num_perm].

    In mode "exact" row i equals `datasketch.MinHash(num_perm, seed)`'s `hashvalues` after an update with every shingle
    of text i (datasketch 2.0). A text of 1 to 4 characters is one shingle; an empty text or a null has none, and all
    values at their highest. To hand a row over: `MinHash(seed=seed, hashvalues=row, scheme="affine32")`.

    Raises RequestError for an unknown mode, no permutation, or what is no text.
    """
    exact = is_exact(mode)
    a, b = permutations(num_perm, seed)
    data, offsets = buffers(texts)
    rows = np.empty((len(offsets) - 1, num_perm), np.uint32)
    _sign_all(data, offsets, exact, a, b, rows)
    return rows


def is_exact(mode: str) -> bool:
    """Whether `mode` is "exact"; raises UnknownName if it is not "fast" either."""
    if mode not in get_args(Mode):
        raise UnknownName("mode", mode, get_args(Mode))
    return mode == "exact"


@cache
def permutations(num_perm: int, seed: int) -> tuple[Words, Words]:
    """The factors and summands of datasketch's permutations, uint32 [num_perm] each."""
    if num_perm < 1:
        raise RequestError(f"a signature needs permutations, not {num_perm}", hint="128 is the usual number")
    from datasketch import MinHash  # type: ignore[import-untyped]

    a, b = MinHash(num_perm=num_perm, seed=seed).permutations
    return np.ascontiguousarray(a, np.uint32), np.ascontiguousarray(b, np.uint32)


class Block(NamedTuple):
    """Working space for one block of a text."""

    characters: Words
    sizes: Words
    words: Words  # of SHA-1
    hashes: Words


@kernel
def new_block() -> Block:
    """Working space, to be used for one text after the other."""
    return Block(
        np.zeros(ROOM + SIZE, np.uint32),
        np.zeros(ROOM + SIZE, np.uint32),
        np.empty((7, ROOM), np.uint32),
        np.empty(ROOM, np.uint32),
    )


@kernel
def _sign_all(data: Bytes, offsets: Places, exact: bool, a: Words, b: Words, rows: Words) -> None:
    block = new_block()
    for row in range(rows.shape[0]):
        sign(data, offsets[row], offsets[row + 1], exact, a, b, block, rows[row])


@kernel
def sign(data: Bytes, start: int, stop: int, exact: bool, a: Words, b: Words, block: Block, signature: Words) -> None:
    """The signature of the text `data[start:stop]`, block by block, into `signature`."""
    characters, sizes, words, hashes = block
    signature[:] = NOTHING
    held = 0
    while start < stop:
        start, held = read_characters(data, start, stop, characters, sizes, held, BLOCK + SIZE - 1)
        for i in range(held, SIZE):  # a text shorter than a shingle
            characters[i] = 0
            sizes[i] = 0
        n = max(held - SIZE + 1, 1)
        padded = (n + LANES - 1) // LANES * LANES
        if exact:
            sha1_hashes(characters, sizes, padded, words, hashes)
        else:
            for s in range(padded):
                hashes[s] = shingle_hash(characters, s)
        for i in range(n, padded):
            hashes[i] = hashes[n - 1]  # a minimum does not mind seeing a value twice
        _mix(hashes, padded)
        _lower(hashes, padded, a, b, signature)
        if start < stop:  # the next block begins with the last characters of this one
            held -= SIZE - 1
            for i in range(SIZE - 1):
                characters[i] = characters[held + i]
                sizes[i] = sizes[held + i]
            held = SIZE - 1


@part
def shingle_hash(characters: Words, s: int) -> np.uint32:
    """A 32-bit hash of shingle s, characters s … s + 4: the upper half of a sum of products, one odd factor a place.

    Multilinear hashing: two shingles collide with a chance of about 2^-32 over the choice of factors.
    """
    total = (
        np.uint64(characters[s]) * _FACTORS[0]
        + np.uint64(characters[s + 1]) * _FACTORS[1]
        + np.uint64(characters[s + 2]) * _FACTORS[2]
        + np.uint64(characters[s + 3]) * _FACTORS[3]
        + np.uint64(characters[s + 4]) * _FACTORS[4]
    )
    return np.uint32(total >> np.uint64(32))


@part
def _mix(hashes: Words, n: int) -> None:
    """MurmurHash3's finaliser, as datasketch applies it before the permutations."""
    for s in range(n):
        h = hashes[s]
        h ^= h >> np.uint32(16)
        h = np.uint32(h * np.uint32(0x85EBCA6B))
        h ^= h >> np.uint32(13)
        h = np.uint32(h * np.uint32(0xC2B2AE35))
        h ^= h >> np.uint32(16)
        hashes[s] = h


@part
def _lower(hashes: Words, n: int, a: Words, b: Words, signature: Words) -> None:
    """Lowers each value of `signature` to the smallest that its permutation gives of hashes 0 … n - 1. Some hashes for
    all permutations, then the next: permutations lie side by side in a register, so that no minimum has to be taken
    across one.
    """
    for first in range(0, n, LANES):
        for p in range(signature.shape[0]):
            least, factor, summand = signature[p], a[p], b[p]
            for s in range(LANES):
                least = min(least, np.uint32(factor * hashes[first + s] + summand))
            signature[p] = least
