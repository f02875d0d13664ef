"""`cer`: the three steps of C and a reply, for a dialogue in Chinese or English, from its history alone."""

from collections.abc import Mapping
from typing import Any

from pipelines.annotate.rules.deciding import STRONG, occasion_of, stage_of, strategy_of
from pipelines.annotate.rules.listening import Talk, listen
from pipelines.annotate.rules.speaking import response, sentence
from pipelines.annotate.rules.wording import phrases, pick
from schemas.labels import EMOTIONS, SENTIMENT_OF
from schemas.reasoning import Cer, Lang


def reply(inputs: Mapping[str, Any]) -> str:
    """C's grammar whole for {lang, history}."""
    lang: Lang = inputs["lang"]
    talk = listen(lang, inputs["history"])
    stage, course = stage_of(talk)
    strategy = strategy_of(talk, stage)
    emotion = EMOTIONS.find(talk.emotion)
    assert emotion is not None, "a lexicon names an emotion that EMOTIONS does not have"
    return Cer(
        lang=lang,
        stage=stage,
        history_reasoning=_history(talk, course),
        sentiment=SENTIMENT_OF[emotion.en],
        emotion=emotion.zh if lang == "zh" else emotion.en,
        intensity=max(talk.felt.intensity, STRONG) if talk.dangers else talk.felt.intensity,
        emotion_reasoning=_emotion(talk),
        strategy=strategy,
        strategy_reasoning=_why(talk, strategy),
        response=response(talk, strategy),
    ).render()


def _history(talk: Talk, course: str) -> str:
    """What the talk is about, where it stands, and what was said last: two histories are rarely told alike."""
    said = phrases(talk.lang)["cer"]
    how = pick(said["history"], talk.key, "history") if talk.core else said["history_grave"]
    line: str = how.format(n=talk.rounds, core=talk.core, course=said[course])
    quotes = {"last": talk.last.anchor, "heard": talk.heard}
    if talk.heard and talk.last.anchor not in ("", "…", talk.core):
        line += said["lately"].format(**quotes)
    elif talk.heard:
        line += said["heard"].format(**quotes)
    return line


def _emotion(talk: Talk) -> str:
    said = phrases(talk.lang)["cer"]
    felt = talk.felt
    if talk.dangers and not felt.words:
        line: str = said["danger"]
        return line
    if not felt.words:
        quote = talk.question or talk.last.anchor
        if not quote:
            grave: str = said["grave_ill" if talk.ill else "grave"]
            return grave
        return pick(said["asks_only" if talk.question else "nothing"], talk.key, "emotion").format(quote=quote)
    degree = phrases(talk.lang)["degree"]["chain"][felt.intensity - 1]
    kind = "word" if not felt.shown else "felt" if felt is talk.last else "earlier"
    line = pick(said[kind], talk.key, "emotion").format(quote=felt.anchor, word=felt.words[0], degree=degree)
    return line + (said["before"].format(word=talk.before.words[0]) if talk.before else "")


def _why(talk: Talk, strategy: str) -> str:
    said = phrases(talk.lang)["strategy"][occasion_of(talk, strategy)]
    return sentence(pick(said["reason"], talk.key, "why"), talk, strategy, spoken=False)
