"""Help-seeking posts with their answers: as they came, cleaned, and without duplicates."""

from collections.abc import Mapping
from typing import Any

import dataframely as dy
import polars as pl

from schemas import labels
from schemas.table import PRIVATE, Table, instant, one_of

RISK = dy.Struct(
    {
        "kind": one_of(labels.RISKS, description="self_harm, harm_to_others or abuse"),
        "rule": dy.String(description="the rule of the lexicon that matched"),
    }
)

PII = dy.Struct(
    {
        "kind": one_of(labels.PII_KINDS, description="what was replaced: phone, qq, wechat, name, school …"),
        "count": dy.Int64(min=1, description="how many times"),
    }
)

EDIT = dy.Struct(
    {
        "row_id": dy.String(description="the answer that was cut"),
        "rule": one_of(labels.EDITS, description="signature (repeated over the corpus) or credential (a claim of one)"),
        "removed": dy.String(description="the words, personal data replaced"),
    }
)

SCRIPT = one_of(
    labels.SCRIPTS, description="as it was written: simplified, traditional, mixed, or neutral (both alike)"
)

STRATEGY_SPAN = dy.Struct(
    {
        "strategy": dy.String(nullable=True, description="our label, null where the cross-walk has none"),
        "source_strategy": dy.String(description="the label as the source wrote it"),
        "start": dy.Int32(description="first character of the span in `text`"),
        "end": dy.Int32(description="one past its last character"),
    }
)

_ANSWER = {
    "answer_id": dy.String(description="`post_id/…`"),
    "author": dy.String(nullable=True, description="HMAC pseudonym, null where anonymous or not given"),
    "author_role": one_of(labels.AUTHOR_ROLES, description="professional, member or unknown"),
    "text": dy.String(description="what the supporter wrote"),
    "posted_at": instant(nullable=True, description="when (UTC)"),
    "likes": dy.Int64(nullable=True, description="how many found it useful"),
    "recommended": dy.Bool(nullable=True, description="whether the site recommends it"),
}


_CLEAN_ANSWER = {
    **_ANSWER,
    "risk": dy.List(RISK, description="signs of risk to life or limb in the answer"),
    "under_18": dy.Bool(description="its writer says to be younger than 18: no reference for what trains"),
}


class Posts(Table):
    """What every table of posts has."""

    post_id = dy.String(primary_key=True, description="`source:source_id`")
    source = dy.String(description="the site or the data set")
    source_id = dy.String(description="the source's own id of the post")
    url = dy.String(nullable=True, description="where it stood", metadata=PRIVATE)
    title = dy.String(description="title or question", metadata=PRIVATE)
    description = dy.String(description="body of the post", metadata=PRIVATE)
    topic = dy.String(nullable=True, description="main topic, as the source gives it", metadata=PRIVATE)
    subtopics = dy.List(dy.String(), description="subtopics and other labels of the source", metadata=PRIVATE)
    author = dy.String(nullable=True, description="HMAC pseudonym of the seeker, null where anonymous or not given")
    posted_at = instant(nullable=True, description="when the post was written (UTC)")
    posted_at_precision = one_of(labels.PRECISIONS, nullable=True, description="how exact `posted_at` is")
    fetched_at = instant(nullable=True, description="first time this content was seen (UTC); null for imported files")
    lang = one_of(labels.LANGUAGES, description="language, as the source says")
    origin = one_of(labels.ORIGINS, description="written by a human, by a model, or unknown")
    lineage = dy.List(dy.String(), description="the sets it was made from, nearest first")
    licence = dy.String(description="licence of the source")
    consent = one_of(labels.CONSENTS, description="what is known of the writers' consent")
    layout = dy.String(nullable=True, description="the page layout or file format it was read from")

    @dy.rule()
    def post_id_is_source_and_source_id(cls) -> pl.Expr:
        """The id is made in one way alone."""
        return pl.col("post_id") == pl.col("source") + ":" + pl.col("source_id")

    @classmethod
    def _sampling_overrides(cls) -> dict[str, pl.Expr]:
        return {"post_id": pl.col("source") + ":" + pl.col("source_id")}


class ImportedPosts(Posts):
    """Posts of a public data set, as its reader yields them. One partition a data set."""

    answers = dy.List(
        dy.Struct({**_ANSWER, "spans": dy.List(STRATEGY_SPAN, description="strategy labels of the source")}),
        description="the answers, in the source's order",
        metadata=PRIVATE,
    )


class RawPosts(ImportedPosts):
    """Posts as they were crawled. One partition a source and a day of posting (Shanghai)."""


class CleanPosts(Posts):
    """Posts and answers without artefacts and personal data that pass the filters (M §2, E §2)."""

    version = 2

    title = dy.String(description="title or question, cleaned")
    description = dy.String(description="body of the post, cleaned")
    answers = dy.List(dy.Struct(dict(_CLEAN_ANSWER)), description="the answers that were kept, cleaned")
    text = dy.String(description="title and description, one below the other")
    n_chars = dy.Int64(min=0, description="characters of `text`, white space not counted")
    han_ratio = dy.Float64(min=0, max=1, description="share of Chinese characters among those of `text`")
    script = SCRIPT
    pii = dy.List(PII, description="personal data replaced in the post and its answers, counted by kind")
    edits = dy.List(EDIT, description="what was cut from the answers that were kept, and by which rule")
    emotional_context = dy.Float64(min=0, max=1, description="how much of a feeling person's story the post tells")
    doubts = dy.List(one_of(labels.DOUBTS), description="what the rules left to the LLM filter; empty where clear")
    risk = dy.List(RISK, description="signs of risk to life or limb; empty where none was found")
    under_18 = dy.Bool(description="the writer says to be younger than 18: out of everything that trains")


class UniquePosts(CleanPosts):
    """Posts without near-duplicates; the survivor of a cluster has the answers of all its members."""

    answers = dy.List(
        dy.Struct(
            {
                **_CLEAN_ANSWER,
                "cluster_id": dy.String(description="`answer_id` of the first of all nearly equal answers"),
                "n_questions": dy.Int64(min=1, description="questions under which a nearly equal answer stands"),
            }
        ),
        description="the answers of all members, nearly equal ones once",
    )
    cluster_id = dy.String(description="`post_id` of the survivor")
    cluster_size = dy.Int64(min=1, description="posts that were one and the same, or nearly so")
    group_id = dy.String(description="what a split may never tear apart: see `splits`")


def has_answers(schema: Mapping[str, Any]) -> bool:
    """Whether rows of these columns are posts with their answers: elsewhere `answers` may name a file."""
    return isinstance(schema.get("answers"), pl.List)
