"""Documents with known near-duplicates: what the benchmarks of cleaning and de-duplication run on.

    python -m benchmarks.corpus CORPUS.parquet [--documents N] [--pairs PAIRS.npy] [--times K]

The sentences come from the public sets of ../shared/data (SMILE, CPsyCoun, PsyQA), or from samples/ without them. First
each stretch of a source as it stands, then, since they hold only some 6,000 documents, short runs of sentences from
several sources joined: so many joins are possible that two of them are hardly ever alike. 17 % of the documents are
planted: copies of others with a few characters changed, with the junk of a platform around them, or cut short.

The truth owes nothing to MinHash. Two sets with J ≥ t share an element among the rarest |A| - ⌈t·|A|⌉ + 1 of each
(Chaudhuri et al., 2006, prefix filter); every pair that does is compared in whole numbers. No pair is missed.

`--times K` makes the file K times as long, quickly: copies in which every eighth character is another one, so that they
are no near-duplicates of anything.
"""

import argparse
import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data"
PLANTED = 0.17
MEAN_LENGTH, LENGTHS = 190, (50, 500)  # characters; the mean comes out at about 200, since sentences stay whole
SHINGLE = 5
BEFORE = ("转发微博 ", "【求助】", "//@路过的人:", "标题：", "刚刚 来自 iPhone客户端\n")
AFTER = (
    "…展开全文",
    "[泪][泪]",
    "[doge]",
    " 网页链接",
    "\n发布于 2023-04-05 21:30",
    " #心情日记#",
    "🙏🙏",
    "\n点赞 12 收藏 3",
)


def _shared() -> Iterator[str]:
    for archive in ("smile_raw", "cpsycound_raw"):
        with tarfile.open(SHARED / "zh_multiturn" / f"{archive}.tar.gz") as members:
            for member in sorted((one for one in members if one.isfile()), key=lambda one: one.name):
                text = members.extractfile(member).read().decode()
                if member.name.endswith(".json"):
                    yield "\n".join(turn["content"] for turn in json.loads(text))
                else:
                    yield re.sub(r"^[^：:\n]{1,6}[：:]", "", text, flags=re.M)
    for line in (SHARED / "near_dup" / "smile_first_turns.jsonl").open():
        yield json.loads(line)["text"]
    for post in json.loads((SHARED / "zh_qa" / "PsyQA_example.json").read_text()):
        yield f"{post['question']}\n{post['description']}"
        yield from (answer["answer_text"] for answer in post["answers"])


def _samples() -> Iterator[str]:
    for line in (ROOT / "samples" / "posts.jsonl").open():
        post = json.loads(line)
        yield f"{post['title']}\n{post['description']}"
        yield from (answer["text"] for answer in post["answers"])


def sources() -> list[list[str]]:
    """Each public text as its sentences; long ones, and there are some of 400 characters, as clauses of at most 60."""
    sentence = re.compile(r"[^。！？!?\n]{4,60}(?:[，,；。！？!?]+|$)", re.M)
    texts = _shared() if SHARED.is_dir() else _samples()
    return [parts for text in texts if (parts := sentence.findall(text))]


def _length(random: np.random.Generator) -> float:
    return float(np.clip(random.lognormal(np.log(MEAN_LENGTH) - 0.125, 0.5), *LENGTHS))


def _as_they_stand(passages: list[list[str]], random: np.random.Generator) -> Iterator[str]:
    for passage in passages:
        text, wanted = "", _length(random)
        for sentence in passage:
            text += sentence
            if len(text) >= wanted:
                yield text[: LENGTHS[1]]
                text, wanted = "", _length(random)
        if len(text) >= LENGTHS[0]:
            yield text


def _joined(passages: list[list[str]], random: np.random.Generator) -> str:
    text, wanted = "", _length(random)
    while len(text) < wanted:
        passage = passages[random.integers(len(passages))]
        start = random.integers(len(passage))
        text += "".join(passage[start : start + random.integers(1, 4)])
    return text[: LENGTHS[1]]


def _edited(text: str, random: np.random.Generator) -> str:
    """0.3 to 3 % of the characters replaced, doubled or left out."""
    characters = list(text)
    for at in np.flatnonzero(random.random(len(text)) < random.uniform(0.003, 0.03)):
        other = text[random.integers(len(text))]
        characters[at] = (other, characters[at] + other, "")[random.integers(3)]
    return "".join(characters)


def _with_junk(text: str, random: np.random.Generator) -> str:
    before, after = random.choice(BEFORE), random.choice(AFTER)
    return str((before + text, text + after, before + text + after)[random.integers(3)])


def _cut_short(text: str, random: np.random.Generator) -> str:
    return text[: int(len(text) * random.uniform(0.7, 1))]


def documents(n: int, seed: int = 1) -> pa.Table:
    """`n` documents in random order: columns `text`, and `copied_from`, the row that a planted one is a copy of."""
    random = np.random.default_rng(seed)
    passages = sources()
    n_planted = int(n * PLANTED)
    texts = list(dict.fromkeys(_as_they_stand(passages, random)))
    texts = [texts[i] for i in random.permutation(len(texts))][: n - n_planted]
    texts += [_joined(passages, random) for _ in range(n - n_planted - len(texts))]
    originals = random.integers(len(texts), size=n_planted)
    plantings = (_edited, _with_junk, _cut_short, lambda text, random: _with_junk(_edited(text, random), random))
    texts += [plantings[random.integers(len(plantings))](texts[i], random) for i in originals]
    order = random.permutation(n)
    place = np.argsort(order)
    copied_from = np.concatenate([np.full(n - n_planted, -1), place[originals]])[order]
    return pa.table(
        {
            "text": pa.array([texts[i] for i in order], pa.large_string()),
            "copied_from": pa.array(copied_from, mask=copied_from < 0),
        }
    )


def varied(table: pa.Table, seed: int) -> pa.Table:
    """As many documents of the same lengths, an eighth of the characters of each replaced by others of the corpus."""
    random = np.random.default_rng(seed)
    texts = table.column("text").to_pylist()
    characters = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32).copy()
    changed = random.random(len(characters)) < 1 / 8
    characters[changed] = random.choice(characters, changed.sum())
    joined = characters.tobytes().decode("utf-32-le")
    ends = np.cumsum([len(text) for text in texts]).tolist()
    parts = [joined[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return pa.table({"text": pa.array(parts, pa.large_string()), "copied_from": pa.nulls(len(parts), pa.int64())})


def _shingle_sets(texts: list[str]) -> sparse.csr_array:
    """Documents × shingles, ones where a document has it; columns from the rarest shingle to the most frequent."""
    alphabet, codes = np.unique(np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32), return_inverse=True)
    if len(alphabet) ** SHINGLE >= 2**63:
        raise ValueError("too many different characters to number the shingles")
    n_shingles = np.array([len(text) for text in texts]) - SHINGLE + 1
    if n_shingles.min() < 1:
        raise ValueError("a text is shorter than a shingle")
    rows = np.repeat(np.arange(len(texts)), n_shingles)
    starts = np.arange(len(rows)) + rows * (SHINGLE - 1)  # a text of n characters starts n - 4 shingles
    numbers = np.zeros(len(rows), np.int64)
    for i in range(SHINGLE):
        numbers = numbers * len(alphabet) + codes[starts + i]
    distinct, columns, frequency = np.unique(numbers, return_inverse=True, return_counts=True)
    rank = np.empty(len(distinct), np.int32)
    rank[np.argsort(frequency, kind="stable")] = np.arange(len(distinct))
    shape = len(texts), len(distinct)
    sets = sparse.coo_array((np.ones(len(rows), np.int32), (rows.astype(np.int32), rank[columns])), shape).tocsr()
    sets.data[:] = 1  # a shingle counts once in a document
    sets.sort_indices()
    return sets


def similar_pairs(texts: list[str], numerator: int = 4, denominator: int = 5) -> np.ndarray:
    """All pairs of rows whose char-5-gram sets have J ≥ numerator / denominator: int64 [pairs, 2], the smaller first.

    Raises:
        ValueError: A text has fewer than 5 characters, or there are more than some 6,000 different characters.
    """
    sets = _shingle_sets(texts)
    sizes = np.diff(sets.indptr)
    n_prefix = sizes + (-sizes * numerator) // denominator + 1  # |A| - ⌈t·|A|⌉ + 1
    position = np.arange(sets.nnz) - np.repeat(sets.indptr[:-1], sizes)
    prefixes = sets.copy()
    prefixes.data[:] = position < np.repeat(n_prefix, sizes)
    prefixes.eliminate_zeros()
    by_shingle = prefixes.T.tocsr()
    found = []
    for start in range(0, len(texts), 2000):
        i, j = (prefixes[start : start + 2000] @ by_shingle).tocoo().coords
        i = i + start
        smaller, larger = np.minimum(sizes[i], sizes[j]), np.maximum(sizes[i], sizes[j])
        likely = (i < j) & (smaller * denominator >= larger * numerator)
        i, j = i[likely], j[likely]
        common = sets[i].multiply(sets[j]).sum(axis=1)
        similar = common * denominator >= (sizes[i] + sizes[j] - common) * numerator
        found.append(np.stack([i[similar], j[similar]], axis=1))
    return np.concatenate(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--pairs", type=Path, help="where to write the rows of all pairs with J ≥ 0.8")
    parser.add_argument("--times", type=int, default=1, help="how often as many documents are to stand in the file")
    given = parser.parse_args()
    table = documents(given.documents)
    with pq.ParquetWriter(given.corpus, table.schema, compression="zstd") as file:
        file.write_table(table)
        for seed in range(1, given.times):
            file.write_table(varied(table, seed))
    if given.pairs:
        np.save(given.pairs, similar_pairs(table.column("text").to_pylist()))


if __name__ == "__main__":
    main()
