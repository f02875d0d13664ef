"""`coherence`: whether a dialogue is kept, by clear signs alone; the rest is for a model to judge (C's filter)."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

from pipelines.text.finder import lexicon

Verdict = Literal["keep", "incoherent", "artificial", "not_a_dialogue"]


class Judged(NamedTuple):
    """A verdict, the name of the sign behind it (in `coherence.toml`, `why`), and the figures that belong to it."""

    verdict: Verdict
    sign: str
    figures: dict[str, Any]


_HAN, _LETTERS = re.compile(r"[\u3400-\u9fff]"), re.compile(r"[A-Za-z]")


def reply(inputs: Mapping[str, Any]) -> str:
    """JSON {verdict, why} for {lang, turns}; `why` in the language of the dialogue."""
    verdict, kind, figures = judged(inputs["lang"], inputs["turns"])
    why = lexicon("coherence")["why"][inputs["lang"]][kind].format(**figures)
    return json.dumps({"verdict": verdict, "why": why}, ensure_ascii=False)


def judged(lang: str, turns: Sequence[Mapping[str, str]]) -> Judged:
    """The verdict, the sign behind it, and where it stands (turns from 1)."""
    for found in (_no_dialogue(turns), _artificial(turns), _incoherent(lang, turns)):
        if found:
            return found
    return Judged("keep", "keep", {"n": len(turns)})


def _no_dialogue(turns: Sequence[Mapping[str, str]]) -> Judged | None:
    least = lexicon("coherence")["least"]
    lengths: Counter[str] = Counter()
    for turn in turns:
        lengths[turn["role"]] += len(turn["text"].strip())
    speaking = [role for role, length in lengths.items() if length]
    if len(speaking) < 2:
        return Judged("not_a_dialogue", "one_side", {})
    most, total = max(lengths.values()), sum(lengths.values())
    if total >= least["shares"] and most >= least["share"] * total:
        return Judged("not_a_dialogue", "unbalanced", {"share": f"{most / total:.0%}"})
    return None


def _artificial(turns: Sequence[Mapping[str, str]]) -> Judged | None:
    least = lexicon("coherence")["least"]
    for place, turn in enumerate(turns, 1):
        signs = ("placeholder",) if turn["role"] != "supporter" else ("placeholder", "machine", "markup")
        for sign in signs:
            if _pattern(sign).search(turn["text"]):
                return Judged("artificial", sign, {"place": place})
        if "markup" in signs and (items := len(_pattern("item").findall(turn["text"]))) >= least["items"]:
            return Judged("artificial", "list", {"place": place, "items": items})
    return None


def _incoherent(lang: str, turns: Sequence[Mapping[str, str]]) -> Judged | None:
    least = lexicon("coherence")["least"]
    first: dict[str, int] = {}
    for place, turn in enumerate(turns, 1):
        said = "".join(one for one in turn["text"].casefold() if one.isalnum())
        if not said:
            return Judged("incoherent", "empty", {"place": place})
        if len(said) >= least["repeated"] and first.setdefault(said, place) < place:
            return Judged("incoherent", "repeated", {"place": place, "first": first[said]})
        if len(said) >= least["language"] and _foreign(lang, turn["text"]) > least["foreign"]:
            return Judged("incoherent", "language", {"place": place})
    return None


def _foreign(lang: str, text: str) -> float:
    """The share of letters of the other script. Four Latin letters weigh as much as one Chinese character."""
    han, latin = len(_HAN.findall(text)), len(_LETTERS.findall(text)) / 4
    return (latin if lang == "zh" else han) / ((han + latin) or 1)


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(lexicon("coherence")[name], re.IGNORECASE | re.MULTILINE)
