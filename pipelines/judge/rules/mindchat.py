"""M's three scores by rules, which know no quality: they tell a reply that keeps to what was told from others."""

import json
from collections.abc import Mapping
from typing import Any

from pipelines.judge.rules.quality import Quality, lang_of, quality

# What a reply that is not tied to anything, however kind, may have at most.
_UNTIED = 2


def reply(inputs: Mapping[str, Any]) -> str:
    """JSON of `judging.mindchat.Scores` for {dialogue, answer}."""
    found = quality(inputs["dialogue"], inputs["answer"])
    fluency, understanding, support = _scores(found)
    return json.dumps(
        {
            "why": _why(found, lang_of(inputs["dialogue"])),
            "fluency_comfort": fluency,
            "empathic_understanding": understanding,
            "support_encouragement": support,
        },
        ensure_ascii=False,
    )


def _scores(found: Quality) -> tuple[int, int, int]:
    if not found.safe or found.echoes:
        return 1, 1, 1
    fluency = 2 + found.sound + found.feels + (found.tied > 0)
    understanding = 1 + found.tied + found.feels
    support = 1 + found.tied + found.helps
    if not found.tied or not found.sound:
        return min(fluency, _UNTIED), min(understanding, _UNTIED), min(support, _UNTIED)
    return fluency, understanding, support


def _why(found: Quality, lang: str) -> str:
    if lang == "zh":
        if not found.safe:
            return "规则给分，不评判质量：有危险的迹象，回复没有顾到安全。"
        if found.echoes:
            return "规则给分，不评判质量：大半是照抄求助者的话。"
        return f"规则给分，不评判质量：与所讲之事的联系是{found.tied}（0至3）。"
    if not found.safe:
        return "By rules, no judgement of quality: there are signs of danger, and the reply does not care for safety."
    if found.echoes:
        return "By rules, no judgement of quality: most of it repeats the seeker's words."
    return f"By rules, no judgement of quality: its tie to what was told is {found.tied} (0 to 3)."
