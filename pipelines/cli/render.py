"""How tables of tables, figures and findings look on a terminal (rows: `pipelines.cli.rows`).

What people and models wrote is drawn as it is and does nothing: its control characters are shown, and no word of it is
markup.
"""

import datetime as dt
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.style import StyleType
from rich.table import Table
from rich.text import Text

from pipelines.cli.wrapping import WrappedText
from pipelines.errors import StoreError
from pipelines.llm.ledger.records import Budget, OpenAttempt, Spend
from pipelines.llm.money import amount
from schemas.labels import OMEGA

if TYPE_CHECKING:  # a second of each command, for names alone
    from pipelines.flow.preview import Preview
    from pipelines.llm.interface import Estimate
    from pipelines.operations.erase.documents import Plan, Receipt
    from pipelines.release.publish.card import PaperTable
    from pipelines.store.release_manifest import Finding, Release
    from pipelines.store.store import Version

_MOST_REASONS = 3  # of drops, in a line
_SHOWN = 10  # ids of a finding
_OF_VERSION = ("version", "rows", "dropped")

# What moves the cursor, clears the screen or turns the order of characters (Unicode's Bidi_Control).
_C0 = [point for point in range(0x20) if chr(point) not in "\n\t"]
_ESCAPED = {
    point: f"\\u{point:04x}"
    for point in (0x7F, *range(0x80, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}
_SHOWN_AS = _ESCAPED | {point: chr(0x2400 + point) for point in _C0} | {0x7F: "␡"}


class TextTable(Table):
    """A table whose names, cells, title and caption are texts, not markup. Columns fold, and stand left but for those
    of `right`.

    Blanks stand between them, for a terminal of 80 columns has none to spare for lines.
    """

    def __init__(
        self,
        *columns: str,
        right: Collection[str] = (),
        no_wrap: Collection[str] = (),
        title: str | None = None,
        caption: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**{"box": SIMPLE_HEAD, "show_edge": False, "padding": (0, 1, 0, 0), **options})
        self.title = text(title, "table.title") if title else None
        self.caption = text(caption, "table.caption") if caption else None
        for name in columns:
            justify: Literal["left", "right"] = "right" if name in right else "left"
            self.add_column(text(name), justify=justify, no_wrap=name in no_wrap, overflow="fold")

    def add_row(self, *cells: RenderableType | None, style: StyleType | None = None, end_section: bool = False) -> None:
        """A row; a string is text."""
        shown = (text(cell) if isinstance(cell, str) else cell for cell in cells)
        super().add_row(*shown, style=style, end_section=end_section)


def visible(what: str) -> str:
    """A text whose control characters do nothing: all but line breaks and tabs are drawn, as ␛ or \\u202e."""
    return what.translate(_SHOWN_AS)


def text(what: Any, style: str = "") -> Text:
    """A text that is drawn as it is: no word of it is markup."""
    return WrappedText(visible(str(what)), style=style)


def version_record(version: "Version") -> dict[str, Any]:
    """A version as `tables --json` lists it."""
    return {name: getattr(version, name) for name in ("table", "partition", *_OF_VERSION)}


def damaged_record(table: str, partition: str | None, error: StoreError) -> dict[str, Any]:
    """A table, or a partition of one, whose current version nobody can tell, as `tables --json` lists it."""
    return {"table": table, "partition": partition, **dict.fromkeys(_OF_VERSION), "damaged": error.what}


def versions(
    listed: list["Version"],
    damaged: Mapping[tuple[str, str | None], StoreError] | None = None,
    states: Mapping[str, str] | None = None,
    *,
    all_versions: bool = False,
) -> Group:
    """A table of tables, narrow enough for a terminal: of a version as much as every command understands, and its
    state. Those that wait and were never made, and those that are `damaged`, by table and partition, stand last. What
    else there is to say of states stands below, a line each.
    """
    states = states or {}
    names = ("table", "version", "rows", "dropped", "made")
    table = TextTable(*names, "current" if all_versions else "state", right={"rows", "dropped"}, no_wrap=names)
    days: dict[str, list[Version]] = {}  # by source: a line for each crawled day would hide all the rest
    for one in listed:
        if one.table == "raw_posts" and not all_versions:
            days.setdefault(str(one.partition).rpartition("@")[0], []).append(one)
    for source, of_source in days.items():
        rows, dropped = (sum(counts) for counts in zip(*((one.rows, one.dropped) for one in of_source), strict=True))
        made = minute(max(one.manifest.runs[-1].at for one in of_source))
        table.add_row(f"raw_posts/{source}", f"{len(of_source)} days", f"{rows:,}", f"{dropped:,}", made)
    for one in listed:
        if days and one.table == "raw_posts":
            continue
        made = minute(one.manifest.runs[-1].at)
        mark = text("yes" if one.current else "") if all_versions else _state(states.get(one.table, ""))
        table.add_row(one.name, one.version[:8], f"{one.rows:,}", f"{one.dropped:,}", made, mark)
    shown = {one.table for one in listed} | {name for name, _ in damaged or ()}
    for name in (name for name in states if name not in shown):
        table.add_row(name, "", "", "", "never", _state(states[name]))
    for place in damaged or ():
        table.add_row("/".join(filter(None, place)), text("damaged", "red"))
    tables: dict[str, list[str]] = {}
    for name, state in states.items():
        if _DETAIL.search(state):
            tables.setdefault(state, []).append(name)
    return Group(table, *(text(f"{', '.join(names)} {state}") for state, names in tables.items()))


# Where the short word for a state ends, and what else there is to say of it begins.
_DETAIL = re.compile(r": | \(")


def _state(state: str) -> Text:
    short = _DETAIL.split(state)[0].replace(f"{dt.datetime.now().astimezone().year}-", "")
    return text(short, "yellow" if short.startswith("stale") else "cyan" if short.startswith("waits") else "")


def minute(when: dt.datetime) -> str:
    """A time here, to the minute; without the year where it is this one, without the time where it is not."""
    here = when.astimezone()
    return here.strftime("%m-%d %H:%M" if here.year == dt.datetime.now().astimezone().year else "%Y-%m-%d")


def made(version: "Version", seconds: float | None = None) -> str:
    """A version that was just made, in a line, with the reasons of most of its drops."""
    most = list(version.manifest.reasons.items())[:_MOST_REASONS]
    why = ", ".join(f"{reason} {count:,}" for reason, count in most)
    more = ", …" if len(version.manifest.reasons) > len(most) else ""
    return (
        f"{version.name}: {version.rows:,} kept, {version.dropped:,} dropped{f' ({why}{more})' if why else ''}, "
        f"version {version.version}" + (f"  ({seconds:.1f} s)" if seconds is not None else "")
    )


def calibration(rows: pl.DataFrame) -> Table:
    """How well rules find what people labelled: a line a kind."""
    first = rows.row(0, named=True)
    shares, counts = ("precision", "recall"), ("labelled", "found", "right", "missed")
    extra = {"wrongly_changed": "posts wrongly changed", "kappa": "κ", "auc": "AUC"}
    there = [name for name in extra if rows[name].drop_nulls().len()]
    names = (*counts, *shares, *(extra[name] for name in there))
    read = f", {first['readers']} readers" if first["readers"] > 1 else ""
    title = f"{first['stage']} on {first['posts']:,} posts of {first['gold']}{read}"
    table = TextTable("kind", *names, right=names, title=title, caption="in brackets intervals of 95 % (Wilson)")
    for one in rows.iter_rows(named=True):
        cells = [f"{one[name]:,}" for name in counts]
        for name in shares:
            bounds = f" [{one[name + '_low']:.2f}, {one[name + '_high']:.2f}]" if one[name] is not None else ""
            cells.append(_figure(one[name]) + bounds)
        table.add_row(one["kind"], *cells, *(_figure(one[name]) for name in there))
    return table


def _figure(value: float | int | None) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


def mistakes(made: Iterable[Any], n: int) -> RenderableType:
    """The first `n` false alarms and misses (`operations.calibrate.measuring.Mistake`), with their words."""
    table, shown = Table("id", "kind", "", "words", "why"), Counter[str]()
    for one in made:
        shown[one.what] += 1
        if shown[one.what] <= n:
            words = text(one.before).append(text(one.text, "bold red")).append(text(one.behind))
            table.add_row(text(one.id), one.kind, one.what, words, text(one.detail))
    left = ", ".join(f"{what}: {count:,} in all" for what, count in shown.items() if count > n)
    table.caption = left or None
    return table if table.rows else text("nothing was wrong")


def paper_table(table_of_paper: "PaperTable") -> Table:
    """A table of a paper with our figures; what cannot be right is marked with *."""
    notes = [*table_of_paper.notes, *["* cannot be right"] * bool(table_of_paper.impossible)]
    table = TextTable(
        *table_of_paper.columns, right=table_of_paper.columns[1:], title=table_of_paper.title, caption="\n".join(notes)
    )
    table.caption_justify = "left"
    for row_place, values in enumerate(table_of_paper.rows):
        cells = [
            ("–" if value is None else f"{value:,}") + ("*" if (row_place, place) in table_of_paper.impossible else "")
            if not isinstance(value, str)
            else value
            for place, value in enumerate(values)
        ]
        table.add_row(*cells)
    return table


def findings(results: Iterable["Finding"], allowed: Collection[str] = ()) -> Table:
    """What the checks of a release found, and what of it somebody allowed."""
    table = TextTable("check", "", "what", "to do", "ids", show_lines=True)
    for one in results:
        refused = Text("allowed", "yellow") if one.check in allowed else Text("refused", "red")
        marks = {"refuse": refused, "leave_out": Text("rows left out", "yellow"), "warn": Text("warning", "yellow")}
        mark = marks[one.severity]
        left = len(one.examples) - _SHOWN
        ids = [*one.examples[:_SHOWN], *([f"and {left:,} more: --json"] if left > 0 else [])]
        table.add_row(one.check, mark, one.what, one.hint, "\n".join(ids))
    return table


def release_record(release: "Release", current: "Release | None") -> dict[str, Any]:
    """A release as `releases --json` lists it."""
    return {
        "name": release.name,
        "made_at": release.made_at.isoformat(),
        "content": release.content,
        "rows": {config: release.rows(config) for config in release.configs},
        "allowed": release.allowed,
        "current": release == current,
    }


def releases(known: list["Release"], current: "Release | None") -> Table:
    """A table of releases."""
    names = ("release", "made", "sets", "rows", "content", "allowed", "current")
    table = TextTable(*names, right={"sets", "rows"}, no_wrap=names)
    for one in known:
        rows = sum(map(one.rows, one.configs))
        marks = ", ".join(one.allowed), "yes" if one == current else ""
        table.add_row(one.name, minute(one.made_at), str(len(one.configs)), f"{rows:,}", one.content, *marks)
    return table


def as_json(value: Any) -> str:
    """What `--json` prints: UTF-8, times as ISO 8601, money as a number; what a terminal would obey is escaped."""
    return json.dumps(value, ensure_ascii=False, indent=1, default=_plain).translate(_ESCAPED)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value.isoformat()


def budget_record(budget: Budget) -> dict[str, Any]:
    """An open budget as `--json` prints it."""
    money = {name: amount(getattr(budget, name)) for name in ("cap", "spent", "held")}
    return {"budget": budget.of, "since": budget.opened, **money, "currency": budget.currency}


def previews(stages: "Sequence[Preview]") -> Group:
    """What a refresh would do about each stage, and why; what stages wait for stands below in full, once."""
    table = TextTable("stage", "refresh", "why", no_wrap=("stage", "refresh"))
    for one in stages:
        if one.waits is not None:
            table.add_row(one.stage.name, "waits", "; ".join([one.waits.partition(":")[0], *one.reasons]))
        elif one.reasons:
            table.add_row(one.stage.name, "would run", "; ".join(one.reasons))
        elif one.after:
            table.add_row(one.stage.name, "may run", f"after {', '.join(one.after)}")
        else:
            table.add_row(one.stage.name, "", "up to date")
    runs, may, waits = (sum(getattr(one, name) for one in stages) for name in ("runs", "may_run", "waiting"))
    lines = list(dict.fromkeys(f"waits {one.waits}" for one in stages if one.waits is not None))
    lines += [f"{runs:,} would run, {may - runs:,} may run after them, {waits:,} wait; nothing was made or asked"]
    return Group(table, *map(text, lines))


def estimates(by_stage: list[tuple[str, "Estimate | str"]]) -> Table:
    """What the questions of each stage would take, by model; at most, for every reply is counted at its longest."""
    caption = "as the tables stand now; replies counted at their longest, repairs on top"
    known = [taken for _, taken in by_stage if not isinstance(taken, str)]
    currencies = sorted({taken.currency for taken in known if taken.cost}) or ["USD"]
    counts = ("calls", "in the\nledger", "tokens\nin", "tokens\nout", f"money\n{' and '.join(currencies)}")
    table = TextTable("stage", "model", *counts, right=counts, no_wrap=counts, caption=caption)
    for stage, taken in by_stage:
        if isinstance(taken, str):
            table.add_row(stage, taken)
            continue
        if not taken.by_model:
            table.add_row(stage, "nothing to ask")
        for model, part in taken.by_model.items():
            figures = (part.calls, part.cached, part.tokens_in, part.tokens_out)
            currency = f" {taken.currency}" if len(currencies) > 1 else ""
            table.add_row(stage, model, *(f"{one:,}" for one in figures), f"{part.cost:.4f}{currency}")
    table.add_section()
    for currency in currencies:
        of_it = [taken for taken in known if taken.currency == currency or len(currencies) == 1]
        totals = [sum(getattr(one, name) for one in of_it) for name in ("calls", "cached", "tokens_in", "tokens_out")]
        name = f" {currency}" if len(currencies) > 1 else ""
        table.add_row("all", "", *(f"{one:,}" for one in totals), f"{sum(one.cost for one in of_it):.4f}{name}")
    return table


def diversity(figures: pl.DataFrame) -> Table:
    """Figures of dialogues before and after they were rewritten."""
    caption = "D a copy, R rewritten, P rewritten to a persona; the same dialogues in every column"
    table = TextTable(*figures.columns, right=set(figures.columns) - {"lang", "figure"}, caption=caption)
    for lang, figure, *values in figures.iter_rows():
        form = ",.0f" if figure in {"dialogues", "turns"} else ".3f"
        table.add_row(lang, figure, *("" if one is None else format(one, form) for one in values))
    return table


def evaluation(rows: pl.DataFrame) -> Table:
    """The figures of an evaluation, a line each."""
    figures = ("n", "value", "95 %")
    table = TextTable("suite", "model", "judge", "figure", *figures, right=figures)
    for row in rows.iter_rows(named=True):
        subset = "" if row["subset"] == "all" else row["subset"]
        figure = " ".join(filter(None, (row["metric"], row["mode"], subset)))
        value = "undefined" if row["value"] is None else f"{row['value']:.3f}"
        bounds = "" if row["low"] is None else f"{row['low']:.3f} … {row['high']:.3f}"
        table.add_row(row["suite"], row["model"], row["judge"], figure, f"{row['n']:,}", value, bounds)
    return table


def judge_tests(rows: pl.DataFrame) -> Table:
    """Whether models may stand in for people."""
    caption = "ω: share of people whom the model beats, ½ is enough; ρ: how often it is as near as they are"
    figures = ("omega", "rho", "epsilon", "kappa", "kappa_of_people")
    counts = ("items", "people")
    names = ("ω", "ρ", "ε", "κ with people", "κ among people")
    table = TextTable("question", "model", *counts, *names, "may stand in", right=(*counts, *names), caption=caption)
    for row in rows.iter_rows(named=True):
        shown = ["undefined" if row[name] is None else f"{row[name]:.2f}" for name in figures]
        may = "yes" if row["omega"] >= OMEGA else "no"
        table.add_row(row["question"], row["model"], f"{row['n_items']:,}", f"{row['n_people']:,}", *shown, may)
    return table


def agreement(figures: pl.DataFrame, work: pl.DataFrame) -> Group:
    """How far people agree, how they answer what is known, and how long they take."""
    from pipelines.review.agreement import present

    shown = present(figures)
    caption = "95 % intervals, items drawn again; of one person: against the others"
    table = TextTable(*shown.columns, right=("items", "raters"), caption=caption)
    for cells in shown.iter_rows():
        table.add_row(*cells)
    counts = ("items", "median seconds", "too fast", "known items right")
    of_people = TextTable("annotator", *counts, right=counts)
    for row in work.iter_rows(named=True):
        median = "" if row["median"] is None else f"{row['median']:.0f}"
        right = "" if row["known"] is None else f"{row['right']:.0%} of {row['known']}"
        of_people.add_row(row["annotator"], f"{row['items']:,}", median, f"{len(row['too_fast']):,}", right)
    return Group(table, of_people)


def spend(rows: list[Spend]) -> Table:
    """What was asked of models, and what it cost: below each stage its models, and what went wrong."""
    unknown = "at risk: calls of which nobody knows whether they were billed"
    caption = unknown if any(one.at_risk for one in rows) else None
    counts = ("calls", "tokens\nin", "tokens\nout", "money")
    table = TextTable("stage and model", "day", *counts, right=counts, no_wrap=("day", *counts), caption=caption)
    stage = ""
    for one in rows:
        if one.stage != stage:
            stage = one.stage
            table.add_row(text(stage, "bold"))
        served = f", answered by {one.model_served}" if one.model_served not in (None, one.alias) else ""
        model = Padding(text(f"{one.alias}{served}{_problems([one])}"), (0, 0, 0, 2))
        table.add_row(model, one.day, *_figures([one]))
    table.add_section()
    for currency in dict.fromkeys(one.currency for one in rows):
        of_it = [one for one in rows if one.currency == currency]
        table.add_row(f"all{_problems(of_it)}", "", *_figures(of_it))
    return table


def _figures(rows: list[Spend]) -> list[str]:
    """Calls, tokens and money of rows in one currency."""
    sums = _sums(rows)
    counts = [f"{sums[name]:,}" for name in ("calls", "tokens_in", "tokens_out")]
    return [*counts, f"{sums['cost']:.4f} {rows[0].currency}"]


def _problems(rows: list[Spend]) -> str:
    """Repairs, tries that failed, calls without an end, money at risk: what there is of it, a line below."""
    repairs, failed, unsettled = (
        sum(getattr(one, name) for one in rows) for name in ("repairs", "failed", "unsettled")
    )
    at_risk = sum(one.at_risk for one in rows)
    problems = [f"{repairs:,} were repairs"] * bool(repairs)
    problems += [f"{failed:,} tries failed"] * bool(failed) + [f"{unsettled:,} open"] * bool(unsettled)
    problems += [f"{at_risk:.4f} at risk"] * bool(at_risk)
    return f"\n{', '.join(problems)}" if problems else ""


def bill(before: Sequence[Spend], after: Sequence[Spend], stages: Collection[str], day: str) -> list[str]:
    """What some stages have asked between two looks into the ledger, and what all cost on a day: a line a currency."""
    lines = []
    for currency in dict.fromkeys(one.currency for one in after):
        then, now = (
            _sums([one for one in rows if one.stage in stages and one.currency == currency]) for rows in (before, after)
        )
        asked = {name: now[name] - then[name] for name in now}
        if not any(asked.values()):
            continue
        failed = f" ({asked['failed']:,} tries failed)" if asked["failed"] else ""
        at_risk = f" and {asked['at_risk']:.4f} at risk" if asked["at_risk"] > 0 else ""
        today = sum(one.cost for one in after if (one.day, one.currency) == (day, currency))
        lines.append(
            f"asked: {asked['calls']:,} calls{failed}, {asked['tokens_in']:,} tokens in, {asked['tokens_out']:,} out, "
            f"{asked['cost']:.4f} {currency}{at_risk}; today in all {today:.4f} {currency}"
        )
    return lines


_SUMMED = ("calls", "failed", "tokens_in", "tokens_out", "cost", "at_risk")


def _sums(rows: Sequence[Spend]) -> dict[str, Any]:
    return {name: sum(getattr(one, name) for one in rows) for name in _SUMMED}


def open_attempts(attempts: list[OpenAttempt]) -> Table:
    """Calls without an end, the oldest first; of a key its beginning, which tells them apart."""
    names = ("stage", "model", "since", "set aside", "what", "key")
    table = TextTable(*names, no_wrap=("stage", "since", "what", "key"), right=("set aside",))
    for one in attempts:
        what = "lost" if one.lost else "in a batch" if one.batch is not None else "under way"
        money = f"{one.reserve:.6f} {one.currency}"
        table.add_row(one.stage, one.alias, minute(one.started), money, what, one.key[:12])
    return table


def budgets(opened: list[Budget]) -> Table:
    """Budgets with what was spent from them, the oldest first."""
    caption = "set aside: for calls that are in flight, or of which nobody knows whether they were billed"
    table = TextTable("budget", "since", "cap", "spent", "set aside", caption=caption)
    for one in map(budget_record, opened):
        money = (f"{one[name]:.4f} {one['currency']}" for name in ("cap", "spent", "held"))
        table.add_row(one["budget"], minute(one["since"]), *money)
    return table


def erasure_plan(plan: "Plan") -> Group:
    """What an erasure would touch."""
    lines = [f"{len(plan.touched):,} versions and shards hold some of it:", *(f"  {name}" for name in plan.touched)]
    lines += [f"{len(plan.forgotten):,} calls of models made it or say it; nothing was erased"]
    return Group(*map(text, lines))


def erasure(receipt: "Receipt") -> Group:
    """What an erasure took away, and what is left to do elsewhere."""
    counts = ("rows", "dropped rows", "changed rows")
    table = TextTable("place", *counts, right=counts, caption=f"receipt: erasures/{receipt.erasure}.json")
    for lost in receipt.lost:
        table.add_row(lost.place, *(f"{count:,}" for count in (lost.rows, lost.dropped, lost.changed)))
    lines = [
        f"forgotten: {receipt.calls:,} calls of models; cleaned: {receipt.events:,} cells and files of Dagster, "
        f"{receipt.crawled:,} lines and files of crawls, {receipt.runs:,} files of training, "
        f"{receipt.reviews:,} files for people"
        f"{'; the near-duplicate index is gone' if receipt.index else ''}"
    ]
    lines += [f"models have learnt from it: remove them, or the whole folder {run}" for run in receipt.learnt]
    lines += [f"still on the Hub, of release {one.release}: {one.removal}" for one in receipt.published]
    lines += [f"a file of yours still says it: {name}" for name in receipt.elsewhere]
    lines += [f"{one.host} may still keep {', '.join(one.files) or one.batch}" for one in receipt.at_hosts]
    return Group(table, *map(text, lines))


def differences(settings: Sequence[Any]) -> Table:
    """The settings of a recipe that are not as in its paper (`pipelines.train.trainers.Difference`)."""
    table = TextTable("setting", "paper", "here", title="not as in the paper")
    for one in settings:
        table.add_row(one.key, str(one.paper), str(one.here))
    return table


def ablations(outcomes: Sequence[Any]) -> Table:
    """The ablations of an experiment (`train.experiment.Result`); ± is the standard deviation over the seeds.

    Each figure has columns of its own, empty for an ablation without it: a loss is no reward. Below stands what each
    measures.
    """
    lines = [f"{f'{one.recipe} {one.ablation}'.strip()}: {one.measured}" for one in outcomes]
    if fewer := [one for one in outcomes if one.asked_rows is not None and one.rows < one.asked_rows]:
        lines.insert(0, f"{fewer[0].asked_rows:,} rows were asked for, and the release has {fewer[0].rows:,}")
    figures = list(dict.fromkeys(one.figure for one in outcomes))
    validations = list(dict.fromkeys(one.validation_figure for one in outcomes if one.validation_figure))
    counts = ["seeds", "rows", "steps", *(f"{figure}, {when}" for figure in figures for when in ("first", "last"))]
    counts += [f"validation, {figure}" for figure in validations]
    caption = "\n".join(lines)
    table = TextTable(
        "recipe", "ablation", *counts, right=counts, title="ablations, on equal rows and seeds", caption=caption
    )
    table.caption_justify = "left"
    for one in outcomes:
        cells = [one.recipe, one.ablation, str(one.seeds), f"{one.rows:,}", f"{one.steps:,}"]
        for figure in figures:
            cells += [f"{one.first:.3f}", _spread(one.last, one.last_deviation)] if one.figure == figure else ["", ""]
        for figure in validations:
            validation = one.validation if one.validation_figure == figure else None
            cells.append("" if validation is None else _spread(validation, one.validation_deviation))
        table.add_row(*cells)
    return table


def _spread(mean: float, deviation: float | None) -> str:
    return f"{mean:.3f}" if deviation is None else f"{mean:.3f} ± {deviation:.3f}"
