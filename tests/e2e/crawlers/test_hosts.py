"""One crawl a host at a time on this machine."""

import os

import pytest
from crawl_runs import begin, crawl, wait_for

from crawlers.errors import CrawlError
from crawlers.job import lock_host


@pytest.fixture(autouse=True)
def room(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "run"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "run"))
    return tmp_path / "run" / f"gongqing-{os.getuid()}"


@pytest.mark.drill("race")
def test_of_two_crawls_of_a_host_one_is_refused_before_it_asks_for_a_page(clean_replica, tmp_path):
    clean_replica.server.trouble.slow_seconds = 0.1
    first = begin(tmp_path / "one", clean_replica.url)
    wait_for(lambda: clean_replica.log.paths)
    refused = crawl(tmp_path / "other", clean_replica.url, code=1)
    clean_replica.server.trouble.slow_seconds = 0
    first.communicate()
    assert first.returncode == 0
    assert "another crawl is fetching from 127.0.0.1" in refused.log
    assert not refused.job.exists()
    assert clean_replica.log.most_at_once == 1
    assert clean_replica.log.paths.count("/robots.txt") == 1


@pytest.mark.drill("kill")
def test_a_killed_crawl_has_let_go_of_its_host(clean_replica, tmp_path):
    clean_replica.server.trouble.slow_seconds = 0.2
    process = begin(tmp_path / "killed", clean_replica.url)
    wait_for(lambda: len(clean_replica.log.paths) >= 3)
    with pytest.raises(CrawlError, match=f"process {process.pid}"):
        lock_host(clean_replica.url)
    process.kill()
    process.communicate()
    lock_host(clean_replica.url).close()


def test_the_lock_is_that_of_a_host_and_a_port():
    with lock_host("https://bbs.example.org"):
        for other in ("https://bbs.example.org:8443", "https://www.example.org", "http://bbs.example.org"):
            lock_host(other).close()
        for same in ("https://BBS.example.org:443/forum", "http://bbs.example.org:443"):
            with pytest.raises(CrawlError, match="another crawl") as refused:
                lock_host(same)
            assert refused.value.exit_code == 1
            assert f"process {os.getpid()}" in str(refused.value)
    lock_host("https://bbs.example.org").close()


def test_the_locks_are_in_a_folder_of_this_user_alone(tmp_path, room):
    lock_host("http://[::1]:8765").close()
    assert room.stat().st_mode & 0o777 == 0o700
    room.rename(tmp_path / "elsewhere")
    room.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CrawlError, match="not ours"):
        lock_host("http://127.0.0.1:8765")
    room.unlink()
    room.write_text("", encoding="utf-8")
    with pytest.raises(CrawlError, match="no folder for the locks"):
        lock_host("http://127.0.0.1:8765")
