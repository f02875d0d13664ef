"""What a platform leaves in a text: links, mentions, topics, repost chains, emoticons, markup, stock phrases.

Works on text in unified characters (`pipelines.clean.characters`), each rule only on the rows that hold its sign. What
goes leaves a blank, so that nothing new comes together where it stood.
"""

from collections.abc import Callable
from functools import cache, partial
from html.entities import html5
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipelines.clean import characters
from pipelines.clean.characters import CLOSE, OPEN
from pipelines.clean.emoji import FACE, LYING_FACE
from pipelines.clean.lexicon import alternation, lexicon
from pipelines.clean.personal_data.placeholders import PATTERN
from pipelines.clean.script import in_both_scripts
from pipelines.clean.slices import with_rows

_ADDRESS = r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%|-]"
_LINK = (
    rf"(?i)(?-u:\b)(?:https?|ftp)[:：]/+{_ADDRESS}*|(?-u:\b)www\.{_ADDRESS}+|(?-u:\b)(?:[a-z0-9-]+\.)+"
    rf"(?:com|cn|net|org|cc|me|io|co|tv|ly|info|top|xyz|gov|edu|app|vip|club|link|im)/{_ADDRESS}*"
)

# What stands for an address or an account that has been taken away (personal_data).
_REMOVED_LINK, _REMOVED_ACCOUNT = (rf"{OPEN}{forms}\d*{CLOSE}" for forms in ("[网網]址", "[账賬][号號]"))

_NAME = r"[\p{Han}\p{Latin}\p{Nd}_-]"  # what a nickname is made of
_CHAIN = r"//\s*@[^\n]*"  # the words of others
_REPLY = rf"回[复覆復] ?@(?:{_REMOVED_ACCOUNT}|{_NAME}{{1,20}}) ?[:：]"
# A nickname ends before a blank or a colon, or it is short: whoever writes on without a blank means the words.
_MENTION = (
    rf"(?P<before>^|[^\p{{Latin}}\p{{Nd}}._@-])"
    rf"(?:@(?:{_REMOVED_ACCOUNT}[:：]?|{_NAME}{{1,20}}(?:[:：]|\s)|{_NAME}{{2,8}}\b))+"
)

# A topic of more than ten characters is rather a sentence that its writer made a heading of: it loses the signs alone.
_EDGE, _INNER = r"[^#\s。！？；，]", r"[^#\n。！？；]"
_HEADING = rf"#({_EDGE}{_INNER}{{9,38}}{_EDGE})#"
_TOPIC = (
    rf"#[^#\n]{{1,30}}\[[话話超][题題话話]\]#|#{_EDGE}{_INNER}{{0,8}}{_EDGE}#|#[\p{{Han}}\p{{Latin}}]#"
    r"|(?:(?:^|\s)#[\p{Han}\p{Latin}][\p{Han}\p{Latin}\p{Nd}_]{0,19})+(?:\s|$)"
)

_HIDDEN = r"(?is)<(script|style)\b[^<>]*>.*?</(?:script|style)\s*>|<!--.*?-->"
_BREAKS = r"(?i)</?(?:br|p|div|li|ul|ol|tr|table|h[1-6]|hr|blockquote|section|article)(?:\s[^<>]{0,500})?/?>"
_INLINE = (
    r"(?i)</?(?:a|abbr|b|big|center|cite|code|dd|del|dl|dt|em|embed|figure|font|i|iframe|img|input|ins|label|mark|noscript"
    r"|object|pre|q|s|small|span|strike|strong|sub|sup|tbody|td|th|thead|tt|u|video)(?:\s[^<>]{0,500})?/?>"
)


class _Rule(NamedTuple):
    signs: int
    """Only a row with one of these signs can hold it; 0: any row."""
    without: Callable[[pl.Series], pl.Series]


def without_artefacts(texts: pl.Series, signs: npt.NDArray[np.uint32]) -> pl.Series:
    """`texts` without what the rules find.

    Args:
        texts: Text in unified characters, the placeholders that stay between OPEN and CLOSE.
        signs: Per row what `characters.rewritten` found in it.
    """
    for rule in _rules():
        rows = np.flatnonzero(signs & rule.signs)
        if rule.signs == 0:
            texts = rule.without(texts)
        elif len(rows):
            texts = with_rows(texts, rows, rule.without(texts.gather(rows)))
    return texts


def enclosed(texts: pl.Series) -> pl.Series:
    """`texts` with each placeholder between OPEN and CLOSE instead of brackets."""
    return texts.str.replace_all(_placeholder(), f"{OPEN}${{1}}{CLOSE}")


@cache
def _placeholder() -> str:
    """A placeholder, its words in a group; one in Traditional Chinese will be one as soon as it is converted."""
    return rf"\[({in_both_scripts(PATTERN[2:-2])})\]"


@cache
def _rules() -> tuple[_Rule, ...]:
    return (
        _Rule(characters.BRACKET, enclosed),
        _Rule(characters.AMPERSAND, _unescaped),
        _Rule(characters.LESS, _without_markup),
        _Rule(characters.SLASH | characters.LATIN, _without_links),
        _Rule(characters.SPARED, lambda texts: texts.str.replace_all(_REMOVED_LINK, " ")),
        _Rule(characters.AT, _without_mentions),
        _Rule(characters.HASH, _without_topics),
        _Rule(characters.BRACKET, lambda texts: texts.str.replace_all(_pictures_and_codes(), " ")),
        _Rule(characters.FACE, lambda texts: texts.str.replace_all(FACE, " ")),
        _Rule(characters.LYING, lambda texts: texts.str.replace_all(LYING_FACE, " ")),
        _Rule(0, _without_stock_phrases),
        _Rule(characters.TRADITIONAL, partial(_without_stock_phrases, traditional=True)),
    )


def _without_links(texts: pl.Series) -> pl.Series:
    rows = texts.str.contains(r"/|(?i:www)\.").arg_true()
    return with_rows(texts, rows, texts.gather(rows).str.replace_all(_LINK, " "))


def _without_mentions(texts: pl.Series) -> pl.Series:
    return texts.str.replace_all(_CHAIN, " ").str.replace_all(_REPLY, " ").str.replace_all(_MENTION, "${before} ")


def _without_topics(texts: pl.Series) -> pl.Series:
    return texts.str.replace_all(_TOPIC, " ").str.replace_all(_HEADING, " ${1} ")


@cache
def _pictures_and_codes() -> str:
    found = lexicon("artefacts")
    pictures = in_both_scripts(alternation(found["pictures"]["names"].split()))
    return rf"\[(?:{pictures}|\p{{Han}}{{1,4}}R)\]|{found['markup']['anywhere']}"


def _without_stock_phrases(texts: pl.Series, *, traditional: bool = False) -> pl.Series:
    words, whole, end = _stock_phrases(traditional)
    rows = texts.str.contains(words).arg_true()
    return with_rows(texts, rows, texts.gather(rows).str.replace_all(whole, "").str.replace_all(end, "${mark}"))


@cache
def _stock_phrases(traditional: bool) -> tuple[str, str, str]:
    """The words without which there is no phrase; the phrases that are a whole line, and those that end one.

    `traditional`: in both scripts, for what is a phrase after the conversion should be one before. Patterns of so many
    forms are slow, so they are for texts alone that hold a Traditional character.
    """
    groups = lexicon("artefacts")["stock"].values()
    words = alternation(word for group in groups for word in group["words"])
    whole = f"(?m)^ ?(?:{alternation(group['lines'] for group in groups)})$"
    ends = alternation(group["ends"] for group in groups if "ends" in group)
    end = rf"(?m)(?P<mark>^|[ …，。！？；、）”])(?:{ends})$"
    if traditional:
        return in_both_scripts(words), in_both_scripts(whole), in_both_scripts(end)
    return words, whole, end


def _unescaped(texts: pl.Series) -> pl.Series:
    """Entities as the characters they stand for: &nbsp; &#39; &amp;lt;"""
    once = texts.str.replace_all(r"&(?i:amp;|#0*38;|#x0*26;)+", "&")
    entity = r"&(?:#[0-9]{1,7};|#[xX][0-9a-fA-F]{1,6};|[a-zA-Z][a-zA-Z0-9]{1,30};|nbsp|lt|gt|quot)"
    found = once.str.extract_all(entity).explode(empty_as_null=False).unique(maintain_order=True).to_list()
    # Of two that begin together the longer one counts: &lt; before &lt.
    characters = {one: _character(one) for one in sorted(found, key=len, reverse=True)}
    return once.str.replace_many(list(characters), list(characters.values()), leftmost=True) if characters else once


def _character(entity: str) -> str:
    """What an entity stands for; itself where there is none of this name."""
    if not entity.startswith("&#"):
        return html5.get(entity[1:]) or html5.get(f"{entity[1:]};") or entity
    digits = entity[2:-1]
    code = int(digits[1:], 16) if digits[0] in "xX" else int(digits)
    return " " if code > 0x10FFFF or 0xD800 <= code < 0xF900 else chr(code)  # no surrogate, no OPEN


def _without_markup(texts: pl.Series) -> pl.Series:
    return texts.str.replace_all(_HIDDEN, " ").str.replace_all(_BREAKS, "\n").str.replace_all(_INLINE, "")
