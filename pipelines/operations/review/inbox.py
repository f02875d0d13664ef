"""Labels that arrive while nobody watches: files in an inbox, and what a team has answered in Potato.

<home>/review/inbox/KIND/          files of labels, as `gongqing review import KIND` takes them
<home>/review/inbox/KIND/taken/    those that were taken
<home>/review/inbox/KIND/refused/  those that were not, each with its reasons in a file beside it
"""

from dataclasses import dataclass, field
from pathlib import Path

from pipelines.core.files import write_whole
from pipelines.core.home import Home
from pipelines.errors import Busy, GongqingError
from pipelines.operations.review.importing import Imported, import_labels
from pipelines.operations.review.team import pull
from pipelines.review import potato
from pipelines.review.contract import CONTENTS
from schemas.ids import digest

_STILL = 10.0  # seconds since a file was last written: until then somebody may be writing it


@dataclass(slots=True)
class Taken:
    """How many labels are new, in which versions, and which files were refused."""

    new: int = 0
    versions: list[str] = field(default_factory=list)
    refused: list[Path] = field(default_factory=list)

    @property
    def run_key(self) -> str:
        """The same for the same versions: what follows from them is made once."""
        return digest("\n".join(self.versions))

    def add(self, imported: Imported) -> None:
        """Counts what an import took."""
        self.new += imported.new
        self.versions += [f"{version.name}@{version.version}" for version in imported.versions]


def take_all(home: Path, now: float | None = None) -> Taken:
    """Takes what a team has answered in Potato so far, then all files of the inbox, one by one.

    A file that was written in the last seconds before `now` (seconds since 1970; None: of any age) waits. Where another
    process begins to make tables meanwhile, the rest is taken another time; raises Busy where nothing new was taken.
    """
    taken = Taken()
    kinds = {project.name.partition("-")[0] for project in potato.projects_of(home)}
    try:
        for kind in sorted(kinds):  # before any file is moved: what Potato stores may be damaged
            taken.add(pull(home, kind)[0])
        for kind in CONTENTS:
            for path in sorted((Home(home).review / "inbox" / kind).glob("*")):
                if path.is_file() and (now is None or now - path.stat().st_mtime >= _STILL):
                    _take(home, kind, path, taken)
    except Busy:
        if not taken.new:
            raise
    return taken


def _take(home: Path, kind: str, path: Path, taken: Taken) -> None:
    try:
        taken.add(import_labels(home, kind, [path]))
    except Busy:
        raise
    except GongqingError as error:
        place = _moved(path, "refused")
        write_whole(place.with_name(f"{place.name}.txt"), f"{error}\n".encode())
        taken.refused.append(place)
    else:
        _moved(path, "taken")


def _moved(path: Path, folder: str) -> Path:
    """Moves a file aside; another of its name that lies there already stays."""
    place = path.parent / folder / path.name
    place.parent.mkdir(mode=0o700, exist_ok=True)
    number = 1
    while place.exists():
        number += 1
        place = path.parent / folder / f"{path.stem}-{number}{path.suffix}"
    path.rename(place)
    return place
