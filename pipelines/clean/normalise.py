"""A text as it is stored: one form of every character, without what a platform left in it (links, mentions, markup …).

Each rule works on text in unified characters, only on the rows that hold its sign. What goes leaves a blank.
"""

from collections.abc import Callable
from functools import cache, partial
from html.entities import html5
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipelines.clean import characters
from pipelines.clean.characters import CLOSE, MARK, OPEN, rewritten
from pipelines.text.characters import FACE, LYING_FACE
from pipelines.text.chunks import in_slices, with_rows
from pipelines.text.lexicon import alternation, lexicon
from pipelines.text.pii.placeholders import PATTERN
from pipelines.text.script import in_both_scripts

Profile = Literal["default", "paper"]

# How often a text is looked at again after a rule has changed it. Entities in entities are all that needs more than
# two or three; a text that was made to need more loses every sign that may start something.
_ROUNDS = 12
_SIGNS = r"[!-/:-@\[-`{-~]"


def normalised(text: pl.Expr, profile: Profile = "default") -> pl.Expr:
    """`text` without artefacts, in unified characters; normalising twice changes nothing.

    Args:
        text: Strings. A null stays null, what is nothing but artefacts becomes an empty string.
        profile: `default` keeps what carries meaning (MBTI, 5mg, 996, English words); `paper` keeps Chinese
            characters, their punctuation and line ends alone (M §2). Placeholders stay in both.
    """
    return text.map_batches(
        lambda texts: in_slices(lambda some: _normalised(some, paper=profile == "paper"), texts),
        return_dtype=pl.String,
        is_elementwise=True,
    )


def _normalised(texts: pl.Series, *, paper: bool) -> pl.Series:
    """A slice of the column."""
    raw = texts.str.contains(f"[{OPEN}{CLOSE}]").arg_true()
    own = with_rows(texts, raw, texts.gather(raw).str.replace_many([OPEN, CLOSE], ["", ""]))
    spared = own.str.contains("[", literal=True).arg_true()
    made = _settled(with_rows(own, spared, enclosed(own.gather(spared))), paper=paper)
    enclosing = made.str.contains(OPEN, literal=True).arg_true()
    made = with_rows(made, enclosing, made.gather(enclosing).str.replace_many([OPEN, CLOSE], ["[", "]"]))
    if texts.null_count():
        made = with_rows(made, texts.is_null().arg_true(), pl.Series([None], dtype=pl.String))
    return made.alias(texts.name)


def _settled(texts: pl.Series, *, paper: bool) -> pl.Series:
    """All rules until none changes anything."""
    made = _without_artefacts(texts)
    rows = np.arange(len(texts)) if paper else np.arange(0)
    for _ in range(_ROUNDS):
        if len(rows) == 0:
            break
        bare, _ = rewritten(made.gather(rows), paper=True)
        again = _without_artefacts(bare)
        made = with_rows(made, rows, again)
        rows = rows[(again != bare).to_numpy()]
    return made


def _without_artefacts(texts: pl.Series) -> pl.Series:
    """Unified characters and no artefact: again and again on the rows that the last round has changed."""
    made, rows = texts, np.arange(len(texts))
    for round_ in range(_ROUNDS + 1):
        some = made.gather(rows) if round_ else made
        if round_ == _ROUNDS:
            some = some.str.replace_all(_SIGNS, " ")
        unified, signs = rewritten(some)
        marked = np.flatnonzero(signs & MARK)
        composed = with_rows(unified, marked, unified.gather(marked).str.normalize("NFC"))
        cut = without_artefacts(composed, signs)
        made = with_rows(made, rows, cut) if round_ else cut
        rows = rows[(cut != unified).to_numpy()]
        if len(rows) == 0:
            break
    return made


_ADDRESS = r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%|-]"
_LINK = (
    rf"(?i)(?-u:\b)(?:https?|ftp)[:：]/+{_ADDRESS}*|(?-u:\b)www\.{_ADDRESS}+|(?-u:\b)(?:[a-z0-9-]+\.)+"
    rf"(?:com|cn|net|org|cc|me|io|co|tv|ly|info|top|xyz|gov|edu|app|vip|club|link|im)/{_ADDRESS}*"
)

# What stands for an address or an account that has been taken away (personal_data).
_REMOVED_LINK, _REMOVED_ACCOUNT = (rf"{OPEN}{forms}\d*{CLOSE}" for forms in ("[网網]址", "[账賬][号號]"))

_NAME = r"[\p{Han}\p{Latin}\p{Nd}_-]"  # what a nickname is made of
_VERB = "\ue002"  # stands for an @ that is a verb; private use, so no text holds it
_WORDS = "我你您他她它们們了的是在都也就没沒不说說吗嗎呢吧啊"  # what tells words from a name
# The words of others, and the name of whom one answers.
_QUOTED = rf"//\s*[@{_VERB}][^\n]*|回[复覆復] ?@(?:{_REMOVED_ACCOUNT}|{_NAME}{{1,20}}) ?[:：]"
_ENDED = rf"@(?:{_REMOVED_ACCOUNT}[:：]?|(?:{_NAME}{{1,12}}|[\p{{Latin}}\p{{Nd}}_-]{{1,30}})(?:[:：]|\s))"
_SHORT = rf"@(?:\p{{Han}}{{1,8}}[_-]{_NAME}{{1,12}}|[\p{{Han}}--[{_WORDS}]]{{2,3}})"
_LAST = rf"@[{_NAME}--[{_WORDS}]]{{2,8}}"
_ACCOUNT = r"@[A-Za-z_][A-Za-z0-9_-]{2,29}"
# A mention ends before a blank or a colon. A text that goes on without one may mean the words, 我@班长没理我. There an
# account has Latin letters or a joiner; or a name is short, or the last of the line, and no verb stands before it.
_MENTION = "|".join(
    (
        rf"(?P<before>^|[^\p{{Latin}}\p{{Nd}}._@-])(?:{_ENDED})+",
        rf"(?P<apart>^|[^\p{{Han}}\p{{Latin}}\p{{Nd}}._@-])"
        rf"(?:(?:{_SHORT})+(?P<after>[^\p{{Han}}\p{{Latin}}\p{{Nd}}._-]|$)|(?:{_LAST})+(?P<end>\n|$))",
        rf"(?P<ahead>^|[^\p{{Latin}}\p{{Nd}}._@-])(?:{_ACCOUNT})+(?P<behind>[^A-Za-z0-9._-]|$)",
    )
)

# # behind a letter or a digit is a sharp (C#), or a number's (3#楼); behind a longer word a topic may begin.
_BEFORE_TOPIC = r"(?P<before>^|[^\p{Latin}\p{Nd}]|\p{Latin}{2})"
_TAGGED = r"#[^#\n]{1,30}\[[话話超][题題话話]\]#"
_HASHTAG = r"#(?:\p{Latin}[\p{Latin}\p{Nd}_]{1,29}|[\p{Han}\p{Latin}][\p{Han}\p{Latin}\p{Nd}_]{1,9})"


def _enclosed_by_signs(inner: str) -> str:
    """What stands between two #, `inner` but for its ends: neither a number alone nor one item of #1…#2…"""
    end, word = r"[^#\s。！？；，]", r"[^#\s。！？；，\p{Nd}]"
    return (
        rf"{_BEFORE_TOPIC}"
        rf"(?:#(?P<words>{word}{inner}{end}|\p{{Han}})#|#(?P<numbered>\p{{Nd}}{inner}{word})#(?P<after>\P{{Nd}}|$))"
    )


# More than ten characters, or two clauses, are rather a sentence that its writer made a heading of: it loses the signs
# alone.
_INNER = r"[^#\n。！？；，]{0,8}"
_TOPIC = rf"{_enclosed_by_signs(_INNER)}|{_TAGGED}|(?:(?:^|\s){_HASHTAG})+(?:\s|$)"
_HEADING = _enclosed_by_signs(r"(?:[^#\n。！？；]{9,38}|[^#\n。！？；]{0,8}，[^#\n。！？；]{0,8})")

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
    """`texts` without the artefacts of all rules.

    `texts` and `signs` are those of `characters.rewritten`, the placeholders that stay between OPEN and CLOSE.
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
        _Rule(characters.BRACKET, _without_pictures_and_codes),
        _Rule(characters.FACE, lambda texts: texts.str.replace_all(FACE, " ")),
        _Rule(characters.LYING, lambda texts: texts.str.replace_all(LYING_FACE, " ")),
        _Rule(0, _without_stock_phrases),
        _Rule(characters.TRADITIONAL, partial(_without_stock_phrases, traditional=True)),
    )


def _without_links(texts: pl.Series) -> pl.Series:
    rows = texts.str.contains(r"/|(?i:www)\.").arg_true()
    return with_rows(texts, rows, texts.gather(rows).str.replace_all(_LINK, " "))


def _without_mentions(texts: pl.Series) -> pl.Series:
    prose = in_both_scripts(alternation(lexicon("artefacts", __file__)["mentions"]["prose"].split()))
    made = texts.str.replace_all(f"@(?P<words>{prose})", f"{_VERB}${{words}}").str.replace_all(_QUOTED, " ")
    made = made.str.replace_all(_MENTION, "${before}${apart}${ahead} ${after}${behind}${end}")
    return made.str.replace_all(_VERB, "@", literal=True)


def _without_topics(texts: pl.Series) -> pl.Series:
    made = texts.str.replace_all(_TOPIC, "${before} ${after}")
    return made.str.replace_all(_HEADING, "${before} ${words}${numbered} ${after}")


def _without_pictures_and_codes(texts: pl.Series) -> pl.Series:
    anywhere, short, closing = _pictures_and_codes()
    rows = texts.str.contains("[/", literal=True).arg_true()
    rows = rows.filter(texts.gather(rows).str.contains(closing)) if len(rows) else rows
    if len(rows):
        texts = with_rows(texts, rows, texts.gather(rows).str.replace_all(short, " "))
    return texts.str.replace_all(anywhere, " ")


@cache
def _pictures_and_codes() -> tuple[str, str, str]:
    """Pictures and long codes; the short codes, and those of them that close something: without one, [b] is none."""
    entries = lexicon("artefacts", __file__)
    names, words = (in_both_scripts(alternation(entries["pictures"][group].split())) for group in ("names", "words"))
    sure, codes = rf"{names}|\p{{Han}}{{1,4}}R", entries["markup"]
    picture = rf"\[(?:{sure}|{words})\]"
    pictures = rf"{picture}(?: ?{picture})+|\[(?:{sure})\]|\[(?:{words})\](?m:$)"
    return rf"{pictures}|{codes['anywhere']}", rf"\[/?{codes['short']}\]", rf"\[/{codes['short']}\]"


def _without_stock_phrases(texts: pl.Series, *, traditional: bool = False) -> pl.Series:
    words, whole, end = _stock_phrases(traditional)
    rows = texts.str.contains(words).arg_true()
    return with_rows(texts, rows, texts.gather(rows).str.replace_all(whole, " ").str.replace_all(end, "${mark}"))


@cache
def _stock_phrases(traditional: bool) -> tuple[str, str, str]:
    """The words without which there is no phrase; those that are a whole line or that no one says; those that end one.
    `traditional`: in both scripts, for what is a phrase after the conversion should be one before. Patterns of so many
    forms are slow, so they are for texts alone that hold a Traditional character.
    """
    groups = lexicon("artefacts", __file__)["stock"].values()
    lines, ends, anywhere = (
        alternation(one[place] for one in groups if place in one) for place in ("lines", "ends", "anywhere")
    )
    words = alternation(word for group in groups for word in group["words"])
    whole = f"(?m)^ ?(?:{lines})$|{anywhere}"
    end = rf"(?m)(?P<mark>^|[ …，。！？；、）”])(?:(?:{ends}) ?)+$"
    if traditional:
        return in_both_scripts(words), in_both_scripts(whole), in_both_scripts(end)
    return words, whole, end


def _without_markup(texts: pl.Series) -> pl.Series:
    return texts.str.replace_all(_HIDDEN, " ").str.replace_all(_BREAKS, "\n").str.replace_all(_INLINE, "")


def _unescaped(texts: pl.Series) -> pl.Series:
    """Entities as the characters they stand for: &nbsp; &#39; &amp;lt;"""
    once = texts.str.replace_all(r"&(?i:amp;|#0*38;|#x0*26;)+", "&")
    entity = r"&(?:#[0-9]{1,7};|#[xX][0-9a-fA-F]{1,6};|[a-zA-Z][a-zA-Z0-9]{1,30};|nbsp|lt|gt|quot)"
    entities = once.str.extract_all(entity).explode(empty_as_null=False).unique(maintain_order=True).to_list()
    # Of two that begin together the longer one counts: &lt; before &lt.
    characters = {one: _character(one) for one in sorted(entities, key=len, reverse=True)}
    return once.str.replace_many(list(characters), list(characters.values()), leftmost=True) if characters else once


def _character(entity: str) -> str:
    """What an entity stands for; itself where there is none of this name."""
    if not entity.startswith("&#"):
        return html5.get(entity[1:]) or html5.get(f"{entity[1:]};") or entity
    digits = entity[2:-1]
    code = int(digits[1:], 16) if digits[0] in "xX" else int(digits)
    return " " if code > 0x10FFFF or 0xD800 <= code < 0xF900 else chr(code)  # no surrogate, no OPEN
