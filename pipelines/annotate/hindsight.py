"""Hindsight: what the first three steps of a chain know although only the answer says it (E §3.2).

Looked at are named spans (figures with their unit, dates, quotations, titles, Latin words, names, professions,
diagnoses, methods, events) and rare words that the chain shares with the answer. A span gives the chain away where the
answer has it and the question does not, in any wording that the lexicon knows to mean the same. A fact in other words
is not seen.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from pipelines.text.keys import key_of
from pipelines.text.lexicon import lexicon
from pipelines.text.numerals import value_of
from pipelines.text.pii.placeholders import PATTERN as PLACEHOLDER

# The kinds of leaks, in the order of a detail.
KINDS = (
    *("number", "date", "title", "quote", "latin", "placeholder", "person", "place"),
    *("profession", "diagnosis", "method", "event", "law", "word", "phrase"),
)

_GROUPED = ("profession", "diagnosis", "method", "event", "law")

# Ours, from the cases of tests/unit/annotate/hindsight.toml. A word is rare below so many times in jieba's corpus of 60
# million; a run of characters shared with the answer is copied from so many on.
_RARE, _VERY_RARE = 1500, 100
_COPIED = 9
# A single character below this is no word of its own in running text: where several meet, they are a name, or a word
# that no dictionary has.
_RARE_CHARACTER = 8000
_LONGEST_WORD = 8
# From so many characters on a quotation is a saying, and no word that anybody uses.
_SAYING = 4
# A figure without a unit counts from here on.
_TELLING = 100

_HAN = "\u3007\u4e00-\u9fff"
_DIGITS = "0-9零〇一二两三四五六七八九十百千万亿"
_TIME = "年|个月|月|周|天|小时|分钟|秒|岁"
_COUNTED = (
    "次|遍|回|轮|页|字|条|道|步|杯|件|封|层|种|个|块|斤|公斤|里|公里|点|号|日|%|分|章|集|门|名|位|例|对|句|节|级|楼"
)
_NUMBER = re.compile(rf"(第?)(?<![{_DIGITS}.])([{_DIGITS}.]+?)(?:多|来|几)?({_TIME}|{_COUNTED})")
_SAME_UNIT = (
    (re.compile("个?(?:星期|礼拜)(?![一二三四五六日天])"), "周"),
    (re.compile("个(?=小时|年|季度)"), ""),
    (re.compile("钟头"), "小时"),
    (re.compile("元"), "块"),
    (re.compile("日(?=后|内|之)"), "天"),
)
_DATE = re.compile(
    r"(?:19|20)\d\d年|\d{1,2}月\d{1,2}[日号]|(?:周|星期|礼拜)[一二三四五六日天]|"
    "春节|除夕|元旦|元宵|清明节?|端午|七夕|中秋|国庆|重阳|圣诞|情人节|母亲节|父亲节|儿童节|双十一"
)
_TITLE = re.compile("《([^《》]{1,40})》")
_QUOTED = re.compile('[“「『"]([^“”「」『』"]{2,30})[”」』"]')
_LATIN = re.compile(r"[a-z][a-z0-9+\-]+")
_CLAUSE = re.compile(rf"[{_HAN}]{{2,}}")
_BY_FORM = (
    ("title", _TITLE),
    ("quote", _QUOTED),
    ("date", _DATE),
    ("latin", _LATIN),
    ("placeholder", re.compile(PLACEHOLDER.lower())),
)


class _Text(NamedTuple):
    """A text in the forms that spans are looked for in."""

    plain: str  # without width, case and white space
    key: str  # letters and digits alone, so that punctuation neither joins nor parts


def leaks(question: str, answer: str, steps: Sequence[str]) -> tuple[str, ...]:
    """The kinds of what the steps (L1, L2 and L3) know from the answer alone, out of KINDS; empty where they know
    nothing. `question` is what the seeker wrote, `answer` what the chain was to lead to.
    """
    # 「」 and “” are one to a reader; NFKC leaves them as they are.
    plain = (key_of(text, "space") for text in (question, answer, "\n".join(steps)))
    post, reply, chain = (_Text(text, _key(text)) for text in plain)
    kinds = {
        kind
        for kind, span in _spans(reply, chain)
        if _holds(reply, kind, span, (span,)) and not _holds(post, kind, span, _same(kind, span))
    }
    kinds |= _numbers(post.plain, reply.plain, chain.plain)
    kinds |= set(_shared(post.key, reply.key, chain))
    return tuple(kind for kind in KINDS if kind in kinds)


def _key(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _spans(answer: _Text, chain: _Text) -> Iterable[tuple[str, str]]:
    """The named spans of the chain, and titles and quotations of the answer that it uses without their marks."""
    quoted = _QUOTED.findall(answer.plain)
    for kind, pattern in _BY_FORM:
        for one in pattern.findall(chain.plain):
            # A short quotation that is none in the answer is a word that both use.
            if kind != "quote" or len(_key(one)) >= _SAYING or one in quoted:
                yield kind, one
    for kind, spans, least in (("title", _TITLE.findall(answer.plain), 3), ("quote", quoted, _SAYING)):
        yield from ((kind, one) for one in spans if len(_key(one)) >= least and _key(one) in chain.key)
    for word, kinds in _words().items():
        if word in chain.key:
            yield from ((kind, word) for kind in kinds)


def _holds(text: _Text, kind: str, span: str, words: Sequence[str]) -> bool:
    """Whether a span stands in a text, in any of the words for it."""
    if kind == "latin":
        return span in _LATIN.findall(text.plain)
    if kind == "placeholder":
        return span in text.plain
    return any(_key(word) and _key(word) in text.key for word in words)


def _numbers(question: str, answer: str, chain: str) -> set[str]:
    of_question = _figures(question, ordinals=True)  # 第4年 is 四年 as well
    bare = {value for value, _ in of_question} | set(_bare(question))
    shared = _figures(chain) & _figures(answer) - of_question
    known = all(value >= 10 and value in bare for value, _ in shared)  # 三十了 is 三十岁 as well
    large = {value for value in set(_bare(chain)) & set(_bare(answer)) - bare if value >= _TELLING}  # 每月还五百
    return set() if known and not large else {"number"}


def _figures(plain: str, *, ordinals: bool = False) -> set[tuple[float, str]]:
    """Figures with their units, but for one (一次, 一个人), and two or three of anything but time."""
    for pattern, unit in _SAME_UNIT:
        plain = pattern.sub(unit, plain)
    figures = set()
    for ordinal, digits, unit in _NUMBER.findall(plain):
        value = value_of(digits) if ordinals or not ordinal else None
        if value is not None and value >= (2 if re.fullmatch(_TIME, unit) else 4):
            figures.add((value, unit))
    figures |= {(0.5, unit.removeprefix("个")) for unit in re.findall("半(年|个月|个?小时)", plain)}
    return figures


def _bare(plain: str) -> Iterable[float]:
    """Figures without a unit; a place alone (百般, 千万) is none."""
    for digits in re.findall(f"[{_DIGITS}.]+", plain):
        if re.search("[0-9一二两三四五六七八九]", digits) and (value := value_of(digits)) is not None:
            yield value


def _shared(question: str, answer: str, chain: _Text) -> Iterable[str]:
    """The kinds of what stands in the runs that the chain shares with the answer and not with the question."""
    for run in _runs(chain.key, answer):
        quoted = sum(len(piece) for piece in _runs(run, question) if len(piece) > 2)  # both may quote the seeker
        if len(run) - quoted >= _COPIED:
            yield "phrase"
    for clause in _CLAUSE.findall(chain.plain):
        for run in _runs(clause, answer):
            if run not in question and (_rare(run, question) or (len(run) > 2 and _unknown(run, question))):
                yield "word"


def _runs(clause: str, answer: str) -> Iterable[str]:
    """The longest pieces of `clause` that stand in `answer`, of two characters and more; none inside another."""
    reached = 0
    for start in range(len(clause) - 1):
        end = max(start + 1, reached)
        if clause[start:end] not in answer:
            continue
        while end < len(clause) and clause[start : end + 1] in answer:
            end += 1
        if end > reached and end - start >= 2:
            reached = end
            yield clause[start:end]


def _rare(run: str, question: str) -> bool:
    """Whether a rare noun stands in the run that the question does not have; a very rare one where it is the run."""
    nouns, limit = _rare_nouns(), _RARE if len(run) > 2 else _VERY_RARE
    return any(
        nouns.get(word := run[start:end], limit) < limit and word not in question
        for start in range(len(run) - 1)
        for end in range(start + 2, min(len(run), start + _LONGEST_WORD) + 1)
    )


def _unknown(run: str, question: str) -> bool:
    """Whether two characters stand side by side in the run that are no words, and that the question has not so."""
    return any(
        len(pair) == 2 and all(_frequencies().get(one, 0) < _RARE_CHARACTER for one in pair) and pair not in question
        for pair in map("".join, pairwise(_cut(run)))
    )


def _cut(run: str) -> list[str]:
    """The run as words, in the way that has the fewest, and of these the commonest."""
    frequencies = _frequencies()
    best: list[tuple[int, int, int]] = [(0, 0, 0)]  # of the run up to each place: words, rarity, where the last begins
    for end in range(1, len(run) + 1):
        best.append(
            min(
                (best[start][0] + 1, best[start][1] - frequencies.get(word, 0), start)
                for start in range(max(0, end - _LONGEST_WORD), end)
                if (word := run[start:end]) in frequencies or end - start == 1
            )
        )
    cut: list[str] = []
    while end := len(run):
        run, word = run[: best[end][2]], run[best[end][2] :]
        cut.insert(0, word)
    return cut


@cache
def _groups() -> dict[str, list[tuple[str, ...]]]:
    """The groups of words that mean the same, by kind. Those behind a ~ are looked for in the question alone."""
    written = lexicon("hindsight", __file__)
    return {kind: [tuple(group.split("|")) for group in written[kind].lower().split()] for kind in _GROUPED}


@cache
def _words() -> dict[str, tuple[str, ...]]:
    """Every word of a group, every public figure and every city, with its kinds."""
    from pipelines.text.pii import vocabulary

    kinds: dict[str, list[str]] = {}
    for kind, groups in _groups().items():
        for word in (word for group in groups for word in group if not word.startswith("~")):
            kinds.setdefault(word, []).append(kind)
    for people in vocabulary.lexicon("public_figures").values():
        for name in people:
            kinds.setdefault(name.lower(), []).append("person")
    for city in vocabulary.lexicon("places")["city"]:
        kinds.setdefault(city, []).append("place")
    return {word: tuple(dict.fromkeys(of_word)) for word, of_word in kinds.items()}


@cache
def _same(kind: str, word: str) -> tuple[str, ...]:
    """All words that say the same as `word`, itself included."""
    return (word, *(one.removeprefix("~") for group in _groups().get(kind, ()) if word in group for one in group))


@cache
def _rare_nouns() -> dict[str, int]:
    """Nouns of jieba's dictionary that are rare and no concept of the lexicon, with their frequencies."""
    from pipelines.text.pii.vocabulary import vocabulary

    concepts = set(lexicon("hindsight", __file__)["concept"].split())
    words = vocabulary().words.drop_nulls("frequency").select("word", "tag", "frequency")
    return {
        word: frequency
        for word, tag, frequency in words.iter_rows()
        if frequency < _RARE and len(word) > 1 and (tag or "").startswith("n") and word not in concepts
    }


@cache
def _frequencies() -> dict[str, int]:
    from pipelines.text.pii.vocabulary import vocabulary

    return dict(vocabulary().words.drop_nulls("frequency").select("word", "frequency").iter_rows())
