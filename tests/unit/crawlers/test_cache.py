"""Pages are kept compressed, whole or not at all, and not for ever."""

import os
import signal
import subprocess
import sys

import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.settings import Settings

from crawlers.cache import CachePolicy, PageStore
from crawlers.errors import CrawlError

BODY = "一页正文。".encode() * 500


def test_a_page_comes_back_as_it_was_and_is_kept_compressed_until_it_is_old(tmp_path):
    path = tmp_path / "pages.sqlite"
    store = PageStore(path)
    assert store.get(b"k") is None
    for at, body in ((1.0, b"older"), (5.0, BODY)):
        store.put(b"k", "http://a/1", at, 200, b"Content-Type: text/html", body)
    assert store.get(b"k") == ("http://a/1", 5.0, 200, b"Content-Type: text/html", BODY)
    store.close()
    assert path.stat().st_size < len(BODY) + 12_288
    assert BODY[:300] not in path.read_bytes()
    for limit, left in ((4.0, True), (6.0, False)):
        store = PageStore(path, expire_before=limit)
        assert (store.get(b"k") is not None) is left
        store.close()


@pytest.mark.drill("kill")
def test_what_a_killed_process_kept_is_there(tmp_path):
    code = f"""
import os, signal
from pathlib import Path
from crawlers.cache import PageStore
store = PageStore(Path({str(tmp_path / "p")!r}))
for number in range(50):
    store.put(b"%d" % number, "http://a/", 1.0, 200, b"", b"x" * 5000)
os.kill(os.getpid(), signal.SIGKILL)
"""
    ran = subprocess.run([sys.executable, "-c", code], env={**os.environ})
    assert ran.returncode == -signal.SIGKILL
    store = PageStore(tmp_path / "p")
    assert all(store.get(b"%d" % number) for number in range(50))
    store.close()


def test_a_file_that_is_no_store_is_an_error(tmp_path):
    (tmp_path / "p").write_bytes(b"no database" * 1000)
    with pytest.raises(CrawlError, match="can not be opened"):
        PageStore(tmp_path / "p")


def test_only_good_answers_are_kept_and_robots_never():
    policy, request = CachePolicy(Settings()), Request("http://a/1")
    kept = {
        n for n in (200, 302, 403, 404, 429, 500) if policy.should_cache_response(Response("http://a/1", n), request)
    }
    assert kept == {200, 404}
    assert not policy.should_cache_request(Request("http://a/robots.txt", meta={"dont_obey_robotstxt": True}))
