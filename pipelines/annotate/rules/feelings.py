"""Feelings that a text names: which, how strongly, denied or not, and whose."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from math import inf
from typing import NamedTuple

from pipelines.annotate.rules.clauses import Clause
from pipelines.annotate.rules.contexts import diagnosed, insincere, is_past, last_turn, tells_on, unfelt, unproven
from pipelines.text.finder import Finder, Hit, alternatives, lexicon, markers, shaped, worded
from pipelines.text.words import spelled
from schemas.reasoning import Lang

# Something worries them: whoever stands behind an English verb feels it; but I hate him.
_OBJECT = re.compile(r" (?:him|her|them|you)\b", re.IGNORECASE)
_BY_ME = re.compile(r"\bi (?:(?:really|just|still|so|do|truly|actually|absolutely) )*$", re.IGNORECASE)
_STRENGTHS = {"mild": 2, "plain": 3, "strong": 4, "grave": 4}
# How far before a word its adverbs and denials may stand, in characters.
_REACH = {"zh": 14, "en": 40}
_NO_EMOTIONS = ("none", "conveyed", "grave")
# What is left where a pleasant feeling is denied: 没有很开心.
_OPPOSITES = {
    "joy": "sadness",
    "hope": "disappointment",
    "relief": "pain",
    "calm": "anxiety",
}


@dataclass(frozen=True, slots=True)
class Feeling:
    """A word of a feeling as it stands in a text, `text[start:end]`."""

    emotion: str  # English name out of schemas.labels.EMOTIONS
    start: int
    end: int
    clause: int
    intensity: int  # 1–5
    own: bool  # the writer's
    denied: bool
    holder: str | None  # the word for who else feels it, where that is told
    past: bool = False  # told of times that are over
    grave: bool = False  # a word of danger: it weighs, and is never named or taken up as a feeling


def feelings(text: str, parts: Sequence[Clause], lang: Lang, *, conveyed: bool = False) -> list[Feeling]:
    """The feelings in `text`, in order.

    Args:
        text: What was written, with straight apostrophes.
        parts: Its clauses.
        lang: The language of the lexicon.
        conveyed: Whether to look for what an answer conveys to its reader (care, encouragement) as well.
    """
    starts = [part.start for part in parts]
    began: dict[int, int] = {}  # where each sentence begins
    for part in parts:
        began.setdefault(part.sentence, part.start)
    turns: int | None = None
    subjects = _Subjects(text, parts)
    found = []
    for hit in _finder(lang, conveyed).hits(text):
        emotion, _, strength = hit.name.partition(" ")
        place = bisect_right(starts, hit.start) - 1
        if emotion == "none" or place < 0 or hit.end > parts[place].end:
            continue
        word = text[hit.start : hit.end].lower()
        if word in _conditions(lang) and diagnosed(text, parts[place], lang):
            continue  # 确诊抑郁: a diagnosis says how somebody is treated, not what they feel
        if lang == "zh" and unfelt(text, parts[place], hit.start, word):
            continue
        if unproven(text, parts[place], word, lang) or insincere(text, parts[place], emotion, lang):
            continue
        if emotion == "calm":
            turns = last_turn(text, parts, lang) if turns is None else turns
            if place < turns:
                continue
        degree, denied = _around(text, parts[place], hit, lang)
        own, holder = whose(text, parts[place], hit.start, lang)
        if _OBJECT.match(text, hit.end, parts[place].end) and not _BY_ME.search(text, parts[place].start, hit.start):
            own = False
        if own and lang == "zh":
            own = not _theirs(text, parts[place], hit, subjects, place)
        intensity = min(5, max(1, _STRENGTHS[strength] + degree))
        if denied and emotion in _OPPOSITES:
            emotion, denied, intensity = _OPPOSITES[emotion], False, 2
        past = is_past(text, began[parts[place].sentence], hit.start, lang)
        grave = strength == "grave"
        found.append(Feeling(emotion, hit.start, hit.end, place, intensity, own, denied, holder, past, grave))
    return found


@cache
def _finder(lang: Lang, conveyed: bool) -> Finder:
    tables = lexicon(f"feelings.{lang}")
    lists = [("none mild", tables["none"]["words"]), ("despair grave", tables["grave"]["words"])]
    if conveyed:  # before the others, so that a word that both have counts as conveyed
        lists += _levels(tables["conveyed"])
    lists += _levels({name: table for name, table in tables.items() if name not in _NO_EMOTIONS})
    return Finder([(name, _as_typed(words)) for name, words in lists] if lang == "en" else lists, lang)


@cache
def _conditions(lang: Lang) -> frozenset[str]:
    return frozenset(spelled(markers(lang)["diagnosis"]["words"]))


# What the lexicon writes, and how else it is said or typed.
_TYPED = (
    ("can't", ("cannot", "can not", "couldn't", "could not", "cant", "couldnt")),
    ("don't", ("do not", "didn't", "did not", "dont", "didnt", "doesn't", "doesnt")),
    ("haven't", ("have not", "havent")),
    ("i'm", ("i am", "im")),
    ("noone", ("no one",)),
)


def _as_typed(words: str) -> str:
    """English words with the ways in which people type them beside each: can't, cant, cannot."""
    listed = dict.fromkeys(spelled(words))
    for word in list(listed):
        for one, others in _TYPED:
            if one in word:
                listed.update(dict.fromkeys(word.replace(one, other) for other in others))
    listed.update(dict.fromkeys(word.replace("'", "") for word in list(listed) if "'" in word))
    return "|".join(listed)


def _levels(tables: dict[str, dict[str, str]]) -> list[tuple[str, str]]:
    return [(f"{emotion} {level}", words) for emotion, levels in tables.items() for level, words in levels.items()]


# --- how strongly, and whether it is denied


@cache
def _before(lang: Lang) -> tuple[re.Pattern[str], dict[str, str]]:
    """What may stand right before a word, and what each does. The longest counts: the 别 of 特别 denies nothing."""
    degree, negation = markers(lang)["degree"], markers(lang)["negation"]
    lists = {
        "not_denial": negation["not_denial"],
        "top": degree["top"],
        "denial": negation["words"],
        "down": degree["down"],
        "up": degree["up"],
        "between": negation["between"],
    }
    does: dict[str, str] = {}
    for what, words in lists.items():
        for word in spelled(words):
            does.setdefault(word, what)
    return re.compile(rf"({alternatives(does, lang)})\s*\Z", re.IGNORECASE if lang == "en" else 0), does


@cache
def _behind(lang: Lang) -> re.Pattern[str]:
    return re.compile(rf"\s*{alternatives(spelled(markers(lang)['degree']['after_up']), lang)}")


def _around(text: str, clause: Clause, hit: Hit, lang: Lang) -> tuple[int, bool]:
    """By how much the adverbs around a word move it, and whether it is denied."""
    degree = int(bool(_behind(lang).match(text, hit.end, clause.end)))
    before = text[max(clause.start, hit.start - _REACH[lang]) : hit.start]
    moves = {"top": 2, "up": 1, "down": -1}
    while before:
        does, rest = _last(before, lang)
        if does in ("", "not_denial"):
            break
        if does == "denial":
            return 0, True
        if moves.get(does, 0):
            degree = moves[does] if abs(moves[does]) > abs(degree) else degree
        before = rest
    return degree, False


def _last(before: str, lang: Lang) -> tuple[str, str]:
    pattern, does = _before(lang)
    found = pattern.search(before)  # from the left, so the longest that reaches the end
    return (does[found[1].lower()], before[: found.start()]) if found else ("", before)


# --- whose


@cache
def _persons(lang: Lang) -> re.Pattern[str]:
    """A person, with what stands right before that makes an object of them."""
    holders = markers(lang)["holders"]
    leads = "|".join(
        f"(?P<{name}>{alternatives(spelled(holders[name]), lang)})" for name in ("said_of", "object_of", "verb_of")
    )
    kinds = "|".join(
        f"(?P<{kind}>{alternatives(spelled(holders[kind]), lang)})" for kind in ("other", "self", "reflexive")
    )
    own = r"(?:自己)?" if lang == "zh" else r"(?:self|selves)?"
    return re.compile(rf"(?:(?:{leads})\s*)?(?:{kinds}){own}", re.IGNORECASE if lang == "en" else 0)


@lru_cache(maxsize=1024)
def _spoken_of(text: str, start: int, end: int, lang: Lang) -> tuple[re.Match[str], ...]:
    """The persons of a clause: it is asked once for each of its words, and may be as long as a post."""
    return tuple(_persons(lang).finditer(text, start, end))


@cache
def _title_self(lang: Lang) -> frozenset[str]:
    return frozenset(spelled(markers(lang)["holders"]["title_self"]))


class _Subjects:
    """Per clause the first person, no object, of the nearest clause before it in its sentence that has one; and that
    clause's end. Each clause is looked at once, and only where one is asked for."""

    def __init__(self, text: str, parts: Sequence[Clause]) -> None:
        self._text, self._parts = text, parts

    @cached_property
    def before(self) -> list[tuple[re.Match[str] | None, int]]:
        """By the place of the clause; None and 0 where there is none."""
        found: list[tuple[re.Match[str] | None, int]] = []
        for lead, part in pairwise([None, *self._parts]):
            assert part is not None
            if lead is None or lead.sentence != part.sentence:
                found.append((None, 0))
                continue
            persons = _spoken_of(self._text, lead.start, lead.end, "zh")
            subject = next((one for one in persons if not one["object_of"]), None)
            found.append((subject, lead.end) if subject else found[-1])
        return found


def _theirs(text: str, part: Clause, hit: Hit, subjects: _Subjects, place: int) -> bool:
    """Whether a feeling with no subject beside it is another's: 吓到他; 她给我留着，怕我哥吃了; 他走了，说受不了."""
    if shaped("zh", "reports", "frightened").match(text, hit.start, hit.end):
        return bool(shaped("zh", "reports", "frightens").match(text, hit.end, part.end))
    if tells_on(text, part, "zh"):
        subject, _ = subjects.before[place]
        return subject is not None and not subject["self"]
    fears = shaped("zh", "reports", "theirs").match(text, part.start, part.end)
    if fears is None or not fears.start() <= hit.start < fears.end():
        return False
    subject, end = subjects.before[place]
    if subject is None or subject["self"]:
        return False
    return bool(shaped("zh", "reports", "for_me").search(text, subject.end(), end))


def whose(text: str, clause: Clause, place: int, lang: Lang) -> tuple[bool, str | None]:
    """Whether what is said at `place` is said of the writer, and of whom else: the last person before it who is no
    object."""
    persons = _told_of(text, clause.start, clause.end, clause.line, lang)
    last = persons.last[bisect_left(persons.starts, place)]
    if last is not None and last.taken_over <= place:  # then so is whoever a verb leads to before them
        last = last.before
    return (not clause.spoken, None) if last is None or last.holder is None else (False, last.holder)


class _Person(NamedTuple):
    """A person who may be whom a clause goes on to speak of. `holder`: the word; None for the writer. Only until
    `taken_over`, where the writer takes over again; from there on whoever was spoken of `before`."""

    holder: str | None
    taken_over: float
    before: "_Person | None"  # the last one before, of those whom no verb leads to


class _Persons(NamedTuple):
    """`last[n]` is the last person of the first n, at `starts[:n]`, who may be meant."""

    starts: list[int]
    last: list[_Person | None]


@lru_cache(maxsize=1024)
def _told_of(text: str, start: int, end: int, line: int, lang: Lang) -> _Persons:
    """The persons of a clause, gone through once: it is asked about each of its words, and may be as long as a post."""
    starts: list[int] = []
    last: list[_Person | None] = [None]
    plain: _Person | None = None  # the last whom no verb leads to
    for found in _spoken_of(text, start, end, lang):
        starts.append(found.start(found.lastgroup or 0))  # the person, whatever leads to them
        # 自己 is whoever was spoken of last; 妈妈说我没用: she says so; a girl in a title is the writer.
        passing = found["object_of"] or found["reflexive"] or (found["self"] and found["said_of"])
        if passing or (found["other"] and line == 0 and found["other"] in _title_self(lang)):
            last.append(last[-1])
            continue
        behind = worded(lang, "holders", "back_to_self").search(text, found.end(), end) if found["verb_of"] else None
        person = _Person(None if found["self"] else found["other"], behind.end() if behind else inf, plain)
        if not found["verb_of"]:
            plain = person
        last.append(person)
    return _Persons(starts, last)
