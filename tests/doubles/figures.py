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


def labelled(*files: str) -> tuple[list[str], pl.DataFrame]:
    """Sentences, and their spans: row, start and end in characters, kind."""
    sentences = [one for file in files for one in tomllib.loads((HERE / file).read_text(encoding="utf-8"))["sentence"]]
    spans = []
    for row, sentence in enumerate(sentences):
        end = 0
        for span in sentence["spans"]:
            start = sentence["text"].index(span["text"], end)
            end = start + len(span["text"])
            spans.append((row, start, end, span["kind"]))
    schema = pl.Schema({"row": pl.UInt32, "start": pl.Int64, "end": pl.Int64, "kind": pl.Enum(PII_KINDS)})
    return [sentence["text"] for sentence in sentences], pl.DataFrame(spans, schema=schema, orient="row")


def found(texts: list[str]) -> pl.DataFrame:
    """What is found, in characters."""
    rows = []
    for span in find(pl.Series(texts)).iter_rows(named=True):
        data = texts[span["row"]].encode()
        start, end = (len(data[: span[place]].decode()) for place in ("start", "end"))
        rows.append((span["row"], start, end, span["kind"]))
    schema = pl.Schema({"row": pl.UInt32, "start": pl.Int64, "end": pl.Int64, "kind": pl.Enum(PII_KINDS)})
    return pl.DataFrame(rows, schema=schema, orient="row")


def figures(labels: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Per kind: right, missed, false alarms, precision, recall (null where there is nothing)."""
    labels, found = labels.with_row_index("label"), found.with_row_index("find")
    right = labels.join(found, on=["row", "kind"], suffix="_found").filter(
        (pl.col("start_found") <= pl.col("start"))
        & (pl.col("end_found") >= pl.col("end"))
        & (pl.col("end_found") - pl.col("start_found") <= pl.col("end") - pl.col("start") + EXTRA)
    )
    tallies = {
        "right": right,
        "missed": labels.join(right, on="label", how="anti"),
        "false": found.join(right, on="find", how="anti"),
    }
    table = pl.DataFrame({"kind": PII_KINDS}, schema={"kind": pl.Enum(PII_KINDS)})
    for name, rows in tallies.items():
        table = table.join(rows.group_by("kind").len(name), on="kind", how="left", maintain_order="left")
    return table.fill_null(0).with_columns(precision=rate("right", "false"), recall=rate("right", "missed"))


def rate(right: str, wrong: str) -> pl.Expr:
    """Share of `right` in `right` and `wrong`; null where both are 0."""
    total = pl.col(right) + pl.col(wrong)
    return pl.when(total > 0).then(pl.col(right) / total)
