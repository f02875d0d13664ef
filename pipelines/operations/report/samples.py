"""The rows that the report shows, drawn, the same ones each time.

What shows signs of risk, or of somebody under 18, or is on the takedown list, is never shown.
"""

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from crawlers.dates import SHANGHAI
from pipelines.core.home import Home
from pipelines.llm.ledger.ledger import Ledger
from pipelines.operations.lineage import Event, why
from pipelines.operations.look import rows_to_show
from pipelines.operations.report.figures import NOT_NEEDED
from pipelines.operations.report.section import Sample, Section, Table, Text
from pipelines.operations.row_texts import raw_rows, rows_by_id, text_of
from pipelines.store.store import Store
from pipelines.store.suppression import is_taken_down, taken_down
from pipelines.text.minors import under_18
from pipelines.text.risk import risk
from schemas.ids import unit_interval

SAMPLES = 3
_MOST = 900  # characters of a text that is shown
_LONG = 2_000
# Nor is an answer that went with its post: why that one went it does not say.
_NEVER_SHOWN = frozenset({"risk", "under_18", "under_14", "post_dropped"})
_DROPPING = ("clean_posts", "unique_posts", "clean_dialogues", "unique_dialogues", "coherent_dialogues")
_OWNER = pl.col("row_id").str.extract("^([^/#]+)")  # of an answer its post
_CHAINED = "coe_chains"


def cleaned(store: Store) -> Section:
    """Posts whose text cleaning changed, first one of each kind of personal data, with the change marked."""
    if not store.current("clean_posts"):
        return Section("cleaned")
    posts = _fit_posts(store)
    kinds = posts.select("post_id", kind=pl.col("pii").list.eval(pl.element().struct.field("kind"))).explode("kind")
    first = [_drawn(ids["post_id"].to_list())[0] for _, ids in sorted(kinds.drop_nulls().group_by("kind")) if len(ids)]
    chosen = list(dict.fromkeys([*first, *_drawn(posts["post_id"].to_list())[: 10 * SAMPLES]]))
    clean = {row["post_id"]: row for row in posts.filter(pl.col("post_id").is_in(chosen)).iter_rows(named=True)}
    raw = raw_rows(store, "post_id", chosen)
    samples: list[Sample] = []
    for post_id in chosen:
        pieces = marked(text_of(raw[post_id]) or "", clean[post_id]["text"]) if post_id in raw else []
        if any(mark for mark, _ in pieces) and (post_id in first or len(samples) < 2 * SAMPLES):
            pii = ", ".join(f"{one['kind']} {one['count']}" for one in clean[post_id]["pii"])
            samples.append(_sample(post_id, f"{post_id}{': ' if pii else ''}{pii}", [Text("", pieces)]))
    return Section("cleaned", "gongqing show clean_posts --changed", samples=samples)


def dropped(store: Store) -> Section:
    """A row of each reason, with its text."""
    listed, hidden = _taken_down(store), _hidden(store)
    samples: list[Sample] = []
    for table in _DROPPING:
        if not store.current(table):
            continue
        reasons = store.read_dropped(table).select(pl.col("reason").unique().sort()).collect()["reason"]
        for reason in reasons:
            if reason in _NEVER_SHOWN or reason in NOT_NEEDED:
                continue
            rows = rows_to_show(store, table, 10, dropped=True, where=f"reason = '{reason}'", sample=True)
            rows = rows.with_columns(owner=_OWNER)
            shown = rows.drop_nulls("text").filter(
                ~_sensitive(pl.col("text")), ~is_taken_down("owner", listed), ~pl.col("owner").is_in(hidden.implode())
            )
            for row in shown.head(1).iter_rows(named=True):
                detail = f" ({row['detail']})" if row["detail"] else ""
                title = f"{table}: {reason}{detail} · {row['row_id']}"
                samples.append(_sample(row["row_id"], title, [Text("", [("", _short(row["text"]))])]))
    return Section("dropped", "gongqing show TABLE --dropped --sample", samples=samples)


def merged(store: Store) -> Section:
    """Near-duplicates beside the post that stayed, differences marked."""
    if not store.current("unique_posts"):
        return Section("merged")
    texts = dict(_fit_posts(store).select("post_id", "text").iter_rows())
    lost = store.read_dropped("unique_posts").filter(reason="near_duplicate").select("row_id", "detail").collect()
    details = dict(lost.iter_rows())
    others = {row_id: str(detail).rpartition(" ")[2] for row_id, detail in details.items()}  # "0.85 like ID"
    samples = [
        _sample(row_id, f"{row_id} → {details[row_id]}", [Text("", marked(texts[row_id], texts[others[row_id]]))])
        for row_id in _drawn([one for one in details if one in texts and others[one] in texts])[:SAMPLES]
    ]
    return Section(
        "merged", "gongqing show unique_posts --dropped --where \"reason = 'near_duplicate'\"", samples=samples
    )


def walked(store: Store) -> Section:
    """Rows from the site to what is learnt of them: two posts, with a chain where any has one, and a round of a
    dialogue, labelled by people where any is. Each with all that was done with it: by whom, and what it cost.
    """
    home = Home(Path(store.storage.root).parent)
    chosen = [*_walked_posts(store)[: SAMPLES - 1], *_walked_rounds(store)[:1]]
    if not home.ledger.exists():
        return Section("walked", "gongqing why ROW_ID", samples=[_walk(store, None, one) for one in chosen])
    with Ledger(home.ledger) as ledger:
        samples = [_walk(store, ledger, one) for one in chosen]
    return Section("walked", "gongqing why ROW_ID", samples=samples)


def _walked_posts(store: Store) -> list[str]:
    if not store.current("grpo_coe") or not store.current("clean_posts"):
        return []
    clean = set(_fit_posts(store)["post_id"])
    fit = [one for one in store.read("grpo_coe").select("row_id").collect()["row_id"] if one in clean]
    chained = set(store.read(_CHAINED).select("post_id").collect()["post_id"]) if store.current(_CHAINED) else set()
    return _first_those(fit, chained)


def _walked_rounds(store: Store) -> list[str]:
    if not store.current("grpo_cer"):
        return []
    rounds = store.read("grpo_cer").select("row_id").collect()
    hidden = _hidden(store)
    fit = rounds.with_columns(owner=_OWNER).filter(
        ~is_taken_down("owner", _taken_down(store)), ~pl.col("owner").is_in(hidden.implode())
    )
    labelled = set[str]()
    if store.current("cer_labels"):
        of_round = store.read("cer_labels").select(pl.format("{}#{}", "dialogue_id", "round")).collect().to_series()
        labelled = set(of_round)
    return _first_those(fit["row_id"].to_list(), labelled)


def _first_those(ids: list[str], first: set[str]) -> list[str]:
    return [*_drawn([one for one in ids if one in first]), *_drawn([one for one in ids if one not in first])]


def _walk(store: Store, ledger: Ledger | None, row_id: str) -> Sample:
    """What a row said at each step, where that changed, and each step."""
    events = why(store, row_id, ledger)
    texts: list[Text] = []
    for event in events:
        own = event.row_id in (row_id, row_id.partition("#")[0]) or event.table == "cer_candidates"
        if own and event.text and event.text not in _said(texts):
            texts.append(Text(event.table, [("", event.text)], event.row_id if event.table == "cer_candidates" else ""))
    for table, key in (("grpo_coe", "row_id"), ("grpo_cer", "row_id")):
        for row in rows_by_id(store, table, key, [row_id]):
            texts.append(Text(table, [("", str(row["reward_model"]["ground_truth"]))]))
    shown = [Text(label, [(mark, _short(text)) for mark, text in pieces], of) for label, pieces, of in texts]
    return _sample(row_id, row_id, shown, Table("", _STEPS, [_step(event) for event in events]))


def _said(texts: list[Text]) -> set[str]:
    return {piece for text in texts for _, piece in text.pieces}


_STEPS = ("when", "table", "row", "what", "detail", "cost")


def _step(event: Event) -> tuple[str, ...]:
    paid: dict[str, Any] = {}
    for call in event.calls:
        paid[call.currency] = paid.get(call.currency, 0) + call.cost
    cost = ", ".join(f"{amount} {currency}" for currency, amount in paid.items())
    needless = "not needed, or not yet" if event.reason in NOT_NEEDED else event.what
    what = event.what if event.reason is None else f"{needless}: {event.reason}"
    when = f"{event.made:%Y-%m-%d %H:%M}" if event.made else ""
    posted = [f"posted {event.posted.astimezone(SHANGHAI):%Y-%m-%d}"] if event.posted else []
    return when, event.table, event.row_id, what, ", ".join([*posted, *filter(None, [event.detail])]), cost


def _sample(row_id: str, title: str, texts: list[Text], steps: Table | None = None) -> Sample:
    return Sample(title, texts, f"gongqing why {row_id}", steps)


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
        why_not = pl.col("reason").is_in(["risk", "under_18", "under_14"])
        ids.append(
            store.read_dropped(table).filter(why_not, pl.col("unit") != "answer").select(_OWNER).collect().to_series()
        )
    return pl.concat(ids).unique()


def _fit_posts(store: Store) -> pl.DataFrame:
    """Cleaned posts that may be shown, without their answers: nobody's at risk or under 18, and none on the takedown
    list.
    """
    shown = ~pl.col("under_18") & (pl.col("risk").list.len() == 0) & ~is_taken_down("post_id", _taken_down(store))
    return store.read("clean_posts").filter(shown).select("post_id", "text", "pii").collect()


def _taken_down(store: Store) -> Any:
    return taken_down(Path(store.storage.root).parent)


def _sensitive(text: pl.Expr) -> pl.Expr:
    """Whether a text that no table has judged yet is one that may not be shown."""
    return under_18(text) | (risk(text).list.len() > 0)


def _drawn(ids: Sequence[str]) -> list[str]:
    return sorted(ids, key=lambda one: unit_interval(0, "report", one))


def _short(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[:_MOST]} …"
