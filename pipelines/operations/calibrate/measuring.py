"""What rules find in labelled posts, counted against the labels; the figures of a home's rules are kept.

A script measures posts of its own without a home:

    measure("risk", [GoldPost(id="1", text="…", labels=["self_harm"])]).figures
"""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from pipelines.clean.cells import as_written, cleaned
from pipelines.core import agreement
from pipelines.core.estimates import Estimate, auc, wilson
from pipelines.core.files import sha256_of
from pipelines.core.home import Home
from pipelines.errors import UnknownName
from pipelines.operations.calibrate.gold import SPAN_KINDS, GoldPost, Reading, read_gold
from pipelines.release.checks.calibrated import rules_of
from pipelines.settings import Settings
from pipelines.store.store import Store
from pipelines.store.suppression import alone
from pipelines.text.minors import LIMITS, minors
from pipelines.text.pii.redaction import find
from pipelines.text.relevance import relevance
from pipelines.text.risk import risk
from schemas.calibrations import Calibrations
from schemas.labels import CALIBRATED, DOUBTS, RISKS

TABLE = "calibrations"
FALSE_ALARM, MISSED = "false alarm", "missed"
_AROUND = 15  # characters
_SHOWN = 120  # of a post that has no place to show

# Labels of each stage that mean another one as well.
_IMPLIED = {
    "risk": dict.fromkeys(RISKS, "any"),
    "minors": {"under_14": "under_18"},
    "relevance": dict.fromkeys(DOUBTS, "any"),
}


@dataclass(frozen=True, slots=True)
class Figures:
    """What was counted of one kind; the fields are columns of `schemas.calibrations.Calibrations`."""

    stage: str
    kind: str
    posts: int
    labelled: int
    found: int
    right: int
    missed: int
    wrongly_changed: int | None = None
    kappa: float | None = None
    readers: int = 1
    auc: float | None = None

    @property
    def precision(self) -> Estimate | None:
        """The share of what was found that is labelled."""
        return wilson(self.right, self.found)

    @property
    def recall(self) -> Estimate | None:
        """The share of what is labelled that was found."""
        return wilson(self.labelled - self.missed, self.labelled)


class Mistake(NamedTuple):
    """A false alarm, or what was missed, with its words: for the owner's terminal alone."""

    id: str
    kind: str
    what: str
    before: str
    text: str
    behind: str
    detail: str


class Measured(NamedTuple):
    """The figures of a stage, a kind each, and what went wrong."""

    figures: list[Figures]
    mistakes: list[Mistake]


def measure(stage: str, posts: Sequence[GoldPost], settings: Settings | None = None) -> Measured:
    """Holds the rules of a stage against posts that are labelled for it, each with its text (`gold.read_gold`).

    Raises UnknownName for a stage that is none of `schemas.labels.CALIBRATED`.
    """
    if stage not in CALIBRATED:
        raise UnknownName("stage to calibrate", stage, CALIBRATED)
    settings = settings or Settings()
    return _measure_spans(posts, settings) if stage == "personal_data" else _measure_labels(stage, posts, settings)


def _agreement(stage: str, posts: Iterable[GoldPost], holds: Callable[[Reading], bool]) -> dict[str, Any]:
    """How far readers agree whether a post holds something, and how many there are."""
    readings = [
        {name: holds(one) for name, one in post.readers.items() if one.of_stage(stage) is not None} for post in posts
    ]
    n_readers = len({name for reading in readings for name in reading})
    return {"kappa": mean_kappa(readings), "readers": max(1, n_readers)}


# Labels of whole posts


def mean_kappa(readings: Sequence[Mapping[str, bool]]) -> float | None:
    """Cohen's kappa of each two readers, in the mean (Light 1971).

    Args:
        readings: Of each post what each of its readers says, by their names.

    Returns None where no two readers have read the same posts, or where it is defined of no two.
    """
    names = sorted({name for reading in readings for name in reading})
    ratings = [[int(reading.get(name, agreement.MISSING)) for name in names] for reading in readings]
    return agreement.mean_kappa(np.array(ratings, np.int64).reshape(len(readings), len(names)))


@dataclass(frozen=True)
class _Verdict:
    """What rules say of a post: its labels, why, and a score where they have one."""

    labels: frozenset[str]
    detail: str = ""
    score: float = 0.0


def _measure_labels(stage: str, posts: Sequence[GoldPost], settings: Settings) -> Measured:
    verdicts = {"risk": _of_risk, "minors": _of_minors, "relevance": _of_relevance}[stage](posts, settings)
    truths = [_labels(stage, post.truth(stage)) for post in posts]
    figures, mistakes = [], []
    for kind in CALIBRATED[stage]:
        labelled = {place for place, truth in enumerate(truths) if kind in truth}
        found = {place for place, verdict in enumerate(verdicts) if kind in verdict.labels}
        scores = np.array([verdict.score for verdict in verdicts], np.float64)
        is_labelled = np.array([kind in truth for truth in truths], np.bool_)
        figures.append(
            Figures(
                *(stage, kind, len(posts), len(labelled), len(found)),
                right=len(labelled & found),
                missed=len(labelled - found),
                auc=auc(scores[is_labelled], scores[~is_labelled]) if kind == "emotional" else None,
                **_agreement(stage, posts, partial(_says, stage, kind)),
            )
        )
        for what, places in ((FALSE_ALARM, found - labelled), (MISSED, labelled - found)):
            for place in sorted(places):
                text = (posts[place].text or "")[:_SHOWN]
                mistakes.append(Mistake(posts[place].id, kind, what, "", text, "", verdicts[place].detail))
    return Measured(figures, mistakes)


def _labels(stage: str, reading: Reading | None) -> set[str]:
    """What a reading says of a stage: a file may be labelled for several."""
    labels = set(reading.labels or ()) & set(CALIBRATED[stage]) if reading else set()
    return labels | {_IMPLIED[stage][label] for label in labels if label in _IMPLIED[stage]}


def _says(stage: str, kind: str, reading: Reading) -> bool:
    return kind in _labels(stage, reading)


def _frame(posts: Iterable[GoldPost]) -> pl.DataFrame:
    rows = [(post.text or "", post.title, post.posted_at) for post in posts]
    return pl.DataFrame(rows, schema={"text": pl.String, "title": pl.String, "posted_at": pl.Date}, orient="row")


def _of_risk(posts: Sequence[GoldPost], _: Settings) -> list[_Verdict]:
    written = _frame(posts).with_columns(as_written(pl.col("text")))
    signs = written.select(risk(pl.col("text"), simplified=True)).to_series().to_list()
    return [
        _Verdict(
            frozenset({*(one["kind"] for one in of_post), *(["any"] if of_post else [])}),
            ", ".join(f"{one['kind']} {one['rule']}" for one in of_post),
        )
        for of_post in signs
    ]


def _of_minors(posts: Sequence[GoldPost], _: Settings) -> list[_Verdict]:
    written = _frame(posts).with_columns(as_written(pl.col("text")))
    ages = written.select(minors(pl.col("text"), pl.col("posted_at"))).to_series().to_list()
    return [_Verdict(frozenset(limit for limit in LIMITS if age[limit])) for age in ages]


def _of_relevance(posts: Sequence[GoldPost], settings: Settings) -> list[_Verdict]:
    """`emotional` are the posts that cleaning keeps: no reason to drop them, and a score that is high enough."""
    frame = _frame(posts).with_row_index("group").with_columns(lang=pl.lit("zh"))
    cells = pl.concat([frame.select("group", "lang", text=name) for name in ("text", "title")])
    texts = cleaned(cells, settings.cleaning)[0]["text"]  # it is read without personal data
    both = pl.DataFrame({"text": texts[: frame.height], "title": texts[frame.height :]})
    verdicts = both.select(relevance(pl.col("text"), pl.col("title"))).to_series().to_list()
    return [_kept_or_dropped(one, settings.filters.min_emotional_context) for one in verdicts]


def _kept_or_dropped(verdict: Mapping[str, Any], threshold: float) -> _Verdict:
    reason, score = verdict["reason"], verdict["emotional_context"]
    labels = [reason, "any"] if reason else ["emotional"] if score >= threshold else []
    why = f"{verdict['detail']}, " if reason else ""
    return _Verdict(frozenset(labels), f"{why}score {score:.2f}", score)


# Spans


class _Span(NamedTuple):
    place: int
    kind: str | None  # of SPAN_KINDS
    start: int  # in characters
    end: int

    def overlaps(self, others: Iterable["_Span"]) -> bool:
        return any(self.start < other.end and other.start < self.end for other in others)

    def is_covered(self, others: Iterable["_Span"]) -> bool:
        return set(range(self.start, self.end)) <= {at for other in others for at in range(other.start, other.end)}


def _measure_spans(posts: Sequence[GoldPost], settings: Settings) -> Measured:
    """A labelled span is found where what is found covers all its characters, of whatever kind: then it is replaced
    whole. What is found is right where it overlaps one that is labelled."""
    texts = [post.text or "" for post in posts]
    labelled = [_labelled(place, post) for place, post in enumerate(posts)]
    found: list[list[_Span]] = [[] for _ in posts]
    cleaning = settings.cleaning
    hits = find(pl.Series(texts, dtype=pl.String), names=cleaning.names, ner=cleaning.ner)
    for row, start, end, kind, _ in hits.iter_rows():
        data = texts[row].encode()
        first = len(data[:start].decode())
        found[row].append(_Span(row, SPAN_KINDS[kind], first, first + len(data[start:end].decode())))
    false = [one for spans, right in zip(found, labelled, strict=True) for one in spans if not one.overlaps(right)]
    missed = [one for right, spans in zip(labelled, found, strict=True) for one in right if not one.is_covered(spans)]
    figures = []
    for kind in CALIBRATED["personal_data"]:
        of_kind: list[str | None] = [kind] if kind != "any" else [*CALIBRATED["personal_data"]]
        n_labelled, n_found = (sum(one.kind in of_kind for spans in of for one in spans) for of in (labelled, found))
        wrong = [one for one in false if one.kind in of_kind]
        figures.append(
            Figures(
                *("personal_data", kind, len(posts), n_labelled, n_found),
                right=n_found - len(wrong),
                missed=sum(one.kind in of_kind for one in missed),
                wrongly_changed=len({one.place for one in wrong}),
                **_agreement("personal_data", posts, partial(_holds, of_kind)),
            )
        )
    mistakes = [_in_context(posts, one, what) for what, of in ((FALSE_ALARM, false), (MISSED, missed)) for one in of]
    return Measured(figures, mistakes)


def _labelled(place: int, post: GoldPost) -> list[_Span]:
    """What is to be found in a post: a city, or a public figure, is not."""
    truth = post.truth("personal_data")
    spans = [(SPAN_KINDS[span.kind], span.places(post.text or "")) for span in (truth and truth.spans) or []]
    return [_Span(place, kind, *at) for kind, places in spans if kind is not None for at in places]


def _holds(of_kind: Sequence[str | None], reading: Reading) -> bool:
    return any(SPAN_KINDS[span.kind] in of_kind for span in reading.spans or [])


def _in_context(posts: Sequence[GoldPost], span: _Span, what: str) -> Mistake:
    post, text = posts[span.place], posts[span.place].text or ""
    before, behind = text[: span.start][-_AROUND:], text[span.end :][:_AROUND]
    return Mistake(post.id, span.kind or "", what, before, text[span.start : span.end], behind, "")


class Calibrated(NamedTuple):
    """Rows of `calibrations` of a stage and a file, and what went wrong, which is not kept."""

    rows: pl.DataFrame
    mistakes: list[Mistake]


def calibrate(home: Path, stage: str, gold: Path, settings: Settings) -> Calibrated:
    """Measures a stage by a file of labelled posts, and puts the figures in the place of earlier ones of that file.

    The same figures of the same rules change nothing.

    Raises UnknownName for another stage, UnreadableFile for the file, Busy where another process makes tables.
    """
    if stage not in CALIBRATED:
        raise UnknownName("stage to calibrate", stage, CALIBRATED)
    store = Store(Home(home).data)
    measured = measure(stage, read_gold(gold, stage, store), settings)
    more = {"gold": gold.name, "gold_sha256": sha256_of(gold), "measured_at": dt.datetime.now(dt.UTC)}
    rows = [_row(figures) | more | rules_of(stage, settings) for figures in measured.figures]
    frame = Calibrations.validate(pl.DataFrame(rows, schema=Calibrations.polars_schema()))
    with alone(home):
        return Calibrated(_kept(store, frame, stage, gold.name), measured.mistakes)


def _row(figures: Figures) -> dict[str, Any]:
    row = asdict(figures)
    for name, estimate in (("precision", figures.precision), ("recall", figures.recall)):
        ends = ("", "_low", "_high")
        row |= {name + end: value for end, value in zip(ends, estimate or (None, None, None), strict=True)}
    return row


def _kept(store: Store, rows: pl.DataFrame, stage: str, gold: str) -> pl.DataFrame:
    """The rows as they are kept: those that are there already, where only the time is another."""
    before = store.read(TABLE).collect() if store.current(TABLE) else rows.clear()
    mine = (pl.col("stage") == stage) & (pl.col("gold") == gold)
    stood = before.filter(mine)
    if stood.drop("measured_at").sort("kind").equals(rows.drop("measured_at").sort("kind")):
        return rows.with_columns(stood["measured_at"].first())
    store.write(TABLE, pl.concat([before.filter(~mine), rows]))
    return rows
