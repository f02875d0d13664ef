"""What of a release may be published.

A row whose writer allowed it is published as it is. In a row of anybody else all words of the writer are replaced by
references, also where a chain quotes them, and so are 15 characters of a private text anywhere; ids, labels and
annotations remain. The column `withheld` says which rows lack words. A row that repeats as many in other marks or in
the other script is left out: no reference could restore it.

The texts at home were read by the strict finder of personal data. What is published is read by the wide one as well:
there a missed name costs more than a lost sentence.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.core.files import sha256_of
from pipelines.errors import PrivateText
from pipelines.release.publish.leaves import leaves
from pipelines.release.publish.private import LEAST, PUBLISHABLE, PrivateTexts, elsewhere, has_quotes, quoted, restored
from pipelines.release.readings import Readings
from pipelines.store.manifest import MANIFEST
from pipelines.store.release_manifest import Finding, Release, Shard
from pipelines.store.releases import ROWS_AT_ONCE
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


def publish_rows(release: Release, source: Path, target: Path, private: PrivateTexts, readings: Readings) -> Release:
    """Write what may be published of a release from folder `source` to `target`, shard by shard.

    Returns the release as it is published: other shards, and a finding for each config that lacks words or rows.
    """
    publisher = _Publisher(release, private, readings)
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
    names = [pq.read_schema(folder / shard.path).names for shard in release.shards]
    return bool(names) and all(WITHHELD in of_shard for of_shard in names)


def require_no_private_text(folder: Path, private: PrivateTexts) -> None:
    """Look through every file of an export for runs of private texts: the last check, whatever came before.

    Raises PrivateText with the rows in which 15 characters of one stand.
    """
    shards, documents = sorted(folder.rglob("*.parquet")), (*folder.glob("*.md"), *folder.glob(MANIFEST))
    repeating = [
        row["row_id"]
        for path in shards
        for batch in _batches(path)
        for row in _taken(batch, _repeating(pl.DataFrame(batch), private)).to_pylist()
        if any(private.runs.find(text) or private.repeated_folded(text) for text in _texts(row))
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

    def whole(batch: pa.Table, schema: pa.Schema) -> pa.Table:
        rows = [_changed(row, undo) for row in batch.to_pylist()]
        full = [{**row, WITHHELD: any(has_quotes(text) for text in strings(row))} for row in rows]
        return pa.Table.from_pylist(full, schema)

    configs = {
        config: [_rewritten(source, target, shard, whole) for shard in shards]
        for config, shards in release.configs.items()
    }
    return release.model_copy(update={"configs": configs}), sorted(missing)


class _Publisher:
    """Makes rows public, and notes what became of those that are not published whole, by config and reason."""

    def __init__(self, release: Release, private: PrivateTexts, readings: Readings) -> None:
        self.private = private
        self.readings = readings
        self.rows: Counter[str] = Counter()  # that are published, by source
        self._withheld: dict[str, list[str]] = defaultdict(list)
        self._renamed: dict[str, list[str]] = defaultdict(list)
        self._left_out: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._sources = {source.name for source in release.sources if source.consent in PUBLISHABLE}
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

    def of(self, config: str) -> Callable[[pa.Table, pa.Schema], pa.Table]:
        """What makes batches of a config public."""

        def public(batch: pa.Table, schema: pa.Schema) -> pa.Table:
            frame = pl.DataFrame(batch)
            private = self._private(frame)
            named = _with_names(_own_texts(frame, private), self.readings)
            read = dict(zip(private, _taken(batch, private).to_pylist(), strict=True))
            published = {place: row for place in private if (row := self._public(config, read[place])) is not None}
            for place, row in zip(named, _taken(batch, named).to_pylist(), strict=True):
                self.rows[row["row_id"].partition(":")[0]] += 1
                read[place] = published[place] = {**row, WITHHELD: False}
            published = dict(sorted(published.items()))
            changed = pa.Table.from_pylist(self._without_names(config, [*published.values()]), schema)
            whole = [place for place in range(batch.num_rows) if place not in read]
            as_it_is = _taken(batch, whole)
            self.rows.update(row_id.partition(":")[0] for row_id in as_it_is["row_id"].to_pylist())
            as_it_is = as_it_is.append_column(schema.field(WITHHELD), pa.array([False] * len(whole), pa.bool_()))
            order = sorted(range(len(whole) + len(published)), key=[*whole, *published].__getitem__)
            return _taken(pa.concat_tables([as_it_is, changed]), order)

        return public

    def _private(self, rows: pl.DataFrame) -> list[int]:
        """The numbers of the rows that are not published, or not with all their words; and of some others."""
        private = {place for place, row_id in enumerate(rows["row_id"]) if self._is_private(row_id)}
        return sorted(private.union(_repeating(rows, self.private)))

    def _is_private(self, row_id: str) -> bool:
        return self.private.owner(row_id) is not None or row_id.partition(":")[0] not in self._sources

    def _without_names(self, config: str, rows: list[Row]) -> list[Row]:
        """The rows without what the wide finder takes for personal data."""
        redacted = self.readings.redacted([_pieces(row) for row in rows])
        self._renamed[config] += [row["row_id"] for row, texts in zip(rows, redacted, strict=True) if texts is not None]
        return [
            row if texts is None else _with_pieces(row, iter(texts)) for row, texts in zip(rows, redacted, strict=True)
        ]

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


def read_names(release: Release, folder: Path, readings: Readings) -> None:
    """Read the rows of a release in `folder` for what an export will replace, so that each export only replaces it.

    Rows of sources that may not be published are left out: little of their texts is.
    """
    sources = {source.name for source in release.sources if source.consent in PUBLISHABLE}
    for batches in _together(batch for shard in release.shards for batch in _batches(folder / shard.path)):
        texts = []
        for frame in map(pl.DataFrame, batches):
            is_withheld = ~frame["row_id"].str.extract("^([^:]*)").is_in(list(sources))
            texts.append(_own_texts(frame, is_withheld.arg_true().to_list()))
        readings.nothing_in(pl.concat(texts)["text"].unique(maintain_order=True).to_list())  # of all in one call
        named = (_taken(batch, _with_names(of, readings)) for batch, of in zip(batches, texts, strict=True))
        readings.redacted([_pieces(row) for rows in named for row in rows.to_pylist()])


def _together(batches: Iterable[pa.Table]) -> Iterator[list[pa.Table]]:
    """Some batches at a time: a call of the finder costs half a second however few its texts are."""
    some: list[pa.Table] = []
    for batch in batches:
        some.append(batch)
        if sum(one.num_rows for one in some) >= ROWS_AT_ONCE:
            yield some
            some = []
    if some:
        yield some


def _own_texts(rows: pl.DataFrame, without: list[int]) -> pl.DataFrame:
    """`row` (a number), `text`: the texts of the rows that people or models wrote, `without` those of some rows."""
    every = leaves(rows, _LABELS)
    return every.filter(~pl.any_horizontal("label", "ours", "joined"), ~pl.col("row").is_in(without))


def _with_names(texts: pl.DataFrame, readings: Readings) -> list[int]:
    """The numbers of the rows with `_own_texts` in which anything reads like personal data."""
    distinct = texts["text"].unique(maintain_order=True)
    named = distinct.filter(~pl.Series(readings.nothing_in(distinct.to_list()), dtype=pl.Boolean))
    return sorted(set(texts.filter(pl.col("text").is_in(named.implode()))["row"]))


def _repeating(rows: pl.DataFrame, private: PrivateTexts) -> list[int]:
    """The numbers of the rows that may repeat a private text: in their texts, or word for word in what is ours."""
    if not private:
        return []
    every = leaves(rows, ())
    ours = every.filter("ours")["text"].unique()
    texts = every.filter(~pl.col("ours"))["text"].unique().to_list()
    repeating = private.repeating(texts).union(text for text in ours if private.repeated_in_ours(text))
    found = every.filter(pl.col("text").is_in(pl.Series(sorted(repeating), dtype=pl.String).implode()))
    return sorted(set(found["row"]))


def _taken(batch: pa.Table, places: list[int]) -> pa.Table:
    return batch.take(pa.array(places, pa.int64()))


def _batches(shard: Path) -> Iterator[pa.Table]:
    with pq.ParquetFile(shard) as file:
        yield from (pa.Table.from_batches([batch]) for batch in file.iter_batches(ROWS_AT_ONCE))


def _rewritten(source: Path, target: Path, shard: Shard, change: Callable[[pa.Table, pa.Schema], pa.Table]) -> Shard:
    """The shard with its rows changed, under the same name."""
    path = target / shard.path
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = pq.read_schema(source / shard.path)
    if WITHHELD not in schema.names:
        schema = schema.append(pa.field(WITHHELD, pa.bool_(), metadata={"description": WITHHELD_MEANS}))
    written = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in _batches(source / shard.path):
            table = change(batch, schema)
            writer.write_table(table)
            written += table.num_rows
    return shard.model_copy(update={"rows": written, "bytes": path.stat().st_size, "sha256": sha256_of(path)})
