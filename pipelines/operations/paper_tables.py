"""The papers' tables over our rows, beside the papers' own figures: M Table 1 and subtopics, E Table 1, what C says of
its data; and C's candidates beside the labels of their sources.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import polars as pl

from pipelines.annotate.coherence import REMOVED
from pipelines.core.agreement import cohen_kappa
from pipelines.release.publish.card import PaperTable
from pipelines.split.eligible import with_topics
from pipelines.store.store import Store, Version
from pipelines.text import keys
from pipelines.text.nearness import likeness
from schemas.labels import EMOTIONS, LANGUAGES, SPLITS
from schemas.tables import TABLES
from schemas.taxonomy import CATEGORIES, CATEGORY_OF, TAXONOMY, main_topics_of

# M Table 1: count, percentage, mean length of the description.
_M_TABLE_1: dict[str, tuple[int, float, float]] = {
    "Interpersonal": (474, 11.85, 288.44),
    "Other": (167, 4.18, 268.31),
    "Marriage": (381, 9.53, 357.37),
    "Family": (448, 11.20, 384.48),
    "Romantic Relationship": (399, 9.98, 326.90),
    "Emotion": (446, 11.15, 280.74),
    "Growth": (448, 11.20, 271.60),
    "Therapy": (361, 9.03, 296.57),
    "Career": (330, 8.25, 286.52),
    "Behavior": (539, 13.48, 226.81),
}
_M_TOTAL = 4000

# E Table 1: PsyQA, Empathy-QA.
_E_TABLE_1: dict[str, tuple[float | None, float | None]] = {
    "questions": (22_346, 40_959),
    "answers": (56_063, 168_470),
    "main topics": (9, 29),
    "subtopics": (None, 182),
    "characters a question": (21.6, 22.7),
    "characters a description": (168.9, 275.9),
    "characters an answer": (524.6, 775.6),
    "answers a question": (2.51, 4.11),
}

_SUBTOPICS = list(dict.fromkeys(name for names in TAXONOMY.values() for name in names))

# C: what the filter removed of the dialogues, in %; labels; held-out samples; verdicts on steps that are False, in %.
_C_FIGURES = {"removed": 23.0, "labels": 11_140, "held out": 574, "false": 23.0}
_STEPS = ("step1", "step2", "step3")


def dialogue_diversity(store: Store, version: Version) -> pl.DataFrame:
    """`rewrite.diversity` of a version of `rewritten_dialogues`, beside the dialogues that it was made from."""
    source = version.manifest.runs[-1].parents["coherent_dialogues"]
    rewritten = store.read("rewritten_dialogues", version.version).collect()
    return diversity(store.read("coherent_dialogues", source).collect(), rewritten)


def c_agreement(candidates: pl.DataFrame, turns: pl.DataFrame, splits: pl.DataFrame) -> PaperTable:
    """How far candidates agree with the labels of their sources (`agreement`)."""
    figures = agreement(candidates, turns, splits).iter_rows()
    rows = [(*row[:5], _rounded(row[5]), row[6], _rounded(row[7])) for row in figures]
    return PaperTable(
        "C: candidates beside the labels of their sources",
        ("source", "model", "rounds", "field", "labelled", "agreeing", "with one label", "kappa"),
        rows,
        set(),
        [
            "Agreeing: the share whose label is among the source's. Kappa (Cohen's) is over rounds with one label.",
            "Rounds of train, or held out (validation and test): nothing learns from the candidates of these.",
            "Several strategies may be right at one moment: this is no score to be raised.",
        ],
    )


def paper_tables(
    store: Store, against: str | None = None, pins: Mapping[str, str] | None = None
) -> dict[str, PaperTable]:
    """The papers' tables over a home, by the paper's letter and, of a second table, what it shows.

    C's stand there only where there are candidates, or it is asked for (`against`). `pins`, table → version, are those
    of a release; without them what is current counts.
    """

    def there(table: str) -> bool:
        return store.pointer(table) is not None if pins is None else table in pins

    def version(table: str) -> str | None:
        return None if pins is None else pins[table]

    def read(table: str) -> pl.DataFrame:
        return store.read(table, version(table)).collect()

    def optional(table: str) -> pl.DataFrame:
        return read(table) if there(table) else TABLES[table].create_empty()

    wanted = ("M", "E", "C") if against is None else (against.upper(),)
    tables: dict[str, PaperTable] = {}
    if not {"M", "E"}.isdisjoint(wanted):
        posts = read("unique_posts")
        if there("topics"):
            posts = with_topics(posts, read("topics"))
        makers = {"M": m_table_1, "M subtopics": m_subtopics, "E": e_table_1}
        tables |= {name: make(posts) for name, make in makers.items() if name[0] in wanted}
    if "E" in wanted:
        tables["E splits"] = split_sizes(posts, optional("unique_dialogues"), optional("splits"))
    if "C" in wanted and (against or there("cer_candidates")):
        filtered = "coherent_dialogues"
        reasons = store.version(filtered, version(filtered)).manifest if there(filtered) else None
        tables["C"] = c_figures(
            optional(filtered),
            reasons.dropped_for(*REMOVED) if reasons else 0,
            *map(optional, ("cer_labels", "sampled_turns", "splits")),
        )
        if there("cer_candidates"):
            tables["C agreement"] = c_agreement(read("cer_candidates"), *map(optional, ("sampled_turns", "splits")))
    return tables


def m_table_1(posts: pl.DataFrame) -> PaperTable:
    """M Table 1 over rows of `unique_posts`: posts, percentage and mean description length by primary category."""
    ours = {
        name: (count, mean)
        for name, count, mean in posts.with_columns(
            category=pl.col("topic").replace_strict(CATEGORY_OF, default=None, return_dtype=pl.String)
        )
        .group_by("category")
        .agg(pl.len(), keys.n_chars(pl.col("description")).mean().alias("mean"))
        .iter_rows()
    }
    total = posts.height
    rows: list[tuple[Any, ...]] = []
    for name in (*CATEGORIES, *([None] if None in ours else [])):
        count, mean = ours.get(name, (0, None))
        paper = _M_TABLE_1.get(name or "", (None, None, None))
        rows.append((name or "no topic given", count, _share(count, total), _rounded(mean), *paper))
    counted = sum(count for count, _, _ in _M_TABLE_1.values())
    shares = round(sum(share for _, share, _ in _M_TABLE_1.values()), 2)
    overall = _rounded(posts.select(keys.n_chars(pl.col("description")).mean()).item()) if total else None
    rows.append(("all", total, _share(total, total), overall, counted, shares, None))
    return PaperTable(
        "M Table 1: primary categories",
        ("category", "posts", "%", "mean length", "M: posts", "M: %", "M: mean length"),
        rows,
        {(len(rows) - 1, 4), (len(rows) - 1, 5)},
        [
            f"M's counts sum to {counted:,}, its percentages are of {_M_TOTAL:,}: one of the two cannot be.",
            "Mean length: characters of the description, white space not counted.",
        ],
    )


def m_subtopics(posts: pl.DataFrame) -> PaperTable:
    """How many rows of `unique_posts` have each subtopic of the taxonomy (M §2 counts them, and prints no figure)."""
    labels = posts.select("post_id", subtopic=pl.col("subtopics")).explode("subtopic", empty_as_null=False).unique()
    listed = pl.col("subtopic").is_in(_SUBTOPICS)
    counted = labels.filter(listed).group_by("subtopic").len().sort("len", "subtopic", descending=[True, False])
    rows: list[tuple[Any, ...]] = [
        (name, ", ".join(CATEGORY_OF[topic] for topic in main_topics_of(name)), count, _share(count, posts.height))
        for name, count in counted.iter_rows()
    ]
    others = labels.filter(~listed)
    with_others = others["post_id"].n_unique()
    rows.append(("not of the taxonomy", None, with_others, _share(with_others, posts.height)))
    return PaperTable(
        "M: subtopics",
        ("subtopic", "category", "posts", "%"),
        rows,
        set(),
        [
            "A post may have several. M prints no counts.",
            f"The taxonomy has {len(_SUBTOPICS)}; labels of sources that are not among them: "
            f"{others['subtopic'].n_unique()}.",
        ],
    )


def c_figures(
    dialogues: pl.DataFrame, removed: int, labels: pl.DataFrame, turns: pl.DataFrame, splits: pl.DataFrame
) -> PaperTable:
    """What C says of its data, beside ours; null where there is nothing yet.

    Args:
        dialogues, removed: Rows of `coherent_dialogues`, and how many dialogues the filter took out (`REMOVED`).
        labels: Rows of `cer_labels`. Each is a sample, and has four labels: of three steps, and the preference.
        turns, splits: Rows of `sampled_turns` and `splits`. A sample is of the split of its round's group.
    """
    judged = dialogues.height + removed
    split_of = turns.select("dialogue_id", "round", "group_id").join(splits.select("group_id", "split"), on="group_id")
    samples = labels.select("dialogue_id", "round", *_STEPS).join(split_of, on=["dialogue_id", "round"], how="left")
    held_out = samples.filter(pl.col("split") != "train")
    n = samples.height

    def wrong(some: pl.DataFrame) -> float | None:
        return _share(sum(int((~some[step]).sum()) for step in _STEPS), len(_STEPS) * some.height)

    rows: list[tuple[Any, ...]] = [
        ("dialogues that were filtered", judged or None, None),
        ("removed by the filter, %", _share(removed, judged), _C_FIGURES["removed"]),
        ("labelled samples", n or None, None),
        ("labels", (len(_STEPS) + 1) * n or None, _C_FIGURES["labels"]),
        ("held-out samples", held_out.height if n else None, _C_FIGURES["held out"]),
        ("held-out share of the samples, %", _share(held_out.height, n), None),
        ("False among labels of steps, %", wrong(samples), None),
        ("False among those held out, %", wrong(held_out), _C_FIGURES["false"]),
    ]
    notes = [
        'C says "over 23 %" of the filter, and 11.14k labels.',
        "A sample of ours has four labels: three steps and the preference. Of C's it is not said, nor, therefore, what "
        "share of all samples the 574 are.",
        *["Ours was filtered by form alone: no model was asked."] * ("structural" in dialogues["provider"]),
    ]
    return PaperTable("C: the CER data set", ("figure", "ours", "C"), rows, set(), notes)


def e_table_1(posts: pl.DataFrame) -> PaperTable:
    """E Table 1 over rows of `unique_posts`: how many questions and answers, and how long they are."""
    answers = (
        posts.select(pl.col("answers").explode(empty_as_null=False)).to_series().struct.field("text").to_frame("t")
    )

    def mean(frame: pl.DataFrame, column: str) -> float | None:
        return _rounded(frame.select(keys.n_chars(pl.col(column)).mean()).item()) if frame.height else None

    ours: dict[str, float | None] = {
        "questions": posts.height,
        "answers": answers.height,
        "main topics": posts["topic"].drop_nulls().n_unique(),
        "subtopics": posts["subtopics"].explode(empty_as_null=False).n_unique(),
        "characters a question": mean(posts, "title"),
        "characters a description": mean(posts, "description"),
        "characters an answer": mean(answers, "t"),
        "answers a question": round(answers.height / posts.height, 2) if posts.height else None,
    }
    return PaperTable(
        "E Table 1: the data set",
        ("criterion", "ours", "E: PsyQA", "E: Empathy-QA"),
        [(name, ours[name], *_E_TABLE_1[name]) for name in _E_TABLE_1],
        set(),
        ["Characters: white space not counted. A label that the taxonomy does not list counts as a subtopic."],
    )


def split_sizes(posts: pl.DataFrame, dialogues: pl.DataFrame, splits: pl.DataFrame) -> PaperTable:
    """Rows of `unique_posts` and `unique_dialogues` by source and split, as E's test sets are counted."""
    units = pl.concat(
        [
            frame.select("source", "group_id", unit=pl.lit(unit))
            for unit, frame in (("posts", posts), ("dialogues", dialogues))
        ]
    )
    counted = (
        units.join(splits, on="group_id")
        .group_by("source", "unit")
        .agg(*((pl.col("split") == split).sum().alias(split) for split in SPLITS))
    )
    return PaperTable(
        "E: splits by source",
        ("source", "of", *SPLITS),
        counted.sort("unit", "source", descending=[True, False]).rows(),
        set(),
        ["E tests on 2,000 questions of PsyQA and 2,000 of Empathy-QA, M on 500 posts ([splits.posts])."],
    )


def _share(count: int, total: int) -> float | None:
    return round(100 * count / total, 2) if total else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


# A line of the report. `labelled`: candidates whose round the source labels with names that we know. `agreeing`: the
# share of these whose label is among the source's (a turn may carry several strategies). `single`: those with exactly
# one label of the source, over which Cohen's kappa is taken; null: undefined, as where everybody says the same.
AGREEMENT = pl.Schema(
    dict.fromkeys(("source", "model_asked", "rounds", "field"), pl.String)
    | {"labelled": pl.Int64, "agreeing": pl.Float64, "single": pl.Int64, "kappa": pl.Float64}
)


def agreement(candidates: pl.DataFrame, turns: pl.DataFrame, splits: pl.DataFrame) -> pl.DataFrame:
    """Agreement of `cer_candidates` with the labels of their rounds in `sampled_turns`, by source, model, whether the
    round is held out by `splits`, and field.

    Returns a frame of AGREEMENT, sorted; a field that a source does not label has no line. Emotions are compared by the
    closed set `EMOTIONS`: another word of a candidate agrees with nothing.
    """
    labels = turns.select("dialogue_id", "round", "source", "strategies", labelled_emotion="emotion")
    joined = candidates.join(labels, on=["dialogue_id", "round"], how="inner", maintain_order="left")
    joined = joined.join(splits.select("group_id", "split"), on="group_id", how="inner", maintain_order="left")
    pairs: defaultdict[tuple[str, str, str, str], list[tuple[str, list[str]]]] = defaultdict(list)
    for row in joined.iter_rows(named=True):
        of = row["source"], row["model_asked"], "train" if row["split"] == "train" else "held out"
        if row["strategies"]:
            pairs[*of, "strategy"].append((row["strategy"], list(dict.fromkeys(row["strategies"]))))
        if label := EMOTIONS.find(row["labelled_emotion"] or ""):
            emotion = EMOTIONS.find(row["emotion"])
            pairs[*of, "emotion"].append((emotion.en if emotion else row["emotion"], [label.en]))
    lines = []
    for key, of_key in sorted(pairs.items()):
        agreeing = sum(word in labels for word, labels in of_key) / len(of_key)
        single = [(word, labels[0]) for word, labels in of_key if len(labels) == 1]
        kappa = cohen_kappa((word for word, _ in single), (label for _, label in single))
        lines.append((*key, len(of_key), agreeing, len(single), kappa))
    return pl.DataFrame(lines, schema=AGREEMENT, orient="row")


_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


def diversity(dialogues: pl.DataFrame, rewritten: pl.DataFrame) -> pl.DataFrame:
    """The figures of `coherent_dialogues` and of each variant in `rewritten_dialogues`, over the same dialogues.

    Returns a row per language and figure: `lang`, `figure`, `source`, and a column per variant. Figures are dialogues,
    turns; distinct-1 and -2 (different words, or pairs of them, by all; they fall with the number of words); mean
    self-similarity of two dialogues (`nearness.likeness`); the shares of the strategies that are labelled.
    """
    columns = {
        "source": dialogues.filter(pl.col("dialogue_id").is_in(rewritten["source_dialogue_id"].unique().implode())),
        **{str(name): rows for (name,), rows in sorted(rewritten.group_by("variant"))},
    }
    lines: list[dict[str, Any]] = []
    for lang in LANGUAGES:
        of_lang = {name: rows.filter(lang=lang) for name, rows in columns.items()}
        if of_lang["source"].height:
            figures = {name: dict(_figures(rows, lang)) for name, rows in of_lang.items()}
            for figure in dict.fromkeys(figure for column in figures.values() for figure in column):
                lines.append({"lang": lang, "figure": figure} | {name: figures[name].get(figure) for name in columns})
    schema = {"lang": pl.String, "figure": pl.String} | dict.fromkeys(columns, pl.Float64)
    return pl.DataFrame(lines, schema=schema)


def _figures(rows: pl.DataFrame, lang: str) -> Iterator[tuple[str, float]]:
    talks = rows["turns"].to_list()
    yield "dialogues", float(len(talks))
    yield "turns", float(sum(map(len, talks)))
    spoken = [_words(turn["text"], lang) for turns in talks for turn in turns]
    yield "distinct-1", _distinct([word for words in spoken for word in words])
    yield "distinct-2", _distinct([pair for words in spoken for pair in pairwise(words)])
    if len(talks) > 1:
        yield "self-similarity", likeness(["\n".join(turn["text"] for turn in turns) for turns in talks])
    labels = Counter(label for turns in talks for turn in turns for label in turn["strategies"])
    for label, count in sorted(labels.items()):
        yield f"share of {label}", count / labels.total()


def _words(text: str, lang: str) -> list[str]:
    """jieba's in Chinese, in English what white space and marks part, in lower case."""
    if lang == "zh":
        return [word for word in words(text) if any(one.isalnum() for one in word)]
    return [word.lower() for word in _WORD.findall(text)]


def _distinct(items: Sequence[Any]) -> float:
    return len(set(items)) / len(items) if items else 0.0


def words(text: str) -> list[str]:
    """The words of a Chinese text, by jieba, in order; together they are the text: 感觉到 is no 感觉."""
    return list(_tokenizer().cut(text))


@cache
def _tokenizer() -> Any:
    """jieba's own, with the dictionary that is installed: jieba believes a file in the shared temporary folder."""
    import jieba

    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True  # else it looks for its cache
    return tokenizer
