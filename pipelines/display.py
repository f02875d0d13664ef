"""How rows, tables of tables and events look on a terminal."""

import json
from typing import Any

import polars as pl
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pipelines.llm.asking import Estimate
from pipelines.llm.ledger_records import OpenAttempt, Spend
from pipelines.stats import PaperTable
from pipelines.store import Version
from pipelines.why import Event
from schemas.tables import TABLES

_COUNTS = ("calls", "failed", "unsettled", "tokens_in", "tokens_out")
_SPEAKERS = {"seeker": "cyan", "user": "cyan", "supporter": "green", "assistant": "green", "system": "magenta"}


def version_record(version: Version) -> dict[str, Any]:
    """A version as `tables --json` lists it."""
    return {
        "table": version.table,
        "partition": version.partition,
        "version": version.version,
        "rows": version.rows,
        "dropped": version.dropped,
    }


def versions(found: list[Version], *, all_versions: bool = False) -> Table:
    """A table of tables, narrow enough for a terminal: of a version as much as every command understands."""
    table = Table()
    for name in ("table", "version", "rows", "dropped", "made", *(["current"] if all_versions else [])):
        table.add_column(name, justify="right" if name in {"rows", "dropped"} else "left", no_wrap=True)
    days = {} if all_versions else _days(found)
    for source, of_source in days.items():
        rows, dropped = (sum(counts) for counts in zip(*((one.rows, one.dropped) for one in of_source), strict=True))
        made = max(one.manifest.runs[-1].at for one in of_source).astimezone().strftime("%Y-%m-%d %H:%M")
        table.add_row(f"raw_posts/{source}", f"{len(of_source)} days", f"{rows:,}", f"{dropped:,}", made)
    for one in found:
        if days and one.table == "raw_posts":
            continue
        made = one.manifest.runs[-1].at.astimezone().strftime("%Y-%m-%d %H:%M")
        marks = ["yes" if one.current else ""] if all_versions else []
        table.add_row(one.name, one.version[:8], f"{one.rows:,}", f"{one.dropped:,}", made, *marks)
    return table


def _days(found: list[Version]) -> dict[str, list[Version]]:
    """The crawled days by their source: a line for each of them would hide all the rest."""
    by_source: dict[str, list[Version]] = {}
    for one in found:
        if one.table == "raw_posts":
            by_source.setdefault(str(one.partition).rpartition("@")[0], []).append(one)
    return by_source


def row(table: str, values: dict[str, Any]) -> Panel:
    """One row, every column under its name; what was said, as a conversation."""
    key = TABLES[table].key() if table in TABLES else ["row_id"]
    title = " ".join(str(values[name]) for name in key if name in values)
    parts: list[RenderableType] = []
    for name, value in values.items():
        if name in key or value is None or value == []:
            continue
        parts.append(Text(name, style="bold yellow"))
        parts.append(_value(value))
    return Panel(Group(*parts), title=f"{table}  {title}", title_align="left")


def _value(value: Any) -> RenderableType:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return Group(*(_item(item) for item in value))
    if isinstance(value, list):
        return Text("  " + "\n  ".join(map(str, value)))
    if isinstance(value, dict):
        return Group(*(Group(Text(f"  {name}", style="yellow"), _value(inner)) for name, inner in value.items()))
    return Text(f"  {value}")


def _item(item: dict[str, Any]) -> RenderableType:
    speaker = item.get("role")
    words = item.get("text", item.get("content"))
    if words is None:
        return Text("  " + ", ".join(f"{name} {value}" for name, value in item.items()))
    label = f"{speaker}：" if speaker else ""
    notes = {name: value for name, value in item.items() if name not in {"role", "text", "content"} and value}
    line = Text("  ").append(label, style=f"bold {_SPEAKERS.get(speaker or '', 'green')}").append(str(words))
    return line.append(f"  {notes}", style="dim") if notes else line


def paper_table(found: PaperTable) -> Table:
    """A table of a paper with our figures; what cannot be right is marked with *."""
    table = Table(title=found.title, caption="\n".join([*found.notes, "* cannot be right"]), caption_justify="left")
    for place, name in enumerate(found.columns):
        table.add_column(name, justify="left" if place == 0 else "right")
    for row_place, values in enumerate(found.rows):
        cells = [
            ("–" if value is None else f"{value:,}") + ("*" if (row_place, place) in found.impossible else "")
            if not isinstance(value, str)
            else value
            for place, value in enumerate(values)
        ]
        table.add_row(*cells)
    return table


def events(found: list[Event]) -> Table:
    """The life of a row."""
    table = Table()
    for name in ("table", "row", "what", "reason", "detail"):
        table.add_column(name, no_wrap=name == "table", overflow="fold")
    for event in found:
        where = event.table if event.partition is None else f"{event.table}/{event.partition}"
        style = "red" if event.what == "dropped" else "green"
        what = Text(event.what, style=style)
        table.add_row(where, event.row_id, what, event.reason or "", event.detail or "")
    return table


def as_json(value: Any) -> str:
    """What `--json` prints: UTF-8, times as ISO 8601."""
    return json.dumps(value, ensure_ascii=False, indent=1, default=lambda other: other.isoformat())


def estimates(found: list[tuple[str, Estimate | None]]) -> Table:
    """What the questions of each stage would take, by model; at most, for every reply is counted at its longest."""
    table = Table(caption="as the tables stand now; replies counted at their longest, repairs on top")
    for name in ("stage", "model", "calls", "in the ledger", "tokens in", "tokens out", "money"):
        table.add_column(name, justify="left" if name in {"stage", "model"} else "right", no_wrap=True)
    for stage, taken in found:
        if taken is None:
            table.add_row(stage, "what it is made from was never made")
            continue
        if not taken.by_model:
            table.add_row(stage, "nothing to ask")
        for model, part in taken.by_model.items():
            figures = (part.calls, part.cached, part.tokens_in, part.tokens_out)
            table.add_row(stage, model, *(f"{one:,}" for one in figures), f"{part.cost:.4f} {taken.currency}")
    known = [taken for _, taken in found if taken is not None]
    totals = [sum(getattr(taken, name) for taken in known) for name in ("calls", "cached", "tokens_in", "tokens_out")]
    table.add_section()
    table.add_row("all", "", *(f"{one:,}" for one in totals), f"{sum(taken.cost for taken in known):.4f}")
    return table


def spend(found: list[Spend]) -> Table:
    """What was asked of models, and what it cost."""
    table = Table(caption="at risk: calls of which nobody knows whether they were billed")
    names = ("stage", "model", "answered by", "day", "calls", "failed", "open", "in", "out", "money", "at risk")
    for place, name in enumerate(names):
        table.add_column(name, justify="left" if place < 4 else "right", overflow="fold")
    for one in found:
        table.add_row(
            one.stage,
            one.alias,
            one.model_served or "",
            one.day,
            *(f"{count:,}" for count in (one.calls, one.failed, one.unsettled, one.tokens_in, one.tokens_out)),
            f"{one.cost:.4f} {one.currency}",
            f"{one.at_risk:.4f}",
        )
    table.add_section()
    for currency in dict.fromkeys(one.currency for one in found):
        of_it = [one for one in found if one.currency == currency]
        counts = (sum(getattr(one, name) for one in of_it) for name in _COUNTS)
        money, at_risk = sum(one.cost for one in of_it), sum(one.at_risk for one in of_it)
        table.add_row(
            "all", "", "", "", *(f"{count:,}" for count in counts), f"{money:.4f} {currency}", f"{at_risk:.4f}"
        )
    return table


def open_attempts(found: list[OpenAttempt]) -> Table:
    """Calls without an end, the oldest first."""
    table = Table()
    for name in ("stage", "model", "since", "set aside", "what", "key"):
        table.add_column(name, no_wrap=name != "key", overflow="fold")
    for one in found:
        what = "lost" if one.lost else "in a batch" if one.batch is not None else "under way"
        since = one.started.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        table.add_row(one.stage, one.alias, since, f"{one.reserve:.6f} {one.currency}", what, one.key)
    return table


def changed_keys(frame: pl.DataFrame, key: list[str], console: Console, sign: str, most: int = 20) -> None:
    """The keys of added, removed or changed rows, at most `most` of them."""
    for values in frame.head(most).iter_rows(named=True):
        name = " ".join(str(values[column]) for column in key)
        told = f"  ({', '.join(values['columns'])})" if sign == "~" else ""
        console.print(f"{sign} {name}{told}", style={"+": "green", "-": "red"}.get(sign, "yellow"), highlight=False)
    if frame.height > most:
        console.print(f"{sign} … and {frame.height - most:,} more")
