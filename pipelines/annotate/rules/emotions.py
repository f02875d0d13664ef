"""`emotions`: the emotion of a post (the writer's that prevails), or of an answer: what it conveys or feels itself."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.annotate.rules.feelings import Feeling
from pipelines.annotate.rules.intents import main_intent
from pipelines.annotate.rules.quotes import Span
from pipelines.annotate.rules.reading import Prevailing, Reading, read
from pipelines.text.finder import shaped
from schemas.labels import EMOTIONS

_CONVEYED = ("care", "encouragement")


def reply(inputs: Mapping[str, Any]) -> str:
    """JSON {emotion, why} for {unit, text}: a Chinese name out of EMOTIONS, and the words that say so."""
    answer = inputs["unit"] == "answer"
    reading = read(inputs["text"], titled=not answer, conveyed=answer)
    emotion, why = of_answer(reading) if answer else of_post(reading)
    label = EMOTIONS.find(emotion)
    assert label is not None, "a lexicon names an emotion that EMOTIONS does not have"
    if reading.lang == "en":  # the grounds are to be in Chinese, and words quoted from it would not be
        why = f"文字是英文，按英文情绪词典来看，属于「{label.zh}」一类"
    return json.dumps({"emotion": label.zh, "why": why}, ensure_ascii=False)


def of_post(reading: Reading) -> tuple[str, str]:
    """The emotion of a post and why. Without a word of a feeling: confusion where it asks, else calm, which is neutral
    and claims nothing."""
    if ranked := reading.ranked():
        return ranked[0].emotion, _words(reading, reading.own, ranked[0])
    _, question = main_intent(reading.questions)
    if question:
        return "confusion", f"没有情绪词，是在问「{question.span.of(reading.text)}」"
    return "calm", "没有用词说出情绪，也没有提问，记作中性"


def of_answer(reading: Reading) -> tuple[str, str]:
    """The emotion of an answer and why: what it conveys, else what whoever answers says to feel now.

    Words of what the seeker or others feel are none of these; without any of its own it is calm, which is neutral.
    """
    heard = [one for one in reading.feelings if not reading.clauses[one.clause].spoken]
    conveyed = [one for one in heard if one.emotion in _CONVEYED]
    said = [*conveyed, *(one for one in reading.own if one.emotion not in _CONVEYED and _is_stance(reading, one))]
    ranked = reading.ranked(said)
    if not ranked:
        return "calm", "没有用词说出回答者自己的情绪，记作中性"
    # Two words of care, or more of it than of any feeling that is spoken of.
    given = reading.ranked(conveyed)
    first = given[0] if given and _count(conveyed, given[0]) > 1 else ranked[0]
    return first.emotion, _words(reading, said, first)


def _is_stance(reading: Reading, feeling: Feeling) -> bool:
    """Whether whoever answers says so of themselves, and of today: 我很担心你; no story of their own years ago."""
    here = reading.clauses[feeling.clause]
    before = reading.plain[here.start : feeling.start]
    led = reading.clauses[: feeling.clause]
    if any(one.sentence == here.sentence and one.mark.startswith((":", "：")) for one in led):
        return False  # words for the seeker to say
    if not shaped(reading.lang, "stance", "says", file="contexts").search(before):
        return False
    told = reading.sentence(Span(here.start, here.end))
    return not shaped(reading.lang, "stance", "story", file="contexts").search(reading.plain, *told)


def _count(felt: Sequence[Feeling], prevailing: Prevailing) -> int:
    return sum(one.emotion == prevailing.emotion for one in felt)


def _words(reading: Reading, felt: Sequence[Feeling], prevailing: Prevailing) -> str:
    """The words among `felt` that say the emotion that prevails."""
    words = dict.fromkeys(reading.word(one) for one in felt if one.emotion == prevailing.emotion)
    return f"词语：{'、'.join(f'「{word}」' for word in list(words)[:3])}"
