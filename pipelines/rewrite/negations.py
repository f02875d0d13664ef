"""Words that one line says outright and another denies: 我恨他 and 我不恨他, I trust her and I don't trust her.

A word is denied where it stands right behind a negator, but for words that only colour it (不想离婚 denies 离婚). Where
a clause asks, supposes, doubts or denies twice it says nothing outright: careful wording turns such clauses as it
likes, and what they mean is for the judge to say.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from pipelines.llm.language import Lang

_CLAUSE: dict[Lang, re.Pattern[str]] = {
    "zh": re.compile(r"[^，。！？；：、…,.!?;:\s「」“”\"（）()]+[？?]?"),
    "en": re.compile(
        r"(?:(?!\b(?:and|but|so|because|that|though|although|while|or)\b)[^.!?;:,\n—“”\"()])+\??", re.IGNORECASE
    ),
}
_DENIED: dict[Lang, re.Pattern[str]] = {
    # 差不多 and 不过 deny nothing that stands behind them, 睡不着 denies what is before, and 别说 and 不用说 advise.
    "zh": re.compile(
        r"(?<![要是可何好差动无哪么岂谁对了受忍])(?:"
        r"不(?![刚就正过得管如但仅断同止妨免由久错愧光只用必要住了着到起下开完清出动掉成通够]|小心|好意思|客气|容易|上(?![班学课]))|没有?(?![事关准])|未(?![来必])|无法)"
        r"(?:(?<![再去来])想|[会能敢肯再太很是曾大那么该让被够去来]|愿意?|怎么|这么|可能|可以|应该|需要|觉得|打算要?"
        r"|[跟和对给向替][你他她它我咱]们?)*(?![跟和对给向替在从为因把])"
        r"(?P<word>[\u4e00-\u9fff]{2})"
    ),
    "en": re.compile(
        r"(?:n't|\b(?:not|never|cannot|no longer))"
        r"(?: (?:really|even|ever|just|quite|so|very|to|be|been|being|have|had|has|get|an?|the|my|any|want|able|going"
        r"|feel|seem|all|that|much|think|always))* (?P<word>[a-z]{3,})"
    ),
}
_NOT_OUTRIGHT: dict[Lang, re.Pattern[str]] = {
    "zh": re.compile(
        r"[不没未无非莫难怕少拒免停戒忘缺断谁哪怎何若吗嘛？?]|(?<!特)别|什么|多少|是否|要是|如果|希望|但愿|以为"
        r"|本来|原本|以前|曾|就好了"
    ),
    "en": re.compile(
        r"\?|n't\b|'d\b|\b(?:no[tr]?|none|nobody|nothing|neither|never|cannot|without|if|whether|unless|until|wish\w*"
        r"|hop(?:e|ed|ing)|hardly|barely|rarely|seldom|less|little|few|too|stop\w*|quit\w*|fail(?:ed|s|ing)?|refus\w+"
        r"|avoid\w*|hard|difficult\w*|troubl\w+|struggl\w+|unable|lack\w*|instead|last thing|rather|only|badly|poorly"
        r"|would|could|should|used|pretend\w*|who|what|how|why|when|where)\b"
    ),
}
_ASKS = re.compile("(.)(?:不|没有?)\\1")  # 想不想, 有没有
_PARTICLE = re.compile("[了着过的得地吗吧呢啊呀嘛起到出来去]")
_NEGATOR: dict[Lang, re.Pattern[str]] = {
    "zh": re.compile("不|没有?|未|无法"),
    "en": re.compile("n't|not|never|cannot|no longer"),
}
_HAN, _ANY_WORD = re.compile("[\u4e00-\u9fff]"), re.compile("[a-z]+")
_WORD, _ENDING = re.compile("[a-z]{3,}"), re.compile("(?:ing|ed|es|s|e)$")


class _Denial(NamedTuple):
    """A word that is denied, as it is compared, and what stands before it in its clause but for the negator."""

    word: str
    before: frozenset[str]


def toggled(before: str, after: str, lang: Lang) -> set[str]:
    """The words, as they are compared, that one of two lines denies and the other says outright."""
    had, has = (_CLAUSE[lang].findall(line.lower().replace("\u2019", "'")) for line in (before, after))
    return _turned(had, has, lang) | _turned(has, had, lang)


def _turned(denying: Sequence[str], saying: Sequence[str], lang: Lang) -> set[str]:
    """The words that the clauses of one line deny and never say outright, and those of the other say outright alone.

    A character, in English a word, before the word is the same: 我 of 我恨他 and 我不恨他, mostly who does it.
    """
    return {
        denial.word
        for denial in set(filter(None, (_denial(clause, lang) for clause in denying)))
        if _is_outright(saying, denial, lang) and not any(_said(clause, denial.word, lang) for clause in denying)
    }


def _denial(clause: str, lang: Lang) -> _Denial | None:
    """What a clause denies; None where it denies nothing, and where it asks, supposes or denies twice."""
    found = _DENIED[lang].search(clause)
    if found is None or _ASKS.search(clause):
        return None
    colour = _NEGATOR[lang].sub(" ", clause[found.start() : found.start("word")], count=1)
    before = f"{clause[: found.start()]} {colour}"
    if _NOT_OUTRIGHT[lang].search(f"{before} {clause[found.start('word') :]}"):
        return None
    word = found["word"] if lang == "zh" else _ENDING.sub("", found["word"])
    if _PARTICLE.search(word) or _places(clause[found.end() :], word, lang):
        return None
    return _Denial(word, _parts(before, lang))


def _is_outright(clauses: Sequence[str], denial: _Denial, lang: Lang) -> bool:
    """Whether each clause that holds a word that is denied elsewhere says it outright, and one of these of the same."""
    holding = [clause for clause in clauses if _places(clause, denial.word, lang)]
    return all(_said(clause, denial.word, lang) for clause in holding) and any(
        not denial.before.isdisjoint(_parts(clause[:place], lang))
        for clause in holding
        for place in _places(clause, denial.word, lang)
    )


def _said(clause: str, word: str, lang: Lang) -> bool:
    """Whether a clause says a word outright."""
    return bool(_places(clause, word, lang)) and not _NOT_OUTRIGHT[lang].search(clause)


def _places(clause: str, word: str, lang: Lang) -> list[int]:
    """Where a word begins in a clause. 摊牌的事 is a thing that is spoken of, not done."""
    if word not in clause:  # hardly any clause holds it
        return []
    if lang == "zh":
        return [found.start() for found in re.finditer(f"{word}(?!的)", clause)]
    return [found.start() for found in _WORD.finditer(clause) if _ENDING.sub("", found[0]) == word]


def _parts(text: str, lang: Lang) -> frozenset[str]:
    """The characters of a Chinese text, the words of an English one."""
    return frozenset(_HAN.findall(text) if lang == "zh" else _ANY_WORD.findall(text))
