"""How well rules find what they look for, held against posts that people labelled: figures alone, no word of a post."""

import dataframely as dy
import polars as pl

from schemas import labels
from schemas.table import Table, instant, one_of


def _share(what: str) -> dy.Float64:
    return dy.Float64(nullable=True, min=0, max=1, description=what)


class Calibrations(Table):
    """What `gongqing calibrate` measured: a row for each kind that a stage finds, and each file of labelled posts.

    Counts are of spans where the stage is `personal_data`, else of posts. Bounds are Wilson's, of 95 %.
    """

    stage = one_of(tuple(labels.CALIBRATED), primary_key=True, description="the rules that were measured")
    kind = dy.String(primary_key=True, description="what they look for: a kind of schemas.labels.CALIBRATED, or any")
    gold = dy.String(primary_key=True, description="the name of the file with the labelled posts")
    gold_sha256 = dy.String(regex="^[0-9a-f]{64}$", description="its SHA-256")
    posts = dy.Int64(min=1, description="how many posts were read")
    labelled = dy.Int64(min=0, description="how many there are, by the labels")
    found = dy.Int64(min=0, description="how many the rules found")
    right = dy.Int64(min=0, description="how many of what they found is labelled")
    missed = dy.Int64(min=0, description="how many of what is labelled they did not find")
    wrongly_changed = dy.Int64(nullable=True, min=0, description="posts with a false alarm (personal data)")
    precision = _share("right / found; null where nothing was found")
    precision_low = _share("its lower bound")
    precision_high = _share("its upper bound")
    recall = _share("(labelled - missed) / labelled; null where nothing is labelled")
    recall_low = _share("its lower bound")
    recall_high = _share("its upper bound")
    kappa = dy.Float64(
        nullable=True,
        min=-1,
        max=1,
        description="Cohen's kappa of two readers, over posts that both read, on whether a post holds any; of more "
        "readers the mean of all pairs (Light 1971); null where there are no two, or where it is undefined",
    )
    readers = dy.Int64(min=1, description="how many people labelled the posts, as far as the file tells them apart")
    auc = _share("of the score of emotional context: how often an emotional post has the higher one (relevance)")
    code = dy.String(description="version of the rules' code")
    settings = dy.String(description="the settings that decide what they find, as JSON")
    measured_at = instant(description="when these figures were first measured (UTC)")

    @dy.rule()
    def counts_agree(cls) -> pl.Expr:
        """Nothing is right that was not found, nor missed that is not there."""
        return (pl.col("right") <= pl.col("found")) & (pl.col("missed") <= pl.col("labelled"))

    @classmethod
    def _sampling_overrides(cls) -> dict[str, pl.Expr]:
        return {"right": pl.lit(0, pl.Int64), "missed": pl.lit(0, pl.Int64)}
