"""A file of a public data set becomes a partition of `imported_posts` or `imported_dialogues`."""

from pathlib import Path

from pipelines.core.code_version import code_version
from pipelines.core.files import sha256_of
from pipelines.core.home import Home
from pipelines.errors import RequestError, UnreadableFile
from pipelines.ingest.importing import read
from pipelines.ingest.mapping import load as load_mapping
from pipelines.ingest.registry import find
from pipelines.settings import author_key
from pipelines.store.store import Store, Version
from pipelines.store.suppression import SuppressionList, require_no_erasure
from schemas.dropped import gather
from schemas.labels import CROSSWALK_VERSION

_CHECK_FILE = "check that this is the set, and whole"
_CHECK_MAPPING = "compare the mapping with the file (docs/mapping.md; what speakers are called goes under [roles])"


def import_file(
    store: Store, home: Path, reader: str, path: Path, *, data_set: str | None = None, mapping: Path | None = None
) -> Version:
    """Read `path` as the data set `reader` and make it the current version of its partition.

    Raises UnknownName for a reader that does not exist, UnreadableFile for a file that is not what it should be or of
    which no record can be kept: an empty version would take the place of a good one.
    """
    require_no_erasure(home)
    imported = read(reader, path, data_set=data_set, author_key=author_key(home), mapping=mapping)
    if imported.kept.is_empty():
        first = imported.dropped.row(0, named=True) if imported.dropped.height else {"reason": "empty", "detail": None}
        check = _CHECK_FILE if mapping is None else _CHECK_MAPPING
        raise UnreadableFile(
            f"nothing in it can be read as {reader}: {imported.dropped.height} dropped, "
            f"the first for {first['reason']} ({first['detail']})",
            where=path,
            hint=f"{check}; what was imported before is untouched",
        )
    with Home(home).lock("incoming"):  # no erasure begins between the look at its list and the writing
        require_no_erasure(home)
        kept, erased = SuppressionList(home).sift(imported.kept, imported.table)
        return store.write(
            imported.table,
            kept,
            gather(imported.dropped, erased),
            partition=data_set or reader,
            code=code_version("pipelines.ingest.importing"),
            settings={"reader": reader, "mapping": _digest(mapping), "crosswalk": CROSSWALK_VERSION},
            note={
                "file": path.name,
                "sha256": _digest(path),
                "records": imported.n_records,
                "encoding": imported.encoding,
                "unknown_strategies": imported.unknown_strategies,
                "changes": imported.notes,
            },
        )


def target_table(reader: str, mapping: Path | None) -> str:
    """The table that a reader fills; for `mapped` the mapping file says which."""
    if reader != "mapped":
        return find(reader).table
    if mapping is None:
        raise RequestError("`mapped` needs a mapping file", hint="name one: --mapping FILE (docs/mapping.md)")
    return f"imported_{load_mapping(mapping).kind}"


def _digest(path: Path | None) -> str | None:
    return sha256_of(path) if path is not None and path.is_file() else None
