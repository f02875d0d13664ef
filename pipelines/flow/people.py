"""What waits for people, who alone fill `cer_labels` and `coe_reviews`: how much there is to do, and how to begin."""

from pathlib import Path

import polars as pl

from pipelines.review.consensus import KEY
from pipelines.review.items import REVIEWED_CHAINS, chain_hash
from pipelines.rewrite.scripts import of_label
from pipelines.split.eligible import Eligibility
from pipelines.store.store import Store
from pipelines.store.suppression import is_taken_down, taken_down


def waits_for_people(store: Store) -> dict[str, str]:
    """What each of these tables waits for, in words; one that waits for nothing is not there.

    What an export gives out counts: nothing by somebody under 18, with signs of risk, or that is to be taken down.
    A label, or a review, counts where it is of what there is today. Raises DamagedVersion for what cannot be read.
    """
    listed = taken_down(Path(store.storage.root).parent)
    counts = {
        "cer_labels": (_unlabelled(store, listed), "candidates to label", "cer"),
        "coe_reviews": (_unreviewed(store, listed), "chains to review", "coe"),
    }
    waits = {
        table: f"waits for people: {count:,} {what} (gongqing review export {kind})"
        for table, (count, what, kind) in counts.items()
        if count
    }
    if waits and not any(store.current(table) for table in ("cer_votes", "coe_reviews", "rankings")):
        waits["agreements"] = "waits for people: nobody has labelled anything yet (docs/reviewing.md)"
    return waits


def _unlabelled(store: Store, listed: list[str]) -> int:
    """Candidates without a label that people have not given up, either."""
    needed = ("cer_candidates", "sampled_turns", "splits")
    if not all(store.current(table) for table in needed):
        return 0
    turns = store.read("sampled_turns").filter(
        ~pl.col("under_18"), pl.col("risk").list.len() == 0, ~is_taken_down("dialogue_id", listed)
    )
    round_ = ["dialogue_id", "round"]
    candidates = store.read("cer_candidates").join(turns.select(round_), on=round_, how="semi")
    left = candidates.select(pl.len()).collect().item()
    if not store.current("cer_labels"):
        return int(left)
    labels = store.read("cer_labels").select(*KEY, "labelled")
    done = candidates.join(labels, on=KEY).join(turns, on=round_, suffix="_turn").collect()
    hashes = [of_label(row, row).hash for row in done.iter_rows(named=True)]
    undecided = store.read_dropped("cer_labels").filter(reason="no_two_agree").select("row_id")
    given_up = candidates.select(row_id=pl.format("{}#{}/{}", *KEY)).join(undecided, on="row_id", how="semi")
    n_done = [one == now for one, now in zip(done["labelled"], hashes, strict=True)].count(True)
    return int(left) - n_done - int(given_up.select(pl.len()).collect().item())


def _unreviewed(store: Store, listed: list[str]) -> int:
    """Chains that lack a review, as far as E's number of them goes."""
    if not all(store.current(table) for table in ("coe_chains", "unique_posts", "splits")):
        return 0
    posts = store.read("unique_posts").filter(~is_taken_down("post_id", listed))
    topics = store.read("topics").collect() if store.current("topics") else None
    chains = store.read("coe_chains").join(
        posts.select("post_id", "text", "group_id", "under_18", "risk"), on="post_id"
    )
    fit, _ = Eligibility(store.read("splits").collect(), topics).posts(chains.collect())
    reviewed = 0
    if store.current("coe_reviews"):
        seen = set(store.read("coe_reviews").select("post_id", "labelled").collect().iter_rows())
        asked = {post_id for post_id, _ in seen}
        reviewed = sum(
            (row["post_id"], chain_hash(row, row["text"])) in seen
            for row in fit.filter(pl.col("post_id").is_in(list(asked))).iter_rows(named=True)
        )
    return max(0, min(REVIEWED_CHAINS, fit.height) - reviewed)
