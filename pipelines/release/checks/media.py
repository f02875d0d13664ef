"""What of the dialogues is lost with their sound and pictures: every set is text alone.

A set names the clips of its turns and brings no files (`schemas.dialogues.MEDIA`). A round whose history holds one is
left out of `grpo_cer` and of the candidates: what was seen or heard there, no text says.
"""

from collections.abc import Iterator

import polars as pl

from pipelines.release.checks.released import Released, finding
from pipelines.store.release_manifest import MEDIA, Finding
from schemas.ids import round_id


def media(released: Released) -> Iterator[Finding]:
    """The sampled rounds that cannot be understood without a clip, out of all of them."""
    rounds = released.table("sampled_turns")
    lacking = rounds.filter(pl.col("needs_media")).select("dialogue_id", "round")
    if lacking.height:
        share = f"{lacking.height:,} of {rounds.height:,} rounds ({lacking.height / rounds.height:.1%})"
        what = f"text only: {share} lacked media, and are left out"
        ids = [round_id(*row) for row in lacking.iter_rows()]
        yield finding(MEDIA, what, "nothing is lost but these: clips are not read here", ids, severity="warn")
