"""Who asked to be erased never comes back: by a crawl, an import, or a journal that nobody had collected.

    <home>/erasures/key        the key of the codes below, made once, for its owner alone
    <home>/erasures/kept-out   a line for each row and each author that was erased: a code, no id

The list says what is kept out without saying whom: a code is an HMAC, and leads to a row only where somebody has the
key and the row's id at once.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

import polars as pl

from pipelines.drops import drops, gather
from pipelines.durable import write_whole
from pipelines.errors import Busy
from schemas.table import Dropped

FOLDER = "erasures"
PLANS = "*.plan"
REASON = "erased"


class KeptOut:
    """The list of a home."""

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER
        self._path = self._folder / "kept-out"
        self._codes = frozenset(self._path.read_text(encoding="ascii").split()) if self._path.exists() else frozenset()

    def __contains__(self, name: object) -> bool:
        """Whether a row of this id, or an author of this pseudonym, is kept out."""
        return bool(self._codes) and isinstance(name, str) and self.code(name) in self._codes

    def code(self, name: str) -> str:
        """What stands for an id or an author's pseudonym where it may not stand in the clear."""
        return hmac.new(self._key, name.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]

    def mask(self, row_id: str) -> str:
        """An id that says that a row was erased, and not which; the same for the same row."""
        return f"{REASON}:{self.code(row_id)[:16]}"

    def add(self, names: Iterable[str]) -> None:
        """From here on rows of these ids, and of these authors, are kept out. Durable when it returns."""
        codes = self._codes | {self.code(name) for name in names}
        write_whole(self._path, "".join(f"{code}\n" for code in sorted(codes)).encode())
        self._codes = codes

    def sift(self, rows: pl.DataFrame, table: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The rows that may come in, without the answers that may not; and what was kept out, by code.

        Args:
            rows: Posts or dialogues, as they came.
            table: Where they were to go.
        """
        if not self._codes:
            return rows, Dropped.create_empty()
        key = "post_id" if "post_id" in rows.columns else "dialogue_id"
        names = [name for name in (key, "author") if name in rows.columns]
        out = rows.select(pl.any_horizontal(self._is_out(rows[name]) for name in names)).to_series()
        kept = rows.filter(~out)
        told = [self._told(rows.filter(out)[key], table, "record")]
        if "answers" in rows.columns:
            answers = kept.select(key, answer="answers").explode("answer", empty_as_null=False).unnest("answer")
            away = answers.filter(self._is_out(answers["answer_id"]) | self._is_out(answers["author"]))
            named = away["answer_id"].implode()
            left = pl.element().filter(~pl.element().struct.field("answer_id").is_in(named))
            kept = kept if away.is_empty() else kept.with_columns(pl.col("answers").list.eval(left))
            told.append(self._told(away["answer_id"], table, "answer"))
        return kept, gather(*told)

    def _is_out(self, names: pl.Series) -> pl.Series:
        return pl.Series([name in self for name in names], dtype=pl.Boolean)

    def _told(self, ids: pl.Series, table: str, unit: str) -> pl.DataFrame:
        masked = pl.DataFrame({"row_id": [self.mask(row) for row in ids]}, schema={"row_id": pl.String})
        return drops(masked, table, unit, "row_id", pl.lit(REASON), pl.lit(None))

    @cached_property
    def _key(self) -> bytes:
        path = self._folder / "key"
        if not path.exists():
            write_whole(path, secrets.token_hex(32).encode())
        return path.read_bytes()


def require_no_erasure(home: Path) -> None:
    """Raises Busy while an erasure is unfinished: what is made meanwhile might bring back what it takes away."""
    for plan in (home / FOLDER).glob(PLANS):
        raise Busy(
            "an erasure was begun and is not finished", where=plan, remedy="finish it first: gongqing erase --resume"
        )
