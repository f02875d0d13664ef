"""What the stub replies: what the fake model says to the task that shows in the keys of a request's inputs."""

import json
from collections.abc import Mapping
from typing import Any

from tests.doubles.fake_model import ANSWERS

_TASKS = {
    frozenset({"lang", "turns"}): "coherence",
    frozenset({"title", "description"}): "topics",
    frozenset({"unit", "text"}): "emotions",
    frozenset({"question", "answer"}): "coe",
    frozenset({"question"}): "ecot",
    frozenset({"lang", "history"}): "cer",
    frozenset({"lang", "role", "turns"}): "disc",
    frozenset({"lang", "lines"}): "rewrite",
    frozenset({"lang", "personas", "lines"}): "rewrite",
}


def reply(payload: Mapping[str, Any]) -> str:
    """The reply to the first user message: what follows it is a repair."""
    said = next(one["content"] for one in payload["messages"] if one["role"] == "user")
    try:
        inputs = json.loads(said.rpartition("\n")[2])  # below the instructions, where it has them as well
        task = _TASKS[frozenset(inputs)]
        judged = task == "rewrite" and "after" in inputs["lines"][0]
        return ANSWERS["rewrite_judge" if judged else task](inputs)
    except (ValueError, TypeError, KeyError):
        return f"（编造的回复）{said[:20]}"
