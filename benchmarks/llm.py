"""What asking through the ledger costs: our calls beside a bare loop over the same SDK, in the same run.

    python -m benchmarks.llm [--calls N] [--rounds N] [--latency S] [--concurrency N] [--estimated N] [--answers N]

The vendor is the stub (tests/doubles/vendor), in a process of its own. A bare loop sends with the SDK and as many
workers as there may be calls in flight, parses the JSON and keeps it in a list: no key, no ledger, no budget, no retry.
Ours writes every attempt before it leaves and every answer before it is used, flushed to the disk. Rounds alternate;
medians. Their last line asks a finished stage again, from a new process's point of view: a ledger newly opened.

Then `--estimated` questions are estimated, and a ledger of `--answers` is opened, asked for keys and compacted (10
million of them take 8 GB, and 16 more to be compacted).
"""

import argparse
import asyncio
import hashlib
import json
import platform
import sqlite3
import statistics
import tempfile
import time
from collections import defaultdict
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from random import Random

import polars as pl
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

from pipelines.llm.factory import open_client
from pipelines.llm.ledger.file import packed
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.payload import payload
from pipelines.llm.profiles import profiles
from pipelines.llm.prompts import Prompt
from pipelines.llm.questions import Question
from pipelines.llm.tasks import Questions
from pipelines.settings import Llm
from tests.doubles.vendor import Vendor

RESULTS = Path(__file__).parent / "results" / "llm.json"
PROMPT = Prompt("bench", "1", "你在给心理问答社区里的文字标注情绪，用一个 JSON 对象回答。" * 20)
_AT_ONCE = 100_000
BARE, OURS, AGAIN = "bare loop over the SDK", "ours, through the ledger", "ours, a finished stage again"


class Emotion(BaseModel):
    """What is asked for."""

    emotion: str
    why: str


def questions(n: int, round_: int) -> list[Question[Emotion]]:
    """`n` invented questions that no other round asks."""
    return [question(round_, i) for i in range(n)]


def question(round_: int, number: int) -> Question[Emotion]:
    """An invented question of about 3 KB."""
    text = f"第{round_}轮第{number}篇：" + "我最近压力很大，夜里总是醒着，不知道怎么办。" * 20
    inputs = {"unit": "post", "text": text}
    return Question("emotions", f"{round_}:{number}", PROMPT, inputs, Emotion.model_validate_json, "stub", Emotion)


async def bare(base_url: str, bodies: list[dict[str, object]], concurrency: int) -> list[Emotion]:
    """The least that the SDK can be asked with."""
    import httpx2
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    limits = httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    replies: list[Emotion] = []
    async with AsyncOpenAI(
        base_url=base_url, api_key="none", max_retries=0, http_client=DefaultAsyncHttpxClient(limits=limits)
    ) as client:
        waiting = iter(bodies)

        async def work() -> None:
            for body in waiting:
                answer = await client.chat.completions.create(**body)  # type: ignore[call-overload]
                replies.append(Emotion.model_validate_json(answer.choices[0].message.content))

        await asyncio.gather(*(work() for _ in range(concurrency)))
    return replies


def one_round(
    vendor: Vendor, folder: Path, calls: int, concurrency: int, round_: int, rates: dict[str, list[float]]
) -> None:
    """Asks everything once each way."""
    path = profile_file(folder, vendor.base_url, concurrency)
    llm = Llm(profiles=path)
    stub = profiles(path)["stub"]
    theirs = [payload(question, stub) for question in questions(calls, 2 * round_)]
    ours = questions(calls, 2 * round_ + 1)

    def timed(name: str, started: float) -> None:
        rates[name].append(calls / (time.perf_counter() - started))

    def ask_bare() -> None:
        started = time.perf_counter()
        assert len(asyncio.run(bare(vendor.base_url, theirs, concurrency))) == calls
        timed(BARE, started)

    def ask_ours() -> None:
        with open_client(folder, llm, "openai", budget=Decimal(1000)) as asking:
            started = time.perf_counter()
            assert all(reply.value for reply in asking.ask("bench", ours))
            timed(OURS, started)

    for ask in (ask_bare, ask_ours) if round_ % 2 else (ask_ours, ask_bare):
        ask()
    before = vendor.stats()["requests"]
    with open_client(folder, llm, "openai") as asking:
        started = time.perf_counter()
        assert all(reply.value for reply in asking.ask("bench", ours))
        timed(AGAIN, started)
    assert vendor.stats()["requests"] == before


def profile_file(folder: Path, base_url: str, concurrency: int) -> Path:
    """The vendor's profile."""
    path = folder / "profiles.toml"
    path.write_text(
        f'[stub]\nbase_url = "{base_url}"\nmodel = "stub"\nstructured = "json_schema"\nmax_tokens = 400\n'
        f"concurrency = {concurrency}\n[stub.price]\ninput = 2.5\noutput = 10\n"
        'currency = "USD"\ndate = 2026-11-21\nsource = "invented"\n'
    )
    return path


def estimated(n: int) -> float:
    """The seconds that an estimate of `n` questions takes which nobody was asked yet."""
    asked = Questions(pl.DataFrame({"place": range(n)}), lambda row: question(0, row["place"]))
    with tempfile.TemporaryDirectory() as folder:
        llm = Llm(profiles=profile_file(Path(folder), "http://127.0.0.1/v1", 1))
        with open_client(Path(folder), llm, "openai") as client:
            started = time.perf_counter()
            assert client.estimate("bench", asked).calls == n
            return time.perf_counter() - started


def looked_up(n: int) -> dict[str, float]:
    """What a ledger of `n` answers takes: seconds to open and to compact it, and how many keys a second it finds."""
    body = packed(
        json.dumps({"choices": [{"message": {"content": '{"emotion": "焦虑", "why": "夜里醒着"}'}}]}).encode()
    )

    def key(number: int) -> str:
        return hashlib.sha256(b"%d" % number).hexdigest()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        Ledger(path).close()
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA cache_size = -2000000")
            columns = "id, key, sample, stage, alias, model, session, started, ended, status, held, currency"
            for start in range(0, n, _AT_ONCE):
                rows = [(number + 1, key(number)) for number in range(start, min(n, start + _AT_ONCE))]
                values = "?, ?, 0, 'bench', 'stub', 'stub', 1, 0, 1, 'answered', 0, 'USD'"
                db.executemany(f"INSERT INTO attempt ({columns}) VALUES ({values})", rows)  # noqa: S608 - ours
                db.executemany("INSERT INTO request VALUES (?2, randomblob(80))", rows)
                db.executemany("INSERT INTO answer VALUES (?2, ?1, 'stop', ?3)", [(*row, body) for row in rows])
                db.commit()
        started = time.perf_counter()
        with Ledger(path) as ledger:
            opened = time.perf_counter() - started
            wanted = [key(number) for number in Random(0).choices(range(n), k=min(n, 200_000))]
            started = time.perf_counter()
            for start in range(0, len(wanted), 2000):
                assert ledger.replies(wanted[start : start + 2000])
            rate = len(wanted) / (time.perf_counter() - started)
            started = time.perf_counter()
            ledger.compact()
            return {
                "open_s": round(opened, 3),
                "keys_a_second": round(rate),
                "compact_s": time.perf_counter() - started,
            }


def measure(
    calls: int, rounds: int, latency: float, concurrency: int, to_estimate: int, answers: int
) -> dict[str, object]:
    rates: dict[str, list[float]] = defaultdict(list)
    with Vendor(latency=latency) as vendor:
        for round_ in range(rounds + 1):
            if round_ == 1:
                rates.clear()  # the first one paid for imports and caches
            with tempfile.TemporaryDirectory() as folder:
                one_round(vendor, Path(folder), calls, concurrency, round_, rates)
    medians = {name: round(statistics.median(found), 1) for name, found in rates.items()}
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "versions": {name: version(name) for name in ("openai", "httpx2", "stamina", "zstandard")},
        "calls": calls,
        "rounds": rounds,
        "latency": latency,
        "concurrency": concurrency,
        "calls_per_second": {name: medians[name] for name in (BARE, OURS, AGAIN)},
        "ours_to_bare": round(statistics.median(o / b for o, b in zip(rates[OURS], rates[BARE], strict=True)), 2),
        "again_to_ours": round(medians[AGAIN] / medians[OURS], 1),
        "again_to_bare": round(medians[AGAIN] / medians[BARE], 1),
        "estimated": {"questions": to_estimate, "seconds": round(estimated(to_estimate), 1)},
        "ledger": {"answers": answers, **looked_up(answers)},
    }


def printed(measured: dict[str, object]) -> Table:
    table = Table(
        title=f"{measured['calls']:,} calls, {measured['latency']} s each, {measured['concurrency']} at once; "
        f"median of {measured['rounds']}"
    )
    table.add_column("")
    table.add_column("calls/s", justify="right")
    for name, rate in measured["calls_per_second"].items():
        table.add_row(name, f"{rate:,.0f}")
    table.add_section()
    table.add_row("ours to bare, at least 0.8", f"{measured['ours_to_bare']}")
    table.add_row("again to ours, at least 20", f"{measured['again_to_ours']}")
    estimate, ledger = measured["estimated"], measured["ledger"]
    table.add_section()
    table.add_row(f"an estimate of {estimate['questions']:,} questions, s", f"{estimate['seconds']}")
    table.add_row(
        f"keys a second in a ledger of {ledger['answers']:,}, at least 50,000", f"{ledger['keys_a_second']:,}"
    )
    table.add_row("to open it, s", f"{ledger['open_s']}")
    table.add_row("to compact it, s", f"{ledger['compact_s']:.1f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--estimated", type=int, default=100_000)
    parser.add_argument("--answers", type=int, default=1_000_000)
    given = parser.parse_args()
    numbers = given.estimated, given.answers
    measured = measure(given.calls, given.rounds, given.latency, given.concurrency, *numbers)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n")
    Console().print(printed(measured), f"written to {RESULTS}")


if __name__ == "__main__":
    main()
