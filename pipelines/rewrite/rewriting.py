"""`rewrite_drafts` (C): each dialogue and labelled round copied (D), put in other words (R), or to personas (P).

All or nothing: a unit of which one wanted variant is lost is lost to all, so that all variants have the same rows.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, isfinite
from typing import Annotated, Any, Literal, get_args

import polars as pl
from pydantic import WithJsonSchema

from pipelines.core.stage import stage
from pipelines.llm.label_sets import prompt
from pipelines.llm.language import LEAST_SHARE, Lang, require_language, share
from pipelines.llm.questions import InvalidReply, Provenance, Question, Reply
from pipelines.llm.replies import Verdict, read_json
from pipelines.llm.tasks import Plan, Replies, Result, in_order, rows
from pipelines.rewrite.checks import spoiled
from pipelines.rewrite.draws import Draws
from pipelines.rewrite.encoding import Encode, sentence_encoder, similarity
from pipelines.rewrite.material import material, with_scores
from pipelines.rewrite.quotations import astray
from pipelines.rewrite.scripts import Script, Who
from pipelines.settings import Settings
from pipelines.split.eligible import Reason
from pipelines.text.minors import under_18
from pipelines.text.nearness import LEAST_OWN, moved, own, shared
from pipelines.text.pii.invented import personal_data
from pipelines.text.risk import risk
from schemas.dropped import Lost, Row, dropped, gather
from schemas.labels import ROLES, TRAITS
from schemas.personas import RewriteDrafts

STAGE = "rewrite_drafts"

Variant = Literal["D", "R", "P"]
Personas = Mapping[str, Row]  # from role to the row of `personas` that was drawn

# Of texts with too few lines for `nearness.own`: what shares less of its wording is another text. Ours: of pairs of
# real dialogues 88 % (zh) and 96 % (en) share less than this. For the rest there are the encoder, where one is set, the
# facts, and a judge.
_LEAST_SHARED = 0.12
# What has fewer characters than this may share hardly a word with a true rewrite: its wording says nothing; ours.
_ENOUGH = 100
# A line may grow to so many times its source's length, and so many characters more; ours. A short turn put in other
# words may well be twice as long; what is longer than this has something added.
_MOST_TIMES, _MOST_MORE = 3, 40
# Of a source of so many characters a line keeps at least this share; ours. Careful rewrites by hand keep .57 (en) and
# .79 (zh); a passage that is said three times may be said once, and less has something left out.
_LONG, _LEAST_KEPT = 40, 0.3

# From so many characters on a line tells its language; ours. Shorter or mixed ones are told by what their dialogue does
# not hold: letters of another script (Latin ones are at home in both), in Chinese two words or more in Latin letters
# (KPI may be one).
_TELLING = 16
_LATIN = "\\x00-\u02ff\u1e00-\u1eff\uff00-\uff5e"
_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_ELSEWHERE = {"en": re.compile(f"[^{_LATIN}]"), "zh": re.compile(f"[^{_LATIN}{_HAN}]")}
_LATIN_WORD = re.compile(r"[A-Za-z']{3,}")
_MOST_LATIN_WORDS = 1

_PROMPTS = {"R": "rewrite", "P": "rewrite_persona"}
_TOLD_OF_A_PERSONA = (*TRAITS, "description")
_LETTER = re.compile(r"[^\W_]")


class RewrittenLine(Verdict):
    """A line as it was rewritten. A model that is told of the form may name nobody else; `parse` looks whether it is
    the one who speaks in that place.
    """

    n: int
    who: Annotated[str, WithJsonSchema({"type": "string", "enum": list(get_args(Who))})]
    text: str


class Rewritten(Verdict):
    """A script in other words."""

    lines: list[RewrittenLine]


@dataclass(frozen=True, slots=True)
class Near:
    """A sentence encoder, and the least similarity of texts that mean the same: another one for each model."""

    encode: Encode
    least: float


@dataclass(frozen=True, slots=True)
class _Unit:
    """A script, whom its speakers are to sound like, and what is asked, a question a variant that is no copy."""

    script: Script
    drawn: Personas
    questions: Mapping[Variant, Question[Any]]


@dataclass(frozen=True, slots=True)
class _Seen:
    """What became of a reply: how near it is to its source, and what is wrong with it."""

    reply: Reply[Any]
    similarity: float
    fault: Reason | None


def plan(
    scripts: Sequence[Script],
    lost: Sequence[Lost],
    personas: pl.DataFrame,
    variants: Sequence[Variant],
    models: Sequence[str],
    *,
    seed: int,
    near: Near | None = None,
) -> Plan:
    """One question a script and variant that is no copy.

    Args:
        scripts: What may be rewritten; none of it is in `lost`.
        lost: What may not, with the reasons.
        personas: Rows of `personas` with `D`, `I`, `S` and `C` of their profiles; looked at for P alone.
        variants: Which are wanted.
        models: The alias to ask, one.
        seed: Of the draw of personas.
        near: The encoder by which before and after are compared, and what makes another text of them; None: what their
            lines share of their wording is all that is looked at.

    Returns:
        Drops are in the units `dialogue` and `label`. Before asking: those of `lost`, and no_persona, where P is wanted
        and one of the two speakers has no profile, or one with nobody of its cluster to draw. After: one for each unit
        that is not kept, for its first variant that was lost, which the detail names: the reasons of replies,
        risk and under_18 where the source shows nothing of the kind, personal_data, lines_moved, misquoted (of a
        label), those of `checks.spoiled`, and other_meaning.
    """
    [model] = models
    wanted = tuple(dict.fromkeys(variants))
    draws = Draws(personas, seed) if "P" in wanted else None
    units: list[_Unit] = []
    out = list(lost)
    for script in scripts:
        drawn = {} if draws is None else {role: draws.of(script.dialogue_id, role) for role in ROLES}
        if missing := [role for role, row in drawn.items() if row is None]:
            out.append(Lost(script.unit, script.row_id, "no_persona", ", ".join(missing)))
        else:
            found = {role: row for role, row in drawn.items() if row is not None}
            of_script: dict[Variant, Question[Any]] = {
                variant: _question(script, variant, found, model) for variant in wanted if variant != "D"
            }
            units.append(_Unit(script, found, of_script))
    questions = [question for unit in units for question in unit.questions.values()]
    before = dropped(STAGE, out)

    def finish(replies: Replies) -> Result:
        asked = [unit.script for unit in units for _ in unit.questions]
        answered = [reply for _, reply in in_order(questions, replies)]
        seen = {one.reply.question.row_id: one for one in _look(list(zip(asked, answered, strict=True)), near)}
        kept: list[Row] = []
        unkept: list[Lost] = []
        for unit in units:
            of_unit = {variant: seen[question.row_id] for variant, question in unit.questions.items()}
            if loss := _first_loss(of_unit):
                unkept.append(Lost(unit.script.unit, unit.script.row_id, *loss))
            else:
                kept += (_row(unit, variant, of_unit.get(variant)) for variant in wanted)
        return rows(RewriteDrafts, kept), gather(before, dropped(STAGE, unkept))

    return Plan(questions, before, finish)


def parse(text: str, script: Script) -> Rewritten:
    """The lines that a reply writes: as many, by the same speakers in the same order, in the language of the source.

    Raises InvalidReply, and ValidationError for an object of another form.
    """
    read = read_json(text, Rewritten)
    if len(read.lines) != len(script.lines):
        found, right = len(read.lines), len(script.lines)
        raise InvalidReply(f"line_count:{found} of {right}", f"there are {found} lines; there must be {right}")
    lines = [line.model_copy(update={"text": line.text.strip()}) for line in read.lines]
    for number, (line, source) in enumerate(zip(lines, script.lines, strict=True), 1):
        if (line.n, line.who) != (number, source.who):
            told = f"line {number} must have n {number} and who {source.who}: lines keep their places and speakers"
            raise InvalidReply(f"speakers:{number}", told)
        if not line.text or (_LETTER.search(source.text) and not _LETTER.search(line.text)):
            raise InvalidReply(f"empty_line:{number}", f"line {number} says nothing; every line must be rewritten")
        if len(source.text) >= _LONG and len(line.text) < (least := ceil(_LEAST_KEPT * len(source.text))):
            told = f"line {number} must have {least} characters at least; it has {len(line.text)}: leave nothing out"
            raise InvalidReply(f"length:{number}", told)
        if len(line.text) > (most := _MOST_TIMES * len(source.text) + _MOST_MORE):
            raise InvalidReply(f"length:{number}", f"line {number} may have {most} characters; it has {len(line.text)}")
        if _left_language(source.text, line.text, script.lang) or _foreign(line.text, script):
            raise InvalidReply(f"language:{number}", f"line {number} must be in the language of the dialogue")
    require_language(script.lang, lines="\n".join(line.text for line in lines))
    return Rewritten(lines=lines)


def _left_language(source: str, text: str, lang: Lang) -> bool:
    """Whether a line of some length is in another language, and its source was not."""
    return len(text) >= _TELLING and share(text, lang) < LEAST_SHARE <= share(source, lang)


def _foreign(text: str, script: Script) -> bool:
    """Whether a line holds letters of another script, or several words of English, that its dialogue holds nowhere."""
    letters, words = _letters_elsewhere(text, script.lang), _latin_words(text)
    many = script.lang == "zh" and len(words) > _MOST_LATIN_WORDS
    if not letters and not many:
        return False
    said = "\n".join(line.text for line in script.lines)
    if letters - _letters_elsewhere(said, script.lang):
        return True
    return many and len(words - _latin_words(said)) > _MOST_LATIN_WORDS


def _letters_elsewhere(text: str, lang: Lang) -> set[str]:
    return {one for one in _ELSEWHERE[lang].findall(text) if one.isalpha()}


def _latin_words(text: str) -> set[str]:
    return {one.lower() for one in _LATIN_WORD.findall(text)}


def _question(script: Script, variant: Variant, drawn: Personas, model: str) -> Question[Rewritten]:
    lines = [
        {"n": number, "who": line.who, "text": line.text, "strategies": list(line.strategies)}
        for number, line in enumerate(script.lines, 1)
    ]
    told = {role: {name: row[name] for name in _TOLD_OF_A_PERSONA} for role, row in drawn.items()}
    return Question(
        task="rewrite",
        row_id=f"{script.row_id}~{variant}",
        prompt=prompt(f"{_PROMPTS[variant]}.{script.lang}", __file__),
        inputs={"lang": script.lang, **({"personas": told} if variant == "P" else {}), "lines": lines},
        parse=partial(parse, script=script),
        model=model,
        schema=Rewritten,
        about=script.row_id,
    )


def _look(asked: Sequence[tuple[Script, Reply[Any]]], near: Near | None) -> list[_Seen]:
    """Every reply, beside the script that it was to rewrite, with what is wrong with it."""
    written = [(script, reply) for script, reply in asked if reply.reason is None]
    before = [[line.text for line in script.lines] for script, _ in written]
    after = [_texts(reply) for _, reply in written]
    # What a persona's description tells of somebody else excuses nothing: the lines of the source alone do.
    leaked = personal_data(["\n".join(texts) for texts in after], ["\n".join(texts) for texts in before])
    seen = [_Seen(reply, 0.0, (reply.reason, reply.detail)) for _, reply in asked if reply.reason is not None]
    dangers = _dangers([script for script, _ in written], before, after)
    for (script, reply), source, texts, leak, danger in zip(written, before, after, leaked, dangers, strict=True):
        similar = shared(source, texts) if near is None else similarity(near.encode, source, texts)
        elsewhere = _elsewhere(script, texts, similar, near)
        seen.append(_Seen(reply, similar, danger or _fault(script, reply, leak, elsewhere)))
    return seen


def _dangers(
    scripts: Sequence[Script], before: Sequence[Sequence[str]], after: Sequence[Sequence[str]]
) -> list[Reason | None]:
    """What a source does not say and its rewrite does: signs of risk, or that the seeker is younger than 18."""
    told = pl.DataFrame(
        {
            "risk_before": ["\n".join(texts) for texts in before],
            "risk_after": ["\n".join(texts) for texts in after],
            # The age of a supporter says nothing of the seeker's, and would outweigh it.
            "age_before": [_of_seeker(script, texts) for script, texts in zip(scripts, before, strict=True)],
            "age_after": [_of_seeker(script, texts) for script, texts in zip(scripts, after, strict=True)],
        },
        schema=dict.fromkeys(("risk_before", "risk_after", "age_before", "age_after"), pl.String),
    )
    found = told.select(
        new=_kinds(risk(pl.col("risk_after"))).list.set_difference(_kinds(risk(pl.col("risk_before")))),
        younger=under_18(pl.col("age_after")) & ~under_18(pl.col("age_before")),
    )
    return [
        ("risk", ", ".join(sorted(new))) if new else ("under_18", "the writer says so") if younger else None
        for new, younger in found.iter_rows()
    ]


def _of_seeker(script: Script, texts: Sequence[str]) -> str:
    return "\n".join(text for line, text in zip(script.lines, texts, strict=True) if line.who == "seeker")


def _kinds(signs: pl.Expr) -> pl.Expr:
    return signs.list.eval(pl.element().struct.field("kind"))


def _fault(script: Script, reply: Reply[Any], leaked: str | None, elsewhere: Reason | None) -> Reason | None:
    if leaked is not None:  # before facts: a telephone number is a number too
        return "personal_data", leaked
    source, texts = [line.text for line in script.lines], _texts(reply)
    if lines := moved(source, texts):
        return "lines_moved", f"{lines} lines"
    if script.unit == "label" and (lost := astray(texts) - astray(source)) > 0:
        return "misquoted", f"{lost} quotations"
    fault = spoiled(script, texts, _instructions(reply.question))
    if fault is not None and fault[0] != "facts_changed":
        return fault
    return elsewhere or fault  # another text has other facts as well, which would say less of it


def _elsewhere(script: Script, texts: Sequence[str], similar: float, near: Near | None) -> Reason | None:
    """Whether it is another text than its source, by the encoder and by its wording."""
    if near is not None and similar < near.least:
        return "other_meaning", f"similarity {similar:.2f}"
    source = [line.text for line in script.lines]
    if sum(map(len, source)) < _ENOUGH:
        return None
    if isfinite(times := own(source, texts)):
        return ("other_meaning", f"own lines {times:.1f} times") if times < LEAST_OWN[script.lang] else None
    common = shared(source, texts)
    return ("other_meaning", f"shared {common:.2f}") if common < _LEAST_SHARED else None


def _instructions(question: Question[Any]) -> str:
    """What was told to the model and is not to be said by the speakers: the prompt, and what they are like."""
    personas = question.inputs.get("personas", {})
    return "\n".join([question.prompt.text, *(persona["description"] for persona in personas.values())])


def _first_loss(seen: Mapping[Variant, _Seen]) -> Reason | None:
    for variant, one in seen.items():
        if one.fault is not None:
            reason, detail = one.fault
            return reason, f"{variant}: {detail}" if detail else variant
    return None


def _row(unit: _Unit, variant: Variant, seen: _Seen | None) -> Row:
    """The row of a variant; a copy where there is no reply to see."""
    script = unit.script
    texts = [line.text for line in script.lines] if seen is None else _texts(seen.reply)
    made = Provenance("none", "none", None, "none", "") if seen is None else seen.reply.provenance
    ids = {role: unit.drawn[role]["persona_id"] if variant == "P" else None for role in ROLES}
    return {
        "unit": script.unit,
        "row_id": script.row_id,
        "variant": variant,
        "dialogue_id": script.dialogue_id,
        "persona_id": ids["seeker"],
        "supporter_persona_id": ids["supporter"],
        "lang": script.lang,
        "group_id": script.group_id,
        "source": script.hash,
        "lines": [{"who": line.who, "text": text} for line, text in zip(script.lines, texts, strict=True)],
        "similarity": 1.0 if seen is None else seen.similarity,
        **made.columns(),
    }


def _texts(reply: Reply[Any]) -> list[str]:
    assert reply.value is not None
    return [line.text for line in reply.value.lines]


@stage(
    "rewrite_drafts",
    group="rewrite",
    asks="rewrite.writing",
    reads=("rewrite.variants", "rewrite.encoder", "rewrite.least_similarity", "seed"),
    units={"rewrite_drafts": {"dialogue": ("coherent_dialogues",), "label": ("cer_labels",)}},
    optional_parents=("cer_labels",),
)
def plan_rewrite_drafts(
    coherent_dialogues: pl.DataFrame,
    splits: pl.DataFrame,
    disc_profiles: pl.DataFrame,
    personas: pl.DataFrame,
    sampled_turns: pl.DataFrame,
    cer_candidates: pl.DataFrame,
    cer_labels: pl.DataFrame,
    models: tuple[str, ...],
    settings: Settings,
) -> Plan:
    """The questions of `rewrite_drafts`."""
    found = material(coherent_dialogues, splits, sampled_turns, cer_candidates, cer_labels)
    told = settings.rewrite
    near = None
    if told.encoder is not None and told.least_similarity is not None:
        near = Near(sentence_encoder(told.encoder), told.least_similarity)
    scored = with_scores(personas, disc_profiles)
    return plan(found.scripts, found.lost, scored, told.variants, models, seed=settings.seed, near=near)
