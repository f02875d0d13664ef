"""What the tests of asking share: a vendor, questions, a file of profiles, and workers."""

import atexit
import hashlib
import subprocess
import sys
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from pipelines.llm.factory import open_client
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.payload import Request, canonical, payload
from pipelines.llm.profiles import profiles
from pipelines.llm.prompts import Prompt
from pipelines.llm.questions import Question
from pipelines.settings import ROOT, Llm
from tests.doubles.vendor import Vendor

STUB = Vendor()  # started by the first test that asks it
atexit.register(STUB.stop)
IN_BATCHES = "input = 2.5\noutput = 10\nbatch = 0.5\n"
PROMPT = Prompt("emotions", "1-test", "说出这段文字里的情绪，用一个 JSON 对象回答。")
WORDS = "我最近压力很大，夜里总是醒着"


class Emotion(BaseModel):
    model_config = ConfigDict(extra="forbid")

    emotion: str
    why: str


class _Reply(Emotion):
    """As the vendor answers: it says how strong the emotion is, too."""

    intensity: int = 3


@contextmanager
def vendor_as(**script):
    """The stub as if it had just been started with this script: to start another takes longer than most tests."""
    STUB.start().anew(**script)
    yield STUB


def question(i, *, prompt=PROMPT, model="stub", text=None, sample=0, schema=Emotion, parse=None, before=()):
    inputs = {"unit": "post", "text": f"第{i}篇：{WORDS}" if text is None else text}
    parse = parse or _Reply.model_validate_json
    return Question("emotions", f"r{i}", prompt, inputs, parse, model, schema, sample, before)


def questions(n, **fields):
    return [question(i, **fields) for i in range(n)]


def llm_for(
    folder: Path, base_url: str, *, profile: str = "", price: str = "input = 2.5\noutput = 10\n", **settings
) -> Llm:
    """Settings whose one profile of ours, `stub`, asks `base_url`; `profile` holds more lines of its table."""
    path = Path(folder) / "profiles.toml"
    fields = {"model": '"stub"', "structured": '"json_schema"', "max_tokens": "200", "concurrency": "64"}
    fields |= dict(line.split(" = ", 1) for line in profile.splitlines())
    table = "".join(f"{name} = {value}\n" for name, value in fields.items())
    dated = f'[stub.price]\n{price}currency = "USD"\ndate = 2026-11-21\nsource = "invented"\n'
    path.write_text(f'[stub]\nbase_url = "{base_url}"\n{table}{dated}', encoding="utf-8")
    return Llm(profiles=path, **settings)


def add_model(llm, name, *changes):
    """Adds a copy of the profile of `stub` with changes of its text."""
    text = llm.profiles.read_text(encoding="utf-8")
    other = text.replace("[stub", f"[{name}")
    for old, new in changes:
        other = other.replace(old, new)
    llm.profiles.write_text(text + other, encoding="utf-8")


@contextmanager
def asking(folder, llm, budget="10", **more):
    """An client of provider openai on a home."""
    with open_client(folder, llm, "openai", budget=None if budget is None else Decimal(budget), **more) as ask:
        yield ask


def worker(home, llm, n, *, first=0, budget="1000"):
    """A process that asks `n` questions, and prints how it ended."""
    script = ROOT / "tests" / "doubles" / "asking_worker.py"
    return subprocess.Popen(
        [sys.executable, script, home, llm.profiles, str(n), str(first), budget],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )


def ledger_of(folder) -> Ledger:
    return Ledger(Path(folder) / "ledger.sqlite")


def digests(llm: Llm, asked) -> list[str]:
    """Under which names the vendor's book has the first requests of questions."""
    known = profiles(llm.profiles)
    return [hashlib.sha256(canonical(payload(one, known[one.model]))).hexdigest() for one in asked]


def keys(llm: Llm, asked) -> list[str]:
    """Under which keys the ledger has them."""
    known = profiles(llm.profiles)
    return [Request.of(payload(one, known[one.model]), one.sample).key for one in asked]
