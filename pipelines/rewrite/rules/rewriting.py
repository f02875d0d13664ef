"""`rewrite`: a script in other words, line by line: equivalents for equivalents, by the manner of whoever speaks.

R: the manner of each exchange hangs on the line alone. P: on the persona drawn for that speaker; what is an analysis, a
reference or a response is the supporter's. The rules know words, not people: a rewrite of theirs keeps the sentences.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import exp, log
from typing import Any

from pipelines.annotate.rules.wording import pick
from pipelines.llm.language import Lang
from pipelines.rewrite.copies import A_WORD, is_copy, is_said_again, key
from pipelines.rewrite.quotations import followed
from pipelines.rewrite.rules.exchange import BACK, Member, Site, lexicon, sites
from pipelines.text.nearness import shared
from schemas.ids import digest, unit_interval
from schemas.labels import TRAITS

# Where the manner drawn has no word for a place, the next one is tried, if it is one of the persona's at all: ours.
_OWN = 0.5
# A persona's manner is drawn for each place with the weight exp(this × score): ours. At scores of .8 and .5 the first
# is six times as likely.
_LEANING = 6.0
# Shorter lines stay as they are where nothing in them can be exchanged; ours. 嗯。 needs no other words.
_LEAST_LETTERS = {"zh": 6, "en": 20}
_MORE_THAN_A_WORD = A_WORD + 1  # with fewer letters before it a line is its source again
# A piece of a line: what stands between two marks.
_PIECE = re.compile(r"[^，。！？；：、,.!?;:…~—「」“”\"\n]+")
# A line whose first sentence asks, with a mark or, as people chat, without.
_ASKS = {
    "zh": re.compile(r"[^。！？!?]*(?:[？?]|[吗呢](?:$|[。！!]))"),
    "en": re.compile(
        r"[^.!?]*\?|(?:is|are|am|do|does|did|can|could|should|would|will|what|how|why|when|where|who|which)\b[^.!?]*$",
        re.IGNORECASE,
    ),
}
_ENDED = re.compile(r"[.!?\n]\s*$")
_PRONOUN = re.compile(r"\bi\b")
Manners = Mapping[str, float]  # the weight of each; none at all is the manner of nobody


@dataclass(frozen=True, slots=True)
class _Asked:
    """A line to be put in other words."""

    text: str
    lang: Lang
    who: str
    manners: Manners
    n: int

    @property
    def about(self) -> str:
        """What the choices hang on."""
        return f"{self.n}\n{self.text}"


def reply(inputs: Mapping[str, Any]) -> str:
    """JSON {lines} for {lang, lines, personas}: as many lines, by the same speakers in the same order."""
    lang: Lang = inputs["lang"]
    personas = inputs.get("personas") or {}
    manners = {role: _manners(persona) for role, persona in personas.items()}
    asked = [
        _Asked(line["text"], lang, line["who"], manners.get(_speaker(line["who"]), {}), line["n"])
        for line in inputs["lines"]
    ]
    written = [_in_other_words(line) for line in asked]
    if is_copy([(line.text, text) for line, text in zip(asked, written, strict=True)]):
        written = [
            _opened(line, _MORE_THAN_A_WORD) if is_said_again(key(line.text), key(text)) else text
            for line, text in zip(asked, written, strict=True)
        ]
    written = followed([line.text for line in asked], written, _says)
    lines = [{"n": line.n, "who": line.who, "text": text} for line, text in zip(asked, written, strict=True)]
    return json.dumps({"lines": lines}, ensure_ascii=False)


def _says(quoted: str, text: str) -> str:
    """What of a text says what was quoted of its source: the run of up to three pieces that shares most with it."""
    places = [(found.start(), found.end()) for found in _PIECE.finditer(text)]
    runs = [text[start : places[last][1]] for n, (start, _) in enumerate(places) for last in range(n, len(places))[:3]]
    return max(runs, key=lambda run: (shared([quoted], [run]), -len(run)), default=text).strip()


def _in_other_words(line: _Asked) -> str:
    """A line with its expressions exchanged; with some words before it where there was nothing to exchange."""
    text = line.text
    pieces: list[str] = []
    reached = 0
    for number, site in enumerate(sites(text, line.lang, line.who)):
        said = _choice(site, line.manners, f"{line.about}\n{number}")
        if said is not None:
            pieces += [text[reached : site.start], _cased(said.text, text, site, line.lang)]
            reached = site.end
    changed = "".join(pieces) + text[reached:]
    same = key(changed) == key(text)
    return _opened(line) if same and _bears_opening(line) else changed


def _speaker(who: str) -> str:
    return who if who == "seeker" else "supporter"


def _manners(persona: Mapping[str, Any]) -> Manners:
    return {trait: exp(_LEANING * float(persona.get(trait) or 0.0)) for trait in TRAITS}


def _order(manners: Manners, about: str) -> list[str]:
    """The manners in the order in which they are tried, drawn by their weights; nobody's: by the place alone."""
    if not manners:
        return sorted(["", *TRAITS], key=lambda manner: digest(f"{about}\n{manner}", 64))
    # A draw without replacement by weights: the least of −log(u) / weight first (Efraimidis and Spirakis, 2006).
    drawn = {trait: -log(max(unit_interval(about, trait), 1e-12)) / weight for trait, weight in manners.items()}
    first, second, *_ = sorted(drawn, key=lambda trait: drawn[trait])
    return [first, second, ""] if manners[second] >= exp(_LEANING * _OWN) else [first, ""]


def _choice(site: Site, manners: Manners, about: str) -> Member | None:
    """What is said instead; None: what was said is in the manner wanted, or nothing is."""
    for manner in _order(manners, about):
        if manner and manner in site.found.manners:
            return None
        fitting = {one.text: one for one in site.options if (manner in one.manners if manner else not one.manners)}
        if fitting:
            return fitting[pick(list(fitting), about, "!")]
    return None


def _cased(said: str, text: str, site: Site, lang: Lang) -> str:
    """`said` with a capital where it begins a sentence that began with one; I is written as it was."""
    if lang == "zh":
        return said
    before = text[site.start : site.end]
    if _PRONOUN.search(before):
        return said  # a writer of small letters
    said = _PRONOUN.sub("I", said)
    begins = not text[: site.start].strip() or _ENDED.search(text, max(0, site.start - BACK), site.start) is not None
    return said[:1].upper() + said[1:] if before[:1].isupper() and begins else said


def _bears_opening(line: _Asked) -> bool:
    """Whether words may stand before a line: not before a call, a greeting or thanks, nor before hardly a line."""
    said = line.text.strip().lower().replace("\u2019", "'")
    bare = re.match(_bare(line.lang), said)
    return len(key(said)) >= _LEAST_LETTERS[line.lang] and bare is None


@cache
def _bare(lang: Lang) -> re.Pattern[str]:
    words = lexicon(lang)["bare"]["words"].split("|")
    return re.compile(f"(?:{'|'.join(map(re.escape, words))})" + (r"(?!\w)" if lang == "en" else ""))


def _opened(line: _Asked, least: int = 1) -> str:
    """The line with an opening in the speaker's manner, of so many letters at least."""
    start = len(line.text) - len(line.text.lstrip())
    kind = "question" if _ASKS[line.lang].match(line.text, start) else "statement"
    speaker = line.who if line.who in ("seeker", "analysis") else "supporter"
    openings: dict[str, list[str]] = lexicon(line.lang)["opening"][speaker][kind]
    manner = _order(line.manners, f"{line.about}\nopening")[0] or "plain"
    opening = pick([one for one in openings[manner] if len(key(one)) >= least], line.about, "opening")
    if "您" in line.text:
        opening = opening.replace("你", "您")
    return line.text[:start] + opening + _uncapped(line.text[start:], line.lang)


def _uncapped(text: str, lang: Lang) -> str:
    """The beginning of a sentence as it stands inside one: I and names, which no rule knows, keep their capital."""
    first = re.match(r"[A-Za-z']+", text)
    shouted = first is not None and len(first[0]) > 1 and first[0].isupper()
    if lang == "en" and first and not shouted and first[0].lower() in lexicon("en")["small"]["words"].split():
        return text[:1].lower() + text[1:]
    return text
