"""A manifest from elsewhere is not believed: nothing that it names lies outside a release."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.errors import HubError, RequestError
from pipelines.release.publish.client import require_repo
from pipelines.release.publish.fetch import read_manifest, require_rows
from pipelines.store.release_manifest import Shard


@pytest.fixture
def manifest(mixed, tmp_path):
    """Writes the manifest of a release with something changed."""

    def write(change):
        told = json.loads(mixed.release.to_bytes())
        change(told)
        path = tmp_path / "manifest.json"
        path.write_text(json.dumps(told), encoding="utf-8")
        return path

    return write


SHARD = "train-00000-of-00001.parquet"
ELSEWHERE = (
    *("../../.ssh/authorized_keys", "/etc/passwd", "sft_coe/../x.parquet"),
    *(f"rm_triplets/{SHARD}", f"sft_coe/{SHARD}\n", f"secrets/{SHARD}"),
)


def test_a_file_outside_its_config_a_name_that_is_no_folder_and_another_manifest_are_refused(mixed, manifest):
    assert read_manifest(manifest(lambda told: None), "me/x") == mixed.release
    for path in ELSEWHERE:
        with pytest.raises(HubError, match="names a file"):
            read_manifest(manifest(lambda told, path=path: told["configs"]["sft_coe"][0].update(path=path)), "me/x")
    for name in ("../other", "Release", "", "a" * 65):
        with pytest.raises(RequestError, match="cannot name a release"):
            read_manifest(manifest(lambda told, name=name: told.update(name=name)), "me/x")
    for change in (lambda told: told.pop("configs"), lambda told: told.update(name=1)):
        with pytest.raises(HubError, match="not that of a release"):
            read_manifest(manifest(change), "me/x")
    with pytest.raises(HubError, match=r"does not know: more(.|\n)*newer gongqing"):
        read_manifest(manifest(lambda told: told.update(more=1)), "me/x")


@pytest.fixture
def shard(tmp_path):
    """Writes a shard, and gives what a manifest would say of it."""

    def write(table, rows=None):
        path = tmp_path / "rm_triplets" / SHARD
        path.parent.mkdir(exist_ok=True)
        pq.write_table(table, path, compression="zstd")
        told = {"path": f"rm_triplets/{path.name}", "split": "train", "rows": table.num_rows if rows is None else rows}
        return path, Shard(**told, bytes=path.stat().st_size, sha256="0" * 64)

    return write


def rows_of_triplets(n=1, **columns):
    told = {"row_id": [str(place) for place in range(n)], "split": ["train"] * n, "withheld": [False] * n}
    return pa.table(told | columns)


def test_a_file_that_unfolds_to_far_more_than_texts_do_is_refused(shard):
    """Few bytes on the disk: one long text, a thousand times by reference; or one alone that is all the same letter."""
    many = rows_of_triplets(2_000, negative=["a" * 2**18] * 2_000)
    path, told = shard(many)
    assert path.stat().st_size < 2**16
    with pytest.raises(HubError, match="unfolds to more"):
        require_rows(path, told, "me/x")
    require_rows(*shard(rows_of_triplets(100, negative=["一句话" * 500] * 100)), "me/x")  # as ours do
    with pytest.raises(HubError, match="unfolds to more"):
        require_rows(*shard(rows_of_triplets(negative=["a" * 2**27])), "me/x")


def test_a_file_that_is_not_as_the_manifest_says_is_refused(shard):
    for table, rows, message in (
        (rows_of_triplets().drop(["withheld"]), 1, "lacks the columns withheld"),
        (rows_of_triplets(row_id=[1]), 1, "lacks the columns row_id"),
        (rows_of_triplets(3), 4, "has 3 rows, its manifest says 4"),
    ):
        with pytest.raises(HubError, match=message):
            require_rows(*shard(table, rows), "me/x")
    path, entry = shard(rows_of_triplets())
    path.write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    with pytest.raises(HubError, match="no readable Parquet"):
        require_rows(path, entry, "me/x")


def test_owner_and_name_are_a_repository_and_nothing_else_is():
    """Half a name neither: the client would make a data set of it under whoever owns the token."""
    for repo in ("me/empathy", "some-lab/CER_1.0", "a/b"):
        require_repo(repo)
    for repo in ("empathy", "me/a b", "../../x", "a/b/c", "me/", "/x", "me/x--y", "me/x..y", "me/x.", "-me/x", "我/x"):
        with pytest.raises(RequestError, match="cannot name a data set"):
            require_repo(repo)
