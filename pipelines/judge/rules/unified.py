"""C's verdicts by rules: a step is right where it agrees with what the rules read themselves; of two responses the one
is better that keeps closer to what was told. They know no quality.
"""

import re
from collections.abc import Mapping
from typing import Any, cast

from pipelines.annotate.rules.deciding import (
    AFFIRMATION,
    INFORMATION,
    QUESTION,
    REFLECTION,
    RESTATEMENT,
    STRONG,
    SUGGESTIONS,
    stage_of,
)
from pipelines.annotate.rules.listening import Talk, listen
from pipelines.judge.rules.quality import Dialogue, lang_of, quality
from pipelines.judge.verdicts import Choice, Step, write_choice, write_step
from schemas.labels import SENTIMENT_OF
from schemas.reasoning import CER_STEPS, Lang

# What fits a stage; ours, after ESConv's procedure. Where there is danger comfort comes first.
_FITTING = {
    "exploration": (QUESTION, RESTATEMENT, REFLECTION),
    "comforting": (REFLECTION, AFFIRMATION, RESTATEMENT, "Self-disclosure"),
    "action": (SUGGESTIONS, INFORMATION, AFFIRMATION),
}
_IN_DANGER = (AFFIRMATION, REFLECTION, QUESTION)
_NEAR = 1  # between two intensities, and two worths, that are as good as one
_GROUNDS: dict[Lang, str] = {"zh": "规则给出，不评判质量。", "en": "By rules, no judgement of quality."}


def reply(inputs: Mapping[str, Any]) -> str:
    """A verdict, and that it is the rules', for a turn of `release.judge_turns`; `before`: the exchanges before it."""
    shown = [exchange.inputs for exchange in inputs.get("before", ())]
    dialogue: Dialogue = next(turn["dialogue"] for turn in (*shown, inputs) if "dialogue" in turn)
    lang = lang_of(dialogue)
    if "step" in inputs:
        step: Step = inputs["step"]
        verdict = write_step(step, is_right(step, inputs["text"], listen(lang, dialogue)), lang)
    else:
        verdict = write_choice(better(dialogue, inputs["A"], inputs["B"]), lang)
    return f"{verdict}\n{_GROUNDS[lang]}"


def is_right(step: Step, text: str, talk: Talk) -> bool:
    """Whether the fields of a step, as a candidate writes them, agree with what the rules read."""
    given = _fields(step, text)
    if given is None:
        return False
    if step == 1:
        return given["stage"] == stage_of(talk)[0]
    if step == 2:
        least = STRONG if talk.dangers else talk.felt.intensity - _NEAR
        most = 5 if talk.dangers else talk.felt.intensity + _NEAR
        return given["sentiment"] == SENTIMENT_OF[talk.emotion] and least <= int(given["intensity"]) <= most
    return given["strategy"] in (_IN_DANGER if talk.dangers else _FITTING[stage_of(talk)[0]])


def better(dialogue: Dialogue, one: str, other: str) -> Choice:
    """Which of two responses is worth more, wherever they stand; neither where neither should be said."""
    first, second = quality(dialogue, one).worth, quality(dialogue, other).worth
    if not first and not second:
        return "neither"
    if first and second and abs(first - second) <= _NEAR:
        return "both"
    return "A" if first > second else "B"


def _fields(step: Step, text: str) -> dict[str, str] | None:
    """The fields of a step's first line, by name; None where one is missing or no label."""
    line = text.strip().partition("\n")[0]
    pairs = (re.split("[:：]", part, maxsplit=1) for part in re.split("[;；]", line))
    said = {pair[0].strip().casefold(): pair[1].strip() for pair in pairs if len(pair) == 2}
    found = {}
    for field in CER_STEPS[list(CER_STEPS)[step - 1]]:
        word = said.get(field.name.zh) or said.get(field.name.en.casefold()) or ""
        found[field.attribute] = field.read(word)
    return None if None in found.values() else cast(dict[str, str], found)
