"""What a reply does: the stage of the talk, a strategy of ESConv's, and the occasion on which it is used.

The strategy is never Others, and never self-disclosure: rules have no life to tell of.
"""

from pipelines.annotate.rules.advice import Need, fitting
from pipelines.annotate.rules.listening import Talk
from pipelines.annotate.rules.quotes import SHORTEST
from pipelines.annotate.rules.story import SHORT
from pipelines.text.finder import straight

# Rounds by which a talk leaves the first stage, and the second.
_EXPLORED, _COMFORTED = 2, 5
# From here on a feeling is met before all else.
STRONG = 4
# A feeling that was named so many turns ago still asks for something to do.
_LATELY = 2
QUESTION, SUGGESTIONS, INFORMATION = "Question", "Providing Suggestions", "Information"
RESTATEMENT, REFLECTION = "Restatement or Paraphrasing", "Reflection of feelings"
AFFIRMATION = "Affirmation and Reassurance"


def stage_of(talk: Talk) -> tuple[str, str]:
    """The stage (ESConv's), by the place in the dialogue and what the last turn says, and the phrase that tells why."""
    last = talk.last
    asks_advice = talk.question is not None and last.intent == "advice"
    high = last.hurts and last.intensity >= STRONG and not asks_advice
    table = (
        (bool(talk.dangers), "comforting", "course_safety"),
        (talk.ill, "comforting", "course_ill"),
        (last.mortal or last.bereaved, "comforting", "course_mortal"),
        (high, "comforting", "course_high"),
        (asks_advice and talk.rounds > 1, "action", "course_asked"),
        ("will_try" in talk.moves and talk.eased and talk.rounds > 1, "action", "course_plans"),
        (talk.eased and talk.rounds > _EXPLORED, "action", "course_closing"),
        (talk.rounds == 1, "exploration", "course_opening"),
        (talk.rounds <= _EXPLORED, "exploration", "course_exploring"),
        (talk.felt.weighs and (last.hurts or talk.rounds < _COMFORTED), "comforting", "course_comforting"),
        (talk.rounds < _COMFORTED, "comforting", "course_listening"),
        (True, "action", "course_late"),
    )
    return next((stage, course) for holds, stage, course in table if holds)


def strategy_of(talk: Talk, stage: str) -> str:
    """The strategy, from stage × intent × feeling; never one that only repeats what the supporter just did."""
    last = talk.last
    asked = last.intent if talk.question else None
    explores = stage == "exploration"
    blames = last.belief_kind in ("self_blame", "labelling")
    wants_advice = asked == "advice" and stage == "action"
    table = (
        (bool(talk.dangers), AFFIRMATION),
        (last.mortal or last.bereaved, REFLECTION),
        (wants_advice, SUGGESTIONS if wants_advice and steps(talk) else QUESTION),
        (asked == "understanding" and not explores, INFORMATION),
        (asked == "validation", AFFIRMATION if blames else INFORMATION),
        (explores and talk.asked_last and talk.tells_much, RESTATEMENT),
        (explores, QUESTION),
        (talk.eased or blames or last.belief_kind == "comparison", AFFIRMATION),
        (last.weighs and last.shown, REFLECTION),
        (stage == "action" and _may_suggest(talk), SUGGESTIONS),
        (talk.tells_much and bool(last.anchor), RESTATEMENT),
        (True, QUESTION),
    )
    return next(strategy for holds, strategy in table if holds)


def occasion_of(talk: Talk, strategy: str) -> str:
    """The table of sentences: a strategy is put in other words where there is danger or death, where it answers thanks
    or a plan, where nobody asked, and where nothing that is known fits what was asked."""
    last = talk.last
    unfit = strategy == QUESTION and bool(talk.question) and last.intent == "advice" and talk.rounds > 1
    table = (
        (bool(talk.dangers), "safety"),
        (last.bereaved, "grief"),
        (talk.ill, "illness"),
        (last.mortal, "death"),
        (strategy == QUESTION and talk.only_greets, "opening"),
        (strategy == SUGGESTIONS and not talk.question, "unasked"),
        (unfit, "unfit"),
        (strategy == AFFIRMATION and talk.eased, "plans" if "will_try" in talk.moves else "thanks"),
    )
    return next((occasion for holds, occasion in table if holds), strategy)


def steps(talk: Talk) -> tuple[str, ...]:
    """What may be suggested, of what fits all that the seeker said."""
    named = talk.felt.emotion if talk.felt.weighs else None  # a suggestion must fit the trouble
    topic = talk.felt.topic if talk.last.topic == "none" else talk.last.topic
    short = len(talk.told) <= SHORT[talk.lang]
    focus = talk.told if short else "\n".join((talk.last.focus, talk.felt.focus, talk.core))
    return fitting(Need(talk.lang, "advice", named, topic, straight(focus), straight(talk.told)))


def _may_suggest(talk: Talk) -> bool:
    """Whether something fits that nobody asked for: where a trouble has been told by its name."""
    near = talk.since_felt <= _LATELY and len(talk.last.reading.text) >= SHORTEST
    return near and talk.felt.hurts and bool(steps(talk))
