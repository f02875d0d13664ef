"""Files of a crawl: JSON lines and figures, read so that a damaged one is named, and written for their owner alone."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pipelines.core.files import write_whole
from pipelines.errors import CrawlFailed


def lines(path: Path, key: str, read: Callable[[dict[str, Any]], Any] | None = None) -> Iterator[dict[str, Any]]:
    """The lines of a file, each an object that has `key`; none where there is no file.

    Raises CrawlFailed for a line that is none, naming it.
    """
    if not path.exists():
        return
    # Lines of bytes: a text may hold what Python takes for the end of a line, and half of a character.
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line.decode("utf-8", "replace"), object_hook=read)
                row[key]
            except (ValueError, KeyError, TypeError):
                raise CrawlFailed(
                    "a line of what was crawled is damaged",
                    where=f"{path}:{number}",
                    hint="remove the line, and run the crawl again: its post is fetched anew",
                ) from None
            yield row


def figures(path: Path) -> dict[str, Any]:
    """The figures of a crawl; empty where there is no file.

    Raises CrawlFailed for a file that is damaged.
    """
    if not path.exists():
        return {}
    try:
        read: dict[str, Any] = json.loads(path.read_bytes())
        read["finish_reason"]
    except (ValueError, KeyError, TypeError):
        raise CrawlFailed(
            "the figures of a crawl are damaged",
            where=path,
            hint="remove the file, and run the crawl again: it goes on where it was",
        ) from None
    return read


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Writes a row a line, the file whole or not at all."""
    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())


def make_private(folder: Path) -> None:
    """Makes a folder, and what is missing above it, for nobody but their owner."""
    if not folder.exists():
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
