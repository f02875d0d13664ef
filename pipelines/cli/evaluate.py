"""Commands that evaluate: a model, a run, a file of answers, judges anew, people's rankings, a release's data."""

from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pipelines.cli import terminal
from pipelines.cli.app import JUDGE, app
from pipelines.cli.terminal import AsJson
from pipelines.errors import RequestError
from pipelines.settings import home, load


class _TargetOrCommand(TyperGroup):
    """`evaluate TARGET` is `evaluate model TARGET`, its options before or behind."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "--help"):
            args = ["model", *args]
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed


evaluate_app = typer.Typer(
    cls=_TargetOrCommand,
    no_args_is_help=True,
    epilog="Example: gongqing evaluate answers.jsonl",
    help="Evaluate answers, models, runs and data (docs/evaluating.md). evaluate TARGET is evaluate model TARGET.",
)
app.add_typer(evaluate_app, name="evaluate", rich_help_panel=JUDGE)

Judges = Annotated[list[str] | None, typer.Option("--judge", help="The profile of a judge; may be given again.")]
Samples = Annotated[int, typer.Option(min=1, help="How often a judge scores an answer.")]
Provider = Annotated[str, typer.Option(help="Who answers and judges: openai or replay.")]
Budget = Annotated[float | None, typer.Option(help="The most that asking may cost.")]


@evaluate_app.command(epilog="Example: gongqing evaluate model answers.jsonl --suite automatic")
def model(
    target: Annotated[str, typer.Argument(help="A file of answers (JSON lines), a run of training, or a profile.")],
    suites: Annotated[
        list[str] | None, typer.Option("--suite", help="automatic (default), judge, reward_model, sage, esc_eval.")
    ] = None,
    judges: Judges = None,
    samples: Samples = 5,
    release: Annotated[str | None, typer.Option(help="Which one (default: the current release).")] = None,
    prompts: Annotated[
        str | None, typer.Option(help="grpo_ecot, grpo_coe or grpo_cer (default: the run's, else grpo_coe).")
    ] = None,
    split: Annotated[str, typer.Option(help="test or validation.")] = "test",
    size: Annotated[int, typer.Option(min=0, help="How many prompts; 0: all, as of a file.")] = 100,
    seekers: Annotated[
        Path | None, typer.Option(help="Of sage and esc_eval: profiles of seekers, JSON lines.", dir_okay=False)
    ] = None,
    seeker: Annotated[str | None, typer.Option(help="The profile of the model that plays them.")] = None,
    setting: Annotated[str, typer.Option(help="Of sage: published, 10 turns, or compeer, 20.")] = "published",
    provider: Provider = "openai",
    budget: Budget = None,
    name: Annotated[str | None, typer.Option(help="Of the evaluation (default: the target's).")] = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate a model beside three baselines; broken off, the same command goes on, and pays for nothing twice."""
    from pipelines.operations.evaluate.evaluating import EvaluationOptions, evaluate

    options = EvaluationOptions(
        suites=tuple(dict.fromkeys(suites or (["automatic", "judge"] if judges else ["automatic"]))),
        release=release,
        prompts=prompts,
        split=split,
        size=size or None,
        judges=tuple(judges or ()),
        samples=samples,
        seekers=seekers,
        seeker=seeker,
        setting=setting,
        provider=provider,
        budget=None if budget is None else Decimal(str(budget)),
    )
    with nullcontext() if as_json else terminal.progress() as shown:
        made = evaluate(home(), load(home()), target, options, name=name, progress=shown)
    _show(made.version, as_json)
    for reason, rows in made.unanswered.items():
        typer.echo(f"{rows:,} prompts without an answer: {reason}", err=as_json)


@evaluate_app.command(epilog="Example: gongqing evaluate rejudge answers --judge qwen2.5-72b --budget 5")
def rejudge(
    name: Annotated[str, typer.Argument(help="An evaluation, or a run of training with rollouts.")],
    judges: Judges = None,
    samples: Samples = 5,
    suite: Annotated[str, typer.Option(help="judge, or esc_eval: the dialogues of its last log.")] = "judge",
    step: Annotated[int | None, typer.Option(help="Of a run: which step's rollouts, kept as RUN-stepN.")] = None,
    provider: Provider = "openai",
    budget: Budget = None,
    as_json: AsJson = False,
) -> None:
    """Ask judges about answers that are there, without paying for the answers again."""
    from pipelines.operations.evaluate.evaluating import EvaluationOptions
    from pipelines.operations.evaluate.rejudging import rejudge as judge_again

    options = EvaluationOptions(
        suites=(suite,),
        judges=tuple(judges or ()),
        samples=samples,
        provider=provider,
        budget=None if budget is None else Decimal(str(budget)),
    )
    with nullcontext() if as_json else terminal.progress() as shown:
        version = judge_again(home(), load(home()), name, options, step=step, progress=shown)
    _show(version, as_json)


@evaluate_app.command(epilog="Example: gongqing evaluate people")
def people(as_json: AsJson = False) -> None:
    """The figures of people's rankings and comparisons: Win@1, Win@2, mean rank, win rates."""
    from pipelines.operations.evaluate.evaluating import evaluate_people

    _show(evaluate_people(home()), as_json)


@evaluate_app.command(epilog="Example: gongqing evaluate data v1")
def data(
    release: Annotated[str | None, typer.Argument(help="Which release (default: the current one).")] = None,
    as_json: AsJson = False,
) -> None:
    """The data of a release: variety, balance, likeness across splits, copies, machine-made words, personal data."""
    from pipelines.operations.evaluate.evaluating import evaluate_data

    with terminal.working("reading the release"):
        version = evaluate_data(home(), release)
    _show(version, as_json)


@evaluate_app.command(epilog="Example: gongqing evaluate report --to out")
def report(
    names: Annotated[list[str] | None, typer.Argument(help="Which evaluations (default: all).")] = None,
    folder: Annotated[Path, typer.Option("--to", help="Where evaluation.md and evaluation.html are written.")] = Path(),
) -> None:
    """Write the evaluations as one page, Markdown and HTML, beside the papers' tables."""
    from pipelines.operations.evaluate.report import write_report

    if folder.exists() and not folder.is_dir():
        raise RequestError("a folder is needed for the two files", where=folder, hint="--to, a folder")
    for path in write_report(home(), names or [], folder):
        terminal.line(str(path))


def _show(version: Any, as_json: bool) -> None:
    from pipelines.cli import render as display
    from pipelines.operations.evaluate.report import judges_beside_people

    rows = terminal.store().read(version.table, version.version, version.partition).collect()
    terminal.put(display.as_json(rows.to_dicts()) if as_json else display.evaluation(rows))
    if not as_json:
        for line in judges_beside_people(terminal.store(), [str(version.partition)]):
            terminal.line(line)
        terminal.line(f"kept as evaluations/{version.partition}; gongqing evaluate report writes a page")
