"""The facts that a rewrite may not change: figures, kin, people, diagnoses, drugs, exams, places, times, and brackets.

They are compared over all lines together, each once: a rewrite may say a thing once that was said twice, and 她 for a
mother who is named elsewhere; it may lose none and add none. What comes and goes in careful wording (晚上, 每天) is
compared line by line: it may be left out, but nothing else may take its place. What befell somebody may be left out
too; nothing of the kind may be brought.
"""

import re
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate
from pathlib import Path

from pipelines.llm.language import Lang
from pipelines.rewrite.diagnoses import is_confirmed, is_denied, is_doubted, is_mood, is_named, severities
from pipelines.rewrite.figure import Figure
from pipelines.rewrite.figures import BRACKETED, figures, missing, ones
from pipelines.rewrite.rates import rates
from pipelines.rewrite.swaps import swapped
from pipelines.text.finder import Finder, Hit, alternatives, any_of, straight
from pipelines.text.pii.placeholders import EMOTICON
from pipelines.text.pii.vocabulary import lexicon
from pipelines.text.words import spelled

# The kinds, in the order in which they are told. A negated diagnosis is one that somebody says not to have.
KINDS = (
    *("number", "kin", "person", "diagnosis", "negated_diagnosis", "drug", "exam", "place", "time", "frequency"),
    *("event", "placeholder"),
)
_NAMED_KINDS = ("kin", "person", "diagnosis", "drug", "exam", "place", "time")  # of words alone
# What befell somebody: what did not befall them is another event.
_EVENTS = ("union", "birth", "injury", "loss", "wrong")
# The lists of which a line may not say one for another, and what they tell of.
_IN_TURN = {
    **dict.fromkeys(("when", "half_day", "hours", "edge", "weekday", "month", "season", "feast"), "time"),
    **dict.fromkeys(_EVENTS, "event"),
    **{
        "often": "frequency",
        "lasting": "number",
        "rank": "kin",
        "size": "number",
        "order": "number",
        "school": "place",
    },
    **{"cancer": "diagnosis", "mock": "exam", "shift": "time", "job": "person", "pet": "person"},
}
# The kinds of names of which a line may not say one for another, though both are named somewhere.
_IN_PLACE = ("kin", "diagnosis", "drug", "exam", "place")

_LEXICONS = Path(__file__).parent / "lexicons"
_HALF_DAY = re.compile(r"(?<=[0-9]) ?([ap])\.?m\b", re.IGNORECASE)  # English alone: 我 is no "m"
_UNDONE_MARK = "no "
_UNDONE = {
    # 是不是 and 要不要 ask; 不过 turns.
    "zh": re.compile(
        "(?:没有?|未|不曾|(?<![是要想会能肯敢愿])不(?:是|想|会|能|肯|敢|愿意?|用|必)?|别)(?:再|被|能|去|要)?$"
    ),
    "en": re.compile(r"(?:\b(?:not|never|no)|n't)(?: [a-z]+)? $", re.IGNORECASE),
}
# 目前妻子, 以前男友: no 前妻, no 前男友.
_BACK = 12  # characters
_PREFIX = re.compile("[我你您他她咱俺](?:家的?|的)?(?=.)|[大二三四小](?=.)")  # before short words for kin: 我姐, 大舅
_NO_KIN_BEHIND = "的呀宝祖"  # 妈的 curses, and 妈宝 is a son; 我妈的 and 我妈宝贝我 are neither
_FORMER, _NOW = "_former", ("目", "当", "之", "以", "从", "眼", "面", "跟")


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a text.

    `named` are pairs of kind and name; `loose` are names that a looser word stands for, `firm` those of what was
    diagnosed, which none may take the place of; `doubted` and `confirmed` are diagnoses that are suspected, and those
    that a doctor has made. `in_turn`, by line, are pairs of a list of `_IN_TURN`, or of a kind of `_IN_PLACE`, and a
    name of it.
    """

    figures: frozenset[Figure]
    named: frozenset[tuple[str, str]]
    loose: frozenset[str]
    firm: frozenset[str]
    doubted: frozenset[str]
    confirmed: frozenset[str]
    in_turn: tuple[frozenset[tuple[str, str]], ...]

    @property
    def sure_of(self) -> frozenset[str]:
        """The diagnoses that were made, and are not doubted as well."""
        return self.confirmed - self.doubted

    @property
    def unsure_of(self) -> frozenset[str]:
        """The diagnoses that are suspected, and were not made as well."""
        return self.doubted - self.confirmed


def changed(pairs: Sequence[tuple[str, str, bool]], lang: Lang) -> dict[str, int]:
    """How many facts were changed, lost or added, by kind; empty where none was.

    Args:
        pairs: Each line before and after, and whether it is the seeker's. Other people than kin are facts where the
            seeker tells of them; a supporter's "同事或朋友" is a manner of speaking.
        lang: The language of all lines.
    """
    texts_before, texts_after = [one[0] for one in pairs], [one[1] for one in pairs]
    before, after = facts(texts_before, lang), facts(texts_after, lang)
    spoken_before = _spoken(before, "\n".join(texts_before), lang)
    spoken_after = _spoken(after, "\n".join(texts_after), lang)
    gone = {one for one in before.named - after.named if not _is_meant(one, before, after, spoken_after, lang)}
    come = {
        (kind, name)
        for kind, name in after.named - before.named
        if not _is_meant((kind, name), after, before, spoken_before, lang, added=True)
    }
    lost, new = Counter(kind for kind, _ in gone), Counter(kind for kind, _ in come)
    if lost["person"] or new["person"]:  # hardly ever: it costs another look
        people = [
            _people([text for text, pair in zip(texts, pairs, strict=True) if pair[2]], lang)
            for texts in (texts_before, texts_after)
        ]
        lost["person"], new["person"] = len(gone & people[0]), len(come & people[1])
    lost["number"] = missing(spoken_after, before.figures)
    new["number"] = missing(spoken_before, after.figures)
    # One that took another's place is one change, not two.
    lost["diagnosis"] += len(before.sure_of & after.unsure_of)
    new["diagnosis"] += len(before.unsure_of & after.sure_of)
    found = Counter({kind: max(lost[kind], new[kind]) for kind in KINDS}) + _took_turns(before, after)
    found |= _took_places(before, after, lang)
    found |= Counter({"event": len(_brought(before, after, texts_before, lang))})
    if not found:  # the same facts, each where it was?
        found = swapped([pair[:2] for pair in pairs], partial(names, lang=lang, kinds=("kin",)), lang)
    return {kind: found[kind] for kind in KINDS if found[kind]}


def facts(texts: Sequence[str], lang: Lang) -> Facts:
    """The facts of some lines together."""
    text = "\n".join(texts)
    plain = straight(text)
    named = {("placeholder", token) for token in BRACKETED.findall(text) if token != EMOTICON}
    named |= {("diagnosis", one) for one in severities(plain, lang)}
    loose: set[str] = set()
    firm: set[str] = set()
    doubted: set[str] = set()
    confirmed: set[str] = set()
    in_turn: list[set[tuple[str, str]]] = [set() for _ in texts]
    ends = list(accumulate(len(one) + 1 for one in texts))
    for start, kind, name in _without_list(plain, lang):
        in_turn[bisect_right(ends, start)].add((kind, name))
    for hit in _finder(lang).hits(plain):
        for kind, name in _named(hit, plain):
            if kind in _IN_TURN or kind in _IN_PLACE:
                in_turn[bisect_right(ends, hit.start)].add((kind, f"{_undone(plain, hit, kind, lang)}{name}"))
            if kind in _IN_TURN:
                continue
            if kind == "loose":
                if not (name in _lexicon(lang)["diagnosis"] and is_mood(plain, hit.start, hit.end, lang)):
                    loose.add(name)
            elif kind == "diagnosis":
                named.add((_diagnosis(plain, hit, lang), name))
                for is_so, of in ((is_named, firm), (is_doubted, doubted), (is_confirmed, confirmed)):
                    if is_so(plain, hit.start, lang):
                        of.add(name)
            else:
                named.add((kind, name))
        if diagnosed := _diagnosed(plain, hit, lang):
            named.add((_diagnosis(plain, hit, lang), diagnosed))
    return Facts(
        figures=frozenset(figures(text, lang)),
        named=frozenset(named),
        loose=frozenset(loose),
        firm=frozenset(firm),
        doubted=frozenset(doubted),
        confirmed=frozenset(confirmed),
        in_turn=tuple(map(frozenset, in_turn)),
    )


def _without_list(text: str, lang: Lang) -> Iterator[tuple[int, str, str]]:
    """What may not take another's place and is in no list of words: where it is, of what kind, and its name."""
    yield from rates(text, lang)
    for found in _HALF_DAY.finditer(text):
        yield found.start(), "half_day", found[1].lower()


def _is_meant(
    fact: tuple[str, str], here: Facts, there: Facts, spoken: frozenset[Figure], lang: Lang, *, added: bool = False
) -> bool:
    """Whether what `here` names and `there` does not is still meant there, by a looser word, another one, or a figure.

    Args:
        spoken: The figures that are spoken of there.
        added: Whether `here` is the rewrite; a looser word stands for what is lost alone.
    """
    kind, name = fact
    if not added and kind != "negated_diagnosis" and name in there.loose and name not in here.firm:
        return True
    if kind == "time":
        value, unit = _ago(name, lang)
        return any((one.value, one.unit) == (value, unit) for one in spoken)
    others = _lexicon(lang)["implied"].get(name, "").split()
    return any(one in others for pair in there.named for one in pair) or not there.loose.isdisjoint(others)


def _spoken(told: Facts, text: str, lang: Lang) -> frozenset[Figure]:
    """The figures that are spoken of: last year and a year ago are twelve months as well."""
    past = (_ago(name, lang) for kind, name in told.named if kind == "time")
    return told.figures | ones(text, lang) | {Figure(value, unit, "") for value, unit in past if value}


def _ago(time: str, lang: Lang) -> tuple[str, str]:
    value, _, unit = _lexicon(lang)["ago"].get(time, "").partition(" ")
    return value, unit


def _took_turns(before: Facts, after: Facts) -> Counter[str]:
    """In how many lines another of the same list stands for what was said."""
    return Counter(_IN_TURN[of] for of, _, _ in _replaced(before, after) if of in _IN_TURN)


def _took_places(before: Facts, after: Facts, lang: Lang) -> Counter[str]:
    """In how many lines another name of the same kind stands for one, though both may be named somewhere."""
    return Counter(
        kind
        for kind, gone, come in _replaced(before, after)
        if kind in _IN_PLACE and not any(_may_stand_for(one, other, lang) for one in gone for other in come)
    )


def _brought(before: Facts, after: Facts, texts_before: Sequence[str], lang: Lang) -> set[str]:
    """The events of a rewrite that its source tells nowhere: careful wording may leave one out, and brings none."""
    new = _events(after) - {event.removeprefix(_UNDONE_MARK) for event in _events(before)}
    if not new:
        return new
    told = straight("\n".join(texts_before))
    return {one for one in new if not one.startswith(_UNDONE_MARK) and not _told_by(one, lang).search(told)}


def _events(told: Facts) -> set[str]:
    return {name for line in told.in_turn for of, name in line if of in _EVENTS}


def _replaced(before: Facts, after: Facts) -> Iterator[tuple[str, set[str], set[str]]]:
    """Per line each list or kind of which all that it names was replaced, with what is gone and what has come."""
    for had, has in zip(before.in_turn, after.in_turn, strict=True):
        for of in {of for of, _ in had - has} & {of for of, _ in has - had} - {of for of, _ in had & has}:
            yield of, {name for one, name in had if one == of}, {name for one, name in has if one == of}


def _may_stand_for(one: str, other: str, lang: Lang) -> bool:
    """Whether the one implies the other, or the other the one: who has a husband has a partner."""
    implied = _lexicon(lang)["implied"]
    return other in implied.get(one, "").split() or one in implied.get(other, "").split()


def _diagnosed(text: str, hit: Hit, lang: Lang) -> str | None:
    """The diagnosis that a looser word names where it was diagnosed (确诊抑郁): the first that it may stand for."""
    names = [name for kind, name in _named_by(hit.name) if kind == "loose" and name in _lexicon(lang)["diagnosis"]]
    if not names or is_mood(text, hit.start, hit.end, lang) or not is_named(text, hit.start, lang):
        return None
    return names[0]


def _undone(text: str, hit: Hit, kind: str, lang: Lang) -> str:
    """A mark before the name of an event that did not happen."""
    if kind not in _EVENTS:
        return ""
    return _UNDONE_MARK if _UNDONE[lang].search(text, max(0, hit.start - _BACK), hit.start) else ""


def _diagnosis(text: str, hit: Hit, lang: Lang) -> str:
    """The kind of a hit of a diagnosis."""
    return "negated_diagnosis" if is_denied(text, hit.start, hit.end, lang) else "diagnosis"


def _people(texts: Sequence[str], lang: Lang) -> set[tuple[str, str]]:
    text = straight("\n".join(texts))
    return {one for hit in _finder(lang).hits(text) for one in _named(hit, text) if one[0] == "person"}


# --- lexicons


@cache
def _lexicon(lang: Lang) -> dict[str, dict[str, str]]:
    written: dict[str, dict[str, str]] = tomllib.loads((_LEXICONS / f"facts.{lang}.toml").read_text(encoding="utf-8"))
    return written


@cache
def _told_by(event: str, lang: Lang) -> re.Pattern[str]:
    """The words of which one tells of an event without its name."""
    return any_of([alternatives(spelled(_lexicon(lang)["told_by"][event].replace("\n", "")), lang)], lang)


@cache
def _finder(lang: Lang) -> Finder:
    """All words of all lists; the names that one word stands for are joined: a loose word may stand for several."""
    names: dict[str, list[str]] = {}
    for kind in ("none", *_NAMED_KINDS, "loose", *_IN_TURN):
        for word, name in _words(kind, lang):
            names.setdefault(word, []).append(f"{kind}/{name}")
    if lang == "zh":
        names = _behind_prefixes(names) | names
    return Finder([("|".join(of), word) for word, of in names.items()], lang)


def _behind_prefixes(names: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The words that begin as kin in short does, behind what stands before that: 我姐夫 and 我姐妹 are no 我姐.

    A word is found where it begins first, so without these the 我 would decide.
    """
    found: dict[str, list[str]] = {}
    for short, of in names.items():
        before = _PREFIX.match(short)
        if before and any(one.startswith("kin/") for one in of):
            kin, rank = short[before.end() :], [one for one in of if one.startswith("rank/")]
            for word, meant in names.items():
                if len(word) > len(kin) and word.startswith(kin) and word[len(kin)] not in _NO_KIN_BEHIND:
                    found[before[0] + word] = [*meant, *rank]
    return found


def _words(kind: str, lang: Lang) -> Iterable[tuple[str, str]]:
    """The words of a list, each with its name; under `*` stand words that are their own names."""
    listed = [
        (word, one)
        for name, pattern in _lexicon(lang).get(kind, {}).items()
        for word in spelled(pattern.replace("\n", ""))
        for one in ([word] if name == "*" else name.split())
    ]
    if kind == "place" and lang == "zh":
        known = {word for word, _ in listed} | set(spelled(_lexicon(lang)["no_place"]["words"].replace("\n", "")))
        listed += [(word, word) for word in lexicon("places")["city"] if word not in known]
    return listed


@cache
def _named_by(hit_name: str) -> tuple[tuple[str, str], ...]:
    return tuple((kind, name) for one in hit_name.split("|") for kind, _, name in [one.partition("/")])


def _named(hit: Hit, text: str) -> tuple[tuple[str, str], ...]:
    """Kinds and names of a hit; 爸妈 is both parents; what only looks like a fact is nothing."""
    found: list[tuple[str, str]] = []
    for kind, name in _named_by(hit.name):
        if kind == "kin" and name in _BOTH:
            found += [("kin", one) for one in _BOTH[name]]
        elif kind == "kin" and name.endswith(_FORMER) and text[max(0, hit.start - 1) : hit.start] in _NOW:
            found.append((kind, name.removesuffix(_FORMER)))
        elif kind != "none":
            found.append((kind, name))
    return tuple(found)


# What is two of kin at once, in either language.
_BOTH: dict[str, tuple[str, ...]] = {
    name: tuple(both.split()) for lang in ("zh", "en") for name, both in _lexicon(lang)["both"].items()
}


def names(text: str, lang: Lang, kinds: Collection[str]) -> Iterator[tuple[int, int, str, str]]:
    """The facts of some kinds in a text but figures: start, end, kind and name; 父母 are one."""
    for hit in _finder(lang).hits(straight(text)):
        for kind, name in _named_by(hit.name):
            if kind in kinds:
                yield hit.start, hit.end, kind, name


def spans(text: str, lang: Lang) -> list[tuple[int, int]]:
    """Where names of facts stand in a text, looser words for them included: what nobody may put in other words."""
    return [
        (hit.start, hit.end)
        for hit in _finder(lang).hits(straight(text))
        if any(kind != "none" and kind not in _IN_TURN for kind, _ in _named_by(hit.name))
    ]
