"""A run of training as a process of Dagster's: `python -m pipelines.train.piped`, started by `pipelines.defs.training`.

What is asked for comes through Pipes, as `Asked`; what is told goes back as messages: where the run lies, how long its
rows are, every step as it is made, how it failed, what it leaves behind. The trainer itself runs in `.venv-train`, as a
child of this process.
"""

import json
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from dagster_pipes import open_dagster_pipes
from pydantic import BaseModel, ConfigDict, ValidationError

from pipelines.core.home import Home
from pipelines.core.modes import keep_private
from pipelines.errors import GongqingError, RequestError, TrainingFailed
from pipelines.llm.interface import JudgeProvider
from pipelines.settings import load
from pipelines.store import Store
from pipelines.train.launch import Run, Told
from pipelines.train.outcome import tell
from pipelines.train.prepare import prepare
from pipelines.train.recipe import Preset, given, recipe
from pipelines.train.runs import SCORED, Metrics


class Asked(BaseModel):
    """A run that somebody asked for, as `gongqing train` has it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    home: Path
    recipe: str
    preset: Preset
    arm: str = ""
    release: str | None = None
    name: str = ""
    start: str | None = None
    encoder: str | None = None
    provider: JudgeProvider | None = None
    budget: float | None = None
    settings: list[str] = []

    def run(self) -> Run:
        """The run. Raises what `prepare` raises."""
        return prepare(
            self.home,
            recipe(self.recipe),
            self.preset,
            arm=self.arm,
            release=self.release,
            name=self.name,
            start=self.start,
            encoder=self.encoder,
            provider=self.provider,
            budget=None if self.budget is None else Decimal(str(self.budget)),
            settings=load(self.home).rewards,
            given=given(self.settings),
        )


class Judged:
    """The share of outputs with a verdict, among those that were scored since it was last asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}

    def __call__(self) -> float | None:
        """None where nothing was scored, or nobody judges."""
        told = [terms["judge_ok"] for terms in self._terms() if "judge_ok" in terms]
        return sum(told) / len(told) if told else None

    def _terms(self) -> list[dict[str, float]]:
        found = []
        for path in sorted(self._folder.glob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                for line in file:
                    if not line.endswith(b"\n"):  # it is being written
                        break
                    self._read[path] = self._read.get(path, 0) + len(line)
                    found.append(json.loads(line)["terms"])
        return found


def train(asked: Asked, tell_of: Callable[[dict[str, Any]], None]) -> bool:
    """Trains, and tells of it; whether it came to its end. Raises what `Asked.run` and `tell` raise."""
    try:
        run = asked.run()
        tell_of({"run": str(run.folder), "steps": run.steps})
        model = run.train(_told(run, tell_of), lambda lines: tell_of({"rows": list(lines)}))
    except TrainingFailed as error:
        tell_of({"failed": str(error)})
        tell_of(_outcome(asked.home, run.folder))
        return False
    tell_of(_outcome(asked.home, run.folder) | {"model": str(model)})
    return True


def _told(run: Run, tell_of: Callable[[dict[str, Any]], None]) -> Told:
    judged = Judged(run.folder / SCORED)
    judged()  # what an earlier start has scored

    def told(step: int, metrics: Metrics) -> None:
        share = judged()
        tell_of({"step": step, "metrics": metrics | ({} if share is None else {"judge_ok": share})})

    return told


def _outcome(home: Path, run: Path) -> dict[str, Any]:
    found = tell(Store(Home(home).data), run)
    return {
        "rollouts": None if found.rollouts is None else found.rollouts.version,
        "terms": {name: list(curve.items()) for name, curve in found.terms.items()},  # JSON has no numbers as keys
        "alarms": [one._asdict() for one in found.alarms],
        "page": str(found.page),
    }


def read(extras: Mapping[str, Any]) -> Asked:
    """What is asked for. Raises RequestError for what cannot be."""
    try:
        return Asked.model_validate(dict(extras))
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False)
        told = "; ".join(f"{'.'.join(map(str, one['loc']))} {one['input']!r}: {one['msg']}" for one in wrong)
        raise RequestError(f"no run is asked for like this: {told}", hint="mend the config of the asset") from None


def main() -> None:
    """What is asked for, from Pipes."""
    keep_private()
    with open_dagster_pipes() as pipes:
        tell_of = pipes.report_custom_message
        try:
            ended = train(read(pipes.extras), tell_of)
        except GongqingError as error:
            tell_of({"failed": str(error)})
            ended = False
    sys.exit(0 if ended else 1)


if __name__ == "__main__":
    main()
