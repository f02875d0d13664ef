"""How near texts are by their wording: enough to distinguish a rewrite from the text of another dialogue.

Line by line, for two long texts about the same trouble share most of their characters, by any author. No model.
"""

import re
from collections import defaultdict
from collections.abc import Sequence, Set
from itertools import combinations
from math import fsum, inf, sqrt

from pipelines.core.overlap import windows
from schemas.reasoning import Lang

# Sums over sets are exact (fsum): the order of a set of strings differs from run to run, and with it the last digits.
_HAN = r"\u3007\u3400-\u4dbf\u4e00-\u9fff"
_RUN = re.compile(rf"[{_HAN}]+|[^\W\d_{_HAN}]+(?:'[a-z]+)?|\d+")
# A line is in another's place where it shares less than the one with its own source and more than the other with
# somebody else's, and has so many parts; ours.
_OWN, _OTHERS, _TELLING = 0.2, 0.6, 6
# So much more, of 2, two lines share with each other's sources than with their own where they were exchanged; ours.
_LEAST_CROSS = 0.15
# Fewer lines that differ say nothing; and so much two lines share by chance, where those at hand share nothing; ours.
_FEWEST, _BY_CHANCE = 4, 0.005
# What shares with its own lines less than so many times what it shares with others is another text, by language: two
# Chinese texts share characters anyhow. Ours: see `own`.
LEAST_OWN: dict[Lang, float] = {"zh": 1.9, "en": 4.0}
_LONGEST = 3  # of Chinese, runs of one to three characters
# English words of any text.
_ANYWHERE = """
a an the i me my you your it its he she they we us our this that there here what how who when and or but if so as of in
on at to for with from by about be am is are was were been have has had do does did will would can could not no just
very really
"""
_COMMON = frozenset(_ANYWHERE.split())


def shared(before: Sequence[str], after: Sequence[str]) -> float:
    """Mean share, 0–1, of what the lines of two texts have in common, weighted by the length of the source's lines.

    Of a line it is the cosine of two sets: of the runs of one to three Chinese characters in it, and of its other words
    but the commonest. Lines of the source without any of these do not count; 1 where none has.

    Raises ValueError where there are more lines of the one than of the other.
    """
    weighted: list[tuple[int, float]] = []
    for source, text in zip(before, after, strict=True):
        if had := wording(source):
            has = wording(text)
            weighted.append((len(source), cosine(had, has)))
    if not weighted:
        return 1.0
    return sum(weight * share for weight, share in weighted) / sum(weight for weight, _ in weighted)


def own(before: Sequence[str], after: Sequence[str]) -> float:
    """How many times as much the lines of `after` share with their own sources as with the others, weighted by length.

    What a rewrite keeps, it keeps in its place; another dialogue is like all lines alike. Of lines that say the same
    one counts; infinite where there are too few others to compare with. Shares are those of `shared`.

    Of careful rewrites 2.2 is the least in Chinese and 4.3 in English; of real dialogues against those most like them
    12 % share 1.9 and more (zh) and 9 % share 4 and more (en).

    Raises ValueError where there are more lines of the one than of the other.
    """
    parts = {text: had for text in before if (had := wording(text))}
    if len(parts) < _FEWEST:
        return inf
    total: dict[str, float] = defaultdict(float)  # the sum of the sources' unit vectors
    for had in parts.values():
        for part in had:
            total[part] += 1 / sqrt(len(had))
    at_home = elsewhere = weight = 0.0
    for source, text in zip(before, after, strict=True):
        if source in parts:
            has = wording(text)
            share = cosine(parts[source], has)
            with_all = fsum(total[part] for part in has & total.keys()) / sqrt(len(has)) if has else 0.0
            at_home += len(source) * share
            elsewhere += len(source) * (with_all - share) / (len(parts) - 1)
            weight += len(source)
    return at_home / (elsewhere + _BY_CHANCE * weight)


def moved(before: Sequence[str], after: Sequence[str]) -> int:
    """How many lines are in another's place.

    Either a line says what another one of the source says nearly word for word; or two lines, however they are put,
    share more with each other's sources than with their own. Lines that hold too little to decide do not count.

    Of 1,298 pairs of lines of careful rewrites by hand none looks exchanged; exchanged on purpose, 97 in 100 do.
    """
    sources, texts = list(map(wording, before)), list(map(wording, after))
    home = list(map(cosine, sources, texts))
    strays = [place for place, has in enumerate(texts) if len(has) >= _TELLING and home[place] < _OWN]
    exchanged = {
        place
        for place in strays
        if any(cosine(source, texts[place]) > _OTHERS for other, source in enumerate(sources) if other != place)
    }
    for one, other in combinations([place for place in strays if len(sources[place]) >= _TELLING], 2):
        cross = cosine(sources[one], texts[other]) + cosine(sources[other], texts[one])
        if cross - home[one] - home[other] > _LEAST_CROSS:
            exchanged |= {one, other}
    return len(exchanged)


def likeness(texts: Sequence[str]) -> float:
    """Mean over all pairs of `texts` of what two of them share, 0–1: the cosine of the sets that `shared` compares.

    Raises ValueError for fewer than two texts.
    """
    if len(texts) < 2:
        raise ValueError("there are no two texts to compare")
    total: dict[str, float] = defaultdict(float)  # the sum of the texts' unit vectors
    alone = 0
    for parts in map(wording, texts):
        alone += bool(parts)
        for part in parts:
            total[part] += 1 / sqrt(len(parts))
    return (fsum(value * value for value in total.values()) - alone) / (len(texts) * (len(texts) - 1))


def cosine(one: Set[str], other: Set[str]) -> float:
    """What two sets have in common, 0–1; 0 where one of them is empty."""
    return len(one & other) / sqrt(len(one) * len(other)) if one and other else 0.0


def wording(text: str) -> set[str]:
    """What `shared` compares of a text: runs of one to three Chinese characters, and other words but the commonest."""
    parts: set[str] = set()
    for run in _RUN.findall(text.lower().replace("\u2019", "'")):
        if re.match(f"[{_HAN}]", run):
            parts.update(part for n in range(1, _LONGEST + 1) for part in windows(run, n))
        elif run not in _COMMON:
            parts.add(run)
    return parts
