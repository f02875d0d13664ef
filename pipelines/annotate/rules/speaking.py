"""The reply that is spoken, and the sentences of the tables filled with what was said."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.annotate.rules.anchors import in_full
from pipelines.annotate.rules.deciding import (
    AFFIRMATION,
    INFORMATION,
    QUESTION,
    RESTATEMENT,
    SUGGESTIONS,
    occasion_of,
    steps,
)
from pipelines.annotate.rules.listening import Talk
from pipelines.annotate.rules.quotes import SHORTEST
from pipelines.annotate.rules.wording import inside, phrases, pick, turned
from pipelines.text.finder import shaped
from schemas.reasoning import Lang

_SLOT = re.compile(r"\{(quote|restated|soothe|explain|step|ask)\}")


def response(talk: Talk, strategy: str) -> str:
    """What is said to the seeker: of danger and of death first, with what else they said behind."""
    occasion = occasion_of(talk, strategy)
    said = phrases(talk.lang)
    if talk.dangers:
        table = said["danger"][talk.dangers[0]]
        ways = table.get("talk_other", table["talk"]) if talk.last.for_another else table["talk"]
        urgent: str = pick(ways, talk.key, "danger")
        return urgent + _besides(talk, "beside")
    if occasion in ("grief", "death", "illness"):
        table = said["loss" if occasion == "grief" else occasion]
        ask = pick(table["ask_talk" if occasion == "grief" else "ask"], talk.key, "ask")
        pattern: str = pick(table["talk"], talk.key, "say")
        return pattern.format(ask=ask) + _besides(talk, "meanwhile")
    return sentence(pick(said["strategy"][occasion]["say"], talk.key, "say"), talk, strategy)


def _besides(talk: Talk, kind: str) -> str:
    """What else was said, where it is neither danger nor death."""
    quote = talk.last.anchor
    said: str = phrases(talk.lang)["cer"][kind]
    return said.format(quote=inside(quote)) if len(quote) >= SHORTEST else ""


def sentence(pattern: str, talk: Talk, strategy: str, *, spoken: bool = True) -> str:
    """`pattern` filled: in reasons the seeker's words stand in 「」 as they are, in what is spoken in “”."""
    emotion = phrases(talk.lang)["emotion"][talk.tone]
    quote = _quote(talk, strategy)

    def filling(slot: str) -> str:
        if slot == "quote":
            return inside(quote) if spoken else quote
        if slot == "restated":
            return _restated(quote, talk.lang)
        return pick(_options(slot, talk, emotion), talk.key, slot)

    return _SLOT.sub(lambda slot: filling(slot[1]), pattern).replace("{you}", "你").strip()


def _options(slot: str, talk: Talk, emotion: Mapping[str, Any]) -> Sequence[str]:
    """The sentences of which one stands in a slot."""
    if slot == "step":
        return steps(talk)
    if slot == "ask":
        return _asks(talk)
    others_mind = slot == "explain" and talk.last.others_mind
    sentences: Sequence[str] = phrases(talk.lang)["cer"]["others_mind"] if others_mind else emotion[slot]
    return sentences


def _asks(talk: Talk) -> list[str]:
    """What may be asked next: for the feeling where none is named yet, for what happened where no cause is."""
    said = phrases(talk.lang)
    if talk.only_greets:
        return list(said["cer"]["ask_opening"])
    if not talk.felt.words or not (talk.felt.weighs or talk.eased):
        return list(said["cer"]["ask_feeling"])
    of_it = list(said["emotion"][talk.felt.emotion]["ask"])
    return [*said["cer"]["ask_cause"], *of_it] if talk.felt.hurts and not talk.felt.cause else of_it


def _restated(quote: str, lang: Lang) -> str:
    """What was said, said back; as it stands, in quotation marks, where the persons can not be turned round."""
    said = shaped(lang, "beginning").sub("", quote)
    shouted = lang == "en" and said == said.upper()
    if shouted or not (back := turned(said, lang)):
        return f"“{inside(quote)}”" if lang == "zh" else f'"{inside(quote)}"'
    return back[:1].lower() + back[1:] if lang == "en" else back


def _quote(talk: Talk, strategy: str) -> str:
    """The seeker's words that a strategy takes up: what was asked for advice and information, else what was felt."""
    last = talk.last
    asks = talk.question and (strategy != QUESTION or last.intent == "advice")
    if strategy in (SUGGESTIONS, INFORMATION, QUESTION) and asks and talk.rounds > 1:
        return talk.question or ""
    if strategy in (SUGGESTIONS, INFORMATION):
        return talk.question or talk.felt.anchor or talk.core
    if strategy == AFFIRMATION and talk.eased:
        glad = last.anchor if last.shown and not talk.moves & {"will_try", "thanks"} else ""
        return glad or talk.of_move("will_try" if "will_try" in talk.moves else "thanks") or last.anchor or talk.core
    if strategy == AFFIRMATION and last.belief:
        return last.belief
    if strategy in (RESTATEMENT, QUESTION) and last.cause:
        return in_full(last.reading, last.cause)
    return talk.taken_up
