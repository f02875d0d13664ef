"""`cer_candidates` (C): three steps and a new response to a sampled round, by two models, from the history alone."""

from collections.abc import Sequence
from functools import partial

import polars as pl

from pipelines.annotate.wording import require_speech
from pipelines.core.stage import stage
from pipelines.llm.language import Lang, require_language
from pipelines.llm.prompts import prompt
from pipelines.llm.questions import InvalidReply, Question
from pipelines.llm.replies import require_length, writable
from pipelines.llm.tasks import Plan, Replies, Result, planned
from pipelines.settings import Settings
from pipelines.split.eligible import Eligibility, lacking_media
from pipelines.text.pii.invented import personal_data
from schemas.annotations import CerCandidates
from schemas.dropped import Lost, Row, dropped, gather
from schemas.ids import candidate_id, round_id
from schemas.reasoning import Cer

STAGE = "cer_candidates"

# Of a response, in characters; ours. A turn of talk, not an essay: an English one takes about three times as many.
_RESPONSE: dict[Lang, range] = {"zh": range(2, 601), "en": range(2, 1801)}
_REASONINGS = ("history_reasoning", "emotion_reasoning", "strategy_reasoning")
_WORDS = ("emotion", *_REASONINGS, "response")


@stage(
    "cer_candidates",
    group="annotate",
    asks="annotate.cer",
    reads=("prompts.media",),
    units={"cer_candidates": {"round": ("sampled_turns",)}},
)
def plan(sampled_turns: pl.DataFrame, splits: pl.DataFrame, models: Sequence[str], settings: Settings) -> Plan:
    """One question a sampled round and a model: of the history, never of the reference. The first model writes
    candidate 1, and so on; an alias that comes twice is drawn twice. Rounds of validation and test are asked about as
    well, for reward models are measured on them (C Table 1); whatever learns leaves them out by their split.

    Drops of rounds, before asking: needs_media, under_18, risk, same_history (word for word that of another round);
    after: no_candidate. Drops of candidates: the reasons of replies, and personal_data. Raises RequestError for a round
    whose group has no split.
    """
    eligibility = Eligibility(splits)
    asked: dict[str, Row] = {}
    asked_of: dict[str, str] = {}  # from a history to the round that is asked about
    lost: list[Lost] = []
    in_order = sampled_turns.sort("dialogue_id", "round").iter_rows(named=True)
    rounds = {round_id(row["dialogue_id"], row["round"]): row for row in in_order}
    held_out = {row_id for row_id, row in rounds.items() if eligibility.split(row_id, row) != "train"}
    for row_id in sorted(rounds, key=held_out.__contains__):  # a held-out round takes no history from one that trains
        row, exclusion = rounds[row_id], eligibility.unfit(row_id, rounds[row_id])
        exclusion = exclusion or lacking_media(row, settings.prompts.media)
        if exclusion is None and (first := asked_of.setdefault(repr(row["history"]), row_id)) != row_id:
            exclusion = "same_history", first
        if exclusion is None:
            asked[row_id] = row
        else:
            lost.append(Lost("round", row_id, *exclusion))

    questions: list[Question[Cer]] = []
    place_of: dict[str, tuple[Row, int]] = {}
    for row in asked.values():
        for number, model in enumerate(models, 1):
            row_id = candidate_id(row["dialogue_id"], row["round"], number)
            place_of[row_id] = row, number
            questions.append(_question(row_id, row, model, sample=models[: number - 1].count(model)))

    def keep(row_id: str, value: Cer) -> Row:
        row, number = place_of[row_id]
        ids = {name: row[name] for name in ("dialogue_id", "round", "group_id")}
        return {**ids, "candidate": number, **value.model_dump()}

    candidates = planned(CerCandidates, STAGE, questions, lost, keep, "candidate", written=_WORDS, guard=personal_data)

    def finish(replies: Replies) -> Result:
        kept, out = candidates.finish(replies)
        with_candidate = {round_id(*key) for key in kept.select("dialogue_id", "round").iter_rows()}
        detail = f"{len(models)} asked for"
        empty = [Lost("round", one, "no_candidate", detail) for one in asked if one not in with_candidate]
        return kept, gather(out, dropped(STAGE, empty))

    return Plan(questions, candidates.dropped, finish, held_out)


def _question(row_id: str, row: Row, model: str, sample: int) -> Question[Cer]:
    lang: Lang = row["lang"]
    return Question(
        task="cer",
        row_id=row_id,
        prompt=prompt(f"cer.{lang}", __file__),
        inputs={"lang": lang, "history": [{"role": turn["role"], "text": turn["text"]} for turn in row["history"]]},
        parse=partial(parse, lang=lang),
        model=model,
        sample=sample,
        about=round_id(row["dialogue_id"], row["round"]),
    )


def parse(text: str, lang: Lang) -> Cer:
    """A reply's steps and response, in the dialogue's language. Raises InvalidReply, FormatError, ValidationError."""
    read = Cer.parse(writable(text))
    if read.lang != lang:
        raise InvalidReply("language:labels", "the fields and labels must be in the language of the dialogue")
    require_language(lang, **{name: getattr(read, name) for name in _WORDS})
    require_length("answer", read.response, _RESPONSE[lang])
    require_speech(read.response)
    return read
