"""How rows look on a terminal: one with all its columns, what differs between two, the life of one."""

import datetime as dt
import difflib
import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

import polars as pl
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from crawlers.dates import SHANGHAI
from pipelines.cli.render import TextTable, minute, text
from pipelines.llm.ledger.records import PaidCall
from pipelines.operations.lineage import Event
from pipelines.operations.report.page import cell
from pipelines.operations.report.section import Section
from pipelines.operations.report.section import Table as Figures
from schemas.table import LlmMade
from schemas.tables import TABLES

_SPEAKERS = {"seeker": "cyan", "user": "cyan", "supporter": "green", "assistant": "green", "system": "magenta"}
_SPEECH = ("role", "who", "text", "content")
# Who made a row stands behind what it says.
_PROVENANCE = LlmMade.column_names()
_SHORT = 40  # columns of a value that stands in the line of its name
_BESIDE = 100  # columns of a terminal that has room for a dialogue beside its candidate
_MOST_TEXT = 400  # characters of a text in the life of a row
_WORDS = re.compile(r"[^\W\u2e80-\uffff]+|\s+|.", re.DOTALL)  # a Chinese character is one
_AROUND = 12  # words around one that changed


def row(table: str, values: Mapping[str, Any], dialogue: Mapping[str, Any] | None = None, width: int = 200) -> Panel:
    """One row, every column under its name, who made it last; turns as a conversation. The sampled round that it is
    about stands beside it, or above where the terminal is narrow.
    """
    key = TABLES[table].key() if table in TABLES else ["row_id"]
    title = " ".join(str(values[name]) for name in key if name in values)
    parts: list[RenderableType] = []
    for name, value in values.items():
        if name not in key and name not in _PROVENANCE and value is not None and value != []:
            parts += _field(name, value)
    made = [f"{name} {_short(name, values[name])}" for name in _PROVENANCE if values.get(name) is not None]
    if made:
        parts.append(text("made by: " + ", ".join(made), "dim"))
    shown: RenderableType = Group(*parts)
    if dialogue is not None:
        context = Group(*_field("history", dialogue["history"]), *_field("reference", dialogue["reference"]))
        shown = _beside(context, shown) if width >= _BESIDE else Group(context, Rule(style="dim"), shown)
    return Panel(shown, title=text(f"{table}  {title}"), title_align="left")


def _short(name: str, value: Any) -> str:
    """Of a key of 64 digits its beginning: --json has it whole."""
    return f"{value[:12]}…" if name == "request_key" else str(value)


def _beside(left: RenderableType, right: RenderableType) -> Table:
    grid = Table.grid(padding=(0, 3), expand=True)
    for _ in range(2):
        grid.add_column(ratio=1, overflow="fold")
    grid.add_row(left, right)
    return grid


def _field(name: str, value: Any) -> list[RenderableType]:
    label = text(name, "bold yellow")
    is_nested = isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], list | dict))
    if not is_nested and cell_len(short := _said(value)) <= _SHORT and "\n" not in short:
        return [label.append(text(f"  {short}", "not bold default"))]
    return [label, Padding(_value(value), (0, 0, 0, 2))]


def _value(value: Any) -> RenderableType:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return Group(*(_item(item) for item in value))
    if isinstance(value, list):
        return text("\n".join(map(str, value)))
    if isinstance(value, dict):
        there = {name: inner for name, inner in value.items() if inner is not None and inner != []}
        return Group(*(part for name, inner in there.items() for part in _field(name, inner)))
    return text(_said(value))


def _said(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_said, value))
    return f"{value.astimezone(dt.UTC):%Y-%m-%d %H:%M} UTC" if isinstance(value, dt.datetime) else str(value)


def _item(item: dict[str, Any]) -> RenderableType:
    speaker = item.get("role", item.get("who"))
    words = item.get("text", item.get("content"))
    if words is None:
        return text(", ".join(f"{name} {_said(value)}" for name, value in item.items()))
    label = f"{speaker}：" if speaker else ""
    line = text(label, f"bold {_SPEAKERS.get(speaker or '', 'green')}").append(text(words, "not bold default"))
    shown = {name: value for name, value in item.items() if name not in _SPEECH and value}
    notes = text(", ".join(f"{name} {_said(value)}" for name, value in shown.items()), "dim")
    return Group(line, Padding(notes, (0, 0, 0, 2))) if shown else line


def replaced(found: Iterable[Mapping[str, str]]) -> RenderableType:
    """What cleaning took for personal data, a line each, in its context."""
    table = TextTable("row", "place", "kind", "replaced")
    for one in found:
        words = text(f"…{one['before']}").append(text(one["text"], "bold red")).append(text(f"{one['behind']}…"))
        table.add_row(one["row_id"], one["place"], one["kind"], words)
    return table if table.rows else text("nothing that was replaced is in a row that cleaning kept")


def events(life: Iterable[Event]) -> Group:
    """The life of a row, table by table: what became of it and when, its text where it is another than before, and
    what was asked of models.
    """
    parts: list[RenderableType] = []
    texts: dict[str, str] = {}  # the last of each row
    for (table, partition, made), of_table in groupby(life, lambda one: (one.table, one.partition, one.made)):
        where = text(table if partition is None else f"{table}/{partition}", "bold yellow")
        parts.append(where.append(text(f"  made {minute(made)}" if made else "", "not bold dim")))
        for one in of_table:
            line = text(f"{one.row_id}  ").append(text(one.what, "red" if one.what == "dropped" else "green"))
            why = [": ".join(filter(None, (one.reason, one.detail)))] if one.reason or one.detail else []
            if not texts.get(one.row_id):
                why += [f"posted {one.posted.astimezone(SHANGHAI):%Y-%m-%d}"] if one.posted else []
                why += [f"crawled {minute(one.crawled)}"] if one.crawled else []
            parts.append(Padding(line.append(text(f"  {', '.join(why)}" if why else "")), (0, 0, 0, 2)))
            parts += [Padding(text(_call(call), "magenta"), (0, 0, 0, 4)) for call in one.calls]
            if one.text and one.text != texts.get(one.row_id):
                texts[one.row_id] = one.text
                parts.append(Padding(text(_beginning(one)), (0, 0, 0, 4)))
    return Group(*parts)


def section(part: Section) -> RenderableType:
    """A section of the report: its figures, and what it shows of rows, with the marks of what went and came."""
    shown: list[RenderableType] = [text(part.problem, "red")] if part.problem else []
    shown += [_figures(table) for table in part.tables if table.rows]
    for sample in part.samples:
        shown += [text(sample.title, "bold yellow")]
        for one in sample.texts:
            pieces = [text(f"{one.label} {one.of}".strip(), "dim")] if one.label else []
            marked = text("").join(
                text(piece, {"del": "red strike", "ins": "green"}.get(mark, "")) for mark, piece in one.pieces
            )
            shown += [*pieces, Padding(marked, (0, 0, 1, 4))]
        shown += [_figures(sample.steps)] if sample.steps else []
    return Group(*shown) if shown else text("nothing to show")


def _figures(table: Figures) -> Padding:
    first = zip(table.columns, table.rows[0], strict=True)
    right = {head for head, value in first if isinstance(value, int | float)}
    figures = TextTable(*table.columns, right=right, title=table.title or None)
    for values in table.rows:
        figures.add_row(*map(cell, values))
    return Padding(figures, (0, 0, 1, 0))


def _beginning(event: Event) -> str:
    whole = event.text or ""
    more = f"… ({len(whole):,} characters: gongqing show {event.table} --id {event.row_id})"
    return whole if len(whole) <= _MOST_TEXT else whole[:_MOST_TEXT] + more


def _call(call: PaidCall) -> str:
    served = f", answered by {call.model_served}" if call.model_served not in (None, call.alias) else ""
    risk = f", {call.at_risk:.6f} at risk" if call.at_risk else ""
    return (
        f"asked {call.alias}{served}, {minute(call.at)}: {call.status}, {call.tokens_in:,} tokens in, "
        f"{call.tokens_out:,} out, {call.cost:.6f} {call.currency}{risk}"
    )


def event_record(event: Event) -> dict[str, Any]:
    """An event as `why --json` prints it."""
    calls = [{name: getattr(call, name) for name in PaidCall.__slots__} for call in event.calls]
    return {**event._asdict(), "calls": calls}


def changed_keys(frame: pl.DataFrame, key: list[str], console: Console, sign: str, most: int = 20) -> None:
    """The keys of added or removed rows, at most `most` of them."""
    style = {"+": "green", "-": "red"}[sign]
    for values in frame.head(most).iter_rows(named=True):
        console.print(text(f"{sign} {_name(values, key)}"), style=style, highlight=False)
    _more(frame, console, sign, most)


def changed_rows(
    frame: pl.DataFrame, before: pl.DataFrame, after: pl.DataFrame, key: list[str], console: Console, most: int = 20
) -> None:
    """The rows that changed, at most `most` of them, with the old and the new words of each column that differs."""
    rows = [{_name(one, key): one for one in rows.iter_rows(named=True)} for rows in (before, after)]
    for values in frame.head(most).iter_rows(named=True):
        name = _name(values, key)
        console.print(text(f"~ {name}", "yellow"), highlight=False)
        for column in values["columns"]:
            old, new = (_plain(side.get(name, {}).get(column)) for side in rows)
            words = differing_words(old, new, in_colour=console.color_system is not None and not console.no_color)
            console.print(Padding(text(f"{column}: ", "bold").append(words), (0, 0, 0, 2)), highlight=False)
    _more(frame, console, "~", most)


def _name(values: Mapping[str, Any], key: list[str]) -> str:
    return " ".join(str(values[column]) for column in key)


def _more(frame: pl.DataFrame, console: Console, sign: str, most: int) -> None:
    if frame.height > most:
        console.print(f"{sign} … and {frame.height - most:,} more", highlight=False)


def _plain(value: Any) -> str:
    """A value as a text: of a list of answers or turns, a line each."""
    if isinstance(value, list):
        return "\n".join(map(_plain, value))
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(inner)}" for name, inner in value.items() if inner not in (None, []))
    return "" if value is None else str(value)


def differing_words(old: str, new: str, *, in_colour: bool) -> Text:
    """Two texts as one: what only the old one has struck out in red, what only the new one has in green; without
    colours as [-old-]{+new+}. Of what they share stands what is near.
    """
    shown = text("", "not bold default")
    runs = _runs(*(_WORDS.findall(one) for one in (old, new)))
    for place, (gone, come) in enumerate(runs):
        if gone == come:
            shown.append(text(_near(gone, first=place == 0, last=place == len(runs) - 1)))
            continue
        for words, style, marks in ((gone, "red strike", "[-{}-]"), (come, "green", "{{+{}+}}")):
            if words:
                joined = "".join(words)
                shown.append(text(joined, style) if in_colour else text(marks.format(joined)))
    return shown


def _runs(before: list[str], after: list[str]) -> list[tuple[list[str], list[str]]]:
    """The words of two texts, run by run, those that they share in both; no run of blanks parts two that differ."""
    runs: list[tuple[list[str], list[str]]] = []
    parts = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    for place, (what, start, end, new_start, new_end) in enumerate(parts):
        old, new = before[start:end], after[new_start:new_end]
        shared = what == "equal" and not (0 < place < len(parts) - 1 and "".join(old).isspace())
        if runs and not shared and runs[-1][0] != runs[-1][1]:
            runs[-1] = (runs[-1][0] + old, runs[-1][1] + new)
        else:
            runs.append((old, new))
    return runs


def _near(words: list[str], *, first: bool, last: bool) -> str:
    """Words between two changes, the middle of many left out."""
    before, behind = (0 if first else _AROUND), (0 if last else _AROUND)
    if len(words) <= before + behind + 3:
        return "".join(words)
    return "".join((*words[:before], " … ", *words[len(words) - behind :]))
