"""People of a home. Who is asked: names, which stand in one private file, and pseudonyms everywhere else. How far they
agree, and how each of them works.
"""

import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipelines.core.files import write_whole
from pipelines.core.home import Home
from pipelines.errors import RequestError, StoreError, UnknownName
from pipelines.operations.review.judged import known_answers, require_kind
from pipelines.review.agreement import measure_agreement, pace, right_on_known
from pipelines.review.importing import TABLE_NAME, TABLE_OF
from pipelines.settings import author_key, make_author_key
from pipelines.store.store import Store
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


class Agreement(NamedTuple):
    """Rows of `review.agreement.AGREEMENT`; and of each person those of `review.agreement.pace`, with how many items
    with a known answer they had (`known`), and which share of them right (`right`), both null for none.
    """

    figures: pl.DataFrame
    work: pl.DataFrame


def agreement_of(home: Path, name: str) -> Agreement:
    """The agreement on a kind. Both are empty where nobody has labelled anything. Raises UnknownName for the kind."""
    kind, store = require_kind(name), Store(Home(home).data)
    table = TABLE_NAME[kind]
    rows = store.read(table).collect() if store.current(table) else TABLE_OF[kind].create_empty()
    of_kind = rows.filter(kind=kind) if "kind" in rows.columns else rows
    known = {one.item_id: one.answers for one in known_answers(home, kind)}
    right = right_on_known(kind, of_kind, known).rename({"items": "known"})
    return Agreement(measure_agreement(kind, of_kind), pace(of_kind).join(right, on="annotator", how="left"))
