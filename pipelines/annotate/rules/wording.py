"""How the rules put things: sentences of `phrases.<lang>.toml`, chosen by the text that they are about."""

import re
from collections.abc import Sequence
from typing import Any

from pipelines.text.finder import lexicon
from schemas.ids import digest
from schemas.reasoning import Lang


def phrases(lang: Lang) -> dict[str, Any]:
    """The sentences of a language."""
    return lexicon(f"phrases.{lang}")


def pick(options: Sequence[str], *about: str) -> str:
    """One of `options`: always the same for the same `about`, evenly over different ones."""
    return options[int(digest("\n".join(about), 8), 16) % len(options)]


def listed(words: Sequence[str]) -> str:
    """Chinese words in a row: 甲、乙和丙."""
    *most, last = words
    return f"{'、'.join(most)}和{last}" if most else last


def inside(said: str) -> str:
    """`said` as it stands between quotation marks: its own become single ones."""
    return said.replace("“", "‘").replace("”", "’").replace('"', "'")


# Persons turned round, longest first: what a seeker says of themselves as the one who listens says it back. 你妈 alone
# would be an insult.
_TURNED_ZH = re.compile(r"自我|忘我|我行我素|我(妈妈|爸爸|爸妈)|我(妈|爸|哥|姐|弟|妹)(?!\2)|我|咱们?")
_KIN = {"妈": "妈妈", "爸": "爸爸", "哥": "哥哥", "姐": "姐姐", "弟": "弟弟", "妹": "妹妹"}
_TURNED_EN = {
    **{"i": "you", "i'm": "you're", "i am": "you are", "i was": "you were", "im": "you're", "i've": "you've"},
    **{"i'd": "you'd", "i'll": "you'll", "me": "you", "my": "your", "mine": "yours", "myself": "yourself", "am": "are"},
    **{"we": "you", "our": "your", "us": "you", "we're": "you're"},
}
_WORDS_EN = re.compile(r"\b(?:i am|i was|[a-z]+(?:'[a-z]+)?)\b", re.IGNORECASE)
_LISTENER = {"zh": re.compile("[你您]"), "en": re.compile(r"\byou", re.IGNORECASE)}


def turned(said: str, lang: Lang) -> str | None:
    """`said` with its persons turned round (我总是哭 becomes 你总是哭); None where the listener is spoken of in it."""
    if _LISTENER[lang].search(said):
        return None
    if lang == "en":
        return _WORDS_EN.sub(lambda word: _TURNED_EN.get(word[0].lower(), word[0]), said.replace("\u2019", "'"))
    return _TURNED_ZH.sub(_turn, said)


def _turn(found: re.Match[str]) -> str:
    if found[0] in ("自我", "忘我", "我行我素"):
        return found[0]
    if found[0].startswith("咱"):
        return "你们"
    if kin := found[2]:
        return "你" + _KIN[kin]
    return "你" + (found[1] or "")
