"""A home with two sources, one invented and one crawled, and a release of it. All texts are those of the samples."""

import datetime as dt
import shutil
from pathlib import Path
from typing import NamedTuple

import polars as pl
from release_rows import made

from pipelines.store import Store
from pipelines.store.release_manifest import Release, Source
from pipelines.store.releases import Releases
from pipelines.trainsets.prompt_sets import ecot_prompts
from schemas.reasoning import Coe
from schemas.tables import TABLES

CRAWLED = "forum"  # a source whose writers were not asked
NAME = "v1.0.0"


class Made(NamedTuple):
    store: Store
    releases: Releases
    release: Release


def mixed_home(source: Store, home: Path) -> Made:
    """A home with the `unique_posts` of `source`, every other one as if it had been crawled; and a release of it."""

    def renamed(column: pl.Expr) -> pl.Expr:
        return column.str.replace("^[^:]+", CRAWLED)

    posts = source.read("unique_posts").collect()
    answers = pl.col("answers").list.eval(pl.element().struct.with_fields(answer_id=renamed(pl.field("answer_id"))))
    theirs = posts.gather_every(2, offset=1).with_columns(
        renamed(pl.col("post_id", "cluster_id")),
        answers=answers,
        source=pl.lit(CRAWLED),
        licence=pl.lit("not stated"),
        consent=pl.lit("not_asked"),
    )
    store = Store(home / "data")
    store.write("unique_posts", pl.concat([posts.gather_every(2), theirs]))
    store.write("splits", source.read("splits").collect())
    return Made(store, Releases(home), make_release(home, store, training_sets(store)))


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
        contents = {"system": "你是一位善于倾听的人。", "user": row["text"], "assistant": chain.render()}
        messages = [{"role": role, "content": content} for role, content in contents.items()]
        of = {"split": split, "variant": "none"}
        chats.append({"row_id": answer["answer_id"], "messages": messages, **of})
        texts = {"query": row["text"], "positive": answer["text"], "negative": other["answers"][0]["text"]}
        triplets.append({"row_id": f"{answer['answer_id']}/0", "kind": "other_answer", **texts, **of})
    return {
        "sft_coe": pl.DataFrame(chats, schema=TABLES["sft_coe"].polars_schema()),
        "rm_triplets": pl.DataFrame(triplets, schema=TABLES["rm_triplets"].polars_schema()),
        "grpo_ecot": grpo,
    }


def make_release(home: Path, store: Store, sets: dict[str, pl.DataFrame], name: str = NAME) -> Release:
    """A release of these sets in `home`."""
    posts = store.read("unique_posts").collect()
    sources = [
        Source(name=source, licence=licence, consent=consent, lineage=[], rows=rows, collected="by the samples")
        for source, licence, consent, rows in posts.group_by("source", "licence", "consent").len().sort("source").rows()
    ]
    pins = {table: store.version(table).version for table in ("unique_posts", "splits")}
    return made(home, name, sets, made_at=dt.datetime(2026, 11, 21, tzinfo=dt.UTC), pins=pins, sources=sources)


def come_back(home: Path, folder: Path) -> Releases:
    """The releases of `home` once a publication is fetched into it."""
    releases = Releases(home)
    with releases.staging() as staged:
        shutil.copytree(folder, staged, dirs_exist_ok=True)
        releases.publish(staged, Release.model_validate_json((folder / "manifest.json").read_bytes()))
    return releases
