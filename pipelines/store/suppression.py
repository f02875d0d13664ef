"""The suppression list: what was erased never comes back, by a crawl, an import or a journal not yet collected.

    <home>/erasures/key        the key of the codes below, made once, for its owner alone
    <home>/erasures/kept-out   a line for each row, each author and each text that was erased: a code, no id

The list names nobody: a code is an HMAC, and leads to a row only for somebody who has the key and the row's id, or all
its words. By its words a row is recognised at another address, and in a file of another name.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import polars as pl

from pipelines.core.files import write_whole
from pipelines.core.home import Home
from pipelines.errors import Busy
from schemas.dropped import drops, gather
from schemas.table import Dropped

PLANS = "*.plan"
REASON = "erased"
_TELLING = 15  # characters: of fewer, two people may have written the same


class SuppressionList:
    """The list of a home."""

    def __init__(self, home: Path) -> None:
        self._folder = Home(home).erasures
        self._path = self._folder / "kept-out"
        self._codes = frozenset(self._path.read_text(encoding="ascii").split()) if self._path.exists() else frozenset()

    def __contains__(self, name: object) -> bool:
        """Whether a row of this id, or an author of this pseudonym, is suppressed."""
        return bool(self._codes) and isinstance(name, str) and self.code(name) in self._codes

    def code(self, name: str) -> str:
        """What stands for an id or an author's pseudonym where it may not stand in the clear."""
        return hmac.new(self._key, name.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]

    def mask(self, row_id: str) -> str:
        """What replaces the id of an erased row: it does not say which; the same for the same row."""
        return f"{REASON}:{self.code(row_id)[:16]}"

    def wording(self, words: str | None) -> str | None:
        """What stands for the words of a row; None where they are too few to tell it from another."""
        return None if words is None else self.code(f"\n{words}")  # no id begins so

    def add(self, names: Iterable[str], wordings: Iterable[str] = ()) -> None:
        """Suppress rows of these ids, of these authors, and of these codes of words. Durable when it returns."""
        codes = self._codes | {self.code(name) for name in names} | set(wordings)
        write_whole(self._path, "".join(f"{code}\n" for code in sorted(codes)).encode())
        self._codes = codes

    def sift(self, rows: pl.DataFrame, table: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The posts or dialogues that may come into `table`, without the answers that may not; and what was suppressed,
        by code.
        """
        if not self._codes:
            return rows, Dropped.create_empty()
        key = "post_id" if "post_id" in rows.columns else "dialogue_id"
        out = self._has_words(rows)
        for name in (name for name in (key, "author") if name in rows.columns):
            out |= self._is_listed(rows[name])
        kept = rows.filter(~out)
        dropped = [self._drops(rows.filter(out)[key], table, "record")]
        if "answers" in rows.columns:
            answers = kept.select(key, answer="answers").explode("answer", empty_as_null=False).unnest("answer")
            listed = self._is_listed(answers["answer_id"]) | self._is_listed(answers["author"])
            away = answers.filter(listed | self._has_words(answers))["answer_id"]
            left = pl.element().filter(~pl.element().struct.field("answer_id").is_in(away.implode()))
            kept = kept if away.is_empty() else kept.with_columns(pl.col("answers").list.eval(left))
            dropped.append(self._drops(away, table, "answer"))
        return kept, gather(*dropped)

    def _is_listed(self, names: pl.Series) -> pl.Series:
        return pl.Series([name in self for name in names], dtype=pl.Boolean)

    def _has_words(self, rows: pl.DataFrame) -> pl.Series:
        """Which of some posts, answers or dialogues are suppressed by their words."""
        return pl.Series([self.wording(words) in self._codes for words in words_of(rows)], dtype=pl.Boolean)

    def _drops(self, ids: pl.Series, table: str, unit: str) -> pl.DataFrame:
        masked = pl.DataFrame({"row_id": [self.mask(row) for row in ids]}, schema={"row_id": pl.String})
        return drops(masked, table, unit, "row_id", pl.lit(REASON), pl.lit(None))

    @cached_property
    def _key(self) -> bytes:
        path = self._folder / "key"
        if not path.exists():
            write_whole(path, secrets.token_hex(32).encode())
        return path.read_bytes()


def words_of(rows: pl.DataFrame) -> pl.Series:
    """The words of each row, of posts, answers or dialogues, without white space; null for those of too few.

    A post is known by its description alone, where that says enough: its title may have been changed.
    """
    if "turns" in rows.columns:
        words = [pl.col("turns").list.eval(_unspaced(pl.element().struct.field("text"))).list.join("")]
    elif "description" in rows.columns:
        title, description = (_unspaced(pl.col(name)) for name in ("title", "description"))
        words = [description, title + description]
    else:
        words = [_unspaced(pl.col("text"))] if "text" in rows.columns else []
    telling = (pl.when(one.str.len_chars() >= _TELLING).then(one) for one in words)
    return rows.with_columns(words=pl.coalesce(*telling, pl.lit(None, pl.String)))["words"]


def _unspaced(text: pl.Expr) -> pl.Expr:
    """Without what Python takes for white space, by which the codes of earlier versions were made."""
    return text.fill_null("").str.replace_all(r"[\s\x1c-\x1f]+", "")


def taken_down(home: Path) -> list[str]:
    """What the takedown list of a home names: `source:id`, or an id alone."""
    path = Home(home).takedown
    lines = path.read_text(encoding="utf-8-sig").splitlines() if path.exists() else []
    return [name for line in lines if (name := line.split("#", 1)[0].strip())]


def is_taken_down(column: str, listed: Sequence[str]) -> pl.Expr:
    """Whether the row id in a column is listed, or its id alone; never null."""
    source_id = pl.col(column).str.splitn(":", 2).struct.field("field_1")
    return (pl.col(column).is_in(listed) | source_id.is_in(listed)).fill_null(value=False)


def require_no_erasure(home: Path) -> None:
    """Raises Busy while an erasure is unfinished: what is made meanwhile might bring back what it takes away."""
    for plan in Home(home).erasures.glob(PLANS):
        raise Busy(
            "an erasure was begun and is not finished", where=plan, hint="finish it first: gongqing erase --resume"
        )


@contextmanager
def alone(home: Path, *, finishing: bool = False, waits: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold the home's refresh lock (`Home.refreshing`).

    Raises Busy where another process is at work and this one does not wait, or an erasure is unfinished, unless this is
    who finishes it.
    """
    with Home(home).refreshing(waits):
        if not finishing:
            require_no_erasure(home)
        yield
