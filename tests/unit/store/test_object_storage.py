"""What a bucket promises beyond what every storage does, and what is reported where it cannot be used."""

import hashlib
import os
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from older_home import key_of, put
from pages import blocks
from store_rows import TABLE, drops, groups

from pipelines.core.files import storage_errors_reported
from pipelines.errors import GongqingError, SettingsError, StorageUnreachable
from pipelines.operations.doctor import examine
from pipelines.settings import load
from pipelines.store import Store
from pipelines.store.object_storage import ObjectStorage, storage_of
from pipelines.store.storage import LocalFolder
from pipelines.train.launch import secret_variables


@pytest.fixture
def storage(bucket: str, tmp_path: Path) -> ObjectStorage:
    return storage_of(tmp_path / "data")


def staged_by(storage: ObjectStorage, prefix: str, content: bytes) -> str:
    """Uploads a version of one file; the key of that."""
    with storage.staging() as staged:
        (staged / "part").write_bytes(content)
        (staged / "manifest.json").write_bytes(content)
        storage.publish(staged, prefix, lambda: False)
    return f"{prefix}/part.{hashlib.sha256(content).hexdigest()[:16]}"


def test_one_setting_of_the_home_chooses_the_storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(storage_of(tmp_path / "data"), LocalFolder)
    [block] = blocks("object-storage.md", "toml")
    (tmp_path / "gongqing.toml").write_text(block.replace("BUCKET/PREFIX", "a-bucket/corpora/one/"))
    for name in ("data", "releases"):
        storage = storage_of(tmp_path / name)
        assert isinstance(storage, ObjectStorage)
        assert storage.uri("a/b") == f"s3://a-bucket/corpora/one/{name}/a/b"
        assert storage.root == tmp_path / name
    for wrong in ("s3://", "https://host/bucket", "s3://key:secret@bucket", "a-bucket", "s3://bucket/a b"):
        monkeypatch.setenv("GONGQING_STORAGE__URL", wrong)
        with pytest.raises(SettingsError, match="storage"):
            load(tmp_path)
        with pytest.raises(SettingsError):
            Store(tmp_path / "data")


def test_nothing_counts_without_its_manifest_and_what_was_cut_off_goes(storage: ObjectStorage) -> None:
    put(storage, "splits/0000000000000000/rows/part.parquet", b"of an upload that was killed")
    put(storage, "splits/1111111111111111/rows/part.parquet", b"of another one, with other bytes than the next has")
    assert storage.published("splits") == []
    key = staged_by(storage, "splits/1111111111111111", b"rows")
    assert storage.files("splits/1111111111111111") == sorted([key, "splits/1111111111111111/manifest.json"])
    assert storage.swap("splits/current.json", None, b"{}")
    before = storage.files("splits")
    storage.sweep()
    assert [key for key in before if key not in storage.files("splits")] == [
        "splits/0000000000000000/rows/part.parquet"
    ]


def test_who_comes_second_replaces_no_file_of_the_first(
    storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two gongqings may write the same rows in other bytes."""
    key = staged_by(storage, "splits/v1", b"rows")
    with storage.staging() as staged:
        (staged / "part").write_bytes(b"ROWS")
        (staged / "manifest.json").write_bytes(b"ROWS")

        look, looks = ObjectStorage._get, list[str]()

        def look_too_early(self: ObjectStorage, key: str) -> object:
            looks.append(key)
            return look(self, key) if len(looks) > 1 else None

        monkeypatch.setattr(ObjectStorage, "_get", look_too_early)
        storage.publish(staged, "splits/v1", lambda: False)
    assert len(looks) == 2
    assert (storage.get("splits/v1/manifest.json"), storage.get(key)) == (b"rows", b"rows")


def test_a_copy_within_the_storage_sends_nothing_again(storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    key, sent = staged_by(storage, "splits/v1", b"rows"), list[str]()
    monkeypatch.setattr(ObjectStorage, "add", lambda _self, _path, key: sent.append(key))
    with storage.staging() as staged:
        storage.link(key, staged / "part")
        (staged / "manifest.json").write_bytes(b"2")
        storage.publish(staged, "splits/v2", lambda: False)
    assert sent == []
    assert len(storage.files("splits/v2")) == 2


def test_an_erasure_leaves_no_file_of_what_it_removes(store: Store) -> None:
    version = store.write(TABLE, groups(50), drops("p1"))
    before = [key_of(store, version, file) for file in version.manifest.files if file.path.startswith("rows/")]
    store.erase(version, lambda part, rows: (rows.head(3) if part == "rows" else rows, 0), erasure="e1")
    assert [key for key in before if key in store.storage.files("") or store.storage.get(key) is not None] == []
    assert store.read(TABLE).collect().height == 3


class Refusing(BaseHTTPRequestHandler):
    """Answers everybody as a storage answers who may not come in."""

    def do_GET(self) -> None:
        self.send_response(403)
        self.end_headers()
        self.wfile.write(b"<Error><Code>InvalidAccessKeyId</Code><Message>no such key</Message></Error>")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def refusing() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.drill("storage")
def test_a_storage_that_cannot_be_used_is_reported_with_place_and_hint(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusing: str
) -> None:
    reported = (
        ("GONGQING_STORAGE__URL", "s3://no-such-bucket/x", "there is no such bucket", "AWS_ENDPOINT_URL"),
        ("AWS_ENDPOINT_URL", refusing, "refuses access", "AWS_SECRET_ACCESS_KEY"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9", "does not answer", "AWS_ENDPOINT_URL"),
    )
    for name, value, words, hint in reported:
        monkeypatch.setenv(name, value)
        store = Store(tmp_path / "data")
        for call in (store.read, store.version_ids, partial(store.write, kept=groups(2))):
            with pytest.raises(StorageUnreachable, match=words) as caught:
                call(TABLE)
            assert (caught.value.where.startswith("s3://"), hint in caught.value.hint) == (True, True)
        [finding] = (one for one in examine(tmp_path) if one.what == "storage")
        assert (finding.state, words in finding.detail) == ("broken", True)
        monkeypatch.setenv("GONGQING_STORAGE__URL", bucket)


def test_where_polars_meets_the_trouble_it_is_the_same_error(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "data")
    version = store.write(TABLE, groups(2))
    rows = store.read(TABLE)
    store.storage.discard(f"{TABLE}/{version.version}")
    with pytest.raises(StorageUnreachable, match="does not answer as it should"), storage_errors_reported(tmp_path):
        rows.collect()


def test_without_obstore_the_message_says_what_to_install(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("obstore", "obstore.store"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(GongqingError, match="obstore is not installed") as caught:
        Store(tmp_path / "data").read(TABLE)
    assert "pip install obstore" in caught.value.hint


@pytest.mark.drill("privacy")
def test_no_trainer_has_the_keys_of_the_bucket(bucket: str, tmp_path: Path) -> None:
    assert {name for name in os.environ if name.startswith("AWS_") and "KEY" in name} <= secret_variables(tmp_path)
