"""What waits for people, who alone fill `cer_labels` and `coe_reviews`: how much there is to do, and how to begin."""

import polars as pl

from pipelines.review.consensus import KEY
from pipelines.review.items import REVIEWED_CHAINS
from pipelines.store.store import Store


def waits_for_people(store: Store) -> dict[str, str]:
    """What each of the two tables waits for, in words; one that waits for nothing is not there.

    Raises DamagedVersion for what cannot be read.
    """
    counts = {
        "cer_labels": (_unlabelled(store), "candidates to label", "cer"),
        "coe_reviews": (_unreviewed(store), "chains to review", "coe"),
    }
    return {
        table: f"waits for people: {count:,} {what} (gongqing review export {kind})"
        for table, (count, what, kind) in counts.items()
        if count
    }


def _unlabelled(store: Store) -> int:
    """Candidates without a label that people have not given up, either."""
    if not store.current("cer_candidates"):
        return 0
    candidates = store.read("cer_candidates").select(KEY)
    if store.current("cer_labels"):
        item_id = pl.format("{}#{}/{}", *KEY)
        undecided = store.read_dropped("cer_labels").filter(reason="no_two_agree")
        left = candidates.join(store.read("cer_labels"), on=KEY, how="anti").with_columns(row_id=item_id)
        candidates = left.join(undecided, on="row_id", how="anti")
    return int(candidates.select(pl.len()).collect().item())


def _unreviewed(store: Store) -> int:
    """Chains that lack a review, as far as E's number of them goes."""
    if not store.current("coe_chains"):
        return 0
    chains = store.read("coe_chains").select("post_id")
    reviewed = 0
    if store.current("coe_reviews"):
        reviewed = int(
            chains.join(store.read("coe_reviews"), on="post_id", how="semi").select(pl.len()).collect().item()
        )
    wanted = min(REVIEWED_CHAINS, int(chains.select(pl.len()).collect().item()))
    return max(0, wanted - reviewed)
