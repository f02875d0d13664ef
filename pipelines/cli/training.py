"""The commands that train: one run, or several ablations beside each other."""

import signal
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli import terminal
from pipelines.cli.app import TRAIN, app
from pipelines.settings import home


@app.command(rich_help_panel=TRAIN, epilog="Example: gongqing train empathy_coe --preset cpu_smoke --provider none")
def train(
    recipe: Annotated[str, typer.Argument(help="mindchat_ecot, empathy_coe, compeer_cer … (docs/training.md).")],
    preset: Annotated[str, typer.Option(help="The machine: gpu, or cpu_smoke, a tiny model on two cores.")] = "gpu",
    ablation: Annotated[str, typer.Option(help="What the paper compares with its own set-up.")] = "",
    release: Annotated[str | None, typer.Option(help="Which one (default: the current release).")] = None,
    name: Annotated[str, typer.Option(help="Of the run (default: recipe, ablation, preset and release).")] = "",
    start: Annotated[str | None, typer.Option(help="The run whose model it starts from.")] = None,
    encoder: Annotated[str | None, typer.Option(help="The run whose encoder its reward asks.")] = None,
    provider: Annotated[str | None, typer.Option(help="Who judges: openai, replay or none.")] = None,
    budget: Annotated[float | None, typer.Option(help="The most that judging may cost.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the trainer.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Compose and check the configuration; train nothing.")
    ] = False,
) -> None:
    """Train on a release with verl: GRPO, SFT, reward models; broken off, the same command goes on."""
    from pipelines.cli import render as display
    from pipelines.errors import TrainingFailed, UnknownName
    from pipelines.llm.interface import JUDGES, require_provider
    from pipelines.settings import load
    from pipelines.train.lengths import require_batch
    from pipelines.train.prepare import prepare
    from pipelines.train.recipe import PRESETS, load_recipe, parse_settings
    from pipelines.train.trainers import describe_course, describe_step, find_differences

    if preset not in PRESETS:
        raise UnknownName("preset", preset, PRESETS)
    judge = None if provider is None else require_provider(provider, (*JUDGES, "none"))
    run = prepare(
        home(),
        load_recipe(recipe),
        preset,
        ablation=ablation,
        release=release,
        name=name,
        start=start,
        encoder=encoder,
        provider=judge,
        budget=None if budget is None else Decimal(str(budget)),
        rewards=load(home()).rewards,
        settings=parse_settings(settings or []),
    )
    if preset == "cpu_smoke":
        terminal.line(f"cpu_smoke: {run.trainer.smoke}")
    if dry_run:
        run.check()
        with terminal.working("composing the configuration"):
            composed = run.compose()
            differences = find_differences(run.recipe, composed)
        same = "every number is that of the paper" if run.recipe.paper else "the paper gives no number of it"
        terminal.put(display.differences(differences) if differences else f"{same} ({run.recipe.about})")
        for service in ("judge", "encoder"):
            if (named := run.details.get(service)) is not None:
                words = [f"{name} {value}" for name, value in named.items()] if isinstance(named, dict) else [named]
                terminal.line(f"{service}: {', '.join(words)}")
        if run.trainer.config:
            require_batch(run.rows, composed)
        terminal.line(f"the configuration of {len(run.overrides)} settings is accepted; nothing was trained")
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the trainer is ended with this command
    terminal.line(f"{run.folder.name}: {run.ablation.about}, release {run.release.name} ({run.release.content})")
    try:
        model = run.train(
            lambda step, metrics: terminal.line(describe_step(step, run.steps, metrics)),
            lambda lines: terminal.line("\n".join(lines)),
        )
    except TrainingFailed:
        _show_outcome(run.folder)
        raise
    if course := describe_course(run.recipe.trainer, run.metrics()):
        terminal.line(course)
    _show_outcome(run.folder)
    terminal.line(f"the model: {model}")


@app.command(rich_help_panel=TRAIN, epilog="Example: gongqing experiment ablations.toml")
def experiment(
    file: Annotated[Path, typer.Argument(help="Which ablations, rows and seeds: a TOML file (docs/training.md).")],
    as_json: terminal.AsJson = False,
) -> None:
    """Train ablations on the same rows and seeds, and show one table; broken off, it goes on."""
    from pipelines.cli import render as display
    from pipelines.settings import load
    from pipelines.train.experiment import plan_runs, prepare_runs, read_experiment, train_runs
    from pipelines.train.trainers import describe_step

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    compared = read_experiment(file)
    say = (lambda _: None) if as_json else terminal.line
    planned = plan_runs(home(), compared, load(home()).rewards)
    prepare_runs(planned, lambda run: say(f"{run.folder.name}: is composed, and its rows are counted"))
    results = train_runs(
        compared,
        planned,
        on_start=lambda run: say(f"{run.folder.name}: {run.ablation.about}"),
        on_rows=lambda lines: say("\n".join(lines)),
        on_step=lambda run, step, metrics: say(describe_step(step, run.steps, metrics)),
        on_end=lambda run: _show_outcome(run.folder, say),
    )
    if as_json:
        terminal.line(display.as_json([one._asdict() for one in results]))
    else:
        terminal.put(display.ablations(results))


def _show_outcome(run: Path, say: Callable[[str], None] = terminal.line) -> None:
    """Alarms of a run, and where its page lies."""
    from pipelines.train.page import report

    outcome = report(terminal.store(), run)
    for one in outcome.alarms:
        say(f"look at this: {one.what}, since step {one.since:,}\n  {one.hint}")
    if outcome.rollouts is not None:
        say(f"what it wrote: gongqing show rollouts --partition {run.name}")
    say(f"the page of the run: {outcome.page}")
