"""Names, schools, employers, hospitals and addresses, for the price of one reading."""

import polars as pl

from pipelines.text.pii.names import names_in
from pipelines.text.pii.places import places_in
from pipelines.text.pii.reading import read
from pipelines.text.pii.spans import gather


def find_entities(texts: pl.Series) -> pl.DataFrame:
    """Spans of all five kinds in folded texts."""
    reading = read(texts)
    return gather([places_in(reading), names_in(reading)])
