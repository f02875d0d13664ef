"""Feelings that a text names: which, how strongly, denied or not, and whose."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from pipelines.annotate.rules.clauses import Clause
from pipelines.annotate.rules.contexts import diagnosed, insincere, is_past, tells_on, unfelt, unproven, upset
from pipelines.annotate.rules.lexicon import Finder, Hit, alternatives, lexicon, markers, shaped, worded
from pipelines.clean.words import spelled
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
        if emotion == "calm" and upset(text, parts, place, lang):
            continue
        degree, denied = _around(text, parts[place], hit, lang)
        own, holder = whose(text, parts[place], hit.start, lang)
        if _OBJECT.match(text, hit.end, parts[place].end) and not _BY_ME.search(text, parts[place].start, hit.start):
            own = False
        if own and lang == "zh":
            own = not theirs(text, parts, place, hit)
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


def theirs(text: str, parts: Sequence[Clause], place: int, hit: Hit) -> bool:
    """Whether a feeling with no subject beside it is another's: 吓到他; 她给我留着，怕我哥吃了; 他走了，说受不了."""
    part = parts[place]
    if shaped("zh", "reports", "frightened").match(text, hit.start, hit.end):
        return bool(shaped("zh", "reports", "frightens").match(text, hit.end, part.end))
    if tells_on(text, part, "zh"):
        subject, _ = _subject_before(text, parts, place)
        return subject is not None and not subject["self"]
    fears = shaped("zh", "reports", "theirs").match(text, part.start, part.end)
    if fears is None or not fears.start() <= hit.start < fears.end():
        return False
    subject, end = _subject_before(text, parts, place)
    if subject is None or subject["self"]:
        return False
    return bool(shaped("zh", "reports", "for_me").search(text, subject.end(), end))


def _subject_before(text: str, parts: Sequence[Clause], place: int) -> tuple[re.Match[str] | None, int]:
    """The first person of the nearest clause before, in its sentence, that has one who is no object; and its end."""
    for lead in reversed(parts[:place]):
        if lead.sentence != parts[place].sentence:
            break
        for one in _spoken_of(text, lead.start, lead.end, "zh"):
            if not one["object_of"]:
                return one, lead.end
    return None, 0


def whose(text: str, clause: Clause, place: int, lang: Lang) -> tuple[bool, str | None]:
    """Whether what is said at `place` is said of the writer, and of whom else: the last person before it who is no
    object."""
    own, holder = not clause.spoken, None
    for found in _spoken_of(text, clause.start, clause.end, lang):
        if found.start(found.lastgroup or 0) >= place:  # the person, whatever leads to them
            break
        if found["object_of"] or found["reflexive"]:
            continue  # 自己 is whoever was spoken of last
        if found["verb_of"] and worded(lang, "holders", "back_to_self").search(text, found.end(), place):
            continue
        if found["self"]:
            if not (found["said_of"] and holder):  # 妈妈说我没用: she says so
                own, holder = not clause.spoken, None
        elif clause.line > 0 or found["other"] not in _title_self(lang):
            own, holder = False, found["other"]
    return own, holder
