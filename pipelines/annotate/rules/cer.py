"""`cer`: the three steps of C and a reply, for a dialogue in Chinese or English, from its history alone.

The last strategy is never Others, and never self-disclosure: rules have no life to tell of.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pipelines.annotate.rules.danger import dangers
from pipelines.annotate.rules.lexicon import Finder, markers, straight
from pipelines.annotate.rules.quotes import LONGEST, SHORTEST
from pipelines.annotate.rules.story import Story, story
from pipelines.annotate.rules.wording import inside, phrases, pick, turned
from schemas.labels import EMOTIONS, SENTIMENT_OF
from schemas.reasoning import Cer, Lang

# Rounds by which a talk leaves the first stage, and the second.
_EXPLORED, _COMFORTED = 2, 5
_STRONG = 4
# A turn of so many characters tells more than one thing.
_LONG = {"zh": 30, "en": 100}
# A supporter has asked for safety, or named where to turn to.
_TAKEN_UP = re.compile(r"安全|热线|12356|120|110|危机干预|\bsafe|\bcrisis|\bhotline|\bemergency", re.IGNORECASE)
# What a restatement leaves out at the beginning.
_BEGINNING = {
    "zh": re.compile(
        r"^(?:(?:但是?|可是?|不过|然后|而且|所以|就是|其实|嗯|是的|对|因为|只是|虽然|于是|有时候?就?)[，, ]?)+"
    ),
    "en": re.compile(
        r"^(?:(?:yes|no|well|but|and|so|ok|okay|or|because|yeah|also|just|actually)\b[, ]*)+", re.IGNORECASE
    ),
}
_QUESTION, _SUGGESTIONS, _INFORMATION = "Question", "Providing Suggestions", "Information"
_RESTATEMENT, _REFLECTION = "Restatement or Paraphrasing", "Reflection of feelings"
_AFFIRMATION = "Affirmation and Reassurance"


@dataclass(frozen=True, slots=True)
class Talk:
    """What the rules make of a history."""

    lang: Lang
    key: str  # all that was said, which chooses among the sentences
    rounds: int
    last: Story  # the seeker's last turn
    felt: Story  # the last turn of the seeker's that names a feeling, or the last one
    before: Story | None  # a turn before `felt` that names another feeling
    core: str  # what the seeker came with
    moves: frozenset[str]  # thanks, will_try, greeting: what the last turn does
    asked_last: bool  # whether the supporter's last turn asked
    dangers: tuple[str, ...]


def reply(inputs: Mapping[str, Any]) -> str:
    """C's grammar whole for {lang, history}."""
    lang: Lang = inputs["lang"]
    talk = listen(lang, inputs["history"])
    stage, course = stage_of(talk)
    strategy = strategy_of(talk, stage)
    emotion = EMOTIONS.find(talk.felt.emotion)
    assert emotion is not None, "a lexicon names an emotion that EMOTIONS does not have"
    return Cer(
        lang=lang,
        stage=stage,
        history_reasoning=_history(talk, course),
        sentiment=SENTIMENT_OF[emotion.en],
        emotion=emotion.zh if lang == "zh" else emotion.en,
        intensity=max(talk.felt.intensity, _STRONG) if talk.dangers else talk.felt.intensity,
        emotion_reasoning=_emotion(talk),
        strategy=strategy,
        strategy_reasoning=_why(talk, strategy),
        response=_response(talk, strategy),
    ).render()


def listen(lang: Lang, history: Sequence[Mapping[str, str]]) -> Talk:
    """What was said, read: the seeker's turns, and how the supporter's last one ended."""
    said = [turn["text"] for turn in history if turn["role"] == "seeker"] or [turn["text"] for turn in history] or [""]
    stories = [story(text, lang) for text in said]
    last = stories[-1]
    felt = next((one for one in reversed(stories) if one.words), last)
    before = next((one for one in reversed(stories) if one.words and one.words[0] not in felt.words), None)
    supporter = [turn["text"] for turn in history if turn["role"] == "supporter"]
    return Talk(
        lang,
        key="\n".join(turn["text"] for turn in history),
        rounds=len(said),
        last=last,
        felt=felt,
        before=before if before is not None and stories.index(before) < stories.index(felt) else None,
        core=_core(stories),
        moves=frozenset(_moves(lang).names(straight(said[-1]))),
        asked_last=bool(supporter) and supporter[-1].rstrip().endswith(("?", "？")),
        dangers=_open_dangers(history),
    )


def _open_dangers(history: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """Dangers that the seeker spoke of and that no supporter's turn since then took up."""
    found: tuple[str, ...] = ()
    for turn in history:
        if turn["role"] == "seeker":
            found = dangers(turn["text"]) or found
        elif _TAKEN_UP.search(turn["text"]):
            found = ()
    return found


def _core(stories: Sequence[Story]) -> str:
    """What the seeker came with: the first trouble that is told, or else asked for; a greeting is neither."""
    for one in stories:
        if one.words and SENTIMENT_OF[one.emotion] == "negative":
            return one.anchor
        if one.question or one.cause:
            return one.question or one.cause or ""
    return max((one.anchor for one in stories), key=len) or stories[-1].reading.text


@cache
def _moves(lang: Lang) -> Finder:
    return Finder(markers(lang)["moves"].items(), lang)


# --- step 1


def stage_of(talk: Talk) -> tuple[str, str]:
    """The stage (ESConv's), by the place in the dialogue and what the last turn says, and the phrase that tells why."""
    last = talk.last
    negative = SENTIMENT_OF[last.emotion] == "negative" and bool(last.words)
    asks_advice = last.question is not None and last.intent == "advice"
    eased = "thanks" in talk.moves or SENTIMENT_OF[last.emotion] == "positive"
    high = bool(talk.dangers) or (negative and last.intensity >= _STRONG and not asks_advice)
    table = (
        (high, "comforting", "course_high"),
        (asks_advice and talk.rounds > 1, "action", "course_asked"),
        ("will_try" in talk.moves and talk.rounds > 1, "action", "course_plans"),
        (eased and talk.rounds > _EXPLORED, "action", "course_closing"),
        (talk.rounds == 1, "exploration", "course_opening"),
        (talk.rounds <= _EXPLORED, "exploration", "course_exploring"),
        (negative or talk.rounds < _COMFORTED, "comforting", "course_comforting"),
        (True, "action", "course_late"),
    )
    return next((stage, course) for holds, stage, course in table if holds)


def _history(talk: Talk, course: str) -> str:
    said = phrases(talk.lang)["cer"]
    return pick(said["history"], talk.key, "history").format(n=talk.rounds, core=talk.core, course=said[course])


# --- step 2


def _emotion(talk: Talk) -> str:
    said = phrases(talk.lang)["cer"]
    if not talk.felt.words:
        kind = "asks_only" if talk.last.question else "nothing"
        return pick(said[kind], talk.key, "emotion").format(quote=talk.last.question or talk.last.anchor)
    degree = phrases(talk.lang)["degree"]["chain"][talk.felt.intensity - 1]
    kind = "felt" if talk.felt is talk.last else "earlier"
    line = pick(said[kind], talk.key, "emotion").format(quote=talk.felt.anchor, word=talk.felt.words[0], degree=degree)
    return line + (said["before"].format(word=talk.before.words[0]) if talk.before else "")


# --- step 3


def strategy_of(talk: Talk, stage: str) -> str:
    """The strategy, from stage × intent × feeling; never one that only repeats what the supporter just did."""
    last = talk.last
    asked = last.intent if last.question else None
    explores = stage == "exploration"
    blames = last.belief_kind in ("self_blame", "labelling")
    table = (
        (bool(talk.dangers), _AFFIRMATION),
        (asked == "advice" and stage == "action", _SUGGESTIONS),
        (asked == "understanding" and not explores, _INFORMATION),
        (asked == "validation", _AFFIRMATION if blames else _INFORMATION),
        (explores and talk.asked_last and _tells_much(talk), _RESTATEMENT),
        (explores, _QUESTION),
        (_eased(talk) or blames or last.belief_kind == "comparison", _AFFIRMATION),
        (bool(last.words), _REFLECTION),
        (stage == "action" and SENTIMENT_OF[talk.felt.emotion] == "negative", _SUGGESTIONS),
        (_tells_much(talk), _RESTATEMENT),
        (True, _QUESTION),
    )
    return next(strategy for holds, strategy in table if holds)


def _eased(talk: Talk) -> bool:
    """Whether the last turn thanks, plans or is glad, and does not tell of something that hurts badly."""
    last = talk.last
    hurts = bool(last.words) and SENTIMENT_OF[last.emotion] == "negative" and last.intensity >= _STRONG
    return not hurts and (bool(talk.moves & {"thanks", "will_try"}) or SENTIMENT_OF[last.emotion] == "positive")


def _tells_much(talk: Talk) -> bool:
    return len(talk.last.reading.text) >= _LONG[talk.lang]


def _why(talk: Talk, strategy: str) -> str:
    said = phrases(talk.lang)["strategy"][_occasion(talk, strategy)]
    return _sentence(pick(said["reason"], talk.key, "why"), talk, strategy, spoken=False)


def _occasion(talk: Talk, strategy: str) -> str:
    """The table of sentences: a strategy is put in other words where it answers thanks or a plan, or nobody asked."""
    if talk.dangers:
        return "safety"
    if strategy == _SUGGESTIONS and not talk.last.question:
        return "unasked"
    if strategy == _AFFIRMATION and _eased(talk):
        return "plans" if "will_try" in talk.moves else "thanks"
    return strategy


# --- the reply


def _response(talk: Talk, strategy: str) -> str:
    if talk.dangers:
        urgent = phrases(talk.lang)["danger"][talk.dangers[0]]["talk"]
        return _sentence(pick(urgent, talk.key, "danger"), talk, strategy)
    said = phrases(talk.lang)["strategy"][_occasion(talk, strategy)]
    return _sentence(pick(said["say"], talk.key, "say"), talk, strategy)


def _sentence(pattern: str, talk: Talk, strategy: str, *, spoken: bool = True) -> str:
    """`pattern` filled: in reasons the seeker's words stand in 「」 as they are, in what is spoken in “”."""
    said = phrases(talk.lang)
    emotion = said["emotion"][talk.felt.tone]
    steps = list(emotion["step"])
    if talk.lang == "zh":
        steps += said["topic"][talk.felt.topic if talk.last.topic == "none" else talk.last.topic]["step"]
    quote = _quote(talk, strategy)
    filled = pattern.format(
        quote=inside(quote) if spoken else quote,
        restated=_restated(quote, talk.lang),
        soothe=pick(emotion["soothe"], talk.key, "soothe"),
        explain=pick(emotion["explain"], talk.key, "explain"),
        step=pick(steps, talk.key, "step"),
        ask=pick(_asks(talk), talk.key, "ask"),
    )
    return filled.replace("{you}", "你").strip()


def _asks(talk: Talk) -> list[str]:
    """What may be asked next: for the feeling where none is named yet, for what happened where no cause is."""
    said = phrases(talk.lang)
    if not talk.felt.words:
        return list(said["cer"]["ask_feeling"])
    of_it = list(said["emotion"][talk.felt.emotion]["ask"])
    negative = SENTIMENT_OF[talk.felt.emotion] == "negative"
    return [*said["cer"]["ask_cause"], *of_it] if negative and not talk.felt.cause else of_it


def _restated(quote: str, lang: Lang) -> str:
    """What was said, said back; as it stands, in quotation marks, where the persons can not be turned round."""
    said = _BEGINNING[lang].sub("", quote)
    shouted = lang == "en" and said == said.upper()
    if shouted or not (back := turned(said, lang)):
        return f"“{inside(quote)}”" if lang == "zh" else f'"{inside(quote)}"'
    return back[:1].lower() + back[1:] if lang == "en" else back


def _beside_thanks(talk: Talk) -> str:
    """The longest clause of the last turn that does more than thank; of several the last, which says what follows."""
    reading = talk.last.reading
    fitting = [
        said
        for one in reading.clauses
        if SHORTEST <= len(said := reading.text[one.start : one.end]) <= LONGEST[talk.lang]
        and "thanks" not in _moves(talk.lang).names(straight(said))
    ]
    return max(reversed(fitting), key=len) if fitting else talk.last.anchor or talk.core


def _quote(talk: Talk, strategy: str) -> str:
    """The seeker's words that a strategy takes up: what was asked for advice and information, else what was felt."""
    last = talk.last
    if strategy in (_SUGGESTIONS, _INFORMATION) and last.question:
        return last.question
    if strategy == _SUGGESTIONS:
        return talk.core
    if strategy == _AFFIRMATION and _eased(talk):
        return _beside_thanks(talk)
    if strategy == _AFFIRMATION and last.belief:
        return last.belief
    if strategy in (_RESTATEMENT, _QUESTION) and last.cause:
        return last.cause
    return last.anchor or talk.core
