"""Expressions that stand for each other (`lexicons/exchange.<lang>.toml`), and where in a line they may be exchanged.

Surface only. What is quoted, bracketed, counted, a fact, or denied stays as it is; a word inside another is none.
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from pipelines.llm.language import Lang
from pipelines.rewrite.facts import spans
from pipelines.rewrite.rules.segments import words
from pipelines.text.finder import alternatives, straight

_LEXICONS = Path(__file__).parent / "lexicons"
_MEMBER = re.compile(r"([<>]?)(?:([DISC]+):)?(.+)")
# A clause begins at the beginning, and behind these; in Chinese behind a blank as well.
_CLAUSE_START = re.compile(r"(?:^|[，。！？；：、,.!?;:…~～—“”\"()（）\n]\s*|[\u3400-\u9fff]\s+)$")
BACK = 32  # characters looked back at: more than any condition of the table has
_DENIAL = {
    "zh": re.compile(r"(?:[不没别未非无勿莫]|没有)$"),
    "en": re.compile(
        r"(?:\b(?:not|no|never|without|hardly|cannot)|n't) (?:(?:really|very|too|so|that|at all) )?$", re.IGNORECASE
    ),
}
_KEPT = re.compile(
    r"“[^”\n]*”|「[^」\n]*」|『[^』\n]*』|《[^》\n]*》|‘[^’\n]*’|\"[^\"\n]*\"|\[[^\]\n]*\]|【[^】\n]*】|（[^）\n]*）|\([^)\n]*\)|<[^>\n]*>"
    r"|https?://\S+"
)


@dataclass(frozen=True, slots=True)
class Member:
    """One expression of a group: whose manner it is (none: anybody's), whether it is looked for, and written."""

    text: str
    manners: str
    found: bool
    written: bool


@dataclass(frozen=True, slots=True)
class Group:
    """Expressions that stand for each other, and the conditions under which they do."""

    members: tuple[Member, ...]
    start: bool
    who: tuple[str, ...]
    before: re.Pattern[str] | None
    after: re.Pattern[str] | None
    not_before: re.Pattern[str] | None
    not_after: re.Pattern[str] | None

    def fits(self, text: str, start: int, end: int, who: str) -> bool:
        """Whether `text[start:end]` of a line of `who` may be exchanged."""
        head = partial(_head, text, start)
        return (
            (not self.who or who in self.who)
            and (not self.start or head(_CLAUSE_START))
            and (self.before is None or head(self.before))
            and (self.not_before is None or not head(self.not_before))
            and (self.after is None or bool(self.after.match(text, end)))
            and (self.not_after is None or not self.not_after.match(text, end))
        )


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a line where `text[start:end]` may be exchanged for any of `options`."""

    start: int
    end: int
    found: Member
    options: tuple[Member, ...]


def sites(text: str, lang: Lang, who: str) -> list[Site]:
    """The places of a line where something may be exchanged, in order; none touches another."""
    kept = bytearray(len(text))
    for begin, stop in [*((one.start(), one.end()) for one in _KEPT.finditer(text)), *spans(text, lang)]:
        kept[begin:stop] = b"\1" * (stop - begin)
    text = _folded(text) if lang == "en" else text
    borders = _borders(text) if lang == "zh" else None
    found: list[Site] = []
    reached = 0
    for start, end in _candidates(text, lang):
        if start < reached or any(kept[start:end]):
            continue
        if borders is not None and not borders.issuperset((start, end)):
            continue
        if _head(text, start, _DENIAL[lang]):
            continue
        if site := _site(text, start, end, who, lang):
            found.append(site)
            reached = end
    return found


def _head(text: str, start: int, pattern: re.Pattern[str]) -> bool:
    """Whether a pattern that ends where `start` is stands there."""
    return pattern.search(text, max(0, start - BACK), start) is not None


def _candidates(text: str, lang: Lang) -> list[tuple[int, int]]:
    """Where expressions of the table stand, overlapping ones too: at each place the longest first."""
    pattern, by_length = _pattern(lang)
    places: list[tuple[int, int]] = []
    at = 0
    while hit := pattern.search(text, at):
        start = hit.start()
        places += [
            (start, start + length)
            for length in by_length[text[start]]
            if text[start : start + length] in _table(lang) and _word_ends(text, start + length, lang)
        ]
        at = start + 1
    return places


def _word_ends(text: str, end: int, lang: Lang) -> bool:
    return lang == "zh" or not (text[end : end + 1].isalnum() or text[end : end + 1] == "_")


def _folded(text: str) -> str:
    """English in small letters with straight apostrophes, character for character."""
    return "".join(low if len(low := one.lower()) == 1 else one for one in straight(text))


def _site(text: str, start: int, end: int, who: str, lang: Lang) -> Site | None:
    """The site, with the options of all groups whose conditions hold there."""
    options: dict[str, Member] = {}
    said: Member | None = None
    for group, member in _table(lang)[text[start:end]]:
        if group.fits(text, start, end, who):
            said = said or member
            options |= {one.text: one for one in group.members if one.written and one.text != member.text}
    return Site(start, end, said, tuple(options.values())) if said and options else None


@lru_cache(maxsize=1 << 12)  # a line is put in other words once for each variant
def _borders(text: str) -> frozenset[int]:
    """Where Chinese words begin and end."""
    ends = list(accumulate(len(word) for word in words(text)))
    return frozenset([0, *ends])


# --- the table


@cache
def lexicon(lang: Lang) -> dict[str, Any]:
    """The whole table of a language."""
    return tomllib.loads((_LEXICONS / f"exchange.{lang}.toml").read_text(encoding="utf-8"))


@cache
def groups(lang: Lang) -> tuple[Group, ...]:
    """The groups of a language, in the order of the table."""
    return tuple(_group(row) for row in lexicon(lang)["exchange"])


def _group(row: dict[str, str]) -> Group:
    return Group(
        members=tuple(_member(one) for one in row["words"].split(" / ")),
        start=row.get("at") == "start",
        who=tuple(row.get("who", "").split()),
        before=_guard(row.get("before"), behind=True),
        after=_guard(row.get("after")),
        not_before=_guard(row.get("not_before"), behind=True),
        not_after=_guard(row.get("not_after")),
    )


def _member(written: str) -> Member:
    found = _MEMBER.fullmatch(written)
    assert found is not None, f"no member of a group: {written!r}"
    return Member(found[3], found[2] or "", found[1] != ">", found[1] != "<")


def _guard(pattern: str | None, *, behind: bool = False) -> re.Pattern[str] | None:
    if pattern is None:
        return None
    return re.compile(f"(?:{pattern})$" if behind else pattern, re.IGNORECASE)


@cache
def _table(lang: Lang) -> dict[str, list[tuple[Group, Member]]]:
    """By each expression that is looked for, the groups that it is of."""
    table: dict[str, list[tuple[Group, Member]]] = {}
    for group in groups(lang):
        for member in group.members:
            if member.found:
                table.setdefault(member.text.lower(), []).append((group, member))
    return table


@cache
def _pattern(lang: Lang) -> tuple[re.Pattern[str], dict[str, Sequence[int]]]:
    """Where any expression begins, and the lengths of those that begin with a character, the longest first."""
    words = _table(lang)
    lengths: dict[str, set[int]] = {}
    for word in words:
        lengths.setdefault(word[0], set()).add(len(word))
    return re.compile(alternatives(words, lang)), {first: sorted(of, reverse=True) for first, of in lengths.items()}


@cache
def canonical(lang: Lang) -> dict[str, str]:
    """By each expression one that stands for all of its group: words that were exchanged count as shared."""
    of: dict[str, str] = {}
    for group in groups(lang):
        first = next((of[one.text] for one in group.members if one.text in of), group.members[0].text)
        for member in group.members:
            of.setdefault(member.text, first)
    return of
