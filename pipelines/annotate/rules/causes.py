"""What a text says a feeling comes from, by its connectives: 因为…, …让我…, 每次…就…; quoted as it stands."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from pipelines.annotate.rules.clauses import Clause, holding
from pipelines.annotate.rules.doubts import attributive, believed, elsewhere, lightens
from pipelines.annotate.rules.feelings import Feeling, whose
from pipelines.annotate.rules.quotes import SHORTEST, Span, opening
from pipelines.annotate.rules.scenes import Scene
from pipelines.text.finder import any_of, shaped, worded
from schemas.reasoning import Lang

# How plainly each kind says that it is a cause.
_WEIGHTS = {"because": 6, "makes": 6, "whenever": 5, "since": 4, "feared": 4, "regretted": 4, "after": 3, "suffered": 2}
# A cause told in the sentence of a feeling of the writer's is likelier the cause of that feeling.
_BESIDE_A_FEELING = 3
# Behind 因为 two characters may name a cause: 因为作息.
_NAMED = 2


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause, `text[span]`, by the kind of words that make it one."""

    kind: str  # a key of _WEIGHTS
    span: Span
    beside_feeling: bool
    pleasant: bool = False  # what comes of it is no trouble: 我很开心，因为…; 没有那么难受了，因为…

    @property
    def weight(self) -> int:
        """How sure it is."""
        return _WEIGHTS[self.kind] + _BESIDE_A_FEELING * self.beside_feeling


class _Told(NamedTuple):
    kind: str
    span: Span
    pleasant: bool = False
    named: bool = False  # 怕的是…: behind these words few characters say what


def causes(text: str, parts: Sequence[Clause], felt: Sequence[Feeling], lang: Lang) -> list[Cause]:
    """The causes in `text`, the surest first."""
    own = [one for one in felt if one.own and not one.denied]
    sentences = {parts[one.clause].sentence for one in own}
    found = []
    for place in holding(any_connective(lang), text, parts):
        if parts[place].spoken:
            continue
        for told in _told(Scene(text, parts, place, own, lang)):
            # The surest kind that a clause shows; a connective with nothing behind it shows none.
            shortest = _NAMED if told.kind == "because" or told.named else SHORTEST
            cut = opening(text, told.span, lang, shortest=shortest)
            if cut and not worded(lang, "causes", "asks_for").match(text, cut.start):
                beside = parts[place].sentence in sentences
                found.append(Cause(told.kind, cut, beside, told.pleasant))
                break
    return sorted(found, key=lambda cause: (-cause.weight, cause.span.start))


def _told(scene: Scene) -> Iterator[_Told]:
    """What one clause tells, the surest first; the place may be in the clause before or behind it."""
    for kind in (_because, _makes, _whenever, _feared, _regretted, _after, _suffered):
        if told := kind(scene):
            yield told


# --- the kinds


def _because(scene: Scene) -> _Told | None:
    for kind in ("because", "since"):
        if found := believed(kind, scene):
            return _Told(kind, _behind(found, scene), lightens(found, scene))
    return None


def _behind(found: re.Match[str], scene: Scene) -> Span:
    """What stands behind a connective, up to what came of it; or the clause behind, where nothing does."""
    text, lang = scene.text, scene.lang
    behind = Span(found.end(), scene.part.end)
    if scene.after and _pointing(lang).fullmatch(text, *behind):
        return Span(scene.after.start, scene.after.end)
    turn = worded(lang, "causes", "results").search(text, behind.start + _NAMED, behind.end)
    end = turn.start() if turn else behind.end
    while end > behind.start and text[end - 1] in "吗么吧呢":  # 不就是因为我穷吗
        end -= 1
    return Span(behind.start, end)


def _makes(scene: Scene) -> _Told | None:
    text, part = scene.text, scene.part
    found = believed("makes", scene) if scene.troubled else None
    if found is None or attributive(text, scene.here(0, 1), found.end()):
        return None
    before = Span(part.start, found.start())
    if scene.place and _pointing(scene.lang).fullmatch(text, *before):
        previous = scene.parts[scene.place - 1]
        before = Span(previous.start, previous.end)
    return _Told("makes", before)


def _whenever(scene: Scene) -> _Told | None:
    end = scene.part.end
    found = believed("whenever", scene) if scene.troubled and not scene.part.asked else None
    if found is None:
        return None
    before = scene.text[scene.part.start : found.start()]
    if found[0] == "看到" and shaped("zh", "causes", "until").search(before):
        return None  # 看一部剧看到哭
    turn = worded(scene.lang, "causes", "turns").search(scene.text, min(found.end() + 3, end), end)
    return _Told("whenever", Span(found.start(), turn.start() if turn else end))


def _feared(scene: Scene) -> _Told | None:
    """What is feared; 怕越往后走 says nothing without 陷得越深."""
    text, end = scene.text, scene.part.end
    found = worded(scene.lang, "causes", "feared").search(text, scene.part.start, end)
    if found is None or not any(one.start <= found.start() < one.end for one in scene.own):
        return None
    names = shaped("zh", "causes", "names").match(text, found.end(), end) if scene.lang == "zh" else None
    if names:  # 最怕的是手机响
        return _Told("feared", Span(names.end(), end), named=True)
    open_ended = text.startswith("越", found.end()) and text.count("越", found.end(), end) < 2
    return _Told("feared", Span(found.end(), scene.after.end if scene.after and open_ended else end))


def _after(scene: Scene) -> _Told | None:
    """爸妈离婚以后, in a sentence that names a feeling; 被同学排挤之后就很难过."""
    part = scene.part
    found = _at_the_end(scene.lang).search(scene.text, part.start, part.end)
    if found is not None and found.end() == part.end:
        return _Told("after", Span(part.start, part.end)) if _in_sentence(scene) else None
    found = shaped("zh", "causes", "ever_after").match(scene.text, part.start, part.end) if scene.lang == "zh" else None
    if found is None or not scene.troubled or part.asked or elsewhere(found, scene):
        return None
    return _Told("after", Span(part.start, found.end("what")))


def _regretted(scene: Scene) -> _Told | None:
    """要是早点带它去就好了, in a sentence that names a feeling: what the writer wishes undone."""
    text, part = scene.text, scene.part
    if scene.lang == "en" or part.asked or not _in_sentence(scene):
        return None
    found = shaped("zh", "causes", "regretted").search(text, part.start, part.end)
    own = found is not None and whose(text, part, found.start(), "zh")[0]
    return _Told("regretted", Span(found.start(), part.end)) if found and own else None


def _in_sentence(scene: Scene) -> bool:
    """Whether the sentence names an unpleasant feeling of the writer's."""
    return any(scene.parts[one.clause].sentence == scene.part.sentence for one in scene.own)


def _suffered(scene: Scene) -> _Told | None:
    part, lang = scene.part, scene.lang
    found = None if part.asked else shaped(lang, "causes", "suffered").search(scene.text, part.start, part.end)
    if found is None or not whose(scene.text, part, found.start(), lang)[0] or elsewhere(found, scene):
        return None
    return _Told("suffered", Span(part.start, part.end))


# --- words of several lists


@cache
def any_connective(lang: Lang) -> re.Pattern[str]:
    """What a clause must hold to tell any cause."""
    words = [worded(lang, "causes", kind).pattern for kind in _WEIGHTS if kind not in ("suffered", "regretted")]
    shapes = [shaped(lang, "causes", kind).pattern for kind in ("suffered", *(["regretted"] if lang == "zh" else []))]
    return any_of([*words, *shapes], lang)


@cache
def _at_the_end(lang: Lang) -> re.Pattern[str]:
    return any_of([rf"{worded(lang, 'causes', 'after').pattern}(?!\w)"], lang)


@cache
def _pointing(lang: Lang) -> re.Pattern[str]:
    """Words that say nothing by themselves: 这让我…"""
    return any_of([rf"(?:{worded(lang, 'causes', 'pointing').pattern}\s*)*"], lang)
