"""Pages that mean harm are refused and counted, within bounded memory, and cost no other post."""

import gzip
import json
import os
import subprocess
import sys

import pytest
from crawl_runs import ROOT, command, crawl, environment, rows_of, site_file
from tiny_site import HTML, TinySite
from xinli_pages import listed, question

from crawlers import settings
from crawlers.extensions.fence import outside

_MOST = 400 << 20  # bytes in memory, of which Python and Scrapy take about a hundred million
_PIECE = b"<p>page</p>" * 100_000
_ENTITIES = (
    '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html [\n<!ENTITY host SYSTEM "file:///etc/hostname">\n'
    '<!ENTITY a "共情共情共情共情共情共情共情共情共情共情">\n'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">\n' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + ']>\n<html xmlns="http://www.w3.org/1999/xhtml"><body><div id="left"><div class="content"><div class="title">'
    "<h1>&host;&i;</h1></div></div></div></body></html>"
)
HOSTILE = [
    (302, {"Location": "?again"}, b""),
    (302, {"Location": "http://192.0.2.1/qa/1"}, b""),
    (302, {"Location": "file:///etc/hostname"}, b""),
    (200, {**HTML, "Content-Encoding": "gzip"}, gzip.compress(bytes(200 << 20), 1)),
    # In chunks: no Content-Length warns of fifty million bytes.
    (200, {**HTML, "Transfer-Encoding": "chunked"}, (b"%x\r\n%b\r\n" % (len(_PIECE), _PIECE)) * 50 + b"0\r\n\r\n"),
    (200, {"Content-Type": "application/xhtml+xml; charset=utf-8"}, _ENTITIES.encode()),
    (200, HTML, b"<div>" * 100_000),
]
LINKS = ("http://192.0.2.1/qa/1", "file:///etc/hostname", "data:text/html,x", "javascript:void(0)")


@pytest.mark.drill("site")
def test_hostile_pages_are_refused_and_counted_and_every_other_post_is_there(tmp_path):
    good, bad = range(100841600, 100841620), range(900_000_000, 900_000_000 + len(HOSTILE))
    pages = {"/qa": listed(*((i, 0) for i in (*bad, *good)), links=LINKS)}
    pages |= {f"/qa/{i}": page for i, page in zip(bad, HOSTILE, strict=True)} | {f"/qa/{i}": question(i) for i in good}
    # Measured from outside: the greatest memory that the crawl ever had.
    measure = "import resource, subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; "
    measure += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr); sys.exit(code)"
    with TinySite(pages) as site:
        arguments = command(tmp_path, site.url, "--from", "2025-01-01", "--until", "2025-05-20")
        ran = subprocess.run(
            [sys.executable, "-c", measure, *arguments], cwd=ROOT, env=environment(), capture_output=True, text=True
        )
    assert ran.returncode == 0, ran.stderr
    summary = json.loads(ran.stdout)
    assert summary["refused"] == {
        "offsite": 4, "redirect_loop": 1, "redirect_offsite": 1, "redirect_scheme": 1, "too_large": 2
    }  # fmt: skip
    assert summary["posts"]["lost"] == len(HOSTILE)
    assert sum(summary["errors"].values()) == 2  # an entity, tags in a depth
    rows = rows_of(tmp_path)
    assert {int(row["source_id"]) for row in rows} == set(good)
    assert not any("root:" in line or "/etc/" in line for line in map(str, rows))
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(ran.stderr.split()[-1]) * unit < _MOST
    # The loop was followed a few times, and everything else requested once, or once again where it could not be read.
    assert sum("/qa/9" in path for path in site.requested) < 30


def test_the_fence_stands_around_one_host_and_port():
    offsite = (
        "http://127.0.0.1:81/qa/1",
        "http://127.0.0.1/qa/1",
        "http://127.0.0.1:80@a.org/",
        "http://a.org/127.0.0.1",
    )
    reasons = dict.fromkeys(offsite, "offsite") | {"https://127.0.0.1:80/qa/1": None}
    reasons |= dict.fromkeys(("file:///etc/hostname", "ftp://127.0.0.1:80/x", "javascript:void(0)"), "scheme")
    assert {url: outside(url, "127.0.0.1:80") for url in reasons} == reasons


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
