"""Who is asked: names of people, which stand in one private file of the home, and their pseudonyms everywhere else."""

import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from pipelines.core.files import write_whole
from pipelines.core.home import Home
from pipelines.errors import RequestError, StoreError, UnknownName
from pipelines.settings import author_key, make_author_key
from schemas.ids import pseudonym

_SOURCE = "review"  # whoever labels and also writes on a site has two pseudonyms


def people_file(home: Path) -> Path:
    """The names of who was ever asked, by pseudonym; for the home's owner alone."""
    return Home(home).review / "people.json"


def people(home: Path) -> dict[str, str]:
    """Names by pseudonym. Raises StoreError for a file that cannot be read."""
    path = people_file(home)
    if not path.exists():
        return {}
    try:
        names = json.loads(path.read_bytes())
        return {str(pseudonym): str(name) for pseudonym, name in names.items()}
    except (ValueError, AttributeError) as error:
        hint = "restore it; or remove it, and export again with the same names: pseudonyms follow from the author key"
        raise StoreError("the names of reviewers cannot be read", where=path, hint=hint) from error


def require_enrolled(home: Path, names: Sequence[str]) -> list[str]:
    """The pseudonyms of people who were asked before, in the order of `names`. Raises UnknownName for anybody else."""
    known = people(home)
    pseudonyms = {_folded(name): one for one, name in known.items()} | {one: one for one in known}
    for name in names:
        if name.strip() not in known and _folded(name) not in pseudonyms:
            raise UnknownName("person who was asked", name.strip(), known.values())
    return [pseudonyms[name.strip() if name.strip() in known else _folded(name)] for name in names]


def _cleaned(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).split())


def _folded(name: str) -> str:
    """What a name is the same by: in capitals and in other widths of its letters."""
    return _cleaned(name).casefold()


def enrol(home: Path, names: Sequence[str]) -> list[str]:
    """The pseudonyms of people, in the order of `names`; new ones are noted. A name is the same in capitals and in
    other widths of its letters. A pseudonym that is known stands for itself. A home without an author key gets one.

    Raises RequestError for an empty name and for one that is there twice.
    """
    cleaned = [_cleaned(name) for name in names]
    if not cleaned or not all(cleaned):
        raise RequestError("nobody is named", hint="--annotators NAME,NAME,…")
    make_author_key(home)
    key = author_key(home)
    assert key is not None
    known = people(home)
    found = [name if name in known else pseudonym(_SOURCE, _folded(name), key) for name in cleaned]
    if twice := next((name for name, one in zip(cleaned, found, strict=True) if found.count(one) > 1), None):
        raise RequestError(f"{twice} is named twice", hint="name each person once: nobody labels an item twice")
    new = {one: name for name, one in zip(cleaned, found, strict=True) if one not in known}
    if new:
        write_whole(people_file(home), (json.dumps(known | new, ensure_ascii=False, indent=1) + "\n").encode())
    return found
