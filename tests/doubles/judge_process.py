"""The judge's service as a process of its own, and requests to it by an ordinary client."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from pipelines.settings import ROOT

POST = [{"role": "seeker", "text": "室友天天打呼噜，我整夜睡不着，白天上课犯困，特别烦躁。"}]
ANSWER = "整夜被呼噜声吵得睡不着，白天还要上课，烦躁太正常了。可以先戴耳塞试试，再找个轻松的时候和室友商量一下。"
STEPS = ["阶段：安慰\n他睡不好", "情感：消极；情绪：烦躁；强度：4\n说了睡不着", "策略：情感反映\n先被听见"]


def to_score(n: int = 0, answer: str = ANSWER, **more: Any) -> dict[str, Any]:
    return {"row_id": f"r{n}", "lang": "zh", "dialogue": POST, "answer": f"{answer}{n or ''}", **more}


def to_compare(n: int = 0) -> dict[str, Any]:
    compared = {"steps": STEPS, "response": ANSWER, "reference": f"听起来睡不好有一阵子了。{n or ''}"}
    return {"row_id": f"r{n}", "lang": "zh", "dialogue": POST, **compared}


PRICE = 'input = 2.5\noutput = 10\ncurrency = "USD"\ndate = 2026-11-21\nsource = "invented"\n'


def profiles(
    home: Path,
    base_url: str,
    *,
    profile: str = "",
    temperature: str = "temperature = 0\n",
    concurrency: int = 64,
    names: tuple[str, ...] = ("judge",),
) -> None:
    """A home whose settings know models of these names at this address."""
    home.mkdir(exist_ok=True)
    known = f'base_url = "{base_url}"\nmax_tokens = 300\nconcurrency = {concurrency}\n{temperature}{profile}'
    tables = [f'[{name}]\nmodel = "{name}-1"\n{known}[{name}.price]\n{PRICE}' for name in names]
    (home / "profiles.toml").write_text("".join(tables), encoding="utf-8")
    (home / "gongqing.toml").write_text('[llm]\nprofiles = "profiles.toml"\nrepairs = 0\n', encoding="utf-8")


class JudgeProcess:
    """The service, until the block is left."""

    def __init__(self, home: Path, *options: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pipelines.judge.service", "--home", str(home), *options],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        told = self._process.stdout.readline()
        self.address = json.loads(told)["address"] if told else ""

    def __enter__(self) -> Self:
        assert self.address, self.ended()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self.ended()

    def ended(self, word: str = "") -> tuple[int, str]:
        """Closes its standard input, with a last word; gives its exit code and what it said on stderr."""
        if self._process.returncode is None:
            _, self._said = self._process.communicate(word, timeout=60)
        return self._process.returncode, self._said

    def post(self, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        """Status and JSON."""
        return self._get(path, body if isinstance(body, bytes) else json.dumps(body).encode())

    def posts(self, path: str, bodies: list[dict[str, Any]], at_once: int = 64) -> list[tuple[int, dict[str, Any]]]:
        """The same of many, by as many clients at once."""
        with ThreadPoolExecutor(at_once) as clients:
            return list(clients.map(lambda body: self.post(path, body), bodies))

    def about(self) -> dict[str, Any]:
        """What it tells of itself."""
        return self._get("about", None)[1]

    def _get(self, path: str, body: bytes | None) -> tuple[int, dict[str, Any]]:
        try:
            with urllib.request.urlopen(f"{self.address}/{path}", data=body, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)
