"""Some rows of a version to look at: the same ones for the same version, with their texts as they can be read.

Dagster's event log keeps what it was told. So of a private column, written before personal data are removed or leading
to it, only the length goes there; of what finds a post at its source beside the name that we gave it, nothing; and of a
row with signs of risk, or by somebody below 18, or made from such a row, nothing at all. What models wrote about
cleaned texts, and what is made of these, is shown as they are (`TEXTS`); a model's own reasoning and portraits of
speakers are not.
"""

import re
from collections.abc import Container, Iterable, Mapping
from typing import Any

import dagster as dg
import polars as pl

from pipelines.store.derived import RowIds
from pipelines.store.store import Store
from schemas.ids import unit_interval
from schemas.posts import has_answers
from schemas.tables import TABLES

_SAMPLE = 10
_SEED = 0
_CHARACTERS = 200  # of a cell
# A row is known by its key, which an erasure takes away wherever it stands. A number of a site, or a moment, it could
# not tell from any other.
_UNSHOWN = frozenset({"source_id", "url", "posted_at", "fetched_at"})
_HASHES = frozenset({"labelled", "shown", "item", "judged"})  # of what people and models saw
_TYPES = {int: "int", float: "float"}
_LINE, _FEW = 40, 8  # characters that a browser shows in one line: of Latin, and of Chinese
_CHINESE = re.compile("[\u3400-\u9fff]")
_HASH, _BEGINNING = re.compile("[0-9a-f]{64}"), 8

Texts = Mapping[str, pl.Expr]


def _columns(*names: str) -> dict[str, pl.Expr]:
    return {name: pl.col(name) for name in names}


def _spoken(name: str) -> pl.Expr:
    """The words of turns."""
    return pl.col(name).list.eval(pl.element().struct.field("text")).list.join(" · ")


def _last(messages: str, role: str) -> pl.Expr:
    """The last message of a role."""
    of_role = pl.col(messages).list.filter(pl.element().struct.field("role") == role)
    return of_role.list.last().struct.field("content")


_STEPS = _columns("history_reasoning", "emotion_reasoning", "strategy_reasoning", "response")
_POST = _columns("text")
_DIALOGUE = {"turns": _spoken("turns")}
_PROMPT = {"last_turn": _last("prompt", "user"), "reference": pl.col("reward_model").struct.field("ground_truth")}
_CHAT = {"last_turn": _last("messages", "user"), "reply": _last("messages", "assistant")}

_TURNS = {"history": _spoken("history"), **_columns("reference")}

# What is read of a row of a table; of other tables, columns that hold long words and are not private.
TEXTS: dict[str, Texts] = {
    **dict.fromkeys(("clean_posts", "unique_posts"), _POST),
    **dict.fromkeys(("clean_dialogues", "unique_dialogues", "coherent_dialogues", "rewritten_dialogues"), _DIALOGUE),
    **dict.fromkeys(("topics", "emotions", "rewrite_judgements"), _columns("why")),
    **dict.fromkeys(("sampled_turns", "sampled_rewrites"), _TURNS),
    "ecot_chains": _columns("situation", "motivation", "strategy", "answer"),
    "coe_chains": _columns("L1", "L2", "L3", "L4", "answer"),
    "cer_candidates": _STEPS,
    "rewrite_drafts": {"lines": _spoken("lines")},
    "rewritten_rounds": {**_TURNS, **_STEPS},
    **dict.fromkeys(("grpo_ecot", "grpo_coe", "grpo_cer"), _PROMPT),
    **dict.fromkeys(("sft_coe", "sft_cer", "rm_process", "rm_outcome", "rm_unified"), _CHAT),
    "rm_triplets": _columns("query", "positive", "negative"),
}
# What people judged stands in another table: its columns, and the keys by which it is found there.
_JUDGED: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    **dict.fromkeys(
        ("cer_votes", "cer_labels"), ("cer_candidates", ("dialogue_id", "round", "candidate"), ("response",))
    ),
    "coe_reviews": ("coe_chains", ("post_id", "answer_id"), ("answer",)),
}
# Stand for these columns: a post's text is its title and description.
_READ_OF = {"last_turn": ("prompt", "messages"), "reference": ("reward_model",), "text": ("title", "description")}


def samples(name: str, rows: pl.DataFrame, store: Store) -> dict[str, dg.TableMetadataValue]:
    """Some rows of a table: what was written, in one column before the keys, for a browser cuts off what is further
    right; and apart from it all else.
    """
    table, texts = TABLES[name], TEXTS.get(name, {})
    drawn = _draw(presentable_rows(rows, store), table.key())
    if judged := _JUDGED.get(name):
        of_table, by, texts = judged[0], list(judged[1]), _columns(*judged[2])
        there = store.read(of_table) if store.current(of_table) else TABLES[of_table].create_empty().lazy()
        drawn = drawn.join(there.select(*by, *texts).collect(), on=by, how="left", maintain_order="left")
    private = set(table.private_columns()) - texts.keys()
    cells = [_cells(row, private) for row in drawn.with_columns(**texts).to_dicts()]
    instead = {column for new in texts for column in _READ_OF.get(new, ())}
    hashes = {column for column in _HASHES if rows.schema.get(column) == pl.String}
    columns = [*dict.fromkeys([*table.column_names(), *texts])]
    columns = [column for column in columns if column not in _UNSHOWN | hashes | instead]
    reads = [column for column in columns if column in texts or any(_reads(one[column]) for one in cells)]
    reads = [*texts, *(column for column in reads if column not in texts)]
    others = [column for column in columns if column not in reads]
    keys = table.key()
    written = [column for column in reads if column not in keys]
    shown: dict[str, Iterable[dict[str, Any]]] = {
        "sample": ({**_in_one(one, written), **{key: one[key] for key in keys}} for one in cells),
        "sample_fields": ({column: one[column] for column in dict.fromkeys([*keys, *others])} for one in cells),
    }
    return {name: records(entries) for name, entries in shown.items()}


def _in_one(cells: Mapping[str, Any], columns: list[str]) -> dict[str, str]:
    """The texts of a row as one, each behind its column's name where there are several."""
    if len(columns) < 2:
        return {column: str(cells[column] or "") for column in columns}
    return {"text": "\n".join(f"【{column}】{cells[column]}" for column in columns if cells[column] is not None)}


def _draw(rows: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """Rows whose keys come first in an order that follows from each key alone: no other row moves them."""
    at = [unit_interval(_SEED, *map(str, names)) for names in rows.select(key).iter_rows()]
    return rows.with_columns(_drawn=pl.Series(at, dtype=pl.Float64)).sort("_drawn").drop("_drawn").head(_SAMPLE)


def presentable(rows: pl.DataFrame) -> pl.Expr:
    """Rows that may be shown outside of the tables: without signs of risk, and not by somebody below 18."""
    shown = pl.lit(True)
    if "risk" in rows.columns:
        shown &= pl.col("risk").list.len() == 0
    if "under_18" in rows.columns:
        shown &= ~pl.col("under_18")
    return shown


def presentable_rows(rows: pl.DataFrame, store: Store) -> pl.DataFrame:
    """The rows that are presentable, and made from no post, answer or dialogue that is not."""
    shown = rows.filter(presentable(rows))
    if has_answers(rows.schema):  # posts stay, without some of their answers
        at_risk = pl.element().struct.field("risk").list.len() > 0
        return shown.with_columns(pl.col("answers").list.filter(~at_risk & ~pl.element().struct.field("under_18")))
    return shown if "under_18" in rows.columns else shown.filter(~_unpresentable(store).rows(shown))


def _unpresentable(store: Store) -> RowIds:
    """The posts, answers and dialogues that are not presentable, by the rules or a model's second opinion on a post."""
    ids: set[str] = set()
    for table, key in (("unique_posts", "post_id"), ("unique_dialogues", "dialogue_id"), ("topics", "row_id")):
        if store.pointer(table) is None:
            continue
        rows = store.read(table)
        columns = [name for name in ("risk", "under_18", "answers") if name in TABLES[table].column_names()]
        of_table = rows.select(key, *columns).collect()
        ids.update(of_table.filter(~presentable(of_table))[key])
        if "answers" in columns:
            answers = of_table.select(pl.col("answers").explode(empty_as_null=False).struct.unnest())
            ids.update(answers.filter(~presentable(answers))["answer_id"])
    return RowIds(ids)


def records(entries: Iterable[dict[str, Any]]) -> dg.TableMetadataValue:
    """Records of one form as a table, its types those of the first; of none a table without columns."""
    rows = list(entries)
    columns = [dg.TableColumn(name, _TYPES.get(type(value), "string")) for name, value in (rows[:1] or [{}])[0].items()]
    return dg.TableMetadataValue([dg.TableRecord(one) for one in rows], dg.TableSchema(columns))


def as_records(frame: pl.DataFrame) -> dg.TableMetadataValue:
    """A frame as a table; none of its columns is private."""
    return records(map(_cells, frame.to_dicts()))


def _reads(cell: str | float | bool | None) -> bool:
    """Whether it is Chinese to be read, that a browser may break anywhere, or words longer than a column is wide: no
    ids, hashes or figures.
    """
    if not isinstance(cell, str):
        return False
    if _CHINESE.search(cell):
        return len(cell) > _FEW
    return len(" ".join(word for word in cell.split() if not any(map(str.isdigit, word)))) > _LINE


def _cells(row: dict[str, Any], private: Container[str] = ()) -> dict[str, Any]:
    return {name: _cell(value, name in private) for name, value in row.items()}


def _cell(value: Any, private: bool) -> str | int | float | bool | None:
    if value is None:
        return None
    if isinstance(value, str):
        return f"{len(value)} characters" if private else _short(value)
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, (bool, int)):
        return value
    if isinstance(value, list):
        return f"{len(value)} items" if private else _short(f"{len(value)}: {' · '.join(map(_words_of, value))}")
    return f"{len(value)} fields" if isinstance(value, dict) else _short(str(value))


def _words_of(item: Any) -> str:
    """An item of a list: its text, where it has one, or its fields."""
    if isinstance(item, dict):
        return str(item.get("text") or " ".join(str(value) for value in item.values() if value is not None))
    return _short(str(item))


def _short(words: str) -> str:
    """Words as far as they are shown, and of a hash its beginning."""
    if _HASH.fullmatch(words):
        return words[:_BEGINNING]
    return words if len(words) <= _CHARACTERS else words[:_CHARACTERS] + "…"


def texts_length(table: str) -> pl.Expr | None:
    """How many characters are read of a row; None of a table without texts."""
    texts = TEXTS.get(table)
    return None if texts is None else pl.sum_horizontal(text.str.len_chars() for text in texts.values())
