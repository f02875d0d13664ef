"""Which candidates of `names` are private persons: weighed by what speaks for each, and only with a witness.

In real posts one text in fifty names anybody, so that nearly all candidates are words (刚治, 甜甜, 我们叫先垫着). A
logistic regression over the candidate and its context says how likely it is a name; `tools/train_persons.py` fits it. A
name that nothing announces is somebody known to all more often than a private person, whatever it looks like, so
evidence is asked for besides.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import chain
from math import exp
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipelines.text.pii import vocabulary as voc
from pipelines.text.pii.context import Context, context, crossing, dictionary, is_name
from pipelines.text.pii.spans import characters

WEIGHTS = Path(__file__).parent / "lexicons" / "persons.json"
_HAN = re.compile("[\u4e00-\u9fff]")
_BINS = (1, 20, 200, 2000)  # of frequencies
_RANKS = (10, 30, 60, 120)  # of surnames
_SIDE = 12  # characters, in which a film or an author makes somebody public
_LONG = 5_000  # characters of a text of which all pieces are counted at once
_KIN = "哥姐姨叔伯婶嫂爷奶"
_UNUSUAL = 90  # the rank of a surname from which on 小X is a word rather than a person
_ANNOUNCED = frozenset({"cue", "person", "me", "titled"})
_SAID, _BY_CUE, _BY_ROLE, _PERHAPS, _LIKELY, _SURE, _NEVER = (
    0.0,
    0.1,
    0.2,
    0.4,
    0.7,
    0.9,
    2.0,
)  # how likely, by how much else speaks for it


class Name(NamedTuple):
    """A candidate, taken apart."""

    core: str
    title: str
    shape: str  # full, compound, called, doubled, surname, latin, other


@dataclass(frozen=True)
class Candidate:
    """A candidate, its place in a text, and what was seen of it."""

    text: str
    start: int  # characters
    end: int
    name: Name
    context: Context

    @property
    def span(self) -> str:
        """The candidate as it stands in the text."""
        return self.text[self.start : self.end]

    @cached_property
    def evidence(self) -> frozenset[str]:
        """Who says that it is a person: introduced, signed, mine, cue, person, title, me, speaks, titled, many; and
        against it: public, in public.
        """
        found = set[str]()
        left, right = self.context.left, self.context.right
        signs = _lists().signs
        for name, side in (
            ("introduced", left),
            ("mine", left),
            ("cue", left),
            ("person", left),
            ("met", left),
            ("meets", right),
            ("speaks", right),
            ("titled", right),
        ):
            if signs[name].search(side):
                found.add({"met": "me", "meets": "me"}.get(name, name))
        if signs["signed"].search(left) and not self.text[self.end : self.end + _SIDE].strip():
            found.add("signed")
        if self.name.title:
            found.add("title")
        if len(self.name.core) > 1 and _times(self.text, self.name.core) > 1:
            found.add("many")
        far = self.text[max(0, self.start - 2 * _SIDE) : self.start] + "\n" + self.text[self.end : self.end + 2 * _SIDE]
        if (
            self.name.core in _lists().public
            or _times(self.text, f"《{self.name.core}")
            or signs["famous"].search(left)
        ):
            found.add("public")
        if signs["work"].search(far):
            found.add("in public")
        return frozenset(found)


class _Lists(NamedTuple):
    rank: dict[str, int]
    given: dict[str, str]
    titles: tuple[str, ...]
    beside: dict[str, list[tuple[str, frozenset[str]]]]
    public: frozenset[str]
    foreign: frozenset[str]
    signs: dict[str, re.Pattern[str]]


@cache
def _lists() -> _Lists:
    surnames, given, names = voc.lexicon("surnames"), voc.lexicon("given_names"), voc.lexicon("names")
    signs = voc.signs("persons")
    left, cue, right = names["left"], names["cue"], names["right"]
    before = {"cue": cue["named"] + cue["call"], "person": left["person"], "weak": cue["weak"], "verb": left["verb"]}
    behind = {"speech": right["speech"], "end": right["end"], "word": right["word"]}
    titles = sorted(names["title"]["long"], key=len, reverse=True) + names["title"]["short"]
    return _Lists(
        {surname: rank for rank, surname in enumerate(surnames["single"])},
        dict.fromkeys(given["usual"], "usual") | dict.fromkeys(given["frequent"], "frequent"),
        tuple(titles),
        {
            side: [(name, frozenset(words)) for name, words in lists.items()]
            for side, lists in (("before", before), ("behind", behind))
        },
        frozenset(one for part in voc.lexicon("public_figures").values() for one in part),
        frozenset(given["foreign"]),
        {name: re.compile(pattern.replace("{who}", signs["who"])) for name, pattern in signs.items()},
    )


def candidate(text: str, start: int, end: int) -> Candidate:
    """The candidate at these characters of `text`."""
    return Candidate(text, start, end, taken_apart(text[start:end]), context(text, start, end))


def taken_apart(span: str) -> Name:
    """The name, the form of address behind it, and how it is made."""
    title = next((one for one in _lists().titles if span.endswith(one) and len(span) > len(one)), "")
    title = title if _HAN.match(span) else ""
    core = span.removesuffix(title)
    return Name(core, title, _shape(core))


def _shape(core: str) -> str:
    surnames = voc.lexicon("surnames")
    shapes = {
        "latin": not _HAN.match(core),
        "called": len(core) == 2 and core[0] in voc.lexicon("names")["title"]["before"],
        "doubled": len(core) == 2 and core[0] == core[1],
        "surname": core in _lists().rank,
        "compound": core[:2] in surnames["compound"],
        f"full{len(core)}": core[0] in _lists().rank and len(core) in (2, 3),
    }
    return next((shape for shape, fits in shapes.items() if fits), "other")


# What is seen of a candidate


def features(one: Candidate) -> set[str]:
    """What is seen of a candidate; each also beside its shape."""
    plain = set(_made(one)) | set(_read(one)) | set(_beside(one)) | {f"evidence {sign}" for sign in one.evidence}
    shape = one.name.shape + ("+title" if len(one.name.title) > 1 else "+t" if one.name.title else "")
    return {"any", shape} | plain | {f"{shape}: {feature}" for feature in plain if not feature.startswith("beside")}


def _made(one: Candidate) -> Iterator[str]:
    core, title, shape = one.name
    rank, given = _lists().rank, _lists().given
    parts = core[1:] if shape.startswith(("full", "called")) else core
    yield "characters " + " ".join(given.get(character, "rare") for character in parts[:3])
    surname = core[1] if shape == "called" else core[0]
    yield f"surname {_bin(rank.get(surname, 999), _RANKS)}"
    if surname in voc.lexicon("surnames")["ordinary"] + voc.lexicon("surnames")["rare"]:
        yield "surname is a word"
    if title:
        yield f"title {title}"
    for span in dict.fromkeys((core, one.span)):
        if word := dictionary().get(span):
            yield f"listed {word.tag[:2]} {_bin(word.frequency, _BINS)}"
            if word.tag[:2] != "nr":
                yield "listed word"
    if {core, one.span} & set(voc.lexicon("ordinary_words")["words"]):
        yield "ordinary"
    if len(core) > 1:
        yield f"times {_times(one.text, core)}"


def _read(one: Candidate) -> Iterator[str]:
    around = one.context
    yield f"margin {min(14, int(around.margin // 3))}"
    yield "borders " + "".join(str(int(border)) for border in around.borders)
    yield f"words inside {min(4, len(around.words_inside))}"
    for word in around.words_inside:
        if len(word) > 1 and (known := dictionary().get(word)):
            yield f"inside {known.tag[:2]}"
            yield f"inside {_bin(known.frequency, _BINS)}"
    over_start, over_end = crossing(one.text, one.start, one.end)
    yield f"over start {_bin(over_start, _BINS)}"
    yield f"over end {_bin(over_end, _BINS)}"


def _beside(one: Candidate) -> Iterator[str]:
    before = one.context.words_before[-1] if one.context.words_before else ""
    behind = one.context.words_behind[0] if one.context.words_behind else ""
    classes = _class(before, "before"), _class(behind, "behind")
    yield f"before {classes[0]}"
    yield f"behind {classes[1]}"
    yield f"between {classes[0]} and {classes[1]}"
    yield f"beside {before}|"
    yield f"beside |{behind}"


def _times(text: str, piece: str) -> int:
    """How often a piece stands in a text, three times at most: more says nothing more."""
    if len(text) > _LONG:  # it may hold as many candidates as characters
        return min(3, _pieces(text, len(piece))[piece])
    times, at = 0, text.find(piece)
    while at >= 0 and times < 3:
        times, at = times + 1, text.find(piece, at + 1)
    return times


@lru_cache(maxsize=16)
def _pieces(text: str, length: int) -> Counter[str]:
    """All pieces of a text that are so long, counted once."""
    return Counter(text[place : place + length] for place in range(len(text) - length + 1))


def _class(word: str, side: str) -> str:
    if not word:
        return "edge"
    if not word[0].isalnum():
        return "sign"
    listed = (name for name, words in _lists().beside[side] if word in words)
    known = dictionary().get(word)
    return next(listed, f"tag {known.tag[:1]}" if known else "unknown")


def _bin(number: int, bounds: tuple[int, ...]) -> int:
    return sum(number >= bound for bound in bounds)


# What follows from it


@cache
def weights() -> dict[str, float]:
    """The weight of each feature, and `bias`; the number of posts behind each stays in the file."""
    return {feature: weight for feature, (weight, _) in json.loads(WEIGHTS.read_text(encoding="utf-8")).items()}


def probability(one: Candidate) -> float:
    """How likely the candidate is a name."""
    known = weights()
    return 1 / (1 + exp(-known["bias"] - sum(known.get(feature, 0.0) for feature in features(one))))


def is_person(one: Candidate, probability: float) -> bool:
    """Whether so likely a candidate has the evidence to be a private person."""
    signs = one.evidence
    # Whoever is introduced is called so, whatever the name looks like; the weights have seen few that look like none.
    return "introduced" in signs or (not is_ruled_out(one) and probability >= _least(one, signs))


def is_public(one: Candidate) -> bool:
    """Whether it is somebody known to all."""
    signs = one.evidence
    return "public" in signs or ("in public" in signs and "cue" not in signs)


def is_ruled_out(one: Candidate) -> bool:
    """Whether it is somebody known to all, or a word in whose place no person stands."""
    signs = one.evidence
    shape, core, title = one.name.shape, one.name.core, one.name.title
    return (
        is_public(one)
        # 小群, 小贷; 小马|达
        or (shape == "called" and not signs & _ANNOUNCED and (_is_unusual(core[1]) or _is_part_of_a_word(one)))
        or (shape == "other" and len(title) == 1 and title not in _KIN)  # 志工
        or (shape == "latin" and not signs & {"cue", "person"} and core not in _lists().foreign)  # Excel
    )


def _least(one: Candidate, signs: frozenset[str]) -> float:
    """How likely a name must be: the less, the more says so and the more its characters are those of a name."""
    name, met_again = one.name, bool(signs & {"speaks", "many"})
    if ("mine" in signs and "me" in signs) or ("signed" in signs and name.shape.startswith(("full", "compound"))):
        return _SAID
    if signs & _ANNOUNCED:
        known = dictionary().get(name.core)
        if not name.shape.startswith(("full", "compound")) or (known and not is_name(known)):
            return _PERHAPS
        return _BY_CUE if "cue" in signs else _BY_ROLE
    if name.title:
        return _SURE if _is_word(name.core) else _PERHAPS
    if name.shape in ("called", "surname"):
        return _PERHAPS if met_again else _LIKELY
    return _LIKELY if name.shape in ("doubled", "latin") and met_again else _NEVER


def _is_unusual(surname: str) -> bool:
    return _lists().rank.get(surname, _UNUSUAL) >= _UNUSUAL


def _is_word(surname: str) -> bool:
    listed = voc.lexicon("surnames")
    return surname in listed["ordinary"] or surname in listed["rare"]


def _is_part_of_a_word(one: Candidate) -> bool:
    return crossing(one.text, one.start, one.end)[1] >= _BINS[1]


def persons_in(names: pl.DataFrame, texts: pl.Series) -> pl.DataFrame:
    """Of the candidates `names` (SPANS) in folded `texts` those that are private persons."""
    places: dict[int, list[tuple[int, int]]] = {}
    for row, start, end in names.select("row", "start", "end").iter_rows():
        places.setdefault(row, []).append((start, end))
    private = {(row, *span) for row, of_row in places.items() for span in _private(texts[row], of_row)}
    kept = [one in private for one in names.select("row", "start", "end").iter_rows()]
    return names.filter(pl.Series(kept, dtype=pl.Boolean))


def _private(text: str, places: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Of the candidates in a text, in bytes, those that are private persons."""
    if not _HAN.search(text):
        yield from places  # English sentences have rules of their own, which ask for a witness
        return
    at = characters(text, chain.from_iterable(places))
    for first, last in places:
        one = candidate(text, at[first], at[last])
        if is_person(one, probability(one)):
            yield first, last
