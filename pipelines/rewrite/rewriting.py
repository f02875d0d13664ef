"""`rewrite_drafts` (C): each dialogue and labelled round copied (D), put in other words (R), or to personas (P).

All or nothing: a unit of which one wanted variant is lost is lost to all, so that all variants have the same rows.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, isfinite
from typing import Annotated, Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import WithJsonSchema

from pipelines.core.stage import stage
from pipelines.llm.language import LEAST_SHARE, Lang, require_language, share
from pipelines.llm.prompts import prompt
from pipelines.llm.questions import InvalidReply, Provenance, Question, Reply
from pipelines.llm.replies import Verdict, read_json
from pipelines.llm.tasks import Plan, Replies, Result, in_order, rows
from pipelines.rewrite.checks import first_fault, misquotations
from pipelines.rewrite.encoding import Encode, sentence_encoder, similarity
from pipelines.rewrite.scripts import Script, Speaker, scripts
from pipelines.settings import Settings
from pipelines.split.eligible import Reason
from pipelines.text.minors import under_18
from pipelines.text.nearness import LEAST_OWN, moved, own, shared
from pipelines.text.pii.invented import personal_data
from pipelines.text.risk import risk
from schemas.dropped import Lost, Row, dropped, gather
from schemas.ids import digest
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

# From so many characters on the language of a line can be measured; ours. Of a shorter or mixed one, what its dialogue
# does not hold is foreign: letters of another script (Latin ones are at home in both), in Chinese two words or more in
# Latin letters (KPI may be one).
_MEASURABLE = 16
_LATIN = "\\x00-\u02ff\u1e00-\u1eff\uff00-\uff5e"
_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_OTHER_SCRIPT = {"en": re.compile(f"[^{_LATIN}]"), "zh": re.compile(f"[^{_LATIN}{_HAN}]")}
_LATIN_WORD = re.compile(r"[A-Za-z']{3,}")
_MOST_LATIN_WORDS = 1

_PROMPTS = {"R": "rewrite", "P": "rewrite_persona"}
_PERSONA_INPUTS = (*TRAITS, "description")
_LETTER = re.compile(r"[^\W_]")


class RewrittenLine(Verdict):
    """A rewritten line, by one of those who may speak; `parse` checks that it is the speaker of that place."""

    n: int
    who: Annotated[str, WithJsonSchema({"type": "string", "enum": list(get_args(Speaker))})]
    text: str


class Rewritten(Verdict):
    """A script in other words."""

    lines: list[RewrittenLine]


@dataclass(frozen=True, slots=True)
class SimilarityCheck:
    """A sentence encoder, and the least similarity of texts that mean the same: another one for each model."""

    encode: Encode
    least: float


@dataclass(frozen=True, slots=True)
class _Unit:
    """A script, the personas of its speakers, and a question for each variant that is no copy."""

    script: Script
    drawn: Personas
    questions: Mapping[Variant, Question[Any]]


@dataclass(frozen=True, slots=True)
class _Checked:
    """A reply, how similar it is to its source, and what is wrong with it."""

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
    similar: SimilarityCheck | None = None,
) -> Plan:
    """One question a script and variant that is no copy.

    Args:
        scripts: What may be rewritten; none of it is in `lost`: what may not, with the reasons.
        personas: Rows of `personas` with `D`, `I`, `S` and `C` of their profiles; used for P alone.
        variants: Which are wanted.
        models: The alias to ask, one.
        seed: Of the draw of personas.
        similar: Compares before and after by an encoder; None: by the wording of their lines alone.

    Drops are in the units `dialogue` and `label`. Before asking: those of `lost`, and no_persona, where a speaker has
    no profile, or one with nobody of its cluster to draw. After: one for each unit, for its first variant that was
    lost: the reasons of replies, risk and under_18 where the source shows nothing of the kind, personal_data,
    lines_moved, misquoted (of a label), those of `checks.first_fault`, and other_meaning.
    """
    [model] = models
    wanted = tuple(dict.fromkeys(variants))
    draws = Draws(personas, seed) if "P" in wanted else None
    units: list[_Unit] = []
    out = list(lost)
    for script in scripts:
        personas_of = {} if draws is None else {role: draws.of(script.dialogue_id, role) for role in ROLES}
        drawn = {role: row for role, row in personas_of.items() if row is not None}
        if missing := [role for role in personas_of if role not in drawn]:
            out.append(Lost(script.unit, script.row_id, "no_persona", ", ".join(missing)))
            continue
        asked: dict[Variant, Question[Any]] = {
            variant: _question(script, variant, drawn, model) for variant in wanted if variant != "D"
        }
        units.append(_Unit(script, drawn, asked))
    questions = [question for unit in units for question in unit.questions.values()]
    before = dropped(STAGE, out)

    def finish(replies: Replies) -> Result:
        sources = [unit.script for unit in units for _ in unit.questions]
        pairs = [(source, reply) for source, (_, reply) in zip(sources, in_order(questions, replies), strict=True)]
        checked = {one.reply.question.row_id: one for one in _check(pairs, similar)}
        kept: list[Row] = []
        unkept: list[Lost] = []
        for unit in units:
            of_unit = {variant: checked[question.row_id] for variant, question in unit.questions.items()}
            faults = [(variant, one.fault) for variant, one in of_unit.items() if one.fault is not None]
            if faults:
                variant, (reason, detail) = faults[0]
                detail = f"{variant}: {detail}" if detail else variant
                unkept.append(Lost(unit.script.unit, unit.script.row_id, reason, detail))
            else:
                kept += (_row(unit, variant, of_unit.get(variant)) for variant in wanted)
        return rows(RewriteDrafts, kept), gather(before, dropped(STAGE, unkept))

    return Plan(questions, before, finish)


def _question(script: Script, variant: Variant, drawn: Personas, model: str) -> Question[Rewritten]:
    lines = [
        {"n": number, "who": line.who, "text": line.text, "strategies": list(line.strategies)}
        for number, line in enumerate(script.lines, 1)
    ]
    personas = {role: {name: row[name] for name in _PERSONA_INPUTS} for role, row in drawn.items()}
    return Question(
        task="rewrite",
        row_id=f"{script.row_id}~{variant}",
        prompt=prompt(f"{_PROMPTS[variant]}.{script.lang}", __file__),
        inputs={"lang": script.lang, **({"personas": personas} if variant == "P" else {}), "lines": lines},
        parse=partial(parse, script=script),
        model=model,
        schema=Rewritten,
        about=script.row_id,
    )


# --- personas

_Words = npt.NDArray[np.uint64]


class Draws:
    """The personas that are drawn for the speakers of dialogues.

    By highest random weight (rendezvous hashing, Thaler and Ravishankar 1998), so that no other row moves a draw.

    Args:
        personas: Rows of `personas`. Only `fitted` ones are drawn. Other columns come back as they are.
        seed: Another seed, other draws.
    """

    def __init__(self, personas: pl.DataFrame, seed: int) -> None:
        self._seed = seed
        self._rows = {row["persona_id"]: row for row in personas.iter_rows(named=True)}
        self._pools: dict[tuple[str, int, str], list[Row]] = defaultdict(list)
        for _, row in sorted(self._rows.items()):
            if row["fitted"]:
                self._pools[_pool_key(row)].append(row)
        self._words = {
            key: np.array([_word(row["persona_id"]) for row in rows], np.uint64) for key, rows in self._pools.items()
        }
        self._groups = {key: np.array([row["group_id"] for row in rows]) for key, rows in self._pools.items()}

    def of(self, dialogue_id: str, role: str) -> Row | None:
        """The persona for a speaker: of the same cluster, role and language, and of another group.

        So neither its own nor that of a near-duplicate. None where the speaker has no persona, or the pool no other.
        """
        own = self._rows.get(f"{dialogue_id}/{role}")
        key = _pool_key(own) if own else None
        if own is None or key not in self._words:
            return None
        others = np.flatnonzero(self._groups[key] != own["group_id"])
        if not len(others):
            return None
        weights = _mixed(self._words[key][others] ^ _word(str(self._seed), dialogue_id, role))
        return self._pools[key][int(others[np.argmax(weights)])]


def _pool_key(row: Row) -> tuple[str, int, str]:
    return row["role"], row["cluster"], row["lang"]


def _word(*parts: str) -> np.uint64:
    return np.uint64(int(digest("\x1f".join(parts), 16), 16))


def _mixed(words: _Words) -> _Words:
    """The finalizer of splitmix64 (Steele et al. 2014): a digest of each pair would take hours for a large pool."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: _Words = words ^ (words >> np.uint64(31))
    return mixed


# --- the form of a reply


def parse(text: str, script: Script) -> Rewritten:
    """The lines that a reply writes: as many, by the same speakers in the same order, in the language of the source.

    Raises InvalidReply, and ValidationError for an object of another form.
    """
    read = read_json(text, Rewritten)
    if len(read.lines) != len(script.lines):
        count, expected = len(read.lines), len(script.lines)
        raise InvalidReply(f"line_count:{count} of {expected}", f"there are {count} lines; there must be {expected}")
    lines = [line.model_copy(update={"text": line.text.strip()}) for line in read.lines]
    for number, (line, source) in enumerate(zip(lines, script.lines, strict=True), 1):
        most = _MOST_TIMES * len(source.text) + _MOST_MORE
        least = ceil(_LEAST_KEPT * len(source.text)) if len(source.text) >= _LONG else 0
        length = f"it has {len(line.text)}"
        if (line.n, line.who) != (number, source.who):
            wanted = f"line {number} must have n {number} and who {source.who}: lines keep their places and speakers"
            raise InvalidReply(f"speakers:{number}", wanted)
        if not line.text or (_LETTER.search(source.text) and not _LETTER.search(line.text)):
            raise InvalidReply(f"empty_line:{number}", f"line {number} says nothing; every line must be rewritten")
        if len(line.text) < least:
            wanted = f"line {number} must have {least} characters at least; {length}: leave nothing out"
            raise InvalidReply(f"length:{number}", wanted)
        if len(line.text) > most:
            raise InvalidReply(f"length:{number}", f"line {number} may have {most} characters; {length}")
        left = len(line.text) >= _MEASURABLE and share(line.text, script.lang) < LEAST_SHARE
        if (left and share(source.text, script.lang) >= LEAST_SHARE) or _foreign(line.text, script):
            raise InvalidReply(f"language:{number}", f"line {number} must be in the language of the dialogue")
    require_language(script.lang, lines="\n".join(line.text for line in lines))
    return Rewritten(lines=lines)


def _foreign(text: str, script: Script) -> bool:
    """Whether a line holds letters of another script, or several words of English, that its dialogue holds nowhere."""
    letters, words = _letters_of_other_scripts(text, script.lang), _latin_words(text)
    many = script.lang == "zh" and len(words) > _MOST_LATIN_WORDS
    if not letters and not many:
        return False
    dialogue = "\n".join(script.texts)
    if letters - _letters_of_other_scripts(dialogue, script.lang):
        return True
    return many and len(words - _latin_words(dialogue)) > _MOST_LATIN_WORDS


def _letters_of_other_scripts(text: str, lang: Lang) -> set[str]:
    return {one for one in _OTHER_SCRIPT[lang].findall(text) if one.isalpha()}


def _latin_words(text: str) -> set[str]:
    return {one.lower() for one in _LATIN_WORD.findall(text)}


# --- the filter


def _check(pairs: Sequence[tuple[Script, Reply[Any]]], similar: SimilarityCheck | None) -> list[_Checked]:
    """Every reply, beside the script that it was to rewrite, with what is wrong with it."""
    written = [(script, reply) for script, reply in pairs if reply.reason is None]
    sources = [script for script, _ in written]
    after = [_texts(reply) for _, reply in written]
    # What a persona's description says of somebody else excuses nothing: the lines of the source alone do.
    leaks = personal_data(["\n".join(texts) for texts in after], ["\n".join(script.texts) for script in sources])
    checked = [_Checked(reply, 0.0, (reply.reason, reply.detail)) for _, reply in pairs if reply.reason is not None]
    for (script, reply), texts, leak, danger in zip(written, after, leaks, _dangers(sources, after), strict=True):
        likeness = shared(script.texts, texts) if similar is None else similarity(similar.encode, script.texts, texts)
        other = _other_meaning(script, texts, likeness, similar)
        checked.append(_Checked(reply, likeness, danger or _fault(script, reply, leak, other)))
    return checked


def _dangers(scripts: Sequence[Script], after: Sequence[Sequence[str]]) -> list[Reason | None]:
    """What a source does not say and its rewrite does: signs of risk, or that the seeker is younger than 18."""
    before = [script.texts for script in scripts]
    columns = {
        "risk_before": ["\n".join(texts) for texts in before],
        "risk_after": ["\n".join(texts) for texts in after],
        # The age of a supporter says nothing of the seeker's, and would outweigh it.
        "age_before": [_of_seeker(script, texts) for script, texts in zip(scripts, before, strict=True)],
        "age_after": [_of_seeker(script, texts) for script, texts in zip(scripts, after, strict=True)],
    }
    signs = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String)).select(
        new=_kinds(risk(pl.col("risk_after"))).list.set_difference(_kinds(risk(pl.col("risk_before")))),
        younger=under_18(pl.col("age_after")) & ~under_18(pl.col("age_before")),
    )
    return [
        ("risk", ", ".join(sorted(new))) if new else ("under_18", "the writer says so") if younger else None
        for new, younger in signs.iter_rows()
    ]


def _of_seeker(script: Script, texts: Sequence[str]) -> str:
    return "\n".join(text for line, text in zip(script.lines, texts, strict=True) if line.who == "seeker")


def _kinds(signs: pl.Expr) -> pl.Expr:
    return signs.list.eval(pl.element().struct.field("kind"))


def _fault(script: Script, reply: Reply[Any], leak: str | None, other_meaning: Reason | None) -> Reason | None:
    if leak is not None:  # before facts: a telephone number is a number too
        return "personal_data", leak
    texts = _texts(reply)
    if lines := moved(script.texts, texts):
        return "lines_moved", f"{lines} lines"
    if script.unit == "label" and (lost := misquotations(texts) - misquotations(script.texts)) > 0:
        return "misquoted", f"{lost} quotations"
    # Not to be said by the speakers: the prompt, and what their personas are like.
    personas = reply.question.inputs.get("personas", {}).values()
    instructions = "\n".join([reply.question.prompt.text, *(persona["description"] for persona in personas)])
    fault = first_fault(script, texts, instructions)
    if fault is not None and fault[0] != "facts_changed":
        return fault
    return other_meaning or fault  # another text has other facts as well, which would say less of it


def _other_meaning(
    script: Script, texts: Sequence[str], likeness: float, similar: SimilarityCheck | None
) -> Reason | None:
    """Whether it is another text than its source, by the encoder and by its wording."""
    if similar is not None and likeness < similar.least:
        return "other_meaning", f"similarity {likeness:.2f}"
    source = script.texts
    if sum(map(len, source)) < _ENOUGH:
        return None
    if isfinite(times := own(source, texts)):
        return ("other_meaning", f"own lines {times:.1f} times") if times < LEAST_OWN[script.lang] else None
    common = shared(source, texts)
    return ("other_meaning", f"shared {common:.2f}") if common < _LEAST_SHARED else None


def _row(unit: _Unit, variant: Variant, checked: _Checked | None) -> Row:
    """The row of a variant; of a copy where nothing was asked."""
    script = unit.script
    texts = script.texts if checked is None else _texts(checked.reply)
    provenance = Provenance("none", "none", None, "none", "") if checked is None else checked.reply.provenance
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
        "similarity": 1.0 if checked is None else checked.similarity,
        **provenance.columns(),
    }


def _texts(reply: Reply[Any]) -> list[str]:
    assert reply.value is not None
    return [line.text for line in reply.value.lines]


def with_scores(personas: pl.DataFrame, profiles: pl.DataFrame) -> pl.DataFrame:
    """Rows of `personas` with the scores of their profiles beside them."""
    scores = profiles.select(pl.format("{}/{}", "dialogue_id", "role").alias("persona_id"), *TRAITS)
    return personas.join(scores, on="persona_id", how="left", validate="1:1")


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
    sources, lost = scripts(coherent_dialogues, splits, sampled_turns, cer_candidates, cer_labels)
    rewrite = settings.rewrite
    similar = None
    if rewrite.encoder is not None and rewrite.least_similarity is not None:
        similar = SimilarityCheck(sentence_encoder(rewrite.encoder), rewrite.least_similarity)
    scored = with_scores(personas, disc_profiles)
    return plan(list(sources.values()), lost, scored, rewrite.variants, models, seed=settings.seed, similar=similar)
