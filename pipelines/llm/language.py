"""Whether a reply stays in the language of what it answers.

Counted by characters, section by section. Plain Python and not `pipelines.text.keys`: a reply is read alone.
"""

import re
from typing import Literal

from pipelines.llm.questions import InvalidReply

Lang = Literal["zh", "en"]

# Of the letters and digits of a section, how many are in its language at least. Ours: half leaves room for what a
# post quotes, and none for prose in another language.
LEAST_SHARE = 0.5

# Script=Han, as pipelines.text.keys.han_ratio counts it; the radicals among it are symbols to Unicode, letters to us.
_HAN = (
    "\u2e80-\u2e99\u2e9b-\u2ef3\u2f00-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufa6d\ufa70-\ufad9\U00016fe2\U00016fe3\U00016ff0-\U00016ff6\U00020000-\U0003ffff"
)
_LETTER = re.compile(rf"[^\W_]|[{_HAN}]")
_OF: dict[Lang, re.Pattern[str]] = {"zh": re.compile(f"[{_HAN}]"), "en": re.compile("[A-Za-z]")}
_NAMES: dict[Lang, str] = {"zh": "Chinese", "en": "English"}


def share(text: str, lang: Lang) -> float:
    """Share of the letters and digits of `text` that are written in the letters of `lang`; 0 where there are none."""
    letters = len(_LETTER.findall(text))
    return len(_OF[lang].findall(text)) / letters if letters else 0.0


def require_language(lang: Lang, **sections: str) -> None:
    """Raises InvalidReply for the first of `sections` that is not in `lang`."""
    for name, text in sections.items():
        if share(text, lang) < LEAST_SHARE:
            raise InvalidReply(f"language:{name}", f"{name} must be written in {_NAMES[lang]}")
