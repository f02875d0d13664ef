"""What a run asks as it trains: the judge and the encoder, each a process beside it, on an address of this machine.

They end when the run ends, and by themselves where it was killed: their standard input closes. A trainer that lives on
without them stops at its next question.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import IO, NamedTuple

from pipelines.core.service import END, end_session
from pipelines.errors import TrainingFailed
from pipelines.llm.interface import JudgeProvider
from pipelines.settings import ROOT, Rewards
from pipelines.train.recipe import Service

PYTHON = ROOT / ".venv-train" / "bin" / "python"
ADDRESSES: dict[Service, str] = {"judge": "GONGQING_JUDGE", "encoder": "GONGQING_ENCODER"}
_PATIENCE = 10  # seconds that a service has to end
_LAST_WORDS = 2000  # characters of its log that an error repeats


class Judge(NamedTuple):
    """Who judges: a provider of `pipelines.llm`, aliases of models, at what cost at most, and how
    (`Ablation.judging`).

    `models` is {model}, or of C's steps and responses apart {model-process, model-outcome} too; the rest is as
    `[rewards]` has it.
    """

    provider: JudgeProvider
    models: Mapping[str, str]
    budget: Decimal | None
    mode: str
    rewards: Rewards


def judge_command(home: Path, run: str, judge: Judge) -> list[str]:
    """What starts the judge of a run."""
    options = {
        "home": home,
        "budget-of": f"judge of {run}",  # broken off, the run goes on with what it had spent
        "provider": judge.provider,
        **judge.models,
        "mode": judge.mode,
        "failures": judge.rewards.failures,
        "at-once": judge.rewards.at_once,
        "timeout": judge.rewards.judge_timeout,
        "attempts": judge.rewards.judge_attempts,
        **({} if judge.budget is None else {"budget": judge.budget}),
    }
    return [sys.executable, "-m", "pipelines.judge.service", *(f"--{name}={value}" for name, value in options.items())]


@contextlib.contextmanager
def beside(
    commands: Mapping[Service, Sequence[str]], environments: Mapping[Service, Mapping[str, str]], folder: Path
) -> Iterator[dict[str, str]]:
    """Starts services, waits until they are ready, and ends them with the block; yields the variables with their
    addresses. Their logs lie in `folder`.

    Raises TrainingFailed for one that does not start, with its last words.
    """
    with contextlib.ExitStack() as stack:
        yield {
            ADDRESSES[service]: stack.enter_context(_serve(service, command, environments[service], folder))
            for service, command in commands.items()
        }


@contextlib.contextmanager
def _serve(service: Service, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Iterator[str]:
    log = folder / f"log-{service}.txt"
    with log.open("ab") as words:
        process = subprocess.Popen(
            command,
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=words,
            start_new_session=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        try:
            address = _read_address(process.stdout, log)
            if address is None:
                process.stdin.close()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=_PATIENCE)
                raise TrainingFailed(
                    f"the {service} did not start:\n{log.read_text(encoding='utf-8', errors='replace')[-_LAST_WORDS:]}",
                    where=log,
                    hint="mend what it names, and run the same command again",
                )
            yield address
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(END + b"\n")  # in order: a judge may then close its budget
                process.stdin.flush()
        finally:
            process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=_PATIENCE)
            end_session(process, _PATIENCE)


def _read_address(output: IO[bytes], log: Path) -> str | None:
    """The address that a service prints; None if it ends without one. Other lines, of a library, go to its log."""
    for line in output:
        with contextlib.suppress(ValueError):  # no JSON
            match json.loads(line):
                case {"address": str(address)}:
                    return address
        with log.open("ab") as words:
            words.write(line)
    return None
