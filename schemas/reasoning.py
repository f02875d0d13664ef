"""The three reasoning formats: ECoT (M §3.1), CoE (E §3.1) and CER (C; the grammar is ours). Written, and read back.

Writer, strict reader, prompts and rewards share one `Grammar`. Verl's workers import it: it needs nothing but pydantic.

    >>> Ecot(situation="失眠", motivation="想被理解", strategy="先共情", answer="您辛苦了。").render()
    '<thinking><situation>失眠</situation><motivation>想被理解</motivation><strategy>先共情</strategy></thinking><answer>您辛苦了。</answer>'
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import Annotated, ClassVar, Literal, NamedTuple, NoReturn, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from schemas.labels import SENTIMENTS, STAGES, STRATEGIES, Label, LabelSet

Lang = Literal["zh", "en"]

Problem = Literal[
    "missing",  # neither the opening nor the closing tag is there
    "unclosed",
    "unopened",  # a closing tag that closes nothing
    "doubled",
    "out_of_order",
    "nested",  # one of the format's tags inside an element that may not hold it
    "outside",  # text between or around the tags, where only white space may stand
    "empty",
    "field",  # a field of a CER step is missing or not in its set
]


class FormatError(ValueError):
    """The first thing that breaks a format; tags are looked at before the text between them.

    `problem` is the kind, `tag` the name of the tag it is about (for "outside" the next one, or the last one).
    """

    def __init__(self, problem: Problem, tag: str, message: str) -> None:
        super().__init__(problem, tag, message)  # all three, so that it can be pickled out of a worker
        self.problem, self.tag, self.message = problem, tag, message

    def __str__(self) -> str:
        return self.message


class Tag(NamedTuple):
    """One tag as it stands in a text: `text[start:end]` is ``<name>`` or, when `closing`, ``</name>``."""

    name: str
    closing: bool
    start: int
    end: int

    def __str__(self) -> str:
        return _written(self.name, self.closing)


def tags(text: str, names: tuple[str, ...]) -> list[Tag]:
    """Every opening and closing tag out of `names` (one or more) in `text`, in order, however malformed the text is.

    A tag is exact: case counts, and ``<answer >`` or ``<answer a=1>`` is ordinary text. Linear in the text's length.
    """
    return list(each_tag(text, names))


def each_tag(text: str, names: tuple[str, ...]) -> Iterator[Tag]:
    """Yields what `tags` lists: for a text of nothing but tags the list would cost more than the search."""
    for match in _scanner(names).finditer(text):
        yield Tag(match[2], bool(match[1]), *match.span())


@lru_cache
def _scanner(names: tuple[str, ...]) -> re.Pattern[str]:
    # Nothing in it repeats, so a "<" costs at most the longest name, whatever follows it.
    return re.compile(f"<(/?)({'|'.join(map(re.escape, names))})>")


# Unicode calls these letters and signs, and they have no ink: the fillers of Hangul, the blank of Braille.
_UNSEEN = frozenset({"Zs", "Zl", "Zp", "Mn", "Mc", "Me", "Cc", "Cf", "Cs"})
_WITHOUT_INK = frozenset("\u115f\u1160\u3164\uffa0\u2800")


def blank(text: str) -> bool:
    """Whether `text` has nothing visible: white space, control and zero-width characters, marks without a letter, half
    a character. Linear in the text's length.
    """
    return all(one in _WITHOUT_INK or unicodedata.category(one) in _UNSEEN for one in set(text))


def _written(name: str, closing: bool) -> str:
    return f"</{name}>" if closing else f"<{name}>"


class Grammar:
    """Elements in a fixed order, each holding other elements, once each and in order, or a section of text.

    A text is well formed when its tags are exactly `tokens`, and its sections, and nothing else, have visible text.
    """

    def __init__(self, *tree: tuple[str, tuple[str, ...]]) -> None:
        tokens: list[tuple[str, bool]] = []
        for tag, children in tree:
            tokens.append((tag, False))
            tokens.extend((child, closing) for child in children for closing in (False, True))
            tokens.append((tag, True))
        self.tokens = tuple(tokens)
        self.names = tuple(name for name, closing in tokens if not closing)
        self.sections = frozenset(self.names) - {tag for tag, children in tree if children}

    def write(self, sections: dict[str, str]) -> str:
        """The text that holds `sections`, from tag name to text, with nothing between the tags."""
        return "".join(
            _written(name, closing) + ("" if closing else sections.get(name, "")) for name, closing in self.tokens
        )

    def read(self, text: str) -> dict[str, str]:
        """The stripped sections of `text`, from tag name to text. Raises FormatError unless it is well formed."""
        rest = each_tag(text, self.names)
        in_order: list[Tag] = []
        for place, wanted in enumerate((*self.tokens, None)):
            tag = next(rest, None)
            if wanted != (tag and (tag.name, tag.closing)):
                raise self._misfit(place, tag, rest)
            if tag is not None:
                in_order.append(tag)
        sections, end = {}, 0
        for tag in in_order:
            between = text[end : tag.start].strip()
            end = tag.end
            if tag.closing and tag.name in self.sections:
                if blank(between):
                    raise FormatError("empty", tag.name, f"<{tag.name}> is empty")
                sections[tag.name] = between
            elif between:
                raise FormatError("outside", tag.name, f"text stands outside the tags, before {tag}: {_cut(between)}")
        if after := text[end:].strip():
            last = in_order[-1]
            raise FormatError("outside", last.name, f"text stands outside the tags, after {last}: {_cut(after)}")
        return sections

    def _misfit(self, place: int, tag: Tag | None, after: Iterator[Tag]) -> FormatError:
        """Why a text, whose tags are `tokens` up to `place`, goes wrong there with `tag` and those after it."""
        rest = set() if tag is None else {(one.name, one.closing) for one in chain((tag,), after)}
        if tag is not None and (place == len(self.tokens) or self.tokens[place] in rest):
            return self._in_the_way(tag, place)
        name, closing = self.tokens[place]
        if closing:
            return FormatError("unclosed", name, f"<{name}> is never closed: there is no </{name}> after it")
        if (name, True) in rest:
            return FormatError("unopened", name, f"</{name}> closes nothing: there is no <{name}>")
        return FormatError("missing", name, f"<{name}> is missing")

    def _in_the_way(self, tag: Tag, place: int) -> FormatError:
        """Why `tag` may not stand at `place`, where the token that should do so comes later or nothing should."""
        name, closing = self.tokens[place] if place < len(self.tokens) else ("", False)
        inside = FormatError("nested", tag.name, f"{tag} stands inside <{name}>, which may not hold it")
        if closing and name in self.sections:
            return inside
        before = self.tokens[:place]
        if tag.closing and ((tag.name, False) not in before or (tag.name, True) in before):
            return FormatError("unopened", tag.name, f"{tag} closes nothing: no <{tag.name}> is open there")
        if not tag.closing and (tag.name, False) in before:
            return FormatError("doubled", tag.name, f"{tag} comes a second time")
        if closing:
            return inside
        order = ", ".join(self.names)
        return FormatError("out_of_order", name, f"<{name}> comes only after {tag}; the order is {order}")


def _cut(text: str, length: int = 40) -> str:
    return repr(text if len(text) <= length else text[:length] + "…")


ECOT = Grammar(("thinking", ("situation", "motivation", "strategy")), ("answer", ()))
COE = Grammar(("empathy_think", ("L1", "L2", "L3", "L4")), ("answer", ()))
CER = Grammar(("cer_think", ("history", "emotion", "strategy")), ("answer", ()))

# In the order in which they open. M's T (eq. 5–8) is ECOT_TAGS.
ECOT_TAGS = ECOT.names
COE_TAGS = COE.names
CER_TAGS = CER.names


class Reasoning(BaseModel):
    """Base of the three records: `parse(render(record)) == record`, always.

    Strings are stripped. An empty one, or one with a tag of the record's own format, is refused (ValidationError).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    grammar: ClassVar[Grammar]

    def render(self) -> str:
        """The record in its format, as a generator is to write it."""
        return self.grammar.write(self._sections())

    @classmethod
    def parse(cls, text: str) -> Self:
        """The record that `text` writes; white space may stand around tags. Raises FormatError for anything else."""
        return cls.model_validate(cls._values(cls.grammar.read(text)))

    def _sections(self) -> dict[str, str]:
        return self.model_dump()

    @classmethod
    def _values(cls, sections: dict[str, str]) -> dict[str, str]:
        return sections

    @field_validator("*")
    @classmethod
    def _text_that_can_be_read_back(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        if blank(text := value.strip()):
            raise ValueError("may not be empty")
        if held := tags(text, cls.grammar.names):
            raise ValueError(f"may not hold {held[0]}, a tag of its own format")
        return text


class Ecot(Reasoning):
    """Emotional chain of thought (M §3.1): the seeker's context, the need beneath it, how to support, the reply."""

    grammar = ECOT
    situation: str
    motivation: str
    strategy: str
    answer: str


class Coe(Reasoning):
    """Chain of empathy (E §3.1): emotions and context, causes and beliefs, intent, response strategy; the reply."""

    grammar = COE
    L1: str
    L2: str
    L3: str
    L4: str
    answer: str


class CerField(NamedTuple):
    """A field on the first line of a CER step: where `Cer` keeps it, its name there, and its set (None: any word)."""

    attribute: str
    name: Label
    labels: LabelSet | None

    def read(self, word: str) -> str | None:
        """`word` as the record keeps it, or None if it may not stand there."""
        if self.labels is None:
            return None if blank(word) else word
        label = self.labels.find(word)
        return label.en if label else None

    def write(self, value: str, lang: Lang) -> str:
        """A record's `value` in `lang`."""
        label = self.labels.find(value) if self.labels else None
        return _in(lang, label) if label else value

    def allowed(self, lang: Lang) -> str:
        """What may stand there, for people: ``积极|消极|中性``."""
        return "|".join(_in(lang, label) for label in self.labels.labels) if self.labels else "…"


_INTENSITIES = LabelSet(*(Label(str(n), str(n)) for n in range(1, 6)))

# C, steps 1–3; the rest of a step is free text, which the record keeps in `<step>_reasoning`.
CER_STEPS: dict[str, tuple[CerField, ...]] = {
    "history": (CerField("stage", Label("Stage", "阶段"), STAGES),),
    "emotion": (
        CerField("sentiment", Label("Sentiment", "情感"), SENTIMENTS),
        CerField("emotion", Label("Emotion", "情绪"), None),
        CerField("intensity", Label("Intensity", "强度"), _INTENSITIES),
    ),
    "strategy": (CerField("strategy", Label("Strategy", "策略"), STRATEGIES),),
}

_PUNCTUATION: dict[Lang, tuple[str, str]] = {"zh": ("：", "；"), "en": (": ", "; ")}


def _in(lang: Lang, label: Label) -> str:
    return label.zh if lang == "zh" else label.en


def _line(step: str, words: list[str], lang: Lang) -> str:
    colon, semicolon = _PUNCTUATION[lang]
    pairs = zip(CER_STEPS[step], words, strict=True)
    return semicolon.join(_in(lang, field.name) + colon + word for field, word in pairs)


def _read_line(step: str, line: str, lang: Lang) -> dict[str, str]:
    """The fields on the first line of `step`: all of them, in order, and nothing else. Raises FormatError."""

    def refuse(why: str) -> NoReturn:
        right = _line(step, [field.allowed(lang) for field in CER_STEPS[step]], lang)
        raise FormatError("field", step, f"<{step}>: {why}; its first line, {_cut(line)}, must read {right!r}")

    parts = iter(re.split("[;；]", line))
    values = {}
    for field in CER_STEPS[step]:
        name, *word = re.split("[:：]", next(parts, ""), maxsplit=1)
        if name.strip().casefold() != _in(lang, field.name).casefold():
            refuse(f"{_in(lang, field.name)} is missing")
        label = word[0].strip() if word else ""
        value = field.read(label)
        if value is None:
            refuse(f"{_in(lang, field.name)} may not be {_cut(label)}")
        values[field.attribute] = value
    for extra in parts:
        refuse(f"{_cut(extra)} is not one of its fields")
    return values


def _one_of(labels: LabelSet) -> AfterValidator:
    def check(value: str) -> str:
        if value not in labels.en:
            raise ValueError(f"must be one of {', '.join(labels.en)}")
        return value

    return AfterValidator(check)


def _one_field(word: str) -> str:
    if re.search("[;；\n]", word.strip()):
        raise ValueError("may not hold a semicolon or a line break: it is one field of a line")
    return word


class Cer(Reasoning):
    """Controllable empathetic reasoning (C): three steps, then the response. The names are those of `CerCandidates`.

    Labels are the English ones; `lang` chooses how the record renders. `parse` takes it from the first step's field
    name, and accepts every alias, in either language, and half- or full-width marks.
    """

    grammar = CER
    lang: Lang
    stage: Annotated[str, _one_of(STAGES)]
    history_reasoning: str
    sentiment: Annotated[str, _one_of(SENTIMENTS)]
    emotion: Annotated[str, AfterValidator(_one_field)]
    intensity: Annotated[int, Field(ge=1, le=5)]
    emotion_reasoning: str
    strategy: Annotated[str, _one_of(STRATEGIES)]
    strategy_reasoning: str
    response: str

    @property
    def answer(self) -> str:
        """The response, by the name that it has in the other two formats."""
        return self.response

    def _sections(self) -> dict[str, str]:
        sections = {"answer": self.response}
        for step, fields in CER_STEPS.items():
            words = [field.write(str(getattr(self, field.attribute)), self.lang) for field in fields]
            sections[step] = f"{_line(step, words, self.lang)}\n{getattr(self, f'{step}_reasoning')}"
        return sections

    @classmethod
    def _values(cls, sections: dict[str, str]) -> dict[str, str]:
        first = CER_STEPS["history"][0].name.en.casefold()
        lang: Lang = "en" if sections["history"].casefold().startswith(first) else "zh"
        values: dict[str, str] = {"lang": lang, "response": sections["answer"]}
        for step in CER_STEPS:
            line, _, reasoning = sections[step].partition("\n")
            values |= _read_line(step, line, lang)
            if blank(reasoning):
                raise FormatError("empty", step, f"<{step}> holds no free text after its first line")
            values[f"{step}_reasoning"] = reasoning
        return values


FORMATS: dict[str, type[Reasoning]] = {"ecot": Ecot, "coe": Coe, "cer": Cer}
