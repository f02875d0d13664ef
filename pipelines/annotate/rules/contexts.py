"""What a clause stands under: death or danger, a diagnosis, another time, irony, a wish; so that no reply takes it for
a feeling."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise

from pipelines.annotate.rules.clauses import Clause
from pipelines.annotate.rules.danger import dangers
from pipelines.text.finder import any_of, lexicon, markers, shaped
from pipelines.text.words import spelled
from schemas.reasoning import Lang

# What is felt and pleasant; care and encouragement are given.
_PLEASANT = frozenset(("joy", "gratitude", "hope", "fondness", "relief"))
# Of a clause, which may be as long as a post, the same is asked for each of its words: answers that are remembered.
_ASKED_AGAIN = 256


def grave(text: str, parts: Sequence[Clause], lang: Lang) -> frozenset[int]:
    """The clauses of `text` that speak of danger or of death: never said back, nor quoted as what is felt."""
    death = shaped(lang, "grave", "death")  # some of it asks where a clause ends: the text as a whole does not tell
    found = {place for place, part in enumerate(parts) if death.search(text, part.start, part.end)}
    if dangers(text):  # only then is it worth looking at each clause
        found |= {place for place, part in enumerate(parts) if dangers(text[part.start : part.end])}
        if not found:  # the sign goes over a comma
            for (place, one), (_, other) in pairwise(enumerate(parts)):
                if dangers(text[one.start : other.end]):
                    found |= {place, place + 1}
        if not found:  # or over more: none can be told from the others
            found |= set(range(len(parts)))
    return frozenset(found)


def only_ill(text: str, parts: Sequence[Clause], places: frozenset[int], lang: Lang) -> bool:
    """Whether the grave clauses at `places` speak of an illness, and none of danger or of death."""
    illness, death = shaped(lang, "illness", "words", file="contexts"), shaped(lang, "grave", "death")
    said = [text[parts[place].start : parts[place].end] for place in places]
    return bool(said) and not any(dangers(one) or death.search(illness.sub("", one)) for one in said)


def bereaved(text: str, parts: Sequence[Clause], lang: Lang) -> bool:
    """Whether somebody has died, as told; not whether somebody might, or did so in a film."""
    loss, not_lost = shaped(lang, "grave", "loss"), shaped(lang, "grave", "not_lost")
    return any(
        loss.search(text, part.start, part.end) and not not_lost.search(text, part.start, part.end)
        for part in parts
        if not part.asked
    )


def diagnoses(text: str, parts: Sequence[Clause], lang: Lang) -> frozenset[int]:
    """The clauses of `text` that speak of a diagnosis or a treatment."""
    if not shaped(lang, "diagnosis").search(text):
        return frozenset()
    return frozenset(place for place, part in enumerate(parts) if diagnosed(text, part, lang))


@lru_cache(maxsize=_ASKED_AGAIN)
def diagnosed(text: str, part: Clause, lang: Lang) -> bool:
    """Whether a clause speaks of a diagnosis or a treatment."""
    return bool(shaped(lang, "diagnosis").search(text, part.start, part.end))


def is_over(text: str, lang: Lang) -> bool:
    """Whether the trouble of another time is said to be over."""
    return bool(shaped(lang, "times", "over").search(text))


def is_past(text: str, since: int, place: int, lang: Lang) -> bool:
    """Whether what is told at `place`, in a sentence that begins at `since`, is told of times that are over."""
    past, present = _times(text, lang, "past"), _times(text, lang, "present")
    last = bisect_right(past, place, key=lambda one: one[1]) - 1
    if last < 0 or past[last][0] < since:
        return False
    back = bisect_left(present, past[last][1], key=lambda one: one[0])
    return back == len(present) or present[back][1] > place


@lru_cache(maxsize=_ASKED_AGAIN)
def _times(text: str, lang: Lang, name: str) -> tuple[tuple[int, int], ...]:
    """Where the words of a list of `times` stand: looked for once, and asked about for each feeling."""
    return tuple(found.span() for found in shaped(lang, "times", name).finditer(text))


def unfelt(text: str, part: Clause, place: int, word: str) -> bool:
    """Whether a Chinese word of a feeling, at `place`, is none of the writer's: tears of a yawn, what a page says."""
    if _reports(text, part) and shaped("zh", "reports").search(text, part.start, place):
        return True
    return any(word in words and _unfelt_in(text, part, place) for place, (words, _) in enumerate(_unfelt()))


@lru_cache(maxsize=_ASKED_AGAIN)
def _reports(text: str, part: Clause) -> bool:
    return bool(shaped("zh", "reports").search(text, part.start, part.end))


@lru_cache(maxsize=_ASKED_AGAIN)
def _unfelt_in(text: str, part: Clause, place: int) -> bool:
    _, clause = _unfelt()[place]
    return bool(clause.search(text, part.start, part.end))


@lru_cache(maxsize=_ASKED_AGAIN)
def unproven(text: str, part: Clause, word: str, lang: Lang) -> bool:
    """Whether a word names a feeling only in clauses of another form: 吃药都没用; 我喜欢画画."""
    clause = _only(lang).get(word)
    return clause is not None and not clause.search(text[part.start : part.end])


def insincere(text: str, part: Clause, emotion: str, lang: Lang) -> bool:
    """Whether a pleasant word is said in irony, or wished for: 感动得我想离婚; 祝我生日快乐."""
    if emotion not in _PLEASANT:
        return False
    return _wished(text, part, lang) or _ironic(text, lang)


@lru_cache(maxsize=_ASKED_AGAIN)
def _wished(text: str, part: Clause, lang: Lang) -> bool:
    return bool(shaped(lang, "pleasant", "wished", file="contexts").search(text, part.start, part.end))


@lru_cache(maxsize=_ASKED_AGAIN)
def _ironic(text: str, lang: Lang) -> bool:
    return bool(shaped(lang, "pleasant", "ironic", file="contexts").search(text))


def tells_on(text: str, part: Clause, lang: Lang) -> bool:
    """Whether a Chinese clause tells on what the subject of the one before it says: 他嫌我管得多，说喘不过气."""
    return lang == "zh" and bool(shaped("zh", "subject", "says", file="contexts").match(text, part.start, part.end))


def last_turn(text: str, parts: Sequence[Clause], lang: Lang) -> int:
    """The last clause with which the text turns to something else, -1 where none does: a calm word before it is upset
    (很平静。但是我站了十分钟)."""
    turn = shaped(lang, "calm", "turn", file="contexts")
    turning = (place for place in reversed(range(len(parts))) if turn.match(text, parts[place].start, parts[place].end))
    return next(turning, -1)


@cache
def signs(lang: Lang) -> frozenset[str]:
    """Signs and faint words of a feeling, which name none that is denied: 我不焦虑，就是睡不着."""
    return frozenset(spelled(lexicon(f"contexts.{lang}")["signs"]["words"]))


@cache
def _only(lang: Lang) -> dict[str, re.Pattern[str]]:
    told = lexicon(f"contexts.{lang}")["only"]
    return {word: any_of([one["clause"]], lang) for one in told for word in spelled(one["words"])}


@cache
def _unfelt() -> tuple[tuple[frozenset[str], re.Pattern[str]], ...]:
    return tuple((frozenset(spelled(one["words"])), any_of([one["clause"]], "zh")) for one in markers("zh")["unfelt"])
