"""What asking through the ledger costs: our calls beside a bare loop over the same SDK, in the same run.

    python -m benchmarks.llm [--calls N] [--rounds N] [--latency S] [--concurrency N]

The vendor is the stub (tests/doubles/vendor), in a process of its own. A bare loop sends with the SDK and as many
workers as there may be calls in flight, parses the JSON and keeps it in a list: no key, no ledger, no budget, no retry.
Ours writes every attempt before it leaves and every answer before it is used, flushed to the disk. Rounds alternate;
medians. The last line asks a finished stage again, from a new process's point of view: a ledger newly opened.
"""

import argparse
import asyncio
import json
import platform
import statistics
import tempfile
import time
from collections import defaultdict
from datetime import UTC, datetime
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

from pipelines.llm.factory import open_client
from pipelines.llm.payload import payload
from pipelines.llm.profiles import profiles
from pipelines.llm.prompts import Prompt
from pipelines.llm.questions import Question
from pipelines.settings import Llm
from tests.doubles.vendor import Vendor

RESULTS = Path(__file__).parent / "results" / "llm.json"
PROMPT = Prompt("bench", "1", "你在给心理问答社区里的文字标注情绪，用一个 JSON 对象回答。" * 20)
BARE, OURS, AGAIN = "bare loop over the SDK", "ours, through the ledger", "ours, a finished stage again"


class Emotion(BaseModel):
    """What is asked for."""

    emotion: str
    why: str


def questions(n: int, round_: int) -> list[Question[Emotion]]:
    """`n` invented questions of about 3 KB that no other round asks."""
    return [
        Question(
            "emotions",
            f"{round_}:{i}",
            PROMPT,
            {"unit": "post", "text": f"第{round_}轮第{i}篇：" + "我最近压力很大，夜里总是醒着，不知道怎么办。" * 20},
            Emotion.model_validate_json,
            "stub",
            Emotion,
        )
        for i in range(n)
    ]


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
    path = folder / "profiles.toml"
    path.write_text(
        f'[stub]\nbase_url = "{vendor.base_url}"\nmodel = "stub"\nstructured = "json_schema"\nmax_tokens = 400\n'
        f"concurrency = {concurrency}\n[stub.price]\ninput = 2.5\noutput = 10\n"
        'currency = "USD"\ndate = 2026-11-21\nsource = "invented"\n'
    )
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


def measure(calls: int, rounds: int, latency: float, concurrency: int) -> dict[str, object]:
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
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--concurrency", type=int, default=64)
    given = parser.parse_args()
    measured = measure(given.calls, given.rounds, given.latency, given.concurrency)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n")
    Console().print(printed(measured), f"written to {RESULTS}")


if __name__ == "__main__":
    main()
