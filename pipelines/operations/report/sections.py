"""What the report of a home shows, section by section: figures and some rows, each with the command that reprints it.

Rows are drawn, the same ones each time. What shows signs of risk, or of somebody under 18, is never shown.
"""

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipelines.core.home import Home
from pipelines.errors import NoVersion, RequestError
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.questions import NOT_ASKED_YET
from pipelines.operations.look import rows_to_show
from pipelines.operations.paper_tables import paper_tables
from pipelines.operations.replaced import rows_by_id
from pipelines.release.changes import changes, sections_of
from pipelines.store.releases import Releases
from pipelines.store.store import Store
from pipelines.store.suppression import is_taken_down, taken_down
from pipelines.text.minors import under_18
from pipelines.text.risk import risk
from schemas.ids import unit_interval
from schemas.tables import TABLES

SAMPLES = 3
_MOST = 900  # characters of a text that is shown
_LONG = 2_000
# Rows that a table was never meant to have, or that wait for a model or for people: none is lost.
NOT_NEEDED = frozenset({
    *("not_train", "not_sampled", "no_human_answer", "no_answer", "topic_given", "not_labelled", "not_written"),
    NOT_ASKED_YET,
})  # fmt: skip
# Nor is an answer that went with its post: why that one went it does not say.
_NEVER_SHOWN = frozenset({"risk", "under_18", "under_14", "post_dropped"})
_FIRST = {"clean_posts": ("raw_posts", "imported_posts"), "clean_dialogues": ("imported_dialogues",)}
_KEYS = ("post_id", "dialogue_id", "row_id")
_DROPPING = ("clean_posts", "unique_posts", "clean_dialogues", "unique_dialogues", "coherent_dialogues")
_OWNER = pl.col("row_id").str.extract("^([^/#]+)")  # of an answer its post


class Table(NamedTuple):
    """Figures: `title` may be empty."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


class Text(NamedTuple):
    """A text in pieces, each with its mark: `del`, `ins`, or none."""

    label: str
    pieces: list[tuple[str, str]]


class Sample(NamedTuple):
    """A row to look at."""

    title: str
    texts: list[Text]


@dataclass(frozen=True)
class Section:
    """A part of the page, by the key of its words, with the command that reprints its figures."""

    key: str
    command: str
    tables: list[Table] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self.samples and not any(table.rows for table in self.tables)


def sections(home: Path, release: str | None = None) -> Iterator[Section]:
    """All sections, some with nothing to show; of a release, by default the current one, where there is one.

    Raises UnknownName for another release, and what the store raises.
    """
    store, releases = Store(Home(home).data), Releases(home)
    name = release or (current.name if (current := releases.current()) else None)
    if name is not None:
        yield _release(releases, name)
    yield _funnel(store)
    yield _cleaned(store)
    yield _dropped(store)
    yield _merged(store)
    yield _days(store)
    yield _personal(store)
    yield _papers(store)
    yield _models(home)
    yield _people(store)
    if name is not None and (before := _release_before(releases, name)) is not None:
        tables = [Table(title, head, rows) for title, head, rows in sections_of(changes(home, before, name))]
        yield Section("changes", f"gongqing diff {before} {name}", tables)
    yield _walked(store)


def _release(releases: Releases, name: str) -> Section:
    made = releases.read(name)
    splits = ("train", "validation", "test")
    rows = [(config, *(made.rows(config, split) for split in splits)) for config in made.configs]
    sources = [(one.name, one.rows, one.licence or "none", one.consent, one.collected) for one in made.sources]
    tables = [
        Table("", ("release", "content", "made"), [(made.name, made.content, f"{made.made_at:%Y-%m-%d %H:%M}")]),
        Table("", ("set", *splits), rows),
        Table("", ("source", "rows", "licence", "consent", "collected"), sources),
        Table("", ("check", "", "found", "what"), [(f.check, f.severity, f.count, f.what) for f in made.findings]),
    ]
    return Section("release", "gongqing releases", tables)


def _funnel(store: Store) -> Section:
    """Of each table and source how many rows were kept, dropped, and not needed."""
    lines = []
    for table in TABLES:
        key = next((name for name in _KEYS if name in TABLES[table].column_names()), None)
        versions = store.current(table)
        if key is None or not versions or not set(TABLES[table].key()) <= {*_KEYS, "round", "role", "candidate"}:
            continue
        kept, dropped = Counter[str](), Counter[tuple[str, str]]()
        for version in versions:
            where = (table, version.version, version.partition)
            source = pl.col(key).str.extract(r"^([^:]+)")
            kept.update(dict(store.read(*where).group_by(source).len().collect().iter_rows()))
            by_reason = store.read_dropped(*where).group_by(pl.col("row_id").str.extract(r"^([^:]+)"), "reason").len()
            for name, reason, count in by_reason.collect().iter_rows():
                dropped[name, reason] += count
        for name in sorted({*kept, *(name for name, _ in dropped)}):
            lost = Counter({reason: n for (source, reason), n in dropped.items() if source == name})
            needless = sum(n for reason, n in lost.items() if reason in NOT_NEEDED)
            reasons = ", ".join(f"{reason} {n:,}" for reason, n in lost.most_common())
            lines.append((table, name, kept[name], sum(lost.values()) - needless, needless, reasons))
    columns = ("table", "source", "kept", "dropped", "not needed, or not yet", "reasons")
    return Section("funnel", "gongqing tables; gongqing show TABLE --dropped", [Table("", columns, lines)])


def _cleaned(store: Store) -> Section:
    """Posts whose text cleaning changed, first one of each kind of personal data, with the change marked."""
    if not store.current("clean_posts"):
        return Section("cleaned", "")
    posts = _fit_posts(store)
    kinds = posts.select("post_id", kind=pl.col("pii").list.eval(pl.element().struct.field("kind"))).explode("kind")
    first = [_drawn(ids["post_id"].to_list())[0] for _, ids in sorted(kinds.drop_nulls().group_by("kind")) if len(ids)]
    chosen = list(dict.fromkeys([*first, *_drawn(posts["post_id"].to_list())[: 10 * SAMPLES]]))
    clean = {row["post_id"]: row for row in posts.filter(pl.col("post_id").is_in(chosen)).iter_rows(named=True)}
    raw = {row["post_id"]: row for name in _FIRST["clean_posts"] for row in rows_by_id(store, name, "post_id", chosen)}
    samples: list[Sample] = []
    for post_id in chosen:
        if post_id in raw:
            before = "\n".join(filter(None, (raw[post_id]["title"], raw[post_id]["description"])))
            pieces = marked(before, clean[post_id]["text"])
            if any(mark for mark, _ in pieces) and len(samples) < 2 * SAMPLES:
                pii = ", ".join(f"{one['kind']} {one['count']}" for one in clean[post_id]["pii"])
                samples.append(Sample(f"{post_id}{': ' if pii else ''}{pii}", [Text("", pieces)]))
    return Section("cleaned", "gongqing show clean_posts --changed", samples=samples)


def _dropped(store: Store) -> Section:
    """A row of each reason, with its text."""
    listed, hidden = taken_down(Path(store.storage.root).parent), _hidden(store)
    samples: list[Sample] = []
    for table in _DROPPING:
        if not store.current(table):
            continue
        reasons = store.read_dropped(table).select(pl.col("reason").unique().sort()).collect()["reason"]
        for reason in reasons:
            if reason in _NEVER_SHOWN:
                continue
            rows = rows_to_show(store, table, 10, dropped=True, where=f"reason = '{reason}'", sample=True)
            rows = rows.with_columns(owner=_OWNER)
            shown = rows.drop_nulls("text").filter(
                ~_sensitive(pl.col("text")), ~is_taken_down("owner", listed), ~pl.col("owner").is_in(hidden.implode())
            )
            for row in shown.head(1).iter_rows(named=True):
                detail = f" ({row['detail']})" if row["detail"] else ""
                title = f"{table}: {reason}{detail} · {row['row_id']}"
                samples.append(Sample(title, [Text("", [("", _short(row["text"]))])]))
    return Section("dropped", "gongqing show clean_posts --dropped --sample", samples=samples)


def _merged(store: Store) -> Section:
    """Near-duplicates beside the post that stayed, differences marked."""
    if not store.current("unique_posts"):
        return Section("merged", "")
    texts = dict(_fit_posts(store).select("post_id", "text").iter_rows())
    dropped = store.read_dropped("unique_posts").filter(reason="near_duplicate").select("row_id", "detail").collect()
    details = dict(dropped.iter_rows())
    others = {row_id: str(detail).rpartition(" ")[2] for row_id, detail in details.items()}  # "0.85 like ID"
    samples = [
        Sample(f"{row_id} → {details[row_id]}", [Text("", marked(texts[row_id], texts[others[row_id]]))])
        for row_id in _drawn([one for one in details if one in texts and others[one] in texts])[:SAMPLES]
    ]
    return Section(
        "merged", "gongqing show unique_posts --dropped --where \"reason = 'near_duplicate'\"", samples=samples
    )


def _days(store: Store) -> Section:
    """Posts by month of posting."""
    if not store.current("unique_posts"):
        return Section("days", "")
    months = store.read("unique_posts").group_by(month=pl.col("posted_at").dt.strftime("%Y-%m")).len().sort("month")
    rows = [(month or "unknown", count) for month, count in months.collect().iter_rows()]
    return Section("days", "gongqing show unique_posts", [Table("", ("month", "posts"), rows)])


def _personal(store: Store) -> Section:
    """Placeholders by kind, and rows with signs of risk or of somebody under 18."""
    tables = []
    for table in ("clean_posts", "clean_dialogues"):
        if store.current(table):
            rows = store.read(table).select("pii", "risk", "under_18").collect()
            kinds = rows["pii"].explode().struct.unnest().drop_nulls() if len(rows) else pl.DataFrame()
            counts = sorted(kinds.group_by("kind").agg(pl.col("count").sum()).iter_rows()) if len(kinds) else []
            signs = Counter(sign["kind"] for signs in rows["risk"] for sign in {s["kind"]: s for s in signs}.values())
            lines = [*counts, *((f"rows with signs of {kind}", n) for kind, n in sorted(signs.items()))]
            lines.append(("rows of somebody under 18", int(rows["under_18"].sum())))
            tables.append(Table(table, ("what", "how many"), lines))
    return Section("personal", "gongqing show clean_posts --changed", tables)


def _papers(store: Store) -> Section:
    """The papers' tables over our rows, of those that there are."""
    with suppress(NoVersion):
        return Section("papers", "gongqing stats", [_paper(table) for table in paper_tables(store, None).values()])
    return Section("papers", "")


def _models(home: Path) -> Section:
    """What models were asked, what it cost, and what a thousand answers cost."""
    rows = []
    if Home(home).ledger.exists():
        with Ledger(Home(home).ledger) as ledger:
            for one in ledger.spend():
                thousand = f"{1000 * one.cost / one.calls:.2f} {one.currency}" if one.calls else ""
                cost = f"{one.cost} {one.currency}"
                rows.append((one.stage, one.model_asked, one.day, one.calls, one.failed, cost, thousand))
    columns = ("stage", "model", "day", "answers", "failed", "cost", "a thousand")
    return Section("models", "gongqing ledger", [Table("", columns, rows)])


def _people(store: Store) -> Section:
    """How far people agree."""
    if not store.current("agreements"):
        return Section("people", "")
    columns = ("kind", "question", "measure", "value", "low", "high", "n_items", "n_raters")
    rows = store.read("agreements").filter(annotator="all").select(columns).collect().rows()
    return Section("people", "gongqing review agreement", [Table("", columns, rows)])


def _walked(store: Store) -> Section:
    """Posts from the site to the training set: what was written, cleaned, reasoned, and what is learnt of it."""
    if not store.current("grpo_coe") or not store.current("clean_posts"):
        return Section("walked", "")
    clean = dict(_fit_posts(store).select("post_id", "text").iter_rows())
    fit = [one for one in store.read("grpo_coe").select("row_id").collect()["row_id"] if one in clean]
    chained = set[str]()
    if store.current("coe_chains"):
        chained = set(store.read("coe_chains").select("post_id").collect()["post_id"])
    drawn = [*_drawn([one for one in fit if one in chained]), *_drawn([one for one in fit if one not in chained])]
    chosen = drawn[:SAMPLES]
    prompts = {row["row_id"]: row for row in rows_by_id(store, "grpo_coe", "row_id", chosen)}
    chains = {row["post_id"]: _chain(row) for row in rows_by_id(store, "coe_chains", "post_id", chosen)}
    raw = {row["post_id"]: row for name in _FIRST["clean_posts"] for row in rows_by_id(store, name, "post_id", chosen)}
    samples: list[Sample] = []
    for post_id in chosen:
        texts = []
        if post_id in raw:
            before = "\n".join(filter(None, (raw[post_id]["title"], raw[post_id]["description"])))
            texts.append(Text("raw", [("", _short(before))]))
        texts.append(Text("clean_posts", [("", _short(clean[post_id]))]))
        if post_id in chains:
            texts.append(Text("coe_chains", [("", _short(chains[post_id]))]))
        row = prompts[post_id]
        texts.append(Text("grpo_coe", [("", _short(str(row["reward_model"]["ground_truth"])))]))
        samples.append(Sample(f"{post_id} · {row['split']}", texts))
    return Section("walked", "gongqing why ROW_ID; gongqing show grpo_coe --id ROW_ID", samples=samples)


def marked(before: str, after: str) -> list[tuple[str, str]]:
    """A text beside what became of it: pieces that stayed, that went (`del`) and that came (`ins`), around changes.

    In long texts frequent characters find no partner: a text of one character thousands of times would take minutes.
    """
    pieces: list[tuple[str, str]] = []
    is_long = max(len(before), len(after)) > _LONG
    for tag, i, j, k, m in difflib.SequenceMatcher(None, before, after, autojunk=is_long).get_opcodes():
        if tag == "equal":
            pieces.append(("", before[i:j]))
        else:
            pieces += [(mark, text) for mark, text in (("del", before[i:j]), ("ins", after[k:m])) if text]
    return list(_around(pieces))


def _around(pieces: list[tuple[str, str]], most: int = 60) -> Iterator[tuple[str, str]]:
    """The pieces, of what stayed only what stands near a change."""
    for place, (mark, text) in enumerate(pieces):
        if mark or len(text) <= 2 * most:
            yield mark, text
            continue
        head = text[:most] if place else ""
        tail = text[-most:] if place + 1 < len(pieces) else ""
        yield "", f"{head} … {tail}"


def _hidden(store: Store) -> pl.Series:
    """The posts and dialogues of which nothing is shown, nor of their answers: of somebody at risk or under 18, by what
    tables say of them, or by why they were dropped.
    """
    ids = [pl.Series([], dtype=pl.String)]
    for table, key in (("clean_posts", "post_id"), ("clean_dialogues", "dialogue_id")):
        if store.current(table):
            flagged = store.read(table).filter(pl.col("under_18") | (pl.col("risk").list.len() > 0))
            ids.append(flagged.select(key).collect()[key])
    for table in filter(store.current, _DROPPING):
        why = pl.col("reason").is_in(["risk", "under_18", "under_14"])
        ids.append(
            store.read_dropped(table).filter(why, pl.col("unit") != "answer").select(_OWNER).collect().to_series()
        )
    return pl.concat(ids).unique()


def _fit_posts(store: Store) -> pl.DataFrame:
    """Cleaned posts that may be shown, without their answers: nobody's at risk or under 18, and none on the takedown
    list.
    """
    listed = taken_down(Path(store.storage.root).parent)
    shown = ~pl.col("under_18") & (pl.col("risk").list.len() == 0) & ~is_taken_down("post_id", listed)
    return store.read("clean_posts").filter(shown).select("post_id", "text", "pii").collect()


def _sensitive(text: pl.Expr) -> pl.Expr:
    """Whether a text that no table has judged yet is one that may not be shown."""
    return under_18(text) | (risk(text).list.len() > 0)


def _drawn(ids: Sequence[str]) -> list[str]:
    return sorted(ids, key=lambda one: unit_interval(0, "report", one))


def _short(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[:_MOST]} …"


def _chain(row: dict[str, Any]) -> str:
    return "\n".join(f"{name}: {row[name]}" for name in ("L1", "L2", "L3", "L4", "answer") if row.get(name))


def _paper(table: Any) -> Table:
    rows = [
        [f"{cell} (impossible)" if (r, c) in table.impossible else cell for c, cell in enumerate(row)]
        for r, row in enumerate(table.rows)
    ]
    return Table(table.title, table.columns, rows)


def _release_before(releases: Releases, name: str) -> str | None:
    names = releases.names()
    if name not in names:
        raise RequestError(f"there is no release {name!r}", hint=", ".join(names))
    place = names.index(name)
    return names[place - 1] if place else None
