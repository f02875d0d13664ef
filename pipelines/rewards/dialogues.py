"""What a row of a prompt set says of its dialogue (`schemas.training.EXTRA_INFO`)."""

from collections.abc import Mapping
from typing import Any


def case(extra_info: Mapping[str, Any]) -> dict[str, Any]:
    """What every judge is told of a row: its id, its language, and what was said."""
    return {"row_id": extra_info["row_id"], "lang": extra_info["lang"], "dialogue": dialogue(extra_info)}


def dialogue(extra_info: Mapping[str, Any]) -> list[dict[str, str]]:
    """What was said, turn by turn, as plain JSON: verl may hand over arrays."""
    return [{"role": str(turn["role"]), "text": str(turn["text"])} for turn in extra_info["dialogue"]]
