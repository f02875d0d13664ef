"""Runs the dialogue benchmarks on inspect-ai through our ledger, and reads its logs as figures."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from pipelines.core.estimates import Floats, estimate_mean, estimate_share
from pipelines.errors import GongqingError, RequestError
from pipelines.evaluate.answering import STAGE
from pipelines.evaluate.emotions import End
from pipelines.judge.backend import open_backend
from pipelines.settings import Llm

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog

Benchmark = Literal["sage", "esc_eval"]
# The roles that each needs besides the model that is evaluated.
JUDGES = ("judge1", "judge2")  # of ESC-Eval
ROLES: dict[Benchmark, tuple[str, ...]] = {"sage": ("seeker",), "esc_eval": ("seeker", *JUDGES)}
LOG = ".json"
FIVE_ROUNDS = "five rounds"  # the one setting of ESC-Eval
WORST = "worst decile"
_DECILE = 0.1
Row = dict[str, Any]


def run_benchmark(
    benchmark: Benchmark,
    home: Path,
    llm: Llm,
    provider: str,
    tested: str,
    roles: Mapping[str, str],
    source: Path,
    logs: Path,
    *,
    setting: str = "published",
    form: str = "plain",
    budget: Decimal | None = None,
    budget_of: str = "benchmark",
) -> "EvalLog":
    """Runs a benchmark, and returns inspect's log, which lies in `logs` as well. Broken off, the same call goes on:
    what was answered is in the ledger.

    Args:
        benchmark: Which.
        home: Where the ledger is.
        llm: The model profiles.
        provider: Who answers for them.
        tested: The profile of the model that is evaluated.
        roles: The profiles of those who play with it, of `roles_of`.
        source: A file of seekers; or, of ESC-Eval, a log of it, whose dialogues its judges alone are asked about.
        logs: The folder of logs.
        setting: Of SAGE.
        form: In which the model answers: `plain`, or `cer`.
        budget: The most that it may cost.
        budget_of: Under which name.

    Raises RequestError where the extra `evaluate` is not installed; what the backend raises; GongqingError where
    inspect could not finish, or where of two seekers or more a greater share than `[llm] failures` has no score.
    """
    again = benchmark == "esc_eval" and source.suffix == LOG
    require_inspect(benchmark)
    from inspect_ai import eval_async
    from inspect_ai.model import get_model

    from pipelines.evaluate import tasks

    async def run() -> "EvalLog":
        aliases = {"tested": tested, **{role: roles[role] for role in ROLES[benchmark]}}
        asked = {role: alias for role, alias in aliases.items() if role in JUDGES} if again else aliases
        backend = open_backend(home, llm, provider, asked, budget=budget, budget_of=budget_of, stage=STAGE)
        async with backend as opened:
            with tasks.model_api.asked_through(opened):
                models = {name: get_model(f"gongqing/{alias}", memoize=False) for name, alias in aliases.items()}
                if benchmark == "sage":
                    task = tasks.sage(str(source), setting, form)  # type: ignore[arg-type]  # it says so itself
                else:
                    task = tasks.esc_eval(str(source), form)
                [log] = await eval_async(
                    task,
                    model=models.pop("tested"),
                    model_roles=models,
                    log_dir=str(logs),
                    log_format="json",
                    fail_on_error=False,
                    acp_server=False,
                    ctl_server=False,
                )
                return log

    log = asyncio.run(run())
    samples = log.samples or []
    unscored = sum(not sample.scores for sample in samples)
    if 1 < unscored < len(samples) and unscored > llm.failures * len(samples):
        hint = "look at the log; the same command asks about these again ([llm] failures)"
        problem = f"{unscored} of {len(samples)} seekers have no score: a mean of the others would say nothing"
        raise GongqingError(problem, where=log.location, hint=hint)
    if log.status != "success" or not any(sample.scores for sample in samples):
        errors = [sample.error.message for sample in samples if sample.error is not None]
        problem = log.error.message if log.error is not None else errors[0] if errors else log.status
        raise GongqingError(f"{benchmark} has no score: {problem}", where=log.location, hint="mend what it names")
    return log


def roles_of(benchmark: Benchmark, seeker: str, judges: Sequence[str]) -> dict[str, str]:
    """The profile of each role. In which order the judges are named says nothing: they are told apart by nothing.

    Raises RequestError for judges of SAGE, and for other than two of ESC-Eval.
    """
    if benchmark == "sage" and judges:
        raise RequestError("SAGE has no judge: its seeker tells what it feels", where=", ".join(judges))
    if benchmark == "esc_eval" and (len(judges) != len(JUDGES) or len(set(judges)) < len(judges)):
        hint = "--judge PROFILE twice, each another"
        raise RequestError("the judges of ESC-Eval are two", where=", ".join(judges), hint=hint)
    return dict(zip(ROLES[benchmark], (seeker, *sorted(judges)), strict=True))


def require_seekers(file: Path | None, about: str) -> None:
    """Raises as `read_seekers` for a file of seekers that cannot be read, and RequestError where the extra `evaluate`
    is not installed.
    """
    require_inspect(about)
    from pipelines.evaluate.tasks.dialogue import read_seekers

    read_seekers(str(file))


def last_log(benchmark: Benchmark, logs: Path) -> tuple[Path, dict[str, str]] | None:
    """The last log of a benchmark that came to its end, and the profile of each role in it, that of the model that was
    evaluated as `tested`; None where there is none.
    """
    require_inspect(benchmark)
    from inspect_ai.log import read_eval_log

    for path in sorted(logs.glob(f"*{LOG}"), reverse=True):
        try:
            log = read_eval_log(str(path), header_only=True)
        except ValueError:  # of one that a kill has cut: the one before it stands
            continue
        if log.eval.task == benchmark and log.status == "success":
            played: dict[str, Any] = {"tested": log.eval, **(log.eval.model_roles or {})}
            return path, {role: one.model.removeprefix("gongqing/") for role, one in played.items()}
    return None


def require_inspect(about: str) -> None:
    """Raises RequestError where the extra `evaluate` is not installed."""
    try:
        from inspect_ai.util import display_type
    except ImportError as error:
        hint = 'install the extra: pip install -e ".[evaluate]"'
        raise RequestError("inspect-ai is not installed", where=about, hint=hint) from error
    os.environ["INSPECT_DISPLAY"] = "none"  # it would draw over our own lines
    display_type()


def benchmark_rows(
    log: "EvalLog", benchmark: Benchmark, model: str, roles: Mapping[str, str], setting: str, *, seed: int = 0
) -> list[Row]:
    """Rows of `evaluations` of a log: each figure over all seekers, by their type and, where it is no share of them,
    over the worst tenth; and the share of seekers without a score, for a reply could not be had or read. Intervals are
    by seeker.
    """
    judge = ", ".join(roles[role] for role in ROLES[benchmark])
    about = {"suite": benchmark, "model": model, "judge": judge, "mode": setting}
    samples = log.samples or []
    scores = [next(iter(one.scores.values())) for one in samples if one.scores]
    given = [one.value if isinstance(one.value, dict) else {} for one in scores]
    types = [str((one.metadata or {})["type"]) for one in scores]
    rows: list[Row] = []
    for metric in given[0] if given else ():
        values = np.array([one[metric] for one in given], np.float64)
        is_share = metric in get_args(End)
        estimated = estimate_share if is_share else estimate_mean
        of_types = {f"type {kind}": values[[one == kind for one in types]] for kind in sorted(set(types))}
        for subset, chosen in {"all": values, **of_types}.items():
            estimate = estimated(chosen, range(len(chosen)), seed=seed)
            rows.append(about | {"metric": metric, "subset": subset, "n": len(chosen)} | estimate._asdict())
        if not is_share:  # without an interval: a bootstrap of so few of the lowest hardly ever holds the truth
            worst = {"value": _worst(values), "low": None, "high": None}
            rows.append(about | {"metric": metric, "subset": WORST, "n": len(values)} | worst)
    unscored = {"value": (len(samples) - len(scores)) / len(samples) if samples else None, "low": None, "high": None}
    rows.append(about | {"metric": "unscored", "subset": "all", "n": len(samples)} | unscored)
    return rows


def _worst(values: Floats) -> float:
    """The mean of the lowest tenth, or of the part of a value that is a tenth of them."""
    size = _DECILE * len(values)
    taken = np.clip(size - np.arange(len(values)), 0, 1)
    return float(taken @ np.sort(values) / size)
