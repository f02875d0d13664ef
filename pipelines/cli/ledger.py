"""Commands of the ledger: what was asked of models, and what it cost."""

from pathlib import Path
from typing import Annotated, Any

import typer

from pipelines.cli import terminal
from pipelines.cli.app import ledger_app
from pipelines.cli.terminal import AsJson
from pipelines.errors import RequestError, UnknownName
from pipelines.settings import home, load


@ledger_app.callback()
def ledger(
    context: typer.Context,
    open_: Annotated[bool, typer.Option("--open", help="Calls without an end: under way, or lost.")] = False,
    as_json: AsJson = False,
) -> None:
    """Calls, tokens and money by stage, model and day."""
    if context.invoked_subcommand is not None:
        return
    from dataclasses import asdict

    from pipelines.cli import render as display

    with terminal.ledger() as book:
        if book is None:
            terminal.put("[]" if as_json else "no model was asked yet; gongqing refresh --provider openai --estimate")
            return
        rows: list[Any] = [*(book.open_attempts() if open_ else book.spend())]
    if as_json:
        terminal.put(display.as_json([asdict(one) for one in rows]))
    elif open_:
        terminal.put(display.open_attempts(rows) if rows else "every call has an end")
    else:
        terminal.put(display.spend(rows))


@ledger_app.command(epilog="Example: gongqing ledger budgets")
def budgets(as_json: AsJson = False) -> None:
    """The open budgets: of a refresh that is at work, or was broken off and will go on with what is left."""
    from pipelines.cli import render as display

    with terminal.ledger() as book:
        opened = book.budgets() if book else []
    if as_json:
        terminal.put(display.as_json([display.budget_record(one) for one in opened]))
    else:
        terminal.put(display.budgets(opened) if opened else "no budget is open")


@ledger_app.command("close-budget", epilog="Example: gongqing ledger close-budget refresh:topics")
def close_budget(
    name: Annotated[str, typer.Argument(help="As `gongqing ledger budgets` names it: refresh, refresh:topics …")],
) -> None:
    """End a budget that was broken off: the next one of its name begins at nothing."""
    from pipelines.cli import render as display
    from pipelines.store.suppression import alone

    with alone(home()), terminal.ledger() as book:
        known = {one.of: one for one in book.budgets()} if book else {}
        if name not in known:
            raise UnknownName("open budget", name, known)
        book.close_budget(name)
    terminal.put(display.budgets([known[name]]))
    terminal.line(f"{name} is closed")


@ledger_app.command("give-up-batch", epilog="Example: gongqing ledger give-up-batch 3")
def give_up_batch(
    number: Annotated[int, typer.Argument(help="As the refusal names it: a batch that nobody can collect any more.")],
) -> None:
    """End a batch whose host or price has changed: its questions are asked again, what it may cost stays set aside."""
    with terminal.ledger() as book:
        if book is None:
            raise RequestError("there is no ledger, so there are no batches", where=home(), hint="ask models first")
        left = book.batches.give_up(number)
    terminal.line(f"batch {number} is given up: {left:,} questions that it had will be asked again")


@ledger_app.command(epilog="Example: gongqing ledger compact")
def compact() -> None:
    """Write the ledger's file again, without the room that its pages have left. Twice its size has to be free."""
    from pipelines.store.suppression import alone

    with alone(home()), terminal.ledger() as book:
        if book is None:
            raise RequestError("there is no ledger to compact", where=home(), hint="ask models first")
        before = book.path.stat().st_size
        book.compact()
        after = book.path.stat().st_size
    terminal.line(f"{before / 1e6:,.1f} MB before, {after / 1e6:,.1f} MB now")


@ledger_app.command(epilog="Example: gongqing ledger record answers.jsonl --stage topics")
def record(
    file: Annotated[Path, typer.Argument(help="The file to make, JSON lines.")],
    stage: Annotated[list[str] | None, typer.Option(help="Only these stages; may be given several times.")] = None,
) -> None:
    """Write the answers of the ledger as recordings for the provider `replay`."""
    from pipelines.llm.providers.replay import record as write

    with terminal.ledger() as book:
        if book is None:
            raise RequestError("there is no ledger to record from", where=home(), hint="ask models first")
        written = write(book, file, stage, extra=load(home()).llm.profiles)
    terminal.line(f"{written:,} answers recorded in {file}")
