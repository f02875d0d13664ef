"""Scripts, personas and rewrites, written short."""

import json
import re
import tomllib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from scripted import Scripted
from table_rows import frame, row_of

from pipelines.rewrite.scripts import Line, Script
from schemas.personas import Personas, RewriteDrafts

__all__ = ["Scripted"]

_LINE = re.compile(r"(\w+)(?:\[(.*?)\])?: (.*)", re.DOTALL)
_GOOD = tomllib.loads((Path(__file__).parent / "good_rewrites.toml").read_text(encoding="utf-8"))["source"]


def line(written: str) -> Line:
    """A line written `who: text`, or `who[strategy, strategy]: text`."""
    found = _LINE.fullmatch(written)
    assert found is not None, written
    strategies = tuple(found[2].split(", ")) if found[2] else ()
    return Line(found[1], found[3], strategies)  # type: ignore[arg-type]


def script(number: int | str, *lines: str, lang: str = "zh", unit: str = "dialogue") -> Script:
    dialogue_id = f"s:{number}"
    row_id = dialogue_id if unit == "dialogue" else f"{dialogue_id}#2/1"
    return Script(unit, row_id, dialogue_id, lang, "g1", tuple(map(line, lines)))  # type: ignore[arg-type]


def good_scripts() -> dict[str, Script]:
    return {
        one["name"]: script(number, *one["lines"], lang=one["lang"], unit=one.get("unit", "dialogue"))
        for number, one in enumerate(_GOOD)
    }


def good_rewrites() -> dict[str, dict[str, list[str]]]:
    """The texts of their rewrites, by name and manner."""
    return {one["name"]: one["rewrites"] for one in _GOOD}


def persona(dialogue_id: str, role: str, group_id: str) -> dict[str, Any]:
    ids = {"persona_id": f"{dialogue_id}/{role}", "role": role, "group_id": group_id}
    cluster = {"cluster": 0, "cluster_name": "balanced", "vector": [0.0] * 4, "distance": 0.0, "fitted": True}
    return ids | cluster | {"lang": "zh", "description": "说话的样子。"}


def personas(*dialogue_ids: str, lang: str = "zh", **more: Any) -> pl.DataFrame:
    """Personas of both speakers of each dialogue (group g1), and of three dialogues more to draw from (group g0)."""
    told = {"lang": lang, "description": description(lang), "D": 0.9, "I": 0.1, "S": 0.2, "C": 0.3} | more
    rows = [
        persona(dialogue_id, role, group_id="g0" if dialogue_id.startswith("p:") else "g1") | told
        for dialogue_id in (*dialogue_ids, "p:1", "p:2", "p:3")
        for role in ("seeker", "supporter")
    ]
    return pl.DataFrame(rows, schema=dict(Personas.polars_schema()) | dict.fromkeys("DISC", pl.Float64))


def description(lang: str) -> str:
    if lang == "zh":
        return "开口就讲结论，很少绕弯子，也不大等别人把话说完。"
    return "Gets to the point at once and seldom waits for others to finish what they say."


def draft(script: Script, variant: str, texts: Sequence[str]) -> dict[str, Any]:
    lines = [{"who": line.who, "text": text} for line, text in zip(script.lines, texts, strict=True)]
    known = {name: getattr(script, name) for name in ("unit", "row_id", "dialogue_id", "lang", "group_id")}
    made = {"variant": variant, "source": script.hash, "lines": lines, "similarity": 0.5, "model_asked": "a"}
    return row_of(RewriteDrafts, **known, **made)


drafts = partial(frame, RewriteDrafts)


# --- replies


def reply(script: Script, texts: Sequence[str]) -> str:
    """The reply that says `texts` in the places of the script's lines."""
    lines = [
        {"n": number, "who": line.who, "text": text}
        for number, (line, text) in enumerate(zip(script.lines, texts, strict=True), 1)
    ]
    return json.dumps({"lines": lines}, ensure_ascii=False)


def judgement(same: bool = True, lost: Sequence[int] = (), why: str = "意思一样") -> str:
    return json.dumps({"same_meaning": same, "strategies_lost": list(lost), "why": why}, ensure_ascii=False)
