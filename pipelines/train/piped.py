"""A run of training as a process of Dagster's: `python -m pipelines.train.piped`, started by `pipelines.defs.training`.

The request comes through Pipes; messages go back: where the run lies, how long its rows are, every step as it is made,
how it failed, what it leaves behind. The trainer itself runs in `.venv-train`, as a child of this process.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
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
from pipelines.train.launch import Run
from pipelines.train.page import report
from pipelines.train.prepare import prepare
from pipelines.train.recipe import Preset, load_recipe, parse_settings
from pipelines.train.runs import SCORED, Metrics

Report = Callable[[dict[str, Any]], None]


class Request(BaseModel):
    """A run as `gongqing train` has it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    home: Path
    recipe: str
    preset: Preset
    ablation: str = ""
    release: str | None = None
    name: str = ""
    start: str | None = None
    encoder: str | None = None
    provider: JudgeProvider | None = None
    budget: float | None = None
    settings: list[str] = []

    def prepare(self) -> Run:
        """The run. Raises what `prepare` raises."""
        return prepare(
            self.home,
            load_recipe(self.recipe),
            self.preset,
            **self.model_dump(include={"ablation", "release", "name", "start", "encoder", "provider"}),
            budget=None if self.budget is None else Decimal(str(self.budget)),
            rewards=load(self.home).rewards,
            settings=parse_settings(self.settings),
        )


class VerdictShare:
    """The share of outputs with a verdict, among those that were scored since the last call."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets: dict[Path, int] = {}

    def __call__(self) -> float | None:
        """None where nothing was scored, or nobody judges."""
        verdicts = [terms["judge_ok"] for terms in self._terms() if "judge_ok" in terms]
        return sum(verdicts) / len(verdicts) if verdicts else None

    def _terms(self) -> Iterator[dict[str, float]]:
        for path in sorted(self._folder.glob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._offsets.get(path, 0))
                for line in file:
                    if not line.endswith(b"\n"):  # it is being written
                        break
                    self._offsets[path] = self._offsets.get(path, 0) + len(line)
                    yield json.loads(line)["terms"]


def train(request: Request, send: Report) -> bool:
    """Trains, and reports on it; whether it came to its end. Raises what `Request.prepare` and `report` raise."""
    try:
        run = request.prepare()
        send({"run": str(run.folder), "steps": run.steps})
        verdicts = VerdictShare(run.folder / SCORED)
        verdicts()  # what an earlier start has scored

        def on_step(step: int, metrics: Metrics) -> None:
            share = verdicts()
            send({"step": step, "metrics": metrics | ({} if share is None else {"judge_ok": share})})

        model = run.train(on_step, lambda lines: send({"rows": list(lines)}))
    except TrainingFailed as error:
        send({"failed": str(error)})
        send(outcome_message(request.home, run.folder))
        return False
    send(outcome_message(request.home, run.folder) | {"model": str(model)})
    return True


def outcome_message(home: Path, run: Path) -> dict[str, Any]:
    """The outcome of a run as the last message."""
    outcome = report(Store(Home(home).data), run)
    return {
        "rollouts": None if outcome.rollouts is None else outcome.rollouts.version,
        "terms": {name: list(curve.items()) for name, curve in outcome.terms.items()},  # JSON has no numbers as keys
        "alarms": [alarm._asdict() for alarm in outcome.alarms],
        "page": str(outcome.page),
    }


def read_request(extras: Mapping[str, Any]) -> Request:
    """The request. Raises RequestError for a wrong one."""
    try:
        return Request.model_validate(dict(extras))
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False)
        what = "; ".join(f"{'.'.join(map(str, one['loc']))} {one['input']!r}: {one['msg']}" for one in wrong)
        raise RequestError(f"wrong request of a run: {what}", hint="mend the config of the asset") from None


def main() -> None:
    """Entry point: the request comes from Pipes."""
    keep_private()
    with open_dagster_pipes() as pipes:
        send = pipes.report_custom_message
        try:
            ended = train(read_request(pipes.extras), send)
        except GongqingError as error:
            send({"failed": str(error)})
            ended = False
    sys.exit(0 if ended else 1)


if __name__ == "__main__":
    main()
