"""Whether a connective tells a cause of the writer's trouble.

It tells none where it is denied (不是因为), asked after (是因为…吗), supposed (如果…就会让我…), over (以前因为…) or
somebody else's opinion (他以为是因为…); and what comes of it is not always a trouble.
"""

import re
from collections.abc import Sequence

from pipelines.annotate.rules.clauses import Clause
from pipelines.annotate.rules.feelings import Feeling, whose
from pipelines.annotate.rules.scenes import Scene
from pipelines.text.finder import shaped, worded
from schemas.labels import SENTIMENT_OF
from schemas.reasoning import Lang


def believed(kind: str, scene: Scene) -> re.Match[str] | None:
    """The first connective of a kind by which the writer says that this is so."""
    found = worded(scene.lang, "causes", kind).finditer(scene.text, scene.part.start, scene.part.end)
    return next((one for one in found if not _disbelieved(one, kind, scene)), None)


def _disbelieved(found: re.Match[str], kind: str, scene: Scene) -> bool:
    """Denied, asked after, supposed, over, or somebody else's opinion."""
    text, lang, part = scene.text, scene.lang, scene.part
    before = text[part.start : found.start()]
    if not before.strip() and scene.before and kind == "because":  # 他以为，是因为…
        lead = scene.before
        if shaped(lang, "causes", "denied").search(text[lead.start : lead.end]) or _opined(text, lead, lead.end, lang):
            return True
    if shaped(lang, "causes", "denied").search(before) or elsewhere(found, scene):
        return True
    if kind == "makes":
        asked = part.asked and bool(worded(lang, "causes", "asks_for").search(before))
        return asked or (lang == "zh" and _wished(found, before, part, text))
    if kind != "because":
        return False
    if lang == "en":
        doubted = _asked_whether(before, part) or _conceded(found, before, scene) or _corrected(found, before, scene)
    else:
        doubted = part.asked and bool(shaped(lang, "causes", "asks_whether").search(text, part.start, part.end))
        doubted = doubted or _of_another(found, scene) or _points(found, scene) or _reasoned(before, scene)
    return doubted or _opined(text, part, found.start(), lang)


def elsewhere(found: re.Match[str], scene: Scene) -> bool:
    """Whether it has not happened (如果…就会让我…), or is over (以前因为…)."""
    text, part = scene.text, scene.part
    supposed, past = (shaped(scene.lang, "causes", name) for name in ("supposed", "past"))
    lead = found.start() + found[0].startswith("是")  # 要是因为
    if supposed.search(text[part.start : lead]) or past.search(text[part.start : found.start()]):
        return True
    before = scene.before
    if before is None or not supposed.search(text[before.start : before.end]):
        return False
    return bool(shaped(scene.lang, "causes", "follows").search(text, part.start, part.end))


def _opined(text: str, part: Clause, place: int, lang: Lang) -> bool:
    """Whether somebody else thinks or says what stands at `place`."""
    own, holder = whose(text, part, place, lang)
    if own or holder is None:
        return False
    at = text.lower().rfind(holder.lower(), part.start, place)
    return bool(shaped(lang, "causes", "opinion").search(text, max(at, part.start), place))


def _of_another(found: re.Match[str], scene: Scene) -> bool:
    """他因为…: his, unless it is said to explain (他走了是因为…) or the writer feels it in the same clause."""
    text, part, lang = scene.text, scene.part, scene.lang
    if shaped(lang, "causes", "explains").fullmatch(found[0]) or scene.here(0):
        return False
    own, holder = whose(text, part, found.start(), lang)
    if own or holder is None:
        return False
    at = text.rfind(holder, part.start, found.start()) + len(holder)
    return bool(shaped(lang, "causes", "of_another").match(text[at : found.start()]))


def _wished(found: re.Match[str], before: str, part: Clause, text: str) -> bool:
    """有没有办法让我…, 让我别…: what is asked for; 真能让人…吗: whether it is so."""
    if shaped("zh", "causes", "wishes").match(text, found.end(), part.end):
        return True
    return part.asked and bool(shaped("zh", "causes", "wished").search(before))


def _points(found: re.Match[str], scene: Scene) -> bool:
    """都是因为这个散的: the cause was told before, and these words name none."""
    return bool(shaped("zh", "causes", "points").match(scene.text, found.end(), scene.part.end))


def _reasoned(before: str, scene: Scene) -> bool:
    """我躲在卫生间背书，因为…: why the writer does something, in a sentence that names no feeling."""
    lead = scene.before
    if before.strip() or lead is None:
        return False
    if any(scene.parts[one.clause].sentence == scene.part.sentence for one in scene.own):
        return False
    return bool(shaped("zh", "causes", "does").match(scene.text, lead.start, lead.end))


def _asked_whether(before: str, part: Clause) -> bool:
    """Is it because…?"""
    return part.asked and bool(shaped("en", "causes", "asked").search(before))


def _conceded(found: re.Match[str], before: str, scene: Scene) -> bool:
    """Just because he left does not mean…"""
    end = scene.after.end if scene.after else scene.part.end
    conceded, though = (shaped("en", "causes", name) for name in ("conceded", "though"))
    return bool(conceded.search(before) and though.search(scene.text[found.end() : end]))


def _corrected(found: re.Match[str], before: str, scene: Scene) -> bool:
    """He is not mad because I left but because I lied: the second counts."""
    end = scene.after.end if scene.after else scene.part.end
    corrected, instead = (shaped("en", "causes", name) for name in ("corrected", "instead"))
    return bool(corrected.search(before) and instead.search(scene.text[found.end() : end]))


def lightens(found: re.Match[str], scene: Scene) -> bool:
    """Whether what comes of it is pleasant, or a trouble that is less: no cause of a trouble."""
    text, part, lang = scene.text, scene.part, scene.lang
    leads = bool(text[part.start : found.start()].strip(" ,，"))
    effect = 0 if leads or not scene.before else -1  # what stands before the connective came of it
    places = [effect] if leads or scene.before else [0, 1]
    here = [one for one in scene.here(*places) if one.start < found.start() or not leads]
    if here:
        return all(SENTIMENT_OF[one.emotion] == "positive" for one in here)
    clause = scene.parts[scene.place + effect]
    end = found.start() if effect == 0 else clause.end
    return (leads or effect < 0) and bool(shaped(lang, "causes", "lessened").search(text, clause.start, end))


def attributive(text: str, felt: Sequence[Feeling], since: int) -> bool:
    """让我震惊的事: what the feeling is about stands behind it."""
    return any(one.start >= since and text.startswith("的", one.end) for one in felt[:1])
