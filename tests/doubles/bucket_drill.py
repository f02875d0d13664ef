"""Writers to a bucket: killed with SIGKILL at request after request, or sixteen at once.

`python bucket_drill.py kills N FOLDER` and `python bucket_drill.py race N FOLDER` print a line of JSON. The process has
imported polars and obstore, but started none of their threads, so that a fork of it is whole and costs milliseconds;
what it looks at itself it asks the storage for by HTTP.

Kills: each work has an empty bucket and home, and is begun again and again; each time it dies one request later, before
that is sent or after it is answered, until it comes to its end. After each kill every manifest is compared with what
lies in the bucket, and the pointer with the versions that may be current.

Race: each writer has a home of its own, so that no lock stands between them, only the conditions of the requests.
"""

import contextlib
import json
import multiprocessing
import os
import signal
import sys
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import obstore.exceptions
import obstore.store  # noqa: F401
import pyarrow.compute  # noqa: F401 - the first cast imports it
from object_server import BUCKET, ObjectServer
from release_rows import made, triplets
from store_rows import TABLE, drops, groups
from store_workers import count_up, said, size

from pipelines.store import Store
from pipelines.store.object_storage import ObjectStorage, storage_of
from pipelines.store.releases import Releases

WRITERS = 16
ROWS = {"rm_triplets": triplets(("s:1/a", "train"), ("s:2/a", "test"))}


# What dies


class Deadly:
    """Kills this process at a request: at number 2n before request n, at 2n + 1 after it."""

    def __init__(self, moment: int) -> None:
        self.moment, self.now, self.asked = moment, 0, ObjectStorage._asked

    def __enter__(self) -> None:
        @contextlib.contextmanager
        def asked(storage: ObjectStorage) -> Iterator[Any]:
            self._pass()
            with self.asked(storage) as client:
                yield client
            self._pass()

        ObjectStorage._asked = asked

    def __exit__(self, *_: object) -> None:
        ObjectStorage._asked = self.asked

    def _pass(self) -> None:
        if self.now == self.moment:
            os.kill(os.getpid(), signal.SIGKILL)
        self.now += 1


class Work(NamedTuple):
    """What there is before, the work, and what it must have come to."""

    prepare: Callable[[Path], Any]
    do: Callable[[Path], Any]
    check: Callable[[Path], Any]  # raises


def write_old(home: Path) -> None:
    Store(home / "data").write(TABLE, groups(20, "old"), drops("p1"))


def write_new(home: Path) -> None:
    Store(home / "data").write(TABLE, groups(30, "new"), drops("p1", "p2"))


def is_new(home: Path) -> None:
    store = Store(home / "data")
    assert store.read(TABLE).collect().equals(groups(30, "new"))
    assert len(store.versions(TABLE)) == 2
    for version in store.versions(TABLE):
        store.verify(version)


def release(home: Path) -> None:
    if "v1" not in Releases(home):
        made(home, "v1", ROWS)
    Releases(home).promote("v1")


def is_released(home: Path) -> None:
    assert Releases(home).current().name == "v1"
    assert Releases(home).frame("v1", "rm_triplets").collect().height == 2


def erase(home: Path) -> None:
    store = Store(home / "data")
    store.erase(store.version(TABLE), lambda _, rows: (rows.head(5), 0), erasure="e1")


def is_erased(home: Path) -> None:
    store = Store(home / "data")
    store.verify(store.version(TABLE))
    assert store.read(TABLE).collect().equals(groups(20, "old").head(5))


WORKS = {
    "write": Work(write_old, write_new, is_new),
    "release": Work(lambda home: None, release, is_released),
    "erase": Work(write_old, erase, is_erased),
}


# What is looked at


def fetched(url: str) -> bytes:
    request = urllib.request.Request(url, headers={"Authorization": "AWS of:nobody"})  # moto looks whether there is one
    with urllib.request.urlopen(request) as answer:
        return answer.read()


@cache
def document(url: str, _etag: str) -> dict[str, Any]:
    """A manifest or a pointer, read once as long as it stays the same."""
    return json.loads(fetched(url))


def half_versions(server: ObjectServer, prefix: str) -> list[str]:
    """The manifests that name what is not there, or not as long as they say; and pointers that lead to none."""
    bucket = f"http://127.0.0.1:{server.port}/{BUCKET}"
    listed = ET.fromstring(fetched(f"{bucket}?list-type=2&prefix={prefix}/"))
    objects = [
        [one.findtext(f"{{*}}{name}") for name in ("Key", "Size", "ETag")] for one in listed.findall("{*}Contents")
    ]
    assert listed.findtext("{*}IsTruncated") == "false"
    sizes = {key: int(n_bytes) for key, n_bytes, _ in objects}
    wrong = []
    for key, _, etag in objects:
        folder, _, name = key.rpartition("/")
        if name == "manifest.json":
            manifest = document(f"{bucket}/{key}", etag)
            for file in manifest.get("files") or chain.from_iterable(manifest["configs"].values()):
                stem = file["path"].removesuffix(".parquet")
                if sizes.get(f"{folder}/{stem}.{file['sha256'][:16]}.parquet") != file["bytes"]:
                    wrong.append(f"{key}: {file['path']}")
        if name == "current.json":
            pointer = document(f"{bucket}/{key}", etag)
            version = pointer.get("version") or pointer["name"]
            wrong += [] if f"{folder}/{version}/manifest.json" in sizes else [f"{key}: {version}"]
    return wrong


def in_fork(work: Callable[[], Any]) -> int:
    """The exit code of a fork that does it: 0 where it came to its end, negative where a signal ended it."""
    if (child := os.fork()) == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kills(server: ObjectServer, wanted: int, folder: Path) -> dict[str, Any]:
    """So many kills, whole works alone: a few more may come."""
    counts, half, failed, rounds = dict.fromkeys(WORKS, 0), list[str](), list[str](), 0
    while sum(counts.values()) < wanted:
        for name, work in WORKS.items():
            home, prefix = folder / f"{name}-{rounds}", f"{name}-{rounds}"
            os.environ["GONGQING_STORAGE__URL"] = f"s3://{BUCKET}/{prefix}"
            failed += [f"{name}: prepare"] * bool(in_fork(lambda: work.prepare(home)))  # noqa: B023

            def do(moment: int) -> None:
                with Deadly(moment):
                    work.do(home)  # noqa: B023

            # Every second moment at a time, so that each round dies at others; in turn before and after a request.
            moment = rounds % 2
            while (code := in_fork(lambda: do(moment))) == -signal.SIGKILL:  # noqa: B023
                counts[name] += 1
                half += half_versions(server, prefix)
                moment += 2
            failed += [f"{name}: {code}"] * bool(code or in_fork(lambda: work.check(home)))  # noqa: B023
            half += half_versions(server, prefix)
        rounds += 1
    return {"kills": counts, "rounds": rounds, "half": half, "failed": failed}


def race(server: ObjectServer, turns: int, folder: Path) -> dict[str, Any]:
    """Sixteen writers at the same table, and at a number that each adds to by swaps."""
    os.environ["GONGQING_STORAGE__URL"] = f"s3://{BUCKET}/race"
    fork = multiprocessing.get_context("fork")
    start = fork.Barrier(WRITERS)

    def write(writer: int) -> None:
        home = folder / f"home-{writer}"
        count_up(home / "counts", turns, start)
        store = Store(home / "data")
        for turn in range(turns):
            text = said(writer, turn)
            start.wait()
            store.write(TABLE, groups(size(text), text), drops(text), code=f"writer {writer}")
            rows = store.read(TABLE).collect()
            text = rows["given_at"][0]
            assert rows.equals(groups(size(text), text)), "a mixture"

    writers = [fork.Process(target=write, args=(writer,)) for writer in range(WRITERS)]
    for process in writers:
        process.start()
    for process in writers:
        process.join()
    codes = [process.exitcode for process in writers]

    def check() -> None:
        store = Store(folder / "home-0" / "data")
        wanted = {said(writer, turn) for writer in range(WRITERS) for turn in range(turns)}
        versions = store.versions(TABLE)
        for version in versions:
            store.verify(version)
        assert len(versions) == len(wanted), (len(versions), len(wanted))
        last = store.read(TABLE).collect()["given_at"][0]
        assert last in {said(writer, turns - 1) for writer in range(WRITERS)}, last
        counted = int(storage_of(folder / "home-0" / "counts").get("count") or 0)
        assert counted == WRITERS * turns, f"{WRITERS * turns - counted} swaps are lost"
        everyone = {run.code for version in versions for run in version.manifest.runs}
        assert everyone == {f"writer {writer}" for writer in range(WRITERS)}

    failed = [f"writer {writer}: {code}" for writer, code in enumerate(codes) if code]
    failed += ["the end"] * bool(in_fork(check))
    return {"writers": WRITERS, "swaps": WRITERS * turns, "half": half_versions(server, "race"), "failed": failed}


if __name__ == "__main__":
    drill = {"kills": kills, "race": race}[sys.argv[1]]
    with ObjectServer() as server:
        os.environ.update(server.environment)
        sys.stdout.write(json.dumps(drill(server, int(sys.argv[2]), Path(sys.argv[3]))) + "\n")
