"""Everybody's part in a dialogue benchmark, for a host on loopback: the seeker, who is evaluated, and two judges."""

import json
from typing import Any

from pipelines.evaluate.tasks.esc_eval import DIMENSIONS

NAMES = ("tested", "seeker", "judge", "second")
ROLES = {"seeker": "seeker", "judge1": "judge", "judge2": "second"}


def played(payload: dict[str, Any]) -> str:
    """林晓 feels better by 10 a turn, 周远 worse by 10, the others better by 3; the judges give 4 points and 1."""
    system = payload["messages"][0]["content"]
    if payload["model"] == "tested-1":
        return "听起来这阵子真的不容易。"
    inputs = json.loads(payload["messages"][1]["content"])
    if feels(payload):
        change = {"林晓": 10, "周远": -10}.get(inputs["seeker"]["player"][:2], 3)
        return json.dumps({"why": "我给0分…不，4分。", "change": change}, ensure_ascii=False)
    if "七个方面" in system:
        points = dict.fromkeys(DIMENSIONS, 4 if payload["model"] == "judge-1" else 1)
        return json.dumps({"why": "还行。", **points}, ensure_ascii=False)
    return f"{inputs['seeker']['player'][:2]}的第{len(inputs['dialogue']) // 2 + 1}句，我也说不清。"


def feels(payload: dict[str, Any]) -> bool:
    """Whether a seeker is asked how it feels."""
    return "心情变了多少" in payload["messages"][0]["content"]
