"""Makes the weights of the score of emotional context: `python -m tools.train_emotional_context ../shared/data`.

Of the posts in `tools/labels/emotional_context.jsonl`, which were labelled by reading (0: no feeling or trouble of
anybody is told, 1: little of it, 2: enough to answer with empathy). Texts are read where they lie and cleaned as the
pipeline does; what is written holds characters and pairs of characters that stand in at least POSTS of them. Prints how
well scores order posts that the model was not fitted to (five folds), of all and of one forum alone, and what
thresholds drop.
"""

import csv
import gzip
import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import normalize

from pipelines.clean.cells import as_written, cleaned
from pipelines.settings import Cleaning
from pipelines.text.emotional_context import WEIGHTS, scores
from pipelines.text.pii.placeholders import PATTERN

LABELS = Path(__file__).parent / "labels" / "emotional_context.jsonl"
POSTS = 30  # a gram stands in so many posts: five would keep the law, these keep the file small
# Of 1, 2, 5 and 10 the best in cross-validation, by little.
STRENGTH = 5.0
FOLDS = 5
SHOWN = (0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 0.6)

Post = tuple[str, str, str]  # its number, title and description


def train(data: Path) -> None:
    """Fits and writes the model, and prints what it is worth on posts that it has not seen."""
    posts = labelled(data)
    texts, feeling = posts["text"].to_list(), (posts["label"] > 0).to_numpy()
    unseen = np.zeros(len(texts))
    folds = GroupKFold(FOLDS, shuffle=True, random_state=0)  # what begins alike may be a post and its copy
    for seen, others in folds.split(texts, feeling, posts["text"].str.slice(0, 10)):
        weights, _ = fit([texts[n] for n in seen], feeling[seen])
        unseen[others] = scores(posts["text"].gather(others), weights).to_numpy()
    sys.stdout.write(report(posts.with_columns(score=unseen)) + "\n")
    weights, found = fit(texts, feeling)
    grams = {gram: [weights[gram], found[gram]] for gram in sorted(weights)}
    model = {"labelled": len(texts), "grams": grams}
    WEIGHTS.write_text(json.dumps(model, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


def fit(texts: list[str], feeling: npt.NDArray[np.bool_]) -> tuple[dict[str, float], dict[str, int]]:
    """Weights of the grams, and in how many texts each stands. No bias: a text that says nothing scores 0.5."""
    counter = CountVectorizer(analyzer="char", ngram_range=(1, 2), lowercase=False, min_df=POSTS)
    counts = counter.fit_transform(texts)
    names = [str(name) for name in counter.get_feature_names_out()]
    kept = [n for n, name in enumerate(names) if not any(one.isspace() for one in name)]
    grams, counts = [names[n] for n in kept], counts[:, kept].astype(float)
    found = np.asarray((counts > 0).sum(0)).ravel().tolist()
    counts.data = 1 + np.log(counts.data)
    model = LogisticRegression(C=STRENGTH, class_weight="balanced", fit_intercept=False, max_iter=1000)
    weights = model.fit(normalize(counts), feeling).coef_[0].round(2).tolist()
    return dict(zip(grams, weights, strict=True)), dict(zip(grams, found, strict=True))


def report(posts: pl.DataFrame) -> str:
    """AUC of all posts and of those of a forum alone; by threshold, what falls of each label among the latter."""
    forum = posts.filter(pl.col("id").str.starts_with("real:"))
    lines = [f"{name}: {auc(some)}" for name, some in (("all", posts), ("forum alone", forum))]
    totals = [forum.filter(label=label).height for label in range(3)]
    for least in SHOWN:
        fallen = forum.filter(pl.col("score") < least)
        lines.append(
            f"below {least}: "
            + ", ".join(
                f"{fallen.filter(label=label).height} of {total} labelled {label}" for label, total in enumerate(totals)
            )
        )
    return "\n".join(lines)


def auc(posts: pl.DataFrame, resamples: int = 500) -> str:
    """The area under the curve, and 95 % of what it is in samples drawn again."""
    feeling, score = (posts["label"] > 0).to_numpy(), posts["score"].to_numpy()
    drawn = np.random.default_rng(0).integers(0, len(score), (resamples, len(score)))
    low, high = np.quantile([roc_auc_score(feeling[some], score[some]) for some in drawn], [0.025, 0.975])
    return f"AUC {roc_auc_score(feeling, score):.3f} [{low:.3f}, {high:.3f}] of {len(score)} posts"


def labelled(data: Path) -> pl.DataFrame:
    """`id`, `label`, `genre` and the cleaned `text` of every post that was labelled."""
    labels = pl.read_ndjson(LABELS)
    sources = labels["id"].str.split(":").list.first().unique(maintain_order=True)
    rows = [(f"{source}:{number}", *texts) for source in sources for number, *texts in READERS[source](data)]
    posts = pl.DataFrame(rows, schema=["id", "title", "description"], orient="row")
    posts = labels.join(posts, on="id", how="inner", maintain_order="left").with_row_index("group")
    assert posts.height == labels.height, "labels without a post"
    both = [posts.select("group", lang=pl.lit("zh"), text=name) for name in ("title", "description")]
    cells = pl.concat(both).sort("group", maintain_order=True).with_columns(written=as_written(pl.col("text")))
    texts = cleaned(cells, Cleaning())[0].group_by("group", maintain_order=True).agg(pl.col("text"))
    title, body = pl.col("text").list.first(), pl.col("text").list.last()
    whole = pl.when(body.str.starts_with(title)).then(body).when(body == "").then(title).otherwise(title + "\n" + body)
    whole = whole.str.replace_all(PATTERN, "")  # which scores do not count
    return posts.join(texts, on="group", maintain_order="left").select("id", "label", "genre", text=whole)


def _forum(data: Path) -> Iterator[Post]:
    with gzip.open(data / "real_posts" / "posts.jsonl.gz", "rt", encoding="utf-8") as lines:
        for one in map(json.loads, lines):
            yield str(one["id"]), one["title"], one["description"]


def _smile(data: Path) -> Iterator[Post]:
    for one in map(json.loads, _lines(data / "near_dup" / "smile_first_turns.jsonl")):
        yield one["id"].split("/")[1], "", one["text"]


def _psyqa(data: Path) -> Iterator[Post]:
    for one in json.loads((data / "zh_qa" / "PsyQA_example.json").read_text(encoding="utf-8")):
        yield str(one["questionID"]), one["question"], one["description"] or ""


def _medical(data: Path) -> Iterator[Post]:
    text = (data / "zh_qa" / "medical_qa_gb18030.csv").read_bytes().decode("gb18030")
    return ((str(n), one["title"], one["ask"]) for n, one in enumerate(csv.DictReader(io.StringIO(text))))


def _chat(data: Path) -> Iterator[Post]:
    lines = _lines(data / "noisy" / "cdial_toy_valid.txt")
    return ((str(n), "", line.split("\t")[0].replace(" ", "")) for n, line in enumerate(lines))


def _abstracts(data: Path) -> Iterator[Post]:
    lines = _lines(data / "negatives" / "csl_ts_dev.tsv")
    return ((str(n), "", max(line.split("\t"), key=len)) for n, line in enumerate(lines))


def _comments(data: Path) -> Iterator[Post]:
    text = (data / "noisy" / "COLDataset_dev.csv").read_text(encoding="utf-8")
    return ((str(n), "", one["TEXT"]) for n, one in enumerate(csv.DictReader(io.StringIO(text))))


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").rstrip("\n").split("\n")


READERS: dict[str, Callable[[Path], Iterator[Any]]] = {
    **{"real": _forum, "smile": _smile, "psyqa": _psyqa, "medical": _medical},
    **{"cdial": _chat, "csl": _abstracts, "cold": _comments},
}

if __name__ == "__main__":
    train(Path(sys.argv[1]))
