"""Old versions go, and nothing that anything needs."""

from pathlib import Path
from threading import Thread

import polars as pl
import pytest

from pipelines.core.home import Home
from pipelines.errors import Busy, NoVersion, RequestError, UnknownName
from pipelines.operations.prune import prune, unneeded
from pipelines.store import Store, Version
from pipelines.store.suppression import alone
from schemas.tables import TABLES


def splits(n: int) -> pl.DataFrame:
    rows = [{"group_id": f"g{i}", "split": "train", "given_at": "", "members": []} for i in range(n)]
    return pl.DataFrame(rows, schema=TABLES["splits"].polars_schema())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(Home(tmp_path).data)


@pytest.fixture
def versions(store: Store) -> list[Version]:
    """Eight versions of `splits`, the fifth of which was made again last and is current."""
    made = [store.write("splits", splits(n), code=str(n)) for n in range(8)]
    return [*made[:4], *made[5:], store.write("splits", splits(4), code="again")]


def test_the_newest_stay_by_when_they_were_made_last(tmp_path: Path, store: Store, versions: list[Version]) -> None:
    wanted = [version.version for version in versions[:5]]
    assert {version.version for version in unneeded(tmp_path, keep=3)} == set(wanted)
    removed = {version.version: freed for version, freed in prune(tmp_path, keep=3)}
    assert set(removed) == set(wanted)
    assert all(freed > 0 for freed in removed.values())
    assert set(store.version_ids("splits")) == {version.version for version in versions[5:]}
    for version in store.versions("splits"):
        store.verify(version)
    assert store.read("splits").collect().height == 4
    assert list(prune(tmp_path, keep=3)) == []
    with pytest.raises((NoVersion, UnknownName)):
        store.version("splits", wanted[0])


def test_what_a_current_table_was_made_from_stays(tmp_path: Path, store: Store, versions: list[Version]) -> None:
    store.write("sampled_turns", TABLES["sampled_turns"].create_empty(), parents=[versions[0]])
    assert versions[0].version not in {version.version for version in unneeded(tmp_path, keep=1)}
    assert len(unneeded(tmp_path, keep=1)) == 6


def test_each_partition_keeps_its_own(tmp_path: Path, store: Store) -> None:
    empty = TABLES["imported_posts"].create_empty()
    for place in ("a", "b"):
        store.write("imported_posts", empty, partition=place)
    assert unneeded(tmp_path, keep=1) == []


def test_nothing_goes_while_a_refresh_is_at_work(tmp_path: Path, store: Store, versions: list[Version]) -> None:
    refused: list[Exception] = []

    def try_it() -> None:
        try:
            list(prune(tmp_path))
        except Busy as error:
            refused.append(error)

    with alone(tmp_path):
        thread = Thread(target=try_it)
        thread.start()
        thread.join()
    assert len(refused) == 1
    assert len(store.version_ids("splits")) == 8


def test_a_current_version_is_not_discarded(store: Store, versions: list[Version]) -> None:
    with pytest.raises(RequestError, match="is the current version"):
        store.discard(versions[-1])
