"""A file of a public data set becomes a partition of `imported_posts` or `imported_dialogues`."""

import hashlib
import os
import secrets
from pathlib import Path

from pipelines.code_version import code_version
from pipelines.drops import gather
from pipelines.errors import RequestError, UnreadableFile
from pipelines.ingest.importing import read
from pipelines.ingest.mapping import load as load_mapping
from pipelines.ingest.registry import find
from pipelines.kept_out import KeptOut, require_no_erasure
from pipelines.locks import held
from pipelines.settings import AUTHOR_KEY
from pipelines.store.store import Store, Version
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
            remedy=f"{check}; what was imported before is untouched",
        )
    with held(home / ".locks" / "coming-in"):  # no erasure begins between the look at its list and the writing
        require_no_erasure(home)
        kept, erased = KeptOut(home).sift(imported.kept, imported.table)
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
        raise RequestError("`mapped` needs a mapping file", remedy="name one: --mapping FILE (docs/mapping.md)")
    return f"imported_{load_mapping(mapping).kind}"


def author_key(home: Path) -> bytes | None:
    """The key of the authors' pseudonyms: of the environment, or the file `author.key` of the home; None without."""
    given = os.environ.get(AUTHOR_KEY)
    if given:
        return given.encode()
    path = home / "author.key"
    return path.read_bytes().strip() if path.exists() else None


def make_author_key(home: Path) -> None:
    """Make the home's author key once, readable by its owner alone, so that pseudonyms and versions stay."""
    path = home / "author.key"
    if author_key(home) is None:
        home.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")


def _digest(path: Path | None) -> str | None:
    if path is None or not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
