"""Broken pages in a crawl: each gives a right record or is counted, the crawl goes on, and no other post suffers."""

import http.client
import json
import random
import re
import subprocess
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import pytest
from crawl_runs import NOW, ROOT, environment, rows_of, site_file
from mutations import mutated

from samples.replica import Replica

SEED = 20250520
SHARE = 0.5  # of the pages that are chosen for it


class BrokenSite:
    """Stands in front of a replica and breaks a share of the pages whose address `which` matches, always in one way."""

    def __init__(self, replica: Replica, which: re.Pattern[str]) -> None:
        self.broken: dict[str, str] = {}  # what was done, by the address
        host, broken = urlsplit(replica.url).netloc, self.broken

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def do_GET(self) -> None:
                behind = http.client.HTTPConnection(host)
                behind.request("GET", self.path, headers={"Host": self.headers["Host"]})
                answer = behind.getresponse()
                body, kind = answer.read(), answer.headers["Content-Type"]
                behind.close()
                rng = random.Random(f"{SEED}\x1f{self.path}")
                if answer.status == 200 and which.search(self.path) and rng.random() < SHARE:
                    broken[self.path], page = mutated(body.decode(), rng, is_json="json" in kind)
                    # A half of a pair, which JSON may escape, UTF-8 can not write.
                    body = (page if isinstance(page, str) else json.dumps(page)).encode("utf-8", "replace")
                self.send_response(answer.status)
                for name, value in {"Content-Type": kind, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def crawled(job: Path, source: str, url: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """A crawl that no number of unreadable posts in a row stops; the process, and its figures."""
    said = {"job": str(job), "base_url": url, "now": NOW, "delays": "off", "from_date": "2025-01-01"}
    arguments = [part for name, value in said.items() for part in ("-a", f"{name}={value}")]
    command = [Path(sys.executable).with_name("scrapy"), "crawl", source, *arguments, "-s", "CRAWL_UNREAD_MAX=100000"]
    ran = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True)
    figures = [path for name in ("stats.json", "stopped.json") if (path := job / name).exists()]
    assert len(figures) == 1, ran.stderr[-3000:]
    return ran, json.loads(figures[0].read_text(encoding="utf-8"))


def bare(text: str) -> str:
    """Without white space, and without numbers: an id that takes the place of another may do so in a text too."""
    return re.sub(r"[\s\d]+", "", text)


# Engine, folder of the replica, lines of the site's file, and the addresses of posts.
ENGINES = {
    "xinli001": ("", {}, r"^/qa/\d+"),
    "discuz": ("/discuz", {"boards": '[{ id = "2" }, { id = "36" }]'}, r"viewthread"),
    "discourse": ("/discourse", {}, r"/t/\d+"),
}
LISTS = {"xinli001": r"^/qa\?", "discuz": "forumdisplay", "discourse": r"latest\.json"}


@pytest.fixture(scope="module")
def replica():
    with Replica(posts=260, now=NOW, days=10) as running:
        yield running


@pytest.mark.parametrize("engine", ENGINES)
def test_each_broken_post_is_a_right_record_or_a_counted_error(replica, tmp_path, engine):
    folder, keys, which = ENGINES[engine]
    with BrokenSite(replica, re.compile(which)) as site:
        source = site_file(tmp_path, engine, **keys)
        ran, summary = crawled(tmp_path / "job", source, site.url + folder)
        broken = dict(site.broken)
    truth = {post["ids"][engine]: post for post in replica.posts()}
    rows = {row["source_id"]: row for row in rows_of(tmp_path / "job")}
    print(f"{engine}: {len(broken)} broken pages, {dict(Counter(broken.values()))}; {summary['posts']}")  # noqa: T201

    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "Traceback" not in ran.stderr
    assert summary["finish_reason"] == "finished"
    assert len(broken) > 100
    assert len(set(broken.values())) > 2

    # Every post is accounted for, and what was lost is an error.
    fates = Counter(summary["posts"])
    assert fates.pop("listed") == len(truth) == sum(fates.values())
    assert set(fates) <= {"fetched", "lost", "gone", "outside"}
    assert sum(summary["errors"].values()) + sum(summary["refused"].values()) == fates["lost"] > 0
    assert fates["fetched"] == len(rows) == summary["items"]
    # Those none of whose pages was touched are there, and some of the others.
    touched = {source_id for path in broken for source_id in re.findall(r"\d+", path)}
    assert truth.keys() - touched <= rows.keys()
    assert rows.keys() & touched
    for source_id, row in rows.items():
        post = truth[source_id]
        assert bare(row["title"]) == bare(post["title"]), source_id
        assert bare(row["description"]) == bare(post["description"]), source_id
        answers = Counter(bare(answer["text"]) for answer in row["answers"])
        shown = Counter(bare(answer["text"]) for answer in post["answers"])
        assert answers <= shown, f"{source_id}: {[broken[path] for path in broken if source_id in path]}"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(2))
def test_a_broken_list_ends_the_crawl_with_a_reason_or_costs_nothing(replica, tmp_path, monkeypatch, engine, seed):
    folder, keys, _ = ENGINES[engine]
    monkeypatch.setattr(sys.modules[__name__], "SEED", seed)
    with BrokenSite(replica, re.compile(LISTS[engine])) as site:
        ran, summary = crawled(tmp_path / "job", site_file(tmp_path, engine, **keys), site.url + folder)
        assert site.broken
    assert "Traceback" not in ran.stderr
    truth = {post["ids"][engine] for post in replica.posts()}
    assert {row["source_id"] for row in rows_of(tmp_path / "job")} <= truth
    if ran.returncode:
        assert ran.returncode == 1
        assert summary["finish_reason"] in ("unknown_layout", "list_failed", "blocked", "incomplete", "nothing_read")
    else:
        assert summary["finish_reason"] == "finished"
