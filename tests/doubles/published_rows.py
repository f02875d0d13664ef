"""A home with two sources, one invented and one crawled, and a release of it. All texts are those of the samples."""

import datetime as dt
from pathlib import Path

import polars as pl

from pipelines.store import Store
from pipelines.store.parquet import write_shards
from pipelines.store.release_manifest import Release, Source
from pipelines.store.releases import Releases
from pipelines.trainsets.prompt_sets import ecot_prompts
from schemas.reasoning import Coe
from schemas.tables import TABLES

CRAWLED = "forum"  # a source whose writers were not asked
NAME = "v1.0.0"


def as_crawled(posts: pl.DataFrame) -> pl.DataFrame:
    """The same posts under the name of a site that was crawled."""

    def renamed(column: pl.Expr) -> pl.Expr:
        return column.str.replace("^[^:]+", CRAWLED)

    answers = pl.col("answers").list.eval(pl.element().struct.with_fields(answer_id=renamed(pl.field("answer_id"))))
    return posts.with_columns(
        post_id=renamed(pl.col("post_id")),
        cluster_id=renamed(pl.col("cluster_id")),
        source=pl.lit(CRAWLED),
        answers=answers,
        licence=pl.lit("not stated"),
        consent=pl.lit("not_asked"),
    )


def home_with(store: Store, root: Path) -> Store:
    """A store whose `unique_posts` are those of `store`, every other one as if it had been crawled."""
    posts = store.read("unique_posts").collect().with_row_index()
    ours = posts.filter(pl.col("index") % 2 == 0).drop("index")
    theirs = as_crawled(posts.filter(pl.col("index") % 2 == 1).drop("index"))
    made = Store(root)
    made.write("unique_posts", pl.concat([ours, theirs]))
    made.write("splits", store.read("splits").collect())
    return made


def training_sets(store: Store) -> dict[str, pl.DataFrame]:
    """A prompt set, chats with a chain that quotes the post, and triplets whose negative is another post's answer."""
    posts, splits = store.read("unique_posts").collect(), store.read("splits").collect()
    split_of = dict(splits.select("group_id", "split").iter_rows())
    grpo, _ = ecot_prompts(posts, splits)
    answered = [row for row in posts.iter_rows(named=True) if row["answers"] and not row["under_18"]]
    chats, triplets = [], []
    for row, other in zip(answered, [*answered[1:], answered[0]], strict=True):
        answer, split = row["answers"][0], split_of[row["group_id"]]
        chain = Coe(
            L1=f"对方说：“{row['description'][:24]}”", L2="想法之间", L3="想被听见", L4="先共情", answer=answer["text"]
        )
        messages = [
            {"role": "system", "content": "你是一位善于倾听的人。"},
            {"role": "user", "content": row["text"]},
            {"role": "assistant", "content": chain.render()},
        ]
        chats.append({"row_id": answer["answer_id"], "messages": messages, "split": split, "variant": "none"})
        texts = {"query": row["text"], "positive": answer["text"], "negative": other["answers"][0]["text"]}
        kind = {"kind": "other_answer", "split": split, "variant": "none"}
        triplets.append({"row_id": f"{answer['answer_id']}/0", **texts, **kind})
    return {
        "sft_coe": pl.DataFrame(chats, schema=TABLES["sft_coe"].polars_schema()),
        "rm_triplets": pl.DataFrame(triplets, schema=TABLES["rm_triplets"].polars_schema()),
        "grpo_ecot": grpo,
    }


def make_release(releases: Releases, store: Store, sets: dict[str, pl.DataFrame], name: str = NAME) -> Release:
    """A release of these sets."""
    posts = store.read("unique_posts").collect()
    sources = [
        Source(name=source, licence=licence, consent=consent, lineage=[], rows=rows, collected="by the samples")
        for source, licence, consent, rows in posts.group_by("source", "licence", "consent").len().sort("source").rows()
    ]
    with releases.staging() as staged:
        made = Release(
            name=name,
            made_at=dt.datetime(2026, 11, 21, tzinfo=dt.UTC),
            code="tests",
            pins={table: store.version(table).version for table in ("unique_posts", "splits")},
            configs={config: write_shards(staged, config, TABLES[config], rows) for config, rows in sets.items()},
            settings={},
            prompts={},
            spend=[],
            sources=sources,
            findings=[],
            allowed=[],
        )
        return releases.publish(staged, made)
