"""The weights of `pipelines.text.pii.persons`: `python -m tools.train_persons DATA`, DATA a folder of public sets.

Learns from the candidates of the wide finder: in real posts (DATA/real_posts, by the labels there and those in
`tools/labels/personal_data.jsonl`: offsets and kinds, no text), in the same posts with a name in the place of a noun,
in counselling dialogues (every candidate is a client or a counsellor), and in medical questions and abstracts of
papers (none is a private person). What fewer than five posts share is not kept, so that no post can be read out of
the weights. Posts whose ids are in `tools/labels/held_back.txt` are left out: they measure what is learnt here.
"""

import csv
import gzip
import io
import json
import random
import sys
import tarfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression

from pipelines.text.pii import vocabulary as voc
from pipelines.text.pii.folding import fold
from pipelines.text.pii.names import names_in
from pipelines.text.pii.persons import WEIGHTS, candidate, features
from pipelines.text.pii.segmentation import segment

_LABELS = Path(__file__).parent / "labels"
_SHARED = 5  # posts
_SEED = 7
# How much a candidate of a source weighs. A swapped name stands where a real one could, and is more regular than those.
_WEIGHT = {"real": 1.0, "swapped": 0.03, "dialogues": 0.1, "medical": 0.3, "papers": 0.2}
_LISTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


class Example(NamedTuple):
    """A candidate, what is seen of it, and whether it is a name."""

    source: str
    post: str
    features: set[str]
    is_name: bool
    copies: int  # of the same name in the same post: they weigh as one


def candidates(texts: Sequence[str]) -> list[list[tuple[int, int]]]:
    """Of each text the candidates of the wide finder, in characters."""
    folded = fold(pl.Series(texts))
    found: list[list[tuple[int, int]]] = [[] for _ in texts]
    for row, start, end, *_ in folded.back(names_in(segment(folded.texts))).sort("row", "start", "end").iter_rows():
        data = texts[row].encode()
        first = len(data[:start].decode())
        found[row].append((first, first + len(data[start:end].decode())))
    return found


def examples(
    source: str, texts: dict[str, str], names: dict[str, list[tuple[int, int]]] | bool, but: frozenset[str]
) -> Iterator[Example]:
    """The candidates in `texts` without `but`: names where they overlap one of `names`, or all, or none."""
    for (post, text), spans in zip(texts.items(), candidates(list(texts.values())), strict=True):
        copies = Counter(text[start:end] for start, end in spans)
        for start, end in spans:
            if text[start:end] in but:
                continue
            known = names if isinstance(names, bool) else any(one < end and start < other for one, other in names[post])
            if source == "swapped" and not known:
                continue  # the posts as they are show it
            yield Example(source, post, features(candidate(text, start, end)), known, copies[text[start:end]])


def swapped(posts: dict[str, str], chance: random.Random) -> tuple[dict[str, str], dict[str, list[tuple[int, int]]]]:
    """The posts that hold one of the nouns, with a name in its place or behind it, and where."""
    titles = dict.fromkeys(_LISTS["nouns"]["plain"].split(), "") | _LISTS["nouns"]["titles"]
    texts, places = {}, {}
    for post, text in posts.items():
        if not (nouns := [noun for noun in titles if noun in text]):
            continue
        noun = chance.choice(nouns)
        name, times = _name(titles[noun], chance), chance.choice([1, 1, 2, 9])
        behind = not titles[noun] and len(noun) > 1 and chance.random() < 0.3
        made, *parts = text.split(noun)
        places[post] = []
        for number, part in enumerate(parts):
            put = noun
            if number < times:
                start = len(made) + (len(noun) if behind and number == 0 else 0)
                places[post].append((start, start + len(name)))
                put = noun + name if behind and number == 0 else name
            made += put + part
        texts[post] = made
    return texts, places


def _name(titles: str, chance: random.Random) -> str:
    surnames, given = voc.lexicon("surnames")["single"], voc.lexicon("given_names")
    surname = surnames[min(len(surnames) - 1, int(chance.expovariate(1 / 18)))]
    first, second = (chance.choice(given["frequent" if chance.random() < 0.65 else "usual"]) for _ in range(2))
    if titles:
        return surname + chance.choice(titles.split())
    doubled, foreign = chance.choice(given["doubled"]), chance.choice(given["foreign"])
    made = [
        surname + first + second,
        surname + first,
        f"小{surname}",
        f"小{first}",
        f"阿{first}",
        doubled * 2,
        f"{surname}某",
        foreign,
    ]
    return chance.choices(made, [25, 15, 25, 7, 8, 8, 6, 6])[0]


def labelled(folder: Path) -> tuple[dict[str, str], dict[str, list[tuple[int, int]]]]:
    """The real posts that are not held back, and where they name somebody."""
    held_back = set((_LABELS / "held_back.txt").read_text().split())
    with gzip.open(folder / "real_posts" / "posts.jsonl.gz", "rt", encoding="utf-8") as lines:
        posts = {str(one["id"]): f"{one['title']}\n{one['description']}" for one in map(json.loads, lines)}
    posts = {post: text for post, text in posts.items() if f"real:{post}" not in held_back}
    names: dict[str, list[tuple[int, int]]] = {post: [] for post in posts}
    for file in (_LABELS / "personal_data.jsonl", folder / "real_posts" / "personal_data.jsonl"):
        for one in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            if str(one["id"]) in names:
                names[str(one["id"])] = [
                    (span["start"], span["end"]) for span in one["spans"] if span["kind"] == "name"
                ]
    return posts, names


def sources(folder: Path) -> Iterator[Example]:
    """Every candidate that is learnt from."""
    posts, names = labelled(folder)
    nobody: frozenset[str] = frozenset()
    yield from examples("real", posts, names, nobody)
    for seed in (_SEED, _SEED + 1):
        yield from examples("swapped", *swapped(posts, random.Random(seed)), nobody)
    with tarfile.open(folder / "zh_multiturn" / "cpsycound_raw.tar.gz") as packed:
        files = [(member.name, packed.extractfile(member)) for member in packed.getmembers() if member.isfile()]
        dialogues = {name: file.read().decode() for name, file in files if file}
    yield from examples("dialogues", dialogues, True, frozenset(_LISTS["no_clients"].split()))
    rows = csv.DictReader(io.StringIO((folder / "zh_qa" / "medical_qa_gb18030.csv").read_text(encoding="gb18030")))
    yield from examples(
        "medical", {f"m{n}": f"{row['ask']}\n{row['answer']}" for n, row in enumerate(rows)}, False, nobody
    )
    lines = (folder / "negatives" / "csl_ts_dev.tsv").read_text(encoding="utf-8").splitlines()
    yield from examples(
        "papers", {f"p{n}": line for n, line in enumerate(lines)}, False, frozenset(_LISTS["scholars"].split())
    )


def main(folder: Path) -> None:
    """Writes the weights."""
    learnt = list(sources(folder))
    posts_of: dict[str, set[str]] = defaultdict(set)
    for one in learnt:
        for feature in one.features:
            posts_of[feature].add(one.post)
    vectors = DictVectorizer()
    shared = [{feature: 1.0 for feature in sorted(one.features) if len(posts_of[feature]) >= _SHARED} for one in learnt]
    model = LogisticRegression(C=1.0, max_iter=2000)
    model.fit(
        vectors.fit_transform(shared),
        [one.is_name for one in learnt],
        sample_weight=[_WEIGHT[one.source] / one.copies for one in learnt],
    )
    weights = {"bias": [round(float(model.intercept_[0]), 3), len({one.post for one in learnt})]}
    for feature, weight in sorted(zip(vectors.get_feature_names_out(), model.coef_[0], strict=True)):
        if abs(weight) >= 0.01:
            weights[feature] = [round(float(weight), 3), len(posts_of[feature])]
    lines = ",\n".join(
        f"{json.dumps(feature, ensure_ascii=False)}: {json.dumps(of)}" for feature, of in weights.items()
    )
    WEIGHTS.write_text("{\n" + lines + "\n}\n", encoding="utf-8")
    counts = Counter((one.source, one.is_name) for one in learnt)
    sys.stdout.write(f"{len(weights)} weights from {dict(counts)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
