"""Cells: every text of a post or dialogue (a title, an answer, a turn) as a row of one long column, cleaned in one go.

The cells of one post or dialogue are a group, inside which a placeholder means the same person or number.
"""

from collections import defaultdict
from collections.abc import Callable

import polars as pl

from pipelines.clean.normalise import Profile, normalised
from pipelines.settings import Cleaning
from pipelines.text.chunks import with_rows
from pipelines.text.pii.redaction import find, redact, without_addresses
from pipelines.text.script import simplified
from schemas.posts import PII

NO_PII = pl.lit(pl.Series([[]], dtype=pl.List(PII.dtype)))

# A text that changes is read again: an artefact may have stood within a number. A hostile one is left after so many
# readings.
_READINGS = 6

# The labels that this process has cleaned, by the way they were: every piece of a corpus has the same ones, and a call
# costs as much for one as for a thousand (regexes are compiled).
_known_labels: defaultdict[Cleaning, dict[str, str]] = defaultdict(dict)
_LABELS = 100_000  # are remembered


def as_written(text: pl.Expr) -> pl.Expr:
    """`text` without artefacts and addresses, in Simplified Chinese, with all other personal data still in it.

    Language, ages and signs of risk are judged on this: a placeholder may stand where a sign stood (李叔叔摸我). It is
    for verdicts alone, and never stored.
    """
    return simplified(normalised(text)).map_batches(without_addresses, pl.String, is_elementwise=True)


def cleaned(cells: pl.DataFrame, cleaning: Cleaning) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The cells with `text` free of personal data and artefacts, in Simplified Chinese; cleaning again changes nothing.

    `cells` has `group`, `lang`, `text` and whatever else; a null stays one.

    Returns `(cells, pii)`: the cells in their order, with `stored`: the text in the profile that is kept (`text` is in
    `default`); and `group`, `pii`: the personal data replaced in each group that had any, as {kind, count}.
    """
    rows = pl.int_range(len(cells), dtype=pl.get_index_type(), eager=True)
    texts, counts = _settled(cells["text"], cells["group"], rows, cleaning, "default")
    stored = texts
    if cleaning.profile == "paper":  # it would leave nothing of an English dialogue
        chinese = cells.select(pl.arg_where(pl.col("lang") == "zh")).to_series()
        # What it leaves stands closer together, and may read as a name.
        stored, counts_in_paper = _settled(texts, cells["group"], chinese, cleaning, "paper")
        counts = pl.concat([counts, counts_in_paper])
    pii = (
        counts.group_by("group", "kind")
        .agg(pl.col("count").sum())
        .sort("group", "kind")
        .group_by("group", maintain_order=True)
        .agg(pii=pl.struct("kind", "count").cast(PII.dtype))
    )
    return cells.with_columns(text=texts, stored=stored), pii


def _settled(
    texts: pl.Series, groups: pl.Series, rows: pl.Series, cleaning: Cleaning, profile: Profile
) -> tuple[pl.Series, pl.DataFrame]:
    """`texts` with those of `rows` redacted and normalised until nothing changes, and the counts of personal data."""
    counts = []
    for _ in range(_READINGS):
        # Personal data first: what hides them (➕V, zero-width characters) is an artefact that the next step removes.
        redacted = redact(texts.gather(rows), groups.gather(rows), names=cleaning.names, ner=cleaning.ner)
        counted = redacted.counts.select("kind", "count", group=groups.gather(rows.gather(redacted.counts["row"])))
        counts.append(counted)
        read = pl.DataFrame({"row": rows, "group": groups.gather(rows), "text": redacted.texts})
        read = read.with_columns(made=simplified(normalised(pl.col("text"), profile)))
        texts = with_rows(texts, rows, read["made"])
        # What this has uncovered stands in a text that it has changed. Its group is read again whole: that names it
        # elsewhere, and numbers the placeholders.
        changed = read.filter(pl.col("made") != pl.col("text"))
        hits = find(changed["made"], changed["group"], names=cleaning.names, ner=cleaning.ner)
        uncovered = changed["group"].gather(hits["row"]).unique()
        rows = read.filter(pl.col("group").is_in(uncovered.implode()))["row"]
        if rows.is_empty():
            break
    return texts, pl.concat(counts)


def cleaned_labels(labels: pl.Series, cleaning: Cleaning) -> Callable[[pl.Expr], pl.Expr]:
    """A way to clean the labels and notes of a source, each different one read once and apart from the others.

    Returns a function from an expression of such labels to the same, cleaned in the default profile; null stays null.
    """
    distinct = labels.drop_nulls().unique()
    known = _known_labels[cleaning]
    if len(known) > _LABELS:
        known = _known_labels[cleaning] = {}  # another thread may be reading the older ones
    if len(new := distinct.filter(~distinct.is_in(list(known)))):
        cells = pl.DataFrame({"group": pl.int_range(len(new), eager=True), "lang": "zh", "text": new})
        known.update(zip(new, cleaned(cells, cleaning)[0]["text"], strict=True))
    made = pl.Series([known[one] for one in distinct], dtype=pl.String)
    return lambda label: label.replace_strict(distinct, made, default=None, return_dtype=pl.String)


def first_reason(*reasons: tuple[pl.Expr, pl.Expr | str, pl.Expr | str]) -> pl.Expr:
    """`reason` and `detail` of the first `(condition, reason, detail)` that holds, as a struct; null if none does."""
    literal = [tuple(pl.lit(one) if isinstance(one, str) else one for one in reason) for reason in reasons]
    return pl.coalesce(
        pl.when(condition).then(pl.struct(reason=reason, detail=detail)) for condition, reason, detail in literal
    )
