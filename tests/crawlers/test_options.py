"""A request that can not be is refused before anything is fetched, and says what to do."""

import pytest

from crawlers.errors import RequestRefused
from crawlers.options import CONTACT_VARIABLE, KEY_VARIABLE, read_options
from crawlers.sites import find_site

REPLICA = {"base_url": "http://127.0.0.1:8765"}


@pytest.fixture
def site():
    return find_site("xinli001")


@pytest.fixture
def _key(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, "k" * 16)


@pytest.mark.parametrize("key", [None, "", "too short"])
def test_without_a_key_nothing_is_crawled(site, monkeypatch, key):
    if key is not None:
        monkeypatch.setenv(KEY_VARIABLE, key)
    with pytest.raises(RequestRefused, match=KEY_VARIABLE) as refused:
        read_options(site, REPLICA)
    assert "openssl rand" in str(refused.value)
    assert key is None or not key or key not in str(refused.value)


@pytest.mark.usefixtures("_key")
def test_the_key_is_in_no_representation_of_the_options(site):
    assert "kkkk" not in repr(read_options(site, REPLICA))


@pytest.mark.usefixtures("_key")
def test_another_host_is_not_crawled_without_a_contact(site, monkeypatch):
    with pytest.raises(RequestRefused, match="without saying who"):
        read_options(site, {})
    assert read_options(site, {"contact": "crawl@example.org"}).contact == "crawl@example.org"
    monkeypatch.setenv(CONTACT_VARIABLE, "https://example.org/crawl")
    assert read_options(site, {}).contact == "https://example.org/crawl"


@pytest.mark.usefixtures("_key")
@pytest.mark.parametrize("contact", ["me", "a@b.org\r\nX-Header: 1", "a@b.org)", "我@例子.org", " "])
def test_a_contact_is_an_address_and_nothing_else(site, contact):
    with pytest.raises(RequestRefused, match="contact"):
        read_options(site, {"contact": contact})


@pytest.mark.usefixtures("_key")
@pytest.mark.parametrize("host", ["127.0.0.1:80", "localhost", "[::1]:8765", "127.9.9.9"])
def test_this_machine_needs_no_contact_and_may_be_asked_without_delays(site, host):
    assert not read_options(site, {"base_url": f"http://{host}", "delays": "off"}).delays


@pytest.mark.usefixtures("_key")
@pytest.mark.parametrize("host", ["www.xinli001.com", "127.0.0.1.example.org", "10.0.0.1", "localhost.example.org"])
def test_no_other_host_is_ever_asked_without_delays(site, host):
    with pytest.raises(RequestRefused, match="never crawled without delays"):
        read_options(site, {"base_url": f"http://{host}", "delays": "off", "contact": "a@b.org"})


@pytest.mark.usefixtures("_key")
@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"from": "2025-03-01"}, "did you mean 'from_date'?"),
        ({"from_date": "2025-03-02", "until_date": "2025-03-01"}, "ends on 2025-03-01"),
        ({"until_date": "March"}, "--until 'March'"),
        ({"base_url": "ftp://127.0.0.1"}, "no address of a site"),
        ({"base_url": "http://user:pass@127.0.0.1"}, "no address of a site"),
        ({"max_items": "0"}, "max_items"),
        ({"sample": "2"}, "sample"),
        ({"now": "noon"}, "now"),
        ({"seen": "/nowhere"}, "can not be read"),
        ({"delays": "maybe"}, "on or off"),
    ],
)
def test_whatever_else_can_not_be_is_refused(site, said, words):
    with pytest.raises(RequestRefused) as refused:
        read_options(site, {**REPLICA, **said})
    assert words in str(refused.value)


@pytest.mark.usefixtures("_key")
def test_a_damaged_line_of_what_was_seen_is_named(site, tmp_path):
    path = tmp_path / "seen.jsonl"
    path.write_text('{"source_id": "1", "fingerprint": "1", "posted_at": null}\n{"sour', encoding="utf-8")
    with pytest.raises(RequestRefused) as refused:
        read_options(site, {**REPLICA, "seen": str(path)})
    assert f"{path}:2" in str(refused.value)
