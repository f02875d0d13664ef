"""What is made from a row belongs to the row's group, and a group to one split (DESIGN §2.8)."""

from collections.abc import Iterator

import polars as pl

from pipelines.release.checks.released import Released, origin, some
from pipelines.store.release_manifest import Finding

# Tables that are made of training rows alone, each with the column that leads to what a row was made from.
MADE_OF_TRAINING_ROWS = {
    "ecot_chains": "post_id",
    "coe_chains": "post_id",
    "cer_candidates": "dialogue_id",
    "cer_labels": "dialogue_id",
    "disc_profiles": "dialogue_id",
    "personas": "persona_id",
    "rewrite_drafts": "dialogue_id",
    "rewrite_judgements": "row_id",
    "rewritten_dialogues": "source_dialogue_id",
    "rewritten_rounds": "source_dialogue_id",
}

_REFRESH = "an older version was promoted, or a table was edited: gongqing refresh, without --select"


def descendants(released: Released) -> Iterator[Finding]:
    """Rows that nothing in the tables is the origin of, rows of another split than their group, rows that hold an
    answer of another split, and what was made from held-out rows for training.
    """
    split_of = released.table("splits").select("group_id", of_group="split")
    rows = released.rows.join(split_of, on="group_id", how="left")
    orphans = rows.filter(pl.col("of_group").is_null())
    if orphans.height:
        yield _refused(
            orphans.height, "rows come from no post or dialogue that has a group and a split", orphans["row_id"]
        )
    astray = rows.filter(pl.col("split") != pl.col("of_group"))
    if astray.height:
        yield _refused(astray.height, "rows have another split than the group that they come from", astray["row_id"])
    strange = _drawn(released).join(_answers(released, split_of), on="answer_id", how="left")
    strange = strange.filter(~pl.col("splits").list.contains(pl.col("split")).fill_null(value=False))
    if strange.height:
        ids = strange["row_id"].unique()
        yield _refused(len(ids), "rows hold an answer to a question of another split, or to none", ids)
    held_out = released.sources.join(split_of, on="group_id").filter(pl.col("of_group") != "train")
    barred = set(held_out["origin"])
    for table, column in MADE_OF_TRAINING_ROWS.items():
        made = released.table(table).get_column(column)
        found = [row_id for row_id in made if origin(row_id, barred) is not None]
        if found:
            yield _refused(len(found), f"rows of {table} were made from held-out rows", found)


def _drawn(released: Released) -> pl.DataFrame:
    """`row_id`, `split`, `answer_id` of every answer to a post that a row holds: reference, positive or negative."""
    reference = pl.concat_list(pl.col("extra_info").struct.field("reference_id"))
    named = {
        "grpo_ecot": reference,
        "grpo_coe": reference,
        "rm_triplets": pl.concat_list("positive_id", "negative_ids"),
    }
    drawn = [
        rows.select("row_id", "split", answer_id=named[config]).explode("answer_id")
        for config, rows in released.configs.items()
        if config in named
    ]
    empty = pl.DataFrame(schema=dict.fromkeys(("row_id", "split", "answer_id"), pl.String))
    return pl.concat([empty, *drawn]).drop_nulls("answer_id")


def _answers(released: Released, split_of: pl.DataFrame) -> pl.DataFrame:
    """`answer_id` and the `splits` that it stands in. An answer that was moved is named after the post that it left."""
    ids = pl.col("answers").list.eval(pl.element().struct.field("answer_id"))
    answers = released.table("unique_posts").select("group_id", answer_id=ids).explode("answer_id")
    placed = answers.join(split_of, on="group_id").group_by("answer_id")
    return placed.agg(splits=pl.col("of_group").unique())


def groups(released: Released) -> Iterator[Finding]:
    """Groups that stand in two splits: by their rows, or by what ties rows to them."""
    torn = _torn(released.rows.drop_nulls("group_id"), "group_id")
    links = released.table("splits").select("split", link="members", group_id="group_id").explode("link")
    shared = links.filter(pl.col("link").is_in(_torn(links.drop_nulls("link"), "link").implode()))
    found = some(pl.concat([torn, shared["group_id"]]))
    if found:
        count = pl.concat([torn, shared["group_id"]]).n_unique()
        yield Finding(
            check="groups",
            severity="refuse",
            count=count,
            what=f"{count:,} groups stand in two splits",
            hint=_REFRESH,
            examples=found,
        )


def _torn(rows: pl.DataFrame, by: str) -> pl.Series:
    """What stands in more than one split."""
    counted = rows.group_by(by).agg(splits=pl.col("split").n_unique())
    return counted.filter(pl.col("splits") > 1).get_column(by)


def _refused(count: int, what: str, ids: pl.Series | list[str]) -> Finding:
    return Finding(
        check="descendants",
        severity="refuse",
        count=count,
        what=f"{count:,} {what}",
        hint=_REFRESH,
        examples=some(ids),
    )
