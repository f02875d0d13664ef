"""`disc_profiles` (C): the DISC profile of both speakers of a dialogue, as their words and their manner show it."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import polars as pl
from pydantic import Field

from pipelines.core.stage import stage
from pipelines.llm.language import Lang, require_language
from pipelines.llm.prompts import prompt
from pipelines.llm.questions import InvalidReply, Question
from pipelines.llm.replies import Verdict, read_json, require_length
from pipelines.llm.tasks import Plan, planned
from pipelines.rewrite.facts import names
from pipelines.split.eligible import Eligibility
from pipelines.text.artefacts import artefacts
from pipelines.text.pii.invented import personal_data
from pipelines.text.quotations import LEAST_QUOTED, n_letters, stands_in
from schemas.dropped import Lost, Row
from schemas.labels import ROLES
from schemas.personas import DiscProfiles

STAGE = "disc_profiles"

# A speaker whose turns together have fewer characters shows no personality; ours.
_LEAST_CHARACTERS = 12
# Of a description, in sentences and in characters; ours. An English one takes about three times as many.
_SENTENCES = range(2, 5)
_DESCRIPTION: dict[Lang, range] = {"zh": range(20, 301), "en": range(50, 901)}
_ENDS: dict[Lang, re.Pattern[str]] = {
    "zh": re.compile(r"[。！？!?…\n]+"),
    "en": re.compile(r"[.!?…]+[\"'”’)]*\s+(?=[^a-z])|\n+"),  # no end: "e.g. jokes"
}
_LETTER = re.compile(r"[^\W_]")

Score = Annotated[float, Field(ge=0, le=1)]


class Disc(Verdict):
    """Four scores, what they rest on, and the personality in a few sentences."""

    D: Score
    I: Score  # noqa: E741  # the name of the trait
    S: Score
    C: Score
    evidence: Annotated[list[str], Field(min_length=1, max_length=6)]
    description: str


def plan(dialogues: pl.DataFrame, splits: pl.DataFrame, models: Sequence[str]) -> Plan:
    """One question a speaker of a dialogue of the train split.

    Args:
        dialogues: Rows of `coherent_dialogues`; `splits`: the split of every group.
        models: The alias to ask, one.

    Drops are in the unit `speaker`, of which every dialogue gives two. Before asking: not_train, under_18, risk, and
    silent; after: the reasons of replies, and personal_data. Raises RequestError for a group without a split.
    """
    [model] = models
    eligibility = Eligibility(splits)
    questions: list[Question[Disc]] = []
    row_of: dict[str, tuple[Row, str]] = {}
    lost: list[Lost] = []
    for row in dialogues.iter_rows(named=True):
        exclusion = eligibility.exclusion_reason(row["dialogue_id"], row)
        for role in ROLES:
            row_id = f"{row['dialogue_id']}/{role}"
            characters = sum(not one.isspace() for text in _turns_of(row, role) for one in text)
            if exclusion is not None:
                lost.append(Lost("speaker", row_id, *exclusion))
            elif characters < _LEAST_CHARACTERS:
                lost.append(Lost("speaker", row_id, "silent", f"{characters} characters"))
            else:
                questions.append(_question(row_id, row, role, model))
                row_of[row_id] = row, role

    def keep(row_id: str, value: Disc) -> Row:
        row, role = row_of[row_id]
        return {
            "dialogue_id": row["dialogue_id"],
            "role": role,
            **value.model_dump(),
            "lang": row["lang"],
            "group_id": row["group_id"],
        }

    return planned(DiscProfiles, STAGE, questions, lost, keep, "speaker", written=("description",), guard=personal_data)


def _turns_of(row: Row, role: str) -> list[str]:
    return [turn["text"] for turn in row["turns"] if turn["role"] == role]


def _question(row_id: str, row: Row, role: str, model: str) -> Question[Disc]:
    lang: Lang = row["lang"]
    turns = [{"role": turn["role"], "text": turn["text"]} for turn in row["turns"]]
    return Question(
        task="disc",
        row_id=row_id,
        prompt=prompt(f"disc.{lang}", __file__),
        inputs={"lang": lang, "role": role, "turns": turns},
        parse=partial(parse, lang=lang, own_turns=tuple(_turns_of(row, role))),
        model=model,
        schema=Disc,
        about=row["dialogue_id"],
    )


def parse(text: str, lang: Lang, own_turns: Sequence[str]) -> Disc:
    """The profile that a reply writes; each quote must stand in one of `own_turns`, as it is.

    Raises InvalidReply and ValidationError.
    """
    read = read_json(text, Disc)
    for number, quote in enumerate(read.evidence, 1):
        if n_letters(quote) < LEAST_QUOTED or not stands_in(quote, own_turns, exactly=True):
            raise InvalidReply(
                "evidence",
                f"quote {number} of evidence does not stand in a turn of this speaker: copy {LEAST_QUOTED} or more "
                "letters out of one turn, exactly as they stand there",
            )
    description = read.description.strip()
    require_language(lang, description=description)
    require_length("description", description, _DESCRIPTION[lang])
    sentences = sum(bool(_LETTER.search(part)) for part in _ENDS[lang].split(description))
    if sentences not in _SENTENCES:
        least, most = _SENTENCES.start, _SENTENCES.stop - 1
        wanted = f"description has {sentences} sentences; it must have {least} to {most}"
        raise InvalidReply("sentences:description", wanted)
    if artefacts([("", description)], ""):
        wanted = "description must be plain prose about the speaker, as a person writes"
        raise InvalidReply("artefact:description", wanted)
    if facts := names(description, lang):
        wanted = f"description tells of a life, and must tell of a manner alone: leave out {', '.join(facts)}"
        raise InvalidReply("facts:description", wanted)
    return read.model_copy(update={"description": description})


@stage(
    "disc_profiles",
    group="rewrite",
    asks="rewrite.profiling",
    units={"disc_profiles": {"speaker": ("coherent_dialogues",)}},
)
def plan_disc_profiles(coherent_dialogues: pl.DataFrame, splits: pl.DataFrame, models: tuple[str, ...]) -> Plan:
    """The questions of `disc_profiles`."""
    return plan(coherent_dialogues, splits, models)
