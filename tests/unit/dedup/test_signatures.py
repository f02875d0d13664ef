"""Signatures: those of datasketch, bit for bit; or of another hash with the same estimate."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
from datasketch import MinHash, MinHashLSH
from hypothesis import example, given
from hypothesis import strategies as st
from near_texts import TEXTS, edited, jaccard, shingles, smile

from pipelines.dedup import signatures
from pipelines.dedup.shingles import BLOCK
from pipelines.errors import RequestError


def reference(texts: list[str], num_perm: int = 128, seed: int = 1) -> np.ndarray:
    sets = ([shingle.encode() for shingle in shingles(text)] for text in texts)
    made = [minhash.hashvalues for minhash in MinHash.bulk(sets, num_perm=num_perm, seed=seed)]
    return np.array(made, np.uint32).reshape(len(texts), num_perm)


@given(st.lists(st.one_of(st.text(), TEXTS), max_size=8))
@example(["", "a", "é", "我", "😀", "\0", "a\0", "abcd", "abcde", "我们都是谁", "😀" * 4, "😀" * 5, "é" * 6])
@example(["a我😀é\u200d\ufeff\U0010ffff\ud7ff\ue000", "\n\n\n\n\n", "　　　　　　", "👨‍👩‍👧‍👦" * 3, "1️⃣2️⃣3️⃣"])
def test_signatures_are_those_of_datasketch(texts: list[str]) -> None:
    np.testing.assert_array_equal(signatures(texts), reference(texts))


def test_a_text_of_several_blocks_is_one_text() -> None:
    random, sizes = Random(1), [BLOCK + extra for extra in (0, 1, 4, 5, BLOCK + 4, BLOCK + 5)]
    texts = ["".join(random.choices(alphabet, k=n)) for alphabet in ("ab", "我们", "a我é😀", "😀") for n in sizes]
    np.testing.assert_array_equal(signatures(texts), reference(texts))


def test_any_number_of_permutations_and_any_seed() -> None:
    texts = ["今天没睡着，明天也许会好", "abc", ""]
    for num_perm, seed in ((1, 1), (7, 2), (256, 12345)):
        np.testing.assert_array_equal(signatures(texts, num_perm, seed), reference(texts, num_perm, seed))
    with pytest.raises(RequestError, match="permutations"):
        signatures(["我"], num_perm=0)


def test_what_has_no_shingle_looks_like_a_minhash_that_saw_none() -> None:
    for mode in ("exact", "fast"):
        assert (signatures(["", None], mode=mode) == MinHash(128).hashvalues).all()
    assert signatures([]).shape == (0, 128)


def test_what_is_no_unicode_counts_as_the_replacement_character() -> None:
    broken = ["睡不着\ud800怎么办", "睡不着\udfff怎么办", "睡不着".encode() + b"\xe6\x80" + "怎么办".encode()]
    expected = np.repeat(reference(["睡不着\ufffd怎么办"]), 3, axis=0)
    np.testing.assert_array_equal(signatures(broken), expected)
    np.testing.assert_array_equal(signatures(["\ud83d\ude00我们都好"]), reference(["😀我们都好"]))


@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_both_modes_estimate_the_similarity(shared: Path, mode: str) -> None:
    """128 permutations: a standard error of at most 0.5 / √128 = 0.044."""
    random = Random(1)
    pairs = [(text, edited(text, random, share)) for text in smile(shared) for share in (0.01, 0.03, 0.1)]
    ours, theirs = (signatures(list(side), mode=mode) for side in zip(*pairs, strict=True))
    errors = (ours == theirs).mean(axis=1) - np.array([jaccard(*pair) for pair in pairs])
    assert np.sqrt((errors**2).mean()) < 0.044
    assert abs(errors.mean()) < 0.01


def test_signatures_go_into_datasketch_and_come_back() -> None:
    text = "最近总是睡不好，一到晚上就想很多事情，第二天上班完全没有精神，不知道该怎么办才好"
    near, far = text + "。", "孩子不肯上学，老师也没有办法，我们做父母的真的很着急，想听听大家的意见和经验"
    ours = [MinHash(seed=1, hashvalues=row, scheme="affine32") for row in signatures([text, near, far])]
    index = MinHashLSH(threshold=0.8, num_perm=128)
    for name, minhash in zip("tnf", ours, strict=True):
        index.insert(name, minhash)
    theirs = MinHash.bulk([[one.encode() for one in shingles(text)]], num_perm=128, seed=1)[0]
    assert set(index.query(theirs)) == {"t", "n"}
    assert theirs.jaccard(ours[0]) == 1.0
    np.testing.assert_array_equal(np.stack([one.hashvalues for one in ours]), signatures([text, near, far]))
