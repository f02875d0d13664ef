"""Words that one line says outright and another denies: 我恨他 and 我不恨他, I trust her and I don't trust her.

A word is denied where it stands right behind a negator, but for words that only colour it (不想离婚 denies 离婚). Where
a clause asks, supposes, doubts or denies twice it says nothing outright: careful wording turns such clauses as it
likes, and what they mean is for the judge to say.
"""

import re
from collections.abc import Sequence

from pipelines.llm.language import Lang

_CLAUSE: dict[Lang, re.Pattern[str]] = {
    "zh": re.compile(r"[^，。！？；：、…,.!?;:\s「」“”\"（）()]+[？?]?"),
    "en": re.compile(
        r"(?:(?!\b(?:and|but|so|because|that|though|although|while|or)\b)[^.!?;:,\n—“”\"()])+\??", re.IGNORECASE
    ),
}
_DENIED: dict[Lang, re.Pattern[str]] = {
    # 差不多, 好不容易, 不过 and 特别 deny nothing that stands behind them; 睡不着 denies what is before.
    "zh": re.compile(
        r"(?:(?<![要是可何好差动无哪么岂谁对了受忍])(?:不(?![刚就正过得管如但仅断同止妨免由久错愧光只住了着到起下开完清出动掉成通够]"
        r"|小心|好意思|客气|容易|上(?![班学课]))|没有?(?![事关准])|未(?![来必])|无法)"
        r"(?:(?<![要再去来])想|[会能敢肯要再太很是曾用大那么该让被够去来]|愿意?|怎么|这么|可能|可以|应该|需要|觉得)*"
        r"|(?<![特分个性告区差离级类])别(?![人的处]))"
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
        r"[不没未别无非莫难怕少拒免停戒忘缺谁哪怎何若吗嘛？?]|什么|多少|是否|要是|如果|希望|但愿|以为|本来|原本|以前|曾|就好了"
    ),
    "en": re.compile(
        r"\?|n't\b|'d\b|\b(?:no[tr]?|none|nobody|nothing|neither|never|cannot|without|if|whether|unless|until|wish\w*|hop(?:e|ed|ing)|hardly|barely|rarely"
        r"|seldom|less|little|few|too|stop\w*|quit\w*|fail(?:ed|s|ing)?|refus\w+|avoid\w*|hard|difficult\w*|troubl\w+|struggl\w+"
        r"|unable|lack\w*|instead|rather|only|badly|poorly|would|could|should|used|pretend\w*|who|what|how|why|when"
        r"|where)\b"
    ),
}
_ASKS = re.compile("(.)(?:不|没有?)\\1")  # 想不想, 有没有
_PARTICLE = re.compile("[了着过的得地吗吧呢啊呀嘛起到出来去]")
_WORD, _ENDING = re.compile("[a-z]{3,}"), re.compile("(?:ing|ed|es|s|e)$")


def toggled(before: str, after: str, lang: Lang) -> set[str]:
    """The words, as they are compared, that one of two lines denies and the other says outright."""
    had, has = (_CLAUSE[lang].findall(line.lower().replace("\u2019", "'")) for line in (before, after))
    return _turned(had, has, lang) | _turned(has, had, lang)


def _turned(denying: Sequence[str], saying: Sequence[str], lang: Lang) -> set[str]:
    """The words that the clauses of one line deny and never say outright, and those of the other say outright alone."""
    return {
        word
        for word in {_denied(clause, lang) for clause in denying} - {""}
        if set(_outright(saying, word, lang)) == {True} and True not in _outright(denying, word, lang)
    }


def _denied(clause: str, lang: Lang) -> str:
    """The word that a clause denies; empty where there is none, and where it asks or supposes, or denies twice."""
    found = _DENIED[lang].search(clause)
    if found is None or _ASKS.search(clause):
        return ""
    if _NOT_OUTRIGHT[lang].search(f"{clause[: found.start()]} {clause[found.start('word') :]}"):
        return ""
    if lang == "zh" and _PARTICLE.search(found["word"]):
        return ""
    word = found["word"] if lang == "zh" else _ENDING.sub("", found["word"])
    return "" if word in _words(clause[found.end() :], word, lang) else word


def _outright(clauses: Sequence[str], word: str, lang: Lang) -> list[bool]:
    """Of each clause that holds a word, whether it says it outright."""
    return [not _NOT_OUTRIGHT[lang].search(clause) for clause in clauses if word in _words(clause, word, lang)]


def _words(clause: str, word: str, lang: Lang) -> set[str]:
    """What of a clause may be a word: in Chinese whatever stands in it."""
    if lang == "zh":
        return {word} if word in clause else set()
    return {_ENDING.sub("", one) for one in _WORD.findall(clause)}
