"""What a stage that looks at one row at a time is made from, piece by piece.

A piece is a run of chunks of its parents (`store.chunks`). Where it ends follows from the chunks themselves, so that a
new day of posts makes one piece another, and the others stay.
"""

import json
from collections.abc import Collection, Iterator
from typing import NamedTuple

from pipelines.store.chunks import of_part
from pipelines.store.manifest import Chunk, Run
from pipelines.store.store import Version
from schemas.ids import digest

# Of a piece, on the average: a call costs two seconds however few its rows are (regexes are compiled), as much as a
# thousand posts, and beside a new day all rows of its piece are made again.
_ROWS = 4_096
_MOST_ROWS = 20_000


class Piece(NamedTuple):
    """Chunks of one parent table, and a name that follows from their content and from the code and settings."""

    name: str
    table: str
    chunks: list[tuple[Version, Chunk]]


def pieces(parents: list[Version], run: Run, whole: Collection[str] = ()) -> Iterator[Piece]:
    """The pieces of the rows of all parents, in their order, as a run makes them; of those in `whole` one each."""
    chunks: list[tuple[Version, Chunk]] = []
    for version in parents:
        for chunk in of_part(version.manifest.files, "rows"):
            full = version.table not in whole and _rows(chunks) + chunk.rows > _MOST_ROWS
            if chunks and (full or chunks[0][0].table != version.table):
                yield _piece(chunks, run)
                chunks = []
            chunks.append((version, chunk))
            if version.table not in whole and int(_content(chunk)[:8], 16) / 16**8 < chunk.rows / _ROWS:
                yield _piece(chunks, run)
                chunks = []
    if chunks:
        yield _piece(chunks, run)


def _piece(chunks: list[tuple[Version, Chunk]], run: Run) -> Piece:
    table = chunks[0][0].table
    decisive = [run.code, run.settings, table, [_content(chunk) for _, chunk in chunks]]
    return Piece(digest(json.dumps(decisive, sort_keys=True, ensure_ascii=False)), table, chunks)


def _content(chunk: Chunk) -> str:
    """Of versions from before there were chunks, the bytes of the file stand for its rows."""
    return chunk.content or chunk.sha256


def _rows(chunks: list[tuple[Version, Chunk]]) -> int:
    return sum(chunk.rows for _, chunk in chunks)
