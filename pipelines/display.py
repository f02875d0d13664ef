"""How rows, tables of tables and events look on a terminal."""

import json
from typing import Any

import polars as pl
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pipelines.stats import PaperTable
from pipelines.store import Version
from pipelines.why import Event
from schemas.tables import TABLES

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


def changed_keys(frame: pl.DataFrame, key: list[str], console: Console, sign: str, most: int = 20) -> None:
    """The keys of added, removed or changed rows, at most `most` of them."""
    for values in frame.head(most).iter_rows(named=True):
        name = " ".join(str(values[column]) for column in key)
        told = f"  ({', '.join(values['columns'])})" if sign == "~" else ""
        console.print(f"{sign} {name}{told}", style={"+": "green", "-": "red"}.get(sign, "yellow"), highlight=False)
    if frame.height > most:
        console.print(f"{sign} … and {frame.height - most:,} more")
