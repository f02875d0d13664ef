"""A host of models in this process, whose replies a test decides, and that counts what it is asked at once."""

import json
import threading
import time
from collections.abc import Callable
from typing import Any

from fake_model import ANSWERS
from hostile_host import HostileHost, completion

from pipelines.judge.judging import MINDCHAT, UNIFIED

Payload = dict[str, Any]
GOOD = json.dumps(
    {"why": "接住了感受。", "fluency_comfort": 4, "empathic_understanding": 5, "support_encouragement": 3},
    ensure_ascii=False,
)


def _inputs(payload: Payload) -> Any:
    return json.loads([one["content"] for one in payload["messages"] if one["role"] == "user"][-1])


def verdict(payload: Payload) -> str:
    """A reply to any question of the judges: C's steps are right, and A is better."""
    asked = _inputs(payload)
    if "answer" in asked:
        return GOOD
    return f"第{'一二三'[asked['step'] - 1]}步正确。" if "step" in asked else "回应A更好。"


def drawn(payload: Payload) -> str:
    """A verdict on any question of the judges that a hash of it draws, as the fake model gives it."""
    asked = _inputs(payload)
    return ANSWERS[MINDCHAT if "answer" in asked else UNIFIED](asked)


class JudgeHost(HostileHost):
    """Answers each request with `reply(payload)` after `latency(payload)` seconds.

    None: 500. Bytes: as they are. A dict: 400 with this error.
    """

    def __init__(
        self,
        reply: Callable[[Payload], str | bytes | Payload | None] = verdict,
        latency: Callable[[Payload], float] = lambda _: 0.0,
    ) -> None:
        super().__init__(self._answer)
        self.reply, self.latency, self._lock = reply, latency, threading.Lock()
        self.asked: list[Payload] = []
        self.in_flight = self.most_in_flight = self.prompt_tokens = 0

    def _answer(self, handler: Any, payload: Payload) -> None:
        # Not fewer than so long a text can have.
        prompt = max(100, sum(len(message["content"]) for message in payload["messages"]) // 8)
        with self._lock:
            self.asked.append(payload)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        time.sleep(self.latency(payload))
        said = self.reply(payload)
        with self._lock:
            self.in_flight -= 1
            self.prompt_tokens += prompt if isinstance(said, str) else 0
        if said is None:
            handler.give(b'{"error": {"code": "server_error"}}', 500)
        elif isinstance(said, dict):
            handler.give(json.dumps({"error": said}).encode(), 400)
        else:
            usage = {"prompt_tokens": prompt, "completion_tokens": 50, "total_tokens": prompt + 50}
            handler.give(said if isinstance(said, bytes) else completion(said, payload, usage=usage))
