"""`emotions`: the emotion of a post (the writer's that prevails), or the one that an answer speaks to or conveys."""

import json
from collections.abc import Mapping
from typing import Any

from pipelines.annotate.rules.intents import main_intent
from pipelines.annotate.rules.reading import Prevailing, Reading, read
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
    """The emotion of a post and why. Without a word of a feeling: confusion where it asks, calm where it does not."""
    ranked = reading.ranked()
    if ranked:
        return ranked[0].emotion, _words(reading, ranked[0])
    _, question = main_intent(reading.questions)
    if question:
        return "confusion", f"没有情绪词，是在问「{question.span.of(reading.text)}」"
    return "calm", "没有情绪词，也没有提问"


def of_answer(reading: Reading) -> tuple[str, str]:
    """The emotion of an answer and why: what it conveys, else what it speaks to, whoever's it is."""
    said = [one for one in reading.feelings if not one.denied or one.emotion in _CONVEYED]
    conveyed = reading.ranked([one for one in said if one.emotion in _CONVEYED])
    ranked = reading.ranked(said)
    if not ranked:
        return "calm", "没有情绪词"
    # Two words of care, or more of it than of any feeling that is spoken of.
    if conveyed and (_count(reading, conveyed[0]) > 1 or ranked[0].emotion in _CONVEYED):
        return conveyed[0].emotion, _words(reading, conveyed[0])
    return ranked[0].emotion, _words(reading, ranked[0])


def _count(reading: Reading, prevailing: Prevailing) -> int:
    return sum(one.emotion == prevailing.emotion for one in reading.feelings)


def _words(reading: Reading, prevailing: Prevailing) -> str:
    words = dict.fromkeys(reading.word(one) for one in reading.feelings if one.emotion == prevailing.emotion)
    return f"词语：{'、'.join(f'「{word}」' for word in list(words)[:3])}"
