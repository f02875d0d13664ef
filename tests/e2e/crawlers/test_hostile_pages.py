"""Pages that mean harm are refused and counted, within bounded memory, and cost no other post."""

import json
import os
import subprocess
import sys

import pytest
from crawl_runs import NOW, ROOT, command, crawl, environment, site_file
from tiny_site import HTML, TinySite
from troubled_replica import Replica

from crawlers import settings
from crawlers.extensions.fence import outside

_MOST = 400 << 20  # bytes in memory, of which Python and Scrapy take about a hundred million


@pytest.mark.drill("site")
def test_hostile_pages_are_refused_and_counted_and_every_other_post_is_there(tmp_path):
    with Replica(posts=60, now=NOW, days=10) as replica:
        replica.hostile(mb=50)
        # Measured from outside: the greatest memory that the crawl ever had.
        measure = "import resource, subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; "
        measure += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr); sys.exit(code)"
        arguments = command(tmp_path, replica.url, "--from", "2025-01-01", "--until", "2025-05-20")
        ran = subprocess.run(
            [sys.executable, "-c", measure, *arguments], cwd=ROOT, env=environment(), capture_output=True, text=True
        )
        log = replica.requests()
        truth = {post["ids"]["xinli001"] for post in replica.posts()}
    assert ran.returncode == 0, ran.stderr
    summary = json.loads(ran.stdout)
    # Links elsewhere, to a file, to data and to a script; redirects; the bomb and the big page.
    assert summary["refused"] == {
        "offsite": 4, "redirect_loop": 1, "redirect_offsite": 1, "redirect_scheme": 1, "too_large": 2
    }  # fmt: skip
    assert summary["posts"]["lost"] == 8
    assert sum(summary["errors"].values()) == 3  # an entity, tags in a depth, a page without an end
    rows = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["source_id"] for row in rows} == truth
    assert not any("root:" in line or "/etc/" in line for line in map(str, rows))
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(ran.stderr.split()[-1]) * unit < _MOST
    # The loop was followed a few times, and everything else requested once, or once again where it could not be read.
    hostile = [path for path in log["paths"] if "/qa/9" in path]
    assert len(hostile) < 30


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://127.0.0.1:80/qa/1", None),
        ("http://127.0.0.1:81/qa/1", "offsite"),
        ("http://127.0.0.1/qa/1", "offsite"),
        ("http://127.0.0.1:80@example.org/", "offsite"),
        ("http://example.org/127.0.0.1:80", "offsite"),
        ("file:///etc/hostname", "scheme"),
        ("ftp://127.0.0.1:80/x", "scheme"),
        ("javascript:void(0)", "scheme"),
    ],
)
def test_the_fence_stands_around_one_host_and_port(url, reason):
    assert outside(url, "127.0.0.1:80") == reason


@pytest.mark.drill("site")
@pytest.mark.parametrize("kind", ["text/xml", "image/png"])
def test_what_is_no_page_is_no_post(tmp_path, kind):
    entity = (
        b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]><html><ul class="content"><li>&e;</li></ul></html>'
    )
    with TinySite({"/qa": (200, {"Content-Type": kind}, entity)}) as site:
        run = crawl(tmp_path, site.url, code=1)
        assert {path.split("?")[0] for path in site.requested} == {"/robots.txt", "/qa"}
    assert run.rows == []
    assert os.uname().nodename not in run.log


@pytest.mark.drill("site")
def test_a_page_can_not_send_the_crawl_elsewhere_by_a_refresh(tmp_path):
    page = b"<html><head><meta http-equiv='refresh' content='0; url=http://192.0.2.1/'></head><body></body></html>"
    with TinySite({"/qa": (200, HTML, page)}) as site:
        run = crawl(tmp_path, site.url, code=1)
    assert run.summary["finish_reason"] == "unknown_layout"
    assert "192.0.2.1" not in run.log


@pytest.mark.drill("site")
@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"topic_list": {"topics": [null]}}'])
def test_malformed_json_is_an_error_and_no_crash(tmp_path, body):
    with TinySite({"/latest.json": (200, {"Content-Type": "application/json"}, body)}) as site:
        run = crawl(tmp_path / "job", site.url, source=site_file(tmp_path, "discourse"), code=1)
    assert run.summary["finish_reason"] in ("unknown_layout", "list_failed")
    assert "Traceback" not in run.log


def test_no_handler_for_files_is_even_there():
    assert dict.fromkeys(("file", "data", "s3", "ftp")) == settings.DOWNLOAD_HANDLERS
