"""The report of evaluations: a page in Markdown and in HTML, the papers' figures beside ours, intervals, plots.

It holds figures and names alone, no word of anybody. The HTML needs no network, and runs no script.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from pipelines.core.files import write_whole
from pipelines.core.home import Home
from pipelines.core.page import render_page
from pipelines.core.plotting import png
from pipelines.errors import NoVersion, UnknownName
from pipelines.evaluate.benchmarks import ROLES
from pipelines.evaluate.judge_figures import is_biased
from pipelines.operations.evaluate.kept import FIGURES, OF_ANSWERS, last_note
from pipelines.operations.evaluate.papers import (
    C_ESC_EVAL,
    C_REWARD_MODELS,
    C_SAGE,
    E_AUTOMATIC,
    M_JUDGED,
    RANKED,
    Figure,
    Figures,
)
from pipelines.release.publish.card import PaperTable
from pipelines.store.store import Store
from schemas.labels import OMEGA

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TEMPLATE = Path(__file__).with_name("report.html.j2")
MADE_OF = ("evaluation", "suite", "how it was made")
Row = dict[str, Any]


class Suite(NamedTuple):
    """How the figures of a suite are shown: what they are, the papers' rows, what to read with them, and what of its
    note tells how they were made. `down`: figures stand down and models across, for there are more figures; those that
    the papers give stand beside theirs in a second table.
    """

    title: str
    papers: Mapping[str, Figures] = {}
    notes: Sequence[str] = ()
    made: Sequence[str] = ()
    down: bool = False


_FIGURE = ("metric", "mode", "subset")
_ANSWERED = ("prompts", "split", "step")

SUITES: dict[str, Suite] = {
    "automatic": Suite(
        "Automatic figures (E §4.1.4)",
        E_AUTOMATIC,
        (
            "Against every human answer of a question, the mean over these. Each figure names its mode.",
            "NAvg chooses no model: Distinct-1 weighs most in it, and is highest where an answer is short.",
            "post_copied, generic_comfort and sibling are baselines: no model wrote them.",
        ),
        _ANSWERED,
    ),
    "judge": Suite(
        "Judged by models (M §4.2)",
        M_JUDGED,
        (
            "Scores go from 1 to 5. variance: of an answer's draws, in the mean over answers.",
            "win_rate_beside_a_person: of both orders, a tie counts half. no_verdict: draws that cannot be read.",
            "no_answer: outputs that cannot be read as an answer: the means are of the others.",
            "variance between draws: of the mean over all answers. M does not say which one it prints.",
        ),
        (*_ANSWERED, "judges", "samples"),
    ),
    "bias": Suite("What is wrong with the judges", {}, ("A figure whose interval excludes no bias is marked with *.",)),
    "people": Suite("Ranked by people (M, E; C by pairs)", RANKED),
    "reward_model": Suite(
        "Reward models (C Table 1; E's encoder)",
        C_REWARD_MODELS,
        (
            "On held-out labels of people. A verdict that cannot be read is wrong. A judge must beat length alone.",
            "auc of an encoder: on held-out triplets, by kind of negative.",
        ),
        down=True,
    ),
    "sage": Suite(
        "SAGE",
        C_SAGE,
        ("10 rounds as published, and 20 as C: two settings, never in one table.",),
        ("seekers", "seeker", "setting"),
        down=True,
    ),
    "esc_eval": Suite(
        "ESC-Eval",
        C_ESC_EVAL,
        ("Seven dimensions from 0 to 4, the mean of two judges. C prints hundredths of the four points.",),
        ("seekers", "seeker", "judges"),
        down=True,
    ),
    "data": Suite(
        "Data of a release",
        {},
        (
            "Near: Jaccard of 5-grams, of held-out inputs to what trains in any set. copies_a_reference: what a model "
            "wrote shares 20 characters in a row with a human answer, repeats_a_reference: so great a share of its "
            "5-grams; of a chain what stands before its answer, which is the human one.",
            "personal_data is what the wide finder reports: an upper bound, for it reports rather too much.",
        ),
        down=True,
    ),
}


class Table(NamedTuple):
    """A table of the report: cells are texts; `pictures` are PNGs in base64, each with its title."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    notes: list[str]
    pictures: list[tuple[str, str]]


def write_report(home: Path, names: Sequence[str], folder: Path) -> list[Path]:
    """Writes `evaluation.md` and `evaluation.html` of the evaluations of these names, or of all, into a folder.

    Raises NoVersion where nothing was evaluated yet, UnknownName for a name of none.
    """
    store = Store(Home(home).data)
    known = store.partitions(FIGURES)
    if not known:
        raise NoVersion("nothing was evaluated yet", hint="gongqing evaluate TARGET")
    for name in names:
        if name not in known:
            raise UnknownName("evaluation", name, known)
    names = names or known
    made_of = list(_made_of(store, names))
    tables = list(_tables(store, names))
    judges = judges_beside_people(store, names)
    html = render_page(_TEMPLATE, "Evaluation", made_of=made_of, tables=tables, judges=judges)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "evaluation.md", folder / "evaluation.html"]
    write_whole(paths[0], _markdown(made_of, tables, judges).encode())
    write_whole(paths[1], html)
    return paths


def _tables(store: Store, names: Sequence[str]) -> Iterator[Table]:
    """A table a suite, and of each setting of a benchmark one of its own."""
    frames = [store.read(FIGURES, partition=name).with_columns(evaluation=pl.lit(name)).collect() for name in names]
    rows = pl.concat(frames)
    for suite, shown in SUITES.items():
        of_suite = rows.filter(suite=suite)
        parts: list[tuple[str | None, pl.DataFrame]] = []
        if suite not in ROLES:
            parts = [(None, of_suite)]
        else:  # of a type of seekers the figure that says most of it
            by_type = pl.col("subset").str.starts_with("type ")
            whole, types = (
                of_suite.filter(~by_type),
                of_suite.filter(by_type, pl.col("metric").is_in(["emotion", "overall"])),
            )
            settings = sorted(set(of_suite["mode"]))
            parts = [(setting, whole.filter(mode=setting)) for setting in settings]
            parts += [(f"{setting}, by type of seeker", types.filter(mode=setting)) for setting in settings]
        for setting, part in parts:
            if part.is_empty():
                continue
            if not shown.down:
                yield _table(shown, part, setting)
                continue
            yield _table(shown._replace(papers={}), part, setting)
            printed = dict.fromkeys(figure for line in shown.papers.values() for figure in line)
            for mode in dict.fromkeys(mode for _, mode, _ in printed):
                figures = [figure for figure in printed if figure[1] == mode]
                beside = part.filter(mode=mode)
                if not {*figures}.isdisjoint(beside.select(*_FIGURE).rows()):
                    paper = shown._replace(down=False, notes=())
                    yield _table(paper, beside, mode, figures)._replace(pictures=[])


def _table(suite: Suite, rows: pl.DataFrame, setting: str | None, printed: Sequence[Figure] | None = None) -> Table:
    """Models down, figures across, or the other way round; where there are several evaluations a model says of which it
    is. Heads do not repeat the `setting`, which stands in the title. Where a paper has
    `printed` some figures, there are no others.
    """
    several = rows["evaluation"].n_unique() > 1
    ordered = rows.sort("metric", "mode", "subset")
    figures = list(dict.fromkeys(ordered.select(*_FIGURE).rows())) if printed is None else list(printed)
    lines: dict[tuple[str, str], dict[tuple[str, str, str], Row]] = {}
    for row in ordered.sort("evaluation", "model", "judge", maintain_order=True).iter_rows(named=True):
        name = row["model"]
        if several and name != row["evaluation"]:
            name = f"{name} ({row['evaluation']})"
        lines.setdefault((name, row["judge"]), {})[row["metric"], row["mode"], row["subset"]] = row
    judged = any(judge for _, judge in lines)
    counted = not suite.down and printed is None
    heads = [_head(metric, "" if mode == setting else mode, subset) for metric, mode, subset in figures]
    cells = [
        [
            name,
            *([judge] if judged else []),
            *([f"{max(row['n'] for row in found.values()):,}"] if counted else []),
            *(_cell(found.get(figure)) for figure in figures),
        ]
        for (name, judge), found in lines.items()
    ]
    for name, known in suite.papers.items():
        values = [known.get(figure) for figure in figures]
        if any(one is not None for one in values):
            beside = [""] * (judged + counted)
            cells.append([name, *beside, *("" if one is None else _number(one) for one in values)])
    pictures = []
    for figure, head in zip(figures, heads, strict=True):
        points = [
            (" · ".join(filter(None, line)), row)
            for line, found in lines.items()
            for row in [found.get(figure)]
            if row is not None and row["low"] is not None
        ]
        if len(points) > 1 and any(row["low"] < row["high"] for _, row in points):
            picture, _ = png(partial(_draw, title=head, points=points), (5.6, 0.9 + 0.28 * len(points)), dpi=80)
            pictures.append((head, base64.b64encode(picture).decode()))
    setting = setting if printed is None else f"{setting}, beside the paper"
    title = suite.title if setting is None else f"{suite.title}, {setting}"
    columns = ["model", *(["judge"] if judged else []), *(["n"] if counted else []), *heads]
    if suite.down:
        [columns, *cells] = [list(line) for line in zip(columns, *cells, strict=True)]
        columns[0] = "figure"
    return Table(title, columns, cells, list(suite.notes), pictures)


def data_table(store: Store, release: str, content: str) -> PaperTable | None:
    """The figures of a release's data for its card; None where they were not measured, or of another content."""
    name = f"data-{release}"
    if name not in store.partitions(FIGURES):
        return None
    if last_note(store, name).get("data", {}).get("content") != content:
        return None
    rows = store.read(FIGURES, partition=name).with_columns(evaluation=pl.lit(name)).collect()
    table = _table(SUITES["data"], rows, None)
    return PaperTable(table.title, tuple(table.columns), [tuple(row) for row in table.rows], set(), table.notes)


def _head(metric: str, mode: str, subset: str) -> str:
    return " ".join(filter(None, (metric, mode, "" if subset == "all" else subset)))


def _draw(axes: "Axes", title: str, points: Sequence[tuple[str, Row]]) -> None:
    """A figure of each model, with its interval."""
    values = [row["value"] for _, row in points]
    # Of a figure that never varies a bound may lie beyond it by a rounding error.
    bars = [
        [max(0.0, sign * (row["value"] - row[end])) for _, row in points] for sign, end in ((1, "low"), (-1, "high"))
    ]
    axes.errorbar(values, range(len(points)), xerr=bars, fmt="o", markersize=4, capsize=2)
    axes.set_title(title, parse_math=False)
    axes.set_ylim(len(points) - 0.5, -0.5)
    axes.set_yticks(range(len(points)), [name for name, _ in points], parse_math=False)


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    if row["value"] is None:
        return "undefined"
    mark = " *" if row["suite"] == "bias" and is_biased(row) else ""
    bounds = "" if row["low"] is None else f" [{row['low']:.3f}, {row['high']:.3f}]"
    return f"{_number(row['value'])}{bounds}{mark}"


def _number(value: float) -> str:
    """Three places, or two digits of what is too small for them (M's variances)."""
    return f"{value:.3f}" if value == 0 or abs(value) >= 0.001 else f"{value:.1e}"


def _made_of(store: Store, names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """How the figures of evaluations were made: evaluation, suite, and what its note says that matters to it."""
    for name in names:
        rows = store.read(FIGURES, partition=name).collect()
        for key, note in last_note(store, name).items():
            suite, _, setting = key.partition(", ")
            if suite == "bias":  # as judge
                continue
            told = [f"{what} {_told(note[what])}" for what in (*SUITES[suite].made, "release") if note.get(what)]
            if suite != "data":  # its figures are of turns, characters, rows
                of_suite = rows.filter(pl.lit(not setting) | (pl.col("mode") == setting), suite=suite)
                told.append(f"n = {max(of_suite['n'], default=0):,}")
            told += [
                f"{rows:,} prompts without an answer: {reason}" for reason, rows in note.get("unanswered", {}).items()
            ]
            if note.get("provider") == "replay":
                told.append("replayed")
            told += _seconds(note.get("seconds", {}), suite)
            yield name, suite, ", ".join(told)


def _seconds(seconds: Mapping[str, float] | float, suite: str) -> list[str]:
    """What a suite has taken; once that of a whole command was noted."""
    if not isinstance(seconds, Mapping):
        return [f"{seconds:,.0f} s, all suites of the command"]
    of_answers = {"answers": " to answer"} if suite in OF_ANSWERS else {}
    return [f"{seconds[what]:,.1f} s{words}" for what, words in ({suite: ""} | of_answers).items() if what in seconds]


def _told(value: object) -> str:
    """A path by its name alone: a page goes to others."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value).rpartition("/")[2]


def judges_beside_people(store: Store, names: Sequence[str]) -> list[str]:
    """Of each judge of these evaluations whether it was held against people (`gongqing calibrate compare --judge`), and
    how that ended.
    """
    notes = [note for name in names for note in last_note(store, name).values()]
    judges = {str(judge) for note in notes for judge in note.get("judges", ())}
    tests = store.read("judge_tests").collect() if store.current("judge_tests") else None
    lines = []
    for judge in sorted(judges):
        of_judge = [] if tests is None else tests.filter(model=judge, kind="compare").to_dicts()
        if not of_judge:
            lines.append(f"{judge} was not calibrated: nobody has held it against people (gongqing calibrate compare)")
        for row in of_judge:
            passed = (
                "may stand in for a person" if row["omega"] >= OMEGA else "did not pass: people are nearer each other"
            )
            lines.append(f"{judge}, {row['question']}: ω {row['omega']:.2f} over {row['n_items']:,} items, {passed}")
    return lines


def _markdown(made_of: Sequence[tuple[str, str, str]], tables: Sequence[Table], judges: Sequence[str]) -> str:
    lines = ["# Evaluation", "", _line(MADE_OF), _line(["---"] * len(MADE_OF)), *map(_line, made_of)]
    for table in tables:
        lines += ["", f"## {table.title}", ""]
        lines += [_line(table.columns), _line(["---"] * len(table.columns)), *map(_line, table.rows)]
        lines += ["", *(f"* {note}" for note in table.notes)]
    if judges:
        lines += ["", "## The judges beside people", "", *(f"* {_escaped(one)}" for one in judges)]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    """A text as Markdown shows it: a name may hold what Markdown reads as markup."""
    return "".join(f"\\{one}" if one in "\\|*_`<>[]#" else one for one in " ".join(text.split()))
