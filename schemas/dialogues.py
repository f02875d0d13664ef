"""Dialogues between a seeker and a supporter: as they came, cleaned, without duplicates, and coherent."""

import dataframely as dy
import polars as pl

from schemas import labels
from schemas.posts import PII, RISK, SCRIPT
from schemas.table import PRIVATE, LlmMade, Table, one_of

MEDIA = dy.Struct(
    {
        "uri": dy.String(description="where the clip is; never downloaded"),
        "kind": one_of(("audio", "video", "image"), description="audio, video or image"),
        "sha256": dy.String(nullable=True, description="of the file, where the source gives it"),
        "start_ms": dy.Int64(nullable=True, description="start within the file, milliseconds"),
        "end_ms": dy.Int64(nullable=True, description="end within the file, milliseconds"),
        "licence": dy.String(nullable=True, description="licence of the clip"),
        "available": dy.Bool(description="whether the file is at hand"),
        "needed": dy.Bool(
            nullable=True, description="the source says that text does not do; null: it says nothing of it"
        ),
    }
)

TURN = dy.Struct(
    {
        "role": one_of(labels.ROLES, description="seeker or supporter"),
        "text": dy.String(description="the words"),
        "strategies": dy.List(dy.String(), description="support strategies, our English labels"),
        "source_strategies": dy.List(dy.String(), description="the labels as the source wrote them"),
        "emotion": dy.String(nullable=True, description="emotion of the turn, as the source labels it"),
        "feedback": dy.Int8(nullable=True, description="the seeker's rating of the help so far, 1–5"),
        "origin": one_of(labels.ORIGINS, description="by a human, a model, or unknown"),
        "media": dy.List(MEDIA, description="clips that belong to the turn"),
    }
)

ATTRIBUTE = dy.Struct({"name": dy.String(), "value": dy.String()})
# What a model or a reader is shown of a turn.
SPOKEN = dy.Struct({"role": one_of(labels.ROLES), "text": dy.String()})


class Dialogues(Table):
    """What every table of dialogues has."""

    dialogue_id = dy.String(primary_key=True, description="`source:source_id`")
    source = dy.String(description="the data set")
    source_id = dy.String(description="the source's own id, or the hash of its turns where it has none")
    lang = one_of(labels.LANGUAGES, description="language, as the set says")
    topic = dy.String(nullable=True, description="topic or problem type, as the source gives it", metadata=PRIVATE)
    situation = dy.String(nullable=True, description="the seeker's situation in a sentence", metadata=PRIVATE)
    emotion = dy.String(nullable=True, description="the seeker's, as the source gives it", metadata=PRIVATE)
    turns = dy.List(TURN, description="the turns in order; roles alternate", metadata=PRIVATE)
    n_rounds = dy.Int64(min=0, description="seeker turns that a supporter turn answers")
    modality = one_of(labels.MODALITIES, description="text, or text with audio, video or images")
    attributes = dy.List(ATTRIBUTE, description="what else the source records: surveys, marks", metadata=PRIVATE)
    licence = dy.String(description="licence of the source")
    consent = one_of(labels.CONSENTS, description="what is known of the speakers' consent")
    lineage = dy.List(dy.String(), description="the sets it was made from, nearest first")

    @dy.rule()
    def dialogue_id_is_source_and_source_id(cls) -> pl.Expr:
        """The id is made in one way alone."""
        return pl.col("dialogue_id") == pl.col("source") + ":" + pl.col("source_id")

    @classmethod
    def _sampling_overrides(cls) -> dict[str, pl.Expr]:
        return {"dialogue_id": pl.col("source") + ":" + pl.col("source_id")}


class ImportedDialogues(Dialogues):
    """Dialogues of a public data set, as its reader yields them. One partition a data set."""


class CleanDialogues(Dialogues):
    """Dialogues without artefacts and personal data that pass the filters."""

    version = 2

    situation = dy.String(nullable=True, description="the seeker's situation in a sentence, cleaned")
    turns = dy.List(TURN, description="the turns in order, cleaned; roles alternate")
    n_chars = dy.Int64(min=0, description="characters of all turns, white space not counted")
    han_ratio = dy.Float64(min=0, max=1, description="share of Chinese characters among those")
    script = SCRIPT
    pii = dy.List(PII, description="personal data replaced, counted by kind")
    risk = dy.List(RISK, description="signs of risk in the situation and all turns; empty where none was found")
    under_18 = dy.Bool(description="the seeker says to be younger than 18: out of everything that trains")


class UniqueDialogues(CleanDialogues):
    """Dialogues without near-duplicates, each in the group that a split may not tear apart."""

    cluster_id = dy.String(description="`dialogue_id` of the survivor")
    cluster_size = dy.Int64(min=1, description="dialogues that were one and the same, or nearly so")
    group_id = dy.String(description="dialogues and posts with (nearly) the same opening share it: see `splits`")


class CoherentDialogues(UniqueDialogues, LlmMade):
    """Dialogues that pass C's quality filter (coherent, natural, a dialogue at all)."""

    verdict = one_of(("keep",), description="the filter's verdict; the other ones are reasons to drop")
    why = dy.String(description="the filter's grounds, in a sentence or two", metadata=PRIVATE)
