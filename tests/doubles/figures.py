"""Precision and recall per kind over labelled sentences.

A found span is right when its kind is the labelled one's and it covers all of its characters, and at most four more (a
form of address, a bracket). Whatever else is found is a false alarm.
"""

import tomllib
from pathlib import Path

import polars as pl

from pipelines.text.pii.redaction import find
from schemas.labels import PII_KINDS

HERE = Path(__file__).parent
EXTRA = 4  # characters


def labelled(path: Path) -> tuple[list[str], pl.DataFrame]:
    """Sentences, and their spans: row, start and end in characters, kind."""
    sentences = tomllib.loads(path.read_text(encoding="utf-8"))["sentence"]
    spans = []
    for row, sentence in enumerate(sentences):
        end = 0
        for span in sentence["spans"]:
            start = sentence["text"].index(span["text"], end)
            end = start + len(span["text"])
            spans.append((row, start, end, span["kind"]))
    schema = pl.Schema({"row": pl.UInt32, "start": pl.Int64, "end": pl.Int64, "kind": pl.Enum(PII_KINDS)})
    return [sentence["text"] for sentence in sentences], pl.DataFrame(spans, schema=schema, orient="row")


def found(texts: list[str], *, names: bool = True) -> pl.DataFrame:
    """What is found, in characters."""
    spans = find(pl.Series(texts), names=names)
    characters = [
        (len(data[: span["start"]].decode()), len(data[: span["end"]].decode()))
        for span in spans.iter_rows(named=True)
        for data in [texts[span["row"]].encode()]
    ]
    starts, ends = zip(*characters, strict=True) if characters else ((), ())
    return spans.select(
        "row",
        start=pl.Series(starts, dtype=pl.Int64),
        end=pl.Series(ends, dtype=pl.Int64),
        kind=pl.col("kind").cast(pl.Enum(PII_KINDS)),
    )


def compare(labels: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Both, joined where they agree: columns of each with a null start or a null start_found where one stands alone."""
    right = (
        labels.with_row_index("label")
        .join(found.with_row_index("find"), on=["row", "kind"], suffix="_found")
        .filter(
            (pl.col("start_found") <= pl.col("start"))
            & (pl.col("end_found") >= pl.col("end"))
            & (pl.col("end_found") - pl.col("start_found") <= pl.col("end") - pl.col("start") + EXTRA)
        )
    )
    missed = labels.with_row_index("label").join(right, on="label", how="anti")
    # Missed as what it is, yet not left readable as a whole: found in part, or as another kind.
    touched = missed.join(found, on="row", suffix="_found").filter(
        (pl.col("start_found") < pl.col("end")) & (pl.col("end_found") > pl.col("start"))
    )
    return pl.concat(
        [
            right.drop("label", "find"),
            missed.with_columns(touched=pl.col("label").is_in(touched["label"].to_list())).drop("label"),
            found.with_row_index("find")
            .join(right, on="find", how="anti")
            .select("row", "kind", start_found="start", end_found="end"),
        ],
        how="diagonal",
    )


def figures(compared: pl.DataFrame) -> pl.DataFrame:
    """Per kind: right, missed, of these touched, false alarms, precision, recall (null where there is nothing)."""
    right = pl.col("start").is_not_null() & pl.col("start_found").is_not_null()
    counts = compared.group_by("kind").agg(
        right=right.sum(),
        missed=pl.col("start_found").is_null().sum(),
        touched=pl.col("touched").sum(),
        false=pl.col("start").is_null().sum(),
    )
    kinds = pl.DataFrame({"kind": PII_KINDS}, schema={"kind": pl.Enum(PII_KINDS)})
    return (
        kinds.join(counts, on="kind", how="left", maintain_order="left")
        .fill_null(0)
        .with_columns(precision=rate("right", "false"), recall=rate("right", "missed"))
    )


def rate(right: str, wrong: str) -> pl.Expr:
    """Share of `right` in `right` and `wrong`; null where both are 0."""
    total = pl.col(right) + pl.col(wrong)
    return pl.when(total > 0).then(pl.col(right) / total)
