"""Commands of the home as a whole: erase, doctor, ui."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli import terminal
from pipelines.cli.app import GIVE, LOOK, app
from pipelines.cli.terminal import AsJson
from pipelines.errors import GongqingError, RequestError
from pipelines.settings import home


@app.command("erase", rich_help_panel=GIVE, epilog="Example: gongqing erase sample:p083 --dry-run")
def erase_(
    rows: Annotated[
        list[str] | None, typer.Argument(metavar="ROW_ID...", help="Posts, answers, dialogues, by their ids.")
    ] = None,
    author: Annotated[list[str] | None, typer.Option(help="All that was written under a pseudonym (u_…).")] = None,
    file: Annotated[list[Path] | None, typer.Option(help="All that was imported from a file.")] = None,
    again: Annotated[
        bool, typer.Option("--again", help="All that was erased before, and came back with a backup.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Look for everything; erase nothing.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Finish what was begun and killed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase rows and all that was made from them, everywhere in the home, for good (docs/erasing.md)."""
    from pipelines.cli import render as display
    from pipelines.operations.erase import erasing
    from pipelines.operations.erase.survey import Request

    request = Request(tuple(rows or ()), tuple(author or ()), tuple(file or ()), again)
    if resume and request != Request():
        raise RequestError("--resume finishes what was begun", hint="ask for new rows in a command of their own")
    if dry_run:
        with terminal.working("looking"):
            plan = erasing.look(home(), request)
        terminal.put(display.as_json(plan.touched) if as_json else display.erasure_plan(plan))
        return
    with terminal.working("erasing"):
        receipts = erasing.resume(home()) if resume else erasing.erase(home(), request)
    if as_json:
        terminal.put(display.as_json([receipt.model_dump(mode="json") for receipt in receipts]))
        return
    for receipt in receipts:
        terminal.put(display.erasure(receipt))
    if not receipts:
        terminal.line("no erasure is unfinished")


@app.command(rich_help_panel=LOOK, epilog="Example: gongqing doctor")
def doctor(as_json: AsJson = False) -> None:
    """Look at the machine, the home, and every version in it."""
    from pipelines.cli import render as display
    from pipelines.operations.doctor import examine, verdict
    from schemas.tables import TABLES

    findings = list(examine(home()))
    if as_json:
        terminal.put(display.as_json([finding._asdict() for finding in findings]))
    else:
        terminal.line(verdict(findings))
        tables = [one.what.partition("/")[0] for one in findings if one.state == "ok"]
        sound = Counter(table for table in tables if table in TABLES)
        for one in findings:
            if one.state != "ok" or one.what.partition("/")[0] not in sound:
                terminal.line(f"{one.state:8} {one.what}: {one.detail}")
        if sound:
            places = f"{sound.total():,} places of {len(sound)} tables"
            terminal.line(f"ok       {places}: every version compared (--json names them)")
    if any(finding.state == "broken" for finding in findings):
        raise typer.Exit(1)


@app.command(rich_help_panel=LOOK, epilog="Example: gongqing alerts --test")
def alerts(
    test: Annotated[bool, typer.Option("--test", help="Send one message, to see whether it comes.")] = False,
) -> None:
    """Tell whom GONGQING_RECEIVERS names of what failed and what stands, where no web UI runs (docs/alerts.md)."""
    from pipelines.operations.alerts.sending import RECEIVERS, receivers, send

    if not receivers():
        hint = "addresses of apprise, a space between two: feishu://…, mailtos://… (docs/alerts.md)"
        raise RequestError(f"{RECEIVERS} names nobody", hint=hint)
    if test:
        if refused := send(receivers(), "a test", "Who reads this is told of what fails."):
            raise GongqingError(f"sent, and not taken by all: {'; '.join(refused)}", where=RECEIVERS)
        terminal.line("sent")
        return
    from pipelines.defs.alerts import look
    from pipelines.defs.instance import instance

    with instance(home()) as opened:
        sent = look(home(), opened)
    terminal.line(f"{sent} message{'' if sent == 1 else 's'} sent")


@app.command(rich_help_panel=LOOK, epilog="Example: gongqing ui --port 3000")
def ui(
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = 3000,
    host: Annotated[str, typer.Option(help="The address to listen on, as it stands in the browser.")] = "127.0.0.1",
    behind: Annotated[
        str | None, typer.Option(help="The address of a reverse proxy in front: https://data.example.")
    ] = None,
) -> None:
    """Dagster's web UI and daemon on this home, until interrupted.

    Open the address that it prints: without the token in it nobody comes in.
    """
    from pipelines.cli.ui.server import serve

    serve(home(), host, port, terminal.line, behind=behind)
