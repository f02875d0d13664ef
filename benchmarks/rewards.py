"""What the format rewards cost: linear in the length of an output, whatever stands in it, beside a regular expression.

    python -m benchmarks.rewards [--rounds N] [--run FOLDER]

CPU seconds of one process, the least of N rounds. Growth is how many times what a kB costs in a long text, to what it
costs in one of 1 kB: 1 is linear. Python's collector of garbage is off while something is timed, as `timeit` has it; a
column shows what it adds, since it walks over all the tags of a text again and again. The peer is what a first draft
writes: one lazy pattern for each format. It gets no text of 1 MB, which it would not finish.

`--run` is the folder of a run (`training/<name>`): what format rewards take of a step's time (`timing_s/step`), those
of the outputs that the run itself wrote, and those of as many outputs of 1 kB.
"""

import argparse
import gc
import json
import platform
import re
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pipelines.rewards.format import cer, cer_strict, coe, ecot
from pipelines.train.recipe import load_recipe
from pipelines.train.runs import ROLLOUTS, read_metrics, read_note
from schemas.reasoning import CER_TAGS, COE_TAGS, ECOT_TAGS, Cer, Coe, Ecot

RESULTS = Path(__file__).parent / "results" / "rewards.json"
KB, MB = 1_000, 1_000_000  # bytes of UTF-8
PEERS_MOST = 32 * KB
TO_MB, COLLECTING = "to 1 MB", "to 1 MB, collecting"
OUTPUTS = 64  # of a step of `cpu_smoke`: eight prompts, G = 8
MOST_GROWTH, MOST_SHARE = 1.5, 0.01

CLAUSE = "听起来这段时间真的辛苦了，您愿意多说一点吗？"


def _lazy(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("".join(rf"\s*<{name}>(.*?)</{name}>" for name in names), re.DOTALL)


# Of C's an output is read twice, as its reward does: for completeness, and by our grammar.
OURS: dict[str, Callable[[str], object]] = {"ecot": ecot, "coe": coe, "cer": lambda text: (cer(text), cer_strict(text))}
PATTERNS = {
    "ecot": re.compile(r"<thinking>(.*?)</thinking>\s*<answer>(.*?)</answer>", re.DOTALL),
    "coe": re.compile(r"<empathy_think>(.*?)</empathy_think>\s*<answer>(.*?)</answer>", re.DOTALL),
    "cer": _lazy(("history", "emotion", "strategy", "response")),
}
PEER: dict[str, Callable[[str], object]] = {name: pattern.findall for name, pattern in PATTERNS.items()}
TAGS = {"ecot": ECOT_TAGS, "coe": COE_TAGS, "cer": CER_TAGS}


def _whole(name: str, said: str) -> str:
    if name == "ecot":
        return Ecot(situation=said, motivation=said, strategy=said, answer=said).render()
    if name == "coe":
        return Coe(L1=said, L2=said, L3=said, L4=said, answer=said).render()
    told = {"stage": "exploration", "sentiment": "negative", "emotion": "难过", "intensity": 4, "strategy": "Question"}
    reasons = dict.fromkeys(("history_reasoning", "emotion_reasoning", "strategy_reasoning", "response"), said)
    return Cer(lang="zh", **told, **reasons).render()


def _filled(unit: str, size: int) -> str:
    """`unit` again and again, of `size` bytes as UTF-8 or a little less."""
    return (unit * (size // len(unit.encode()) + 1)).encode()[:size].decode(errors="ignore")


def texts(name: str, size: int) -> dict[str, str]:
    """Outputs of `size` bytes: an honest one, and such as cost much where a pattern is tried again at every tag."""
    tags = TAGS[name]
    opening, closing = f"<{tags[0]}>", f"</{tags[0]}>"
    frame = len(_whole(name, CLAUSE).encode())
    sections = 5 if name == "coe" else 4
    return {
        "well formed": _whole(name, _filled(CLAUSE, max(60, (size - frame) // sections + 60))),
        "no tag": _filled(CLAUSE, size),
        "opened, never closed": _filled(opening, size),
        "closed, never opened": _filled(closing, size),
        "every tag, one in another": _filled("".join(f"<{tag}>" for tag in tags), size),
        "the whole again and again": _filled(_whole(name, CLAUSE), size),
        "marks alone": _filled("<", size),
        "tags all but closed": _filled(opening[:-1], size),
    }


def seconds(work: Callable[[str], object], text: str, rounds: int, *, collecting: bool = False) -> float:
    """CPU seconds of one call: the least of some rounds, each of at least 5 ms."""
    found, calls = [], 1
    (gc.enable if collecting else gc.disable)()
    while len(found) < rounds:
        began = time.process_time()
        for _ in range(calls):
            work(text)
        took = time.process_time() - began
        if took < 0.005:
            calls *= 4
            continue
        found.append(took / calls)
    gc.enable()
    return min(found)


def growth(work: Callable[[str], object], short: str, long: str, rounds: int, *, collecting: bool = False) -> float:
    """How many times what a byte costs in `long`, to what it costs in `short`."""
    ratio = seconds(work, long, rounds, collecting=collecting) / seconds(work, short, rounds, collecting=collecting)
    return ratio * len(short.encode()) / len(long.encode())


def measure(rounds: int, run: Path | None) -> dict[str, object]:
    grown: dict[str, dict[str, float]] = {}
    for name, ours in OURS.items():
        short, middle, long = (texts(name, size) for size in (KB, PEERS_MOST, MB))
        for kind in short:
            grown[f"{name}: {kind}"] = {
                TO_MB: growth(ours, short[kind], long[kind], rounds),
                COLLECTING: growth(ours, short[kind], long[kind], rounds, collecting=True),
                "to 32 kB": growth(ours, short[kind], middle[kind], rounds),
                "pattern, to 32 kB": growth(PEER[name], short[kind], middle[kind], 1),
                "× pattern's time": seconds(ours, middle[kind], rounds) / seconds(PEER[name], middle[kind], 1),
            }
    step = {name: OUTPUTS * seconds(work, texts(name, KB)["well formed"], rounds) for name, work in OURS.items()}
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "rounds": rounds,
        "growth": grown,
        "most_growth": {column: max(one[column] for one in grown.values()) for column in (TO_MB, COLLECTING)},
        "seconds_of_a_step": step,  # 64 outputs of 1 kB
        "of_a_run": of_run(run, rounds) if run else None,
    }


def of_run(run: Path, rounds: int) -> dict[str, object]:
    """Seconds of the steps of a run, its first one, which warms up, left out; and of the format rewards of each."""
    format_reward = OURS[load_recipe(read_note(run)["recipe"]).form]
    took = {step: told["timing_s/step"] for step, told in read_metrics(run).items() if "timing_s/step" in told}
    shares = {}
    for step in sorted(took)[1:]:
        lines = (run / ROLLOUTS / f"{step}.jsonl").read_text(encoding="utf-8").splitlines()
        outputs = [json.loads(line)["output"] for line in lines]
        shares[step] = seconds(lambda _, told=outputs: [format_reward(one) for one in told], "", rounds) / took[step]
    return {
        "seconds": statistics.median(took[step] for step in shares),
        "outputs": len(outputs),
        "most_share": max(shares.values()),
    }


def printed(measured: dict[str, object]) -> Table:
    table = Table(title="growth of the cost of a byte; 1 is linear")
    columns = next(iter(measured["growth"].values()))
    for column in ("", *columns):
        table.add_column(column, justify="right" if column else "left")
    for name, found in measured["growth"].items():
        table.add_row(name, *(f"{value:,.2f}" for value in found.values()))
    return table


def verdicts(measured: dict[str, object]) -> list[str]:
    most, run = measured["most_growth"], measured["of_a_run"]
    lines = [
        f"1 MB costs at most {most[TO_MB]:.2f} × 1,000 × 1 kB (at most {MOST_GROWTH} wanted), "
        f"and {most[COLLECTING]:.2f} × with the collector on"
    ]
    for name, found in measured["seconds_of_a_step"].items():
        share = f", {found / run['seconds']:.3%} of a step of {run['seconds']:.2f} s" if run else ""
        lines.append(f"{name}: {OUTPUTS} outputs of 1 kB in {found * 1000:.1f} ms{share}")
    if run:
        lines.append(
            f"the run's own {run['outputs']} outputs of a step: at most {run['most_share']:.3%} of its time "
            f"(under {MOST_SHARE:.0%} wanted)"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--run", type=Path)
    given = parser.parse_args()
    measured = measure(given.rounds, given.run)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n")
    console = Console()
    console.print(printed(measured), *verdicts(measured), f"written to {RESULTS}", sep="\n")


if __name__ == "__main__":
    main()
