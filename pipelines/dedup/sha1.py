"""SHA-1 of shingles, many at once: written lane by lane, for the compiler to put 8 or 16 lanes in one register.

A shingle has at most 20 bytes, so that a message is a single block of SHA-1 (FIPS 180-4): six words hold it and its
end mark, eight are zero, the last two its length in bits. Of the digest only the first word is wanted.
"""

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from pipelines.core.kernels import Words, part

_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0)
_CONSTANTS = (0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6)  # one for each twenty of the eighty rounds
_WORD = ir.IntType(32)


def _emit_first_word(_context: Any, w0: Any, w1: Any, w2: Any, w3: Any, w4: Any, w5: Any, w15: Any) -> Any:
    """First word of the digest of a block whose words 0 … 5 and 15 are given and whose others are zero (uint32).

    Emitted instruction by instruction because numba unrolls no loop by itself, and a loop within would keep LLVM from
    taking several messages at a time.
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
