"""What of a release may be published.

A row whose writer allowed it is published as it is. In a row of anybody else all words of the writer are replaced by
references, also where a chain quotes them, and so are 15 characters of a private text anywhere; ids, labels and
annotations remain. The column `withheld` says which rows lack words. A row that repeats as many in other marks or in
the other script is left out: no reference could restore it.

The texts at home were read by the strict finder of personal data. What is published is read by the wide one as well:
there a missed name costs more than a lost sentence.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.core.files import sha256_of
from pipelines.errors import PrivateText
from pipelines.release.publish.private import LEAST, PUBLISHABLE, PrivateTexts, elsewhere, has_quotes, quoted, restored
from pipelines.store.release_manifest import Finding, Release, Shard
from pipelines.store.releases import MANIFEST, ROWS_AT_ONCE, rows_of
from pipelines.text.pii.redaction import find, redact
from pipelines.text.runs import Runs
from pipelines.text.strings import strings
from schemas.dropped import Row

WITHHELD = "withheld"
WITHHELD_MEANS = "the row lacks words that may not be published: ⟦digest from:to id⟧ stands in their place"
_EXAMPLES = 5
# Strings that are no texts: ids and labels, which are published of every row.
_LABELS = frozenset(
    {
        *("row_id", "split", "variant", "kind", "role", "data_source", "ability", "style", "source", "lang"),
        *("reference_origin", "reference_id", "prompt_version", "prompt_length_unit"),
        *("made_from", "group_id", "providers", "positive_id", "positive_role", "negative_ids"),
    }
)


Change = Callable[[str], str]


def publish_rows(release: Release, source: Path, target: Path, private: PrivateTexts) -> Release:
    """Write what may be published of a release from folder `source` to `target`, shard by shard.

    Returns the release as it is published: other shards, and a finding for each config that lacks words or rows.
    """
    publisher = _Publisher(release, private)
    configs = {
        config: [_rewritten(source, target, shard, publisher.of(config)) for shard in shards]
        for config, shards in release.configs.items()
    }
    return release.model_copy(
        update={
            "configs": configs,
            # Whose story stands out, or was allowed to pass, is for the home to know.
            "left_out": [one.model_copy(update={"row_ids": []}) for one in release.left_out],
            "findings": [*(one.model_copy(update={"examples": []}) for one in release.findings), *publisher.findings()],
            "sources": [
                source.model_copy(
                    update={
                        "rows": publisher.rows[source.name],
                        # Releases of earlier versions name files, and a file may be named after somebody.
                        "collected": "imported" if source.collected.startswith("read from ") else source.collected,
                    }
                )
                for source in release.sources
            ],
        }
    )


def is_public(release: Release, folder: Path) -> bool:
    """Whether the release in `folder` is a publication that came back from the Hub: it has the column `withheld`."""
    shards = [shard for shards in release.configs.values() for shard in shards]
    return bool(shards) and all(WITHHELD in pq.read_schema(folder / shard.path).names for shard in shards)


def require_no_private_text(folder: Path, private: PrivateTexts) -> None:
    """Look through every file of an export for runs of private texts: the last check, whatever came before.

    Raises PrivateText with the rows in which 15 characters of one stand.
    """
    shards, documents = sorted(folder.rglob("*.parquet")), (*folder.glob("*.md"), *folder.glob(MANIFEST))
    repeats = lru_cache(maxsize=1 << 16)(private.runs.find)
    repeating = [
        row["row_id"]
        for path in shards
        for row in rows_of(path)
        if any(repeats(text) or private.repeated_folded(text) for text in _texts(row))
        or any(map(private.repeated_in_ours, strings(row)))
    ]
    repeating += [path.name for path in documents if private.repeated_in_ours(path.read_text(encoding="utf-8"))]
    if repeating:
        raise PrivateText(
            f"{len(repeating):,} rows or files of the export repeat {LEAST} characters or more of a text that may not "
            f"be published: {', '.join(repeating[:_EXAMPLES])}",
            where=folder.name,
            hint="nothing was exported; report it: these words should have been replaced",
        )


def restore_rows(release: Release, source: Path, target: Path, known: dict[str, str]) -> tuple[Release, list[str]]:
    """Write the shards of a publication with the words restored that `known`, by digest, has.

    Returns the release as it is then, and the ids of texts that are not at hand or have changed, each once, sorted.
    """
    missing: set[str] = set()

    def undo(text: str) -> str:
        whole, lost = restored(text, known)
        missing.update(lost)
        return whole

    def whole(rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            full = _changed(row, undo)
            yield {**full, WITHHELD: any(has_quotes(text) for text in strings(full))}

    configs = {
        config: [_rewritten(source, target, shard, whole) for shard in shards]
        for config, shards in release.configs.items()
    }
    return release.model_copy(update={"configs": configs}), sorted(missing)


class _Publisher:
    """Makes rows public, and notes what became of those that are not published whole, by config and reason."""

    def __init__(self, release: Release, private: PrivateTexts) -> None:
        self.private = private
        self.rows: Counter[str] = Counter()  # that are published, by source
        self._withheld: dict[str, list[str]] = defaultdict(list)
        self._renamed: dict[str, list[str]] = defaultdict(list)
        self._left_out: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._sources = {source.name for source in release.sources if source.consent in PUBLISHABLE}
        self._clean: set[bytes] = set()  # of pieces without personal data
        self._own_runs = lru_cache(maxsize=64)(private.own_runs)  # rows of one post stand together
        self._elsewhere = lru_cache(maxsize=4096)(lambda text: _replaced(text, private.runs))
        self._prompt = lru_cache(maxsize=64)(lambda text: quoted(text, private.repeated_in_ours(text)))

    def findings(self) -> Iterator[Finding]:
        for config, ids in sorted(self._withheld.items()):
            what = f"rows of {config} are published without the words of those who wrote them"
            hint = "gongqing restore puts them back from a crawl or a copy of your own"
            yield _warning("withheld", what, hint, ids)
        for config, ids in sorted((config, ids) for config, ids in self._renamed.items() if ids):
            what = f"rows of {config} are published with further placeholders, of what reads like a name or a number"
            yield _warning("renamed", what, "none: they are whole in the release at home", ids)
        for (config, reason), ids in sorted(self._left_out.items()):
            what = f"rows of {config} are not published: {reason}"
            yield _warning("left_out", what, "none: they are in the release at home alone", ids)

    def of(self, config: str) -> Callable[[Iterator[Row]], Iterator[Row]]:
        """What makes the rows of a config public."""

        def public(rows: Iterator[Row]) -> Iterator[Row]:
            return self._without_names(config, filter(None, (self._public(config, row) for row in rows)))

        return public

    def _without_names(self, config: str, rows: Iterator[Row]) -> Iterator[Row]:
        """The rows without what the wide finder takes for personal data; the same value has one placeholder a row."""
        while some := list(islice(rows, ROWS_AT_ONCE)):
            of_row = [_pieces(row) for row in some]
            self._look(list(dict.fromkeys(chain.from_iterable(of_row))))
            # What says nothing in any of its pieces has nothing to replace: repeats are of what is found.
            read = [number for number, pieces in enumerate(of_row) if not self._clean.issuperset(map(_mark, pieces))]
            texts = [piece for number in read for piece in of_row[number]]
            groups = [number for number in read for _ in of_row[number]]
            redacted = redact(texts, pl.Series(groups, dtype=pl.Int64), names="wide")
            changed = {groups[row] for row in redacted.counts["row"]}
            self._renamed[config] += [some[number]["row_id"] for number in sorted(changed)]
            renewed: Iterator[str] = iter(redacted.texts.to_list())
            looked = set(read)
            yield from (_with_pieces(row, renewed) if n in looked else row for n, row in enumerate(some))

    def _look(self, pieces: list[str]) -> None:
        """Notes those pieces in which the wide finder finds nothing; each is read once, however many rows have it."""
        new = [piece for piece in pieces if _mark(piece) not in self._clean]
        hits = set(find(pl.Series(new, dtype=pl.String), names="wide")["row"])
        self._clean.update(_mark(piece) for number, piece in enumerate(new) if number not in hits)

    def _public(self, config: str, row: Row) -> Row | None:
        row_id: str = row["row_id"]
        source = row_id.partition(":")[0]
        owner = self.private.owner(row_id)
        if owner is None and source not in self._sources:
            self._leave_out(config, "the text that they were made from is not in this home", row_id)
            return None
        if owner is not None and row.get("variant") in ("R", "P"):
            self._leave_out(config, "they are rewrites of texts that may not be published", row_id)
            return None
        own = None if owner is None else self._own_runs(owner)
        public = _changed(row, lambda text: self._without_runs(text, own), prompt=self._prompt)
        if any(map(self.private.repeated_folded, _texts(public))):
            self._leave_out(config, "they repeat such texts in other marks or in the other script", row_id)
            return None
        withheld = public != row
        self.rows[source] += 1
        if withheld:
            self._withheld[config].append(row_id)
        return {**public, WITHHELD: withheld}

    def _leave_out(self, config: str, reason: str, row_id: str) -> None:
        self._left_out[config, reason].append(row_id)

    def _without_runs(self, text: str, own: Runs | None) -> str:
        """A text without the runs of any private text, and then without the shorter ones of its own row's."""
        public = elsewhere(text, self._elsewhere)
        return public if own is None else elsewhere(public, lambda rest: _replaced(rest, own))


def _mark(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _pieces(row: Row) -> list[str]:
    """What stands between the references of every text of a row, system prompts apart, in the order of `_changed`."""
    pieces: list[str] = []

    def keep(piece: str) -> str:
        pieces.append(piece)
        return piece

    _changed(row, lambda text: elsewhere(text, keep), prompt=_as_it_is)
    return pieces


def _with_pieces(row: Row, pieces: Iterator[str]) -> Row:
    """The row with these in the place of its `_pieces`."""
    changed: Row = _changed(row, lambda text: elsewhere(text, lambda _: next(pieces)), prompt=_as_it_is)
    return changed


def _as_it_is(text: str) -> str:
    return text


def _warning(check: str, what: str, hint: str, ids: list[str]) -> Finding:
    return Finding(check=check, severity="warn", count=len(ids), what=what, hint=hint, examples=ids[:_EXAMPLES])


def _replaced(text: str, runs: Runs) -> str:
    return quoted(text, runs.find(text))


def _changed(value: Any, change: Change, prompt: Change | None = None) -> Any:
    """A value of a row with its texts changed; `prompt` changes system prompts, which are ours."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_changed(one, change, prompt) for one in value]
    if isinstance(value, dict):
        used = prompt if prompt is not None and value.get("role") == "system" else change
        return {name: one if name in _LABELS else _changed(one, used, prompt) for name, one in value.items()}
    return value


def _texts(value: Any) -> Iterator[str]:
    """Every string but system prompts; what stands in a list in one, for it may have been cut up."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and all(isinstance(one, str) for one in value):
        yield "".join(value)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict) and value.get("role") != "system":
        for one in value.values():
            yield from _texts(one)


def _rewritten(source: Path, target: Path, shard: Shard, change: Callable[[Iterator[Row]], Iterator[Row]]) -> Shard:
    """The shard with its rows changed, under the same name."""
    path = target / shard.path
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = pq.read_schema(source / shard.path)
    if WITHHELD not in schema.names:
        schema = schema.append(pa.field(WITHHELD, pa.bool_(), metadata={"description": WITHHELD_MEANS}))
    written, waiting = 0, []
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for row in change(rows_of(source / shard.path)):
            waiting.append(row)
            if len(waiting) == ROWS_AT_ONCE:
                writer.write_table(pa.Table.from_pylist(waiting, schema))
                written, waiting = written + len(waiting), []
        writer.write_table(pa.Table.from_pylist(waiting, schema))
    return shard.model_copy(
        update={"rows": written + len(waiting), "bytes": path.stat().st_size, "sha256": sha256_of(path)}
    )
