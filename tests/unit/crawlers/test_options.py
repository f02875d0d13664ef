"""A request that can not be is refused before anything is fetched, and says what to do."""

import os
from datetime import date

import pytest

from crawlers.errors import RequestRefused
from crawlers.options import CONTACT_VARIABLE, KEY_VARIABLE, read_options, read_takedown
from crawlers.sites import find_site

REPLICA = {"base_url": "http://127.0.0.1:8765"}


@pytest.fixture
def site():
    return find_site("xinli001")


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, "k" * 16)


@pytest.mark.parametrize(
    ("key", "words"), [(b"", "is not set"), (b"too short", "fewer than 16"), (bytes(range(128, 160)), "UTF-8")]
)
def test_without_a_key_nothing_is_crawled(site, monkeypatch, key, words):
    monkeypatch.setitem(os.environb, KEY_VARIABLE.encode(), key)
    with pytest.raises(RequestRefused, match=f"{KEY_VARIABLE} .*{words}") as refused:
        read_options(site, REPLICA)
    assert "openssl rand" in refused.value.hint
    assert "too short" not in str(refused.value)


def test_another_host_is_not_crawled_without_a_contact(site, monkeypatch):
    assert "kkkk" not in repr(read_options(site, REPLICA))
    with pytest.raises(RequestRefused, match="without saying who") as refused:
        read_options(site, {})
    assert "set GONGQING_CRAWL_CONTACT, or contact under [crawl] in gongqing.toml (--contact of" in refused.value.hint
    assert read_options(site, {"contact": "crawl@example.org"}).contact == "crawl@example.org"
    monkeypatch.setenv(CONTACT_VARIABLE, "https://example.org/crawl")
    days = {"from_date": "2025-03-20", "until_date": "2025-03-31", "now": "2025-03-20T00:01+08:00"}
    options = read_options(site, days)
    assert options.contact == "https://example.org/crawl"
    assert options.window.last == date(2025, 3, 31), "a window that has begun may end in the days to come"


def test_a_contact_is_an_address_and_nothing_else(site):
    for contact in ("me", "a@b.org\r\nX-Header: 1", "a@b.org)", "我@例子.org", " "):
        with pytest.raises(RequestRefused, match="contact"):
            read_options(site, {"contact": contact})


def test_only_this_machine_needs_no_contact_and_may_be_crawled_without_delays(site):
    for host in ("127.0.0.1:80", "localhost", "[::1]:8765", "127.9.9.9"):
        assert read_options(site, {"base_url": f"http://{host}", "delays": "off"}).args.delays == "off"
    for host in ("www.xinli001.com", "127.0.0.1.example.org", "10.0.0.1", "localhost.example.org"):
        with pytest.raises(RequestRefused, match="never crawled without delays"):
            read_options(site, {"base_url": f"http://{host}", "delays": "off", "contact": "a@b.org"})


def test_a_base_url_has_one_form(site):
    for address, base_url in (
        ("HTTP://LOCALHOST:80/Forum/", "http://localhost/Forum"),
        ("http://[::1]:8765/", "http://[::1]:8765"),
    ):
        options = read_options(site, {"base_url": address})
        assert (options.base_url, options.host) == (base_url, base_url.split("/")[2])


@pytest.mark.parametrize(
    ("strings", "words"),
    [
        ({"from": "2025-03-01"}, "did you mean 'from_date'?"),
        ({"from_date": "2025-03-02", "until_date": "2025-03-01"}, "ends on 2025-03-01"),
        ({"until_date": "March"}, "--until 'March'"),
        ({"base_url": "ftp://127.0.0.1"}, "no address of a site"),
        ({"base_url": "http://user:pass@127.0.0.1"}, "no address of a site"),
        ({"base_url": "http://[::1"}, "no address of a site"),
        ({"base_url": "http://127.0.0.1/?page=1"}, "no address of a site"),
        ({"until_date": "2025-03-21", "now": "2025-03-20T23:59+08:00"}, "begins on 2025-03-21"),
        ({"keep_pages_days": "-1"}, "keep_pages_days"),
        ({"max_items": "0"}, "max_items"),
        ({"now": "noon"}, "now"),
        ({"seen": "/nowhere"}, "can not be read"),
        ({"delays": "maybe"}, "off on this machine alone"),
    ],
)
def test_whatever_else_can_not_be_is_refused(site, strings, words):
    with pytest.raises(RequestRefused) as refused:
        read_options(site, {**REPLICA, **strings})
    assert words in str(refused.value)


def test_a_damaged_line_of_what_was_seen_is_named(site, tmp_path):
    path, good = tmp_path / "seen.jsonl", '{"source_id": "1", "fingerprint": "1", "posted_at": null}'
    wrong = (good.replace('"1",', "[],"), good.replace("null", '"0001-01-01T00:00:00+14:00"'), '{"source_id": "1"}')
    for line in (*wrong, '{"sour', "[]", "null", "[" * 100_000):
        path.write_text(f"{good}\n{line}", encoding="utf-8")
        with pytest.raises(RequestRefused) as refused:
            read_options(site, {**REPLICA, "seen": str(path)})
        assert f"{path}:2" in str(refused.value)


SOURCES = ("xinli001", "replica")


def test_ids_to_be_taken_down_stand_with_their_source_or_alone(tmp_path):
    path = tmp_path / "takedown.txt"
    path.write_bytes("\ufeffxinli001:1\r\n\n# asked for on 1 March\nreplica:2 # by mail\n  3\nxinli001:1\n".encode())
    assert read_takedown(path, "xinli001", SOURCES) == {"1", "3"}
    assert read_takedown(path, "replica", SOURCES) == {"2", "3"}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("https://www.xinli001.com/qa/2", "an address where the id of a post should stand"),
        ("xinli01:3", "did you mean 'xinli001'?"),
        ("Xinli001:4", "there is no source 'Xinli001'"),
        (":5", "something else"),
        ("xinli001:5 6", "something else"),
        ("xinli001:５", "something else"),
        ("王小明:5", "something else"),
    ],
)
def test_a_line_that_would_protect_nobody_is_refused_with_its_place_and_not_repeated(tmp_path, line, words):
    path = tmp_path / "takedown.txt"
    path.write_text(f"xinli001:1\n{line}\n", encoding="utf-8")
    with pytest.raises(RequestRefused) as refused:
        read_takedown(path, "replica", SOURCES)
    assert words in str(refused.value)
    assert f"{path}:2" in str(refused.value)
    assert "王小明" not in str(refused.value)
    assert words != "something else" or "as xinli001:100841600" in str(refused.value)
    path.write_bytes(b"xinli001:1\n\xff\xfe")
    with pytest.raises(RequestRefused, match="can not be read"):
        read_takedown(path, "xinli001", SOURCES)
