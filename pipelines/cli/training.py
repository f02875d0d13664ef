"""The command that trains."""

from typing import Annotated

import typer

from pipelines.cli import terminal
from pipelines.cli.app import app
from pipelines.settings import home


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(help="mindchat_ecot, empathy_coe or compeer_cer (docs/training.md).")],
    preset: Annotated[str, typer.Option(help="The machine: gpu, or cpu_smoke, a tiny model on two cores.")] = "gpu",
    release: Annotated[str | None, typer.Option(help="Which one (default: the current release).")] = None,
    name: Annotated[str, typer.Option(help="Of the run (default: recipe, preset and release).")] = "",
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of verl.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Compose and check the configuration; train nothing.")
    ] = False,
) -> None:
    """Train by GRPO with verl on a release; broken off, the same command goes on from the last checkpoint."""
    from pipelines import display
    from pipelines.errors import UnknownName
    from pipelines.train import recipe as recipes
    from pipelines.train.launch import REWARD, prepare

    if preset not in recipes.PRESETS:
        raise UnknownName("preset", preset, recipes.PRESETS)
    told = recipes.recipe(recipe)
    run = prepare(home(), told, preset, release=release, name=name, given=recipes.given(settings or []))
    if dry_run:
        with terminal.working("composing the configuration"):
            run.composed()
        found = recipes.differences(told, run.overrides)
        terminal.put(display.differences(found) if found else f"every number is that of the paper ({told.about})")
        terminal.line(f"verl accepts the configuration of {len(run.overrides)} settings; nothing was trained")
        return
    terminal.line(f"{run.folder.name}: {told.about}, release {run.release.name} ({run.release.content})")
    model = run.train(lambda step, metrics: terminal.line(display.training_step(step, run.steps, metrics)))
    rewards = [metrics[REWARD] for _, metrics in sorted(run.metrics().items()) if REWARD in metrics]
    if rewards:
        terminal.line(f"mean reward of a step: {rewards[0]:.2f} at first, {rewards[-1]:.2f} at last")
    terminal.line(f"the model: {model}")
