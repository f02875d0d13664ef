"""What a history says, as far as a reply needs it: what the seeker feels, came with and did last, and was told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import get_args

from pipelines.annotate.rules.anchors import in_full
from pipelines.annotate.rules.clauses import clauses
from pipelines.annotate.rules.contexts import only_ill
from pipelines.annotate.rules.danger import dangers
from pipelines.annotate.rules.quotes import LONGEST, SHORTEST
from pipelines.annotate.rules.story import Story, story
from pipelines.text.finder import Finder, any_of, markers, shaped, straight
from schemas.labels import SENTIMENT_OF
from schemas.reasoning import Lang

# A turn of so many characters tells more than one thing.
_LONG = {"zh": 30, "en": 100}
# A turn of fewer characters only answers: yeah; in my 50's.
_AN_ANSWER = {"zh": 5, "en": 12}
# A greeting of so many characters says nothing else.
_GREETING = {"zh": 8, "en": 24}
# An English statement of so many characters rather tells the trouble than a question does.
_A_TROUBLE = 25
# What no clause of a supporter's that is quoted may hold.
_UNHEARD = {lang: any_of([markers(lang)["grave"]["death"], '["“”「」]'], lang) for lang in ("zh", "en")}


@dataclass(frozen=True, slots=True)
class Talk:
    """What the rules make of a history."""

    lang: Lang
    key: str  # all that was said, which chooses among the sentences
    rounds: int
    last: Story  # the seeker's last turn
    felt: Story  # the last turn, or, where it names no feeling, the last one before it that names a trouble
    since_felt: int  # turns of the seeker's since then
    before: Story | None  # a turn before `felt` that names another feeling
    core: str  # what the seeker came with
    told: str  # all that the seeker said
    heard: str  # a clause of the supporter's last turn, "" where they have not spoken
    moves: frozenset[str]  # thanks, will_try, greeting: what the last turn does
    eased: bool  # whether it is all that it does, and no trouble is told
    asked_last: bool  # whether the supporter's last turn asked
    dangers: tuple[str, ...]

    @property
    def emotion(self) -> str:
        """The emotion to name: that of the words; without one, the last turn's, which danger and questions tell."""
        if self.felt.words:
            return self.felt.emotion
        return "calm" if self.last.emotion == "confusion" and not self.question else self.last.emotion

    @property
    def question(self) -> str | None:
        """What the last turn asks in earnest: not in jest, but for advice that is asked for with a laugh."""
        jests = shaped(self.lang, "jest", "words", file="contexts").search(self.last.reading.plain)
        return None if jests and self.last.intent != "advice" else self.last.question

    @property
    def ill(self) -> bool:
        """Whether all that is grave in the last turn is an illness."""
        reading = self.last.reading
        return only_ill(reading.plain, reading.clauses, reading.grave, self.lang)

    @property
    def tone(self) -> str:
        """The emotion to speak to; a pleasant one only where nothing weighs beside it."""
        tone = self.felt.tone
        return tone if self.eased or tone == "calm" or self.felt.weighs else "calm"

    @property
    def taken_up(self) -> str:
        """What a reply takes up: words of the last turn, or what the seeker came with, where that only says yes."""
        last = self.last
        return last.anchor if last.shown or len(last.anchor) >= _AN_ANSWER[self.lang] else self.core or last.anchor

    @property
    def tells_much(self) -> bool:
        """Whether the last turn tells more than one thing."""
        return len(self.last.reading.text) >= _LONG[self.lang]

    @property
    def only_greets(self) -> bool:
        """Whether nothing was said yet but hello."""
        short = len(self.told) <= _GREETING[self.lang]
        return short and "greeting" in self.moves and not self.felt.words and not self.last.question

    def of_move(self, move: str) -> str:
        """The longest clause of the last turn that thanks, or plans; "" where none can be quoted."""
        reading = self.last.reading
        told = [
            said
            for place, one in enumerate(reading.clauses)
            if SHORTEST <= len(said := reading.text[one.start : one.end]) <= LONGEST[self.lang]
            and place not in reading.grave
            and move in _moves(self.lang).names(straight(said))
        ]
        return max(told, key=len, default="")


def listen(lang: Lang, history: Sequence[Mapping[str, str]]) -> Talk:
    """What was said, read: the seeker's turns, and how the supporter's last one ended."""
    said = [turn["text"] for turn in history if turn["role"] == "seeker"] or [turn["text"] for turn in history] or [""]
    stories = [story(text, lang) for text in said]
    last = stories[-1]
    troubled = (one for one in reversed(stories) if one.weighs)
    felt = last if last.words else next(troubled, last)
    at = max(n for n, one in enumerate(stories) if one is felt)  # equal turns are one story
    before = next((one for one in reversed(stories[:at]) if one.words and one.words[0] not in felt.words), None)
    supporter = [turn["text"] for turn in history if turn["role"] == "supporter"]
    moves = frozenset(_moves(lang).names(straight(last.reading.text)))
    return Talk(
        lang,
        key="\n".join(turn["text"] for turn in history),
        rounds=len(said),
        last=last,
        felt=felt,
        since_felt=len(stories) - 1 - at,
        before=before,
        core=_core(stories),
        told="\n".join(said),
        heard=_heard(supporter[-1], lang) if supporter else "",
        moves=moves,
        eased=_eases(last, moves),
        asked_last=bool(supporter) and supporter[-1].rstrip().endswith(("?", "？")),
        dangers=_open_dangers(history),
    )


@lru_cache(maxsize=4096)
def _heard(said: str, lang: Lang) -> str:
    """The longest clause of the supporter's that may be quoted: no word of death in it, and no mark of quotation, which
    would stand inside ours."""
    told = (said[one.start : one.end] for one in clauses(said, titled=False))
    fit = sorted((one for one in told if len(one) <= LONGEST[lang]), key=len, reverse=True)
    return next((one for one in fit if not _UNHEARD[lang].search(one)), "")


def _open_dangers(history: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """Dangers that the seeker spoke of and that no supporter's turn since then took up."""
    found: tuple[str, ...] = ()
    for turn in history:
        if turn["role"] == "seeker":
            found = dangers(turn["text"]) or found
        elif _takes_up_danger(turn["text"]):
            found = ()
    return found


def _takes_up_danger(said: str) -> bool:
    """Whether a supporter asks for safety or names where to turn to, in either language."""
    return any(shaped(lang, "takes_up_danger").search(straight(said)) for lang in get_args(Lang))


def _core(stories: Sequence[Story]) -> str:
    """What the seeker came with: the first trouble that is told, or else a cause, or else what is asked for or told; a
    greeting is none of these, nor is what nobody may say back."""
    for one in stories:
        if one.hurts and one.shown:
            return one.anchor
        if one.cause:
            return in_full(one.reading, one.cause)
    asked = next((in_full(one.reading, one.question) for one in stories if one.question), None)
    told = max((one.anchor for one in stories if one.anchor != one.question), key=len, default="")
    # Is anyone there, can you read this: an English question is often about the talk and not about a trouble.
    about_the_talk = stories[0].reading.lang == "en" and len(told) >= _A_TROUBLE
    return (told if about_the_talk else asked or told) or max((one.anchor for one in stories), key=len)


# --- what the last turn does


@cache
def _moves(lang: Lang) -> Finder:
    return Finder(markers(lang)["moves"].items(), lang)


def _eases(last: Story, moves: frozenset[str]) -> bool:
    """Whether a turn thanks, plans or is glad, and tells of no trouble and asks nothing beside that."""
    if last.mortal or last.bereaved or last.question or last.hurts:
        return False
    return (last.gladdens or bool(moves & {"thanks", "will_try"})) and not _tells_beside(last)


def _tells_beside(last: Story) -> bool:
    """Whether a turn tells more than that it thanks, plans or is glad."""
    reading = last.reading
    glad = {one.clause for one in reading.own if SENTIMENT_OF[one.emotion] == "positive"}
    rest = [
        one.end - one.start
        for place, one in enumerate(reading.clauses)
        if place not in glad and not _moves(reading.lang).names(straight(reading.text[one.start : one.end]))
    ]
    return sum(rest) > _LONG[reading.lang]
