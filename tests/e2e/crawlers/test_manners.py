"""How a site is treated, and when the crawl stops: never a challenge solved, never a page requested after it."""

import gzip
import re
from itertools import pairwise

import pytest
from crawl_runs import crawl, site_file
from scrapy.http import HtmlResponse
from tiny_site import HTML, TinySite
from troubled_replica import WALLS, Troubles
from xinli_pages import listed

from crawlers.extensions.blocked import challenge_of_page, challenge_of_url, longer_delay


def test_one_request_at_a_time_with_an_honest_name_and_no_cookies(clean_replica, tmp_path):
    crawl(tmp_path, clean_replica.url, "2025-05-19", "2025-05-20", "--contact", "crawl@example.org")
    log = clean_replica.log
    assert (log.most_at_once, log.n_cookies) == (1, 0)
    assert re.fullmatch(r"gongqing/[0-9.]+ \(\+crawl@example\.org\)", *log.user_agents)


def test_the_crawl_delay_of_robots_is_applied(clean_replica, tmp_path):
    clean_replica.server.crawl_delay = 1.5
    site = site_file(tmp_path, "discourse", politeness="{ delay = 1.0 }")
    run = crawl(tmp_path / "job", clean_replica.url + "/discourse", "2025-05-19", "2025-05-20",
                "--max-items", "1", "--delays", "on", source=site)  # fmt: skip
    times = clean_replica.log.times
    assert len(times) >= 3
    # A busy machine may note a request late: more than the site's own delay of 1.0 by far, and 1.5 at best.
    assert all(later - sooner >= 1.2 for sooner, later in pairwise(times))
    assert run.summary["robots"]["crawl_delay"] == 1.5
    assert run.summary["delay"] >= 1.5


def test_after_a_refusal_the_crawl_waits_longer_within_bounds():
    given = ((2.0, None), (0.1, None), (2.0, b"30"), (2.0, b"soon"), (250.0, None), (2.0, b"99999"))
    assert [longer_delay(*each) for each in given] == [4.0, 1.0, 30.0, 4.0, 300.0, 300.0]


def test_what_robots_forbids_is_not_requested_and_counted(clean_replica, tmp_path):
    forbidden = [post["ids"]["xinli001"] for post in clean_replica.posts()[:4]]
    clean_replica.server.disallow = [f"/qa/{i}" for i in forbidden]
    run = crawl(tmp_path, clean_replica.url, "2025-05-19", "2025-05-20")
    assert f"sha256={run.summary['robots']['sha256']}" in (tmp_path / "robots.txt").read_text(encoding="utf-8")
    paths = clean_replica.log.paths
    assert not any(i in path for path in paths for i in forbidden)
    assert run.summary["refused"] == {"robots": 4}
    assert run.summary["robots"]["refusals"] == 4
    assert not set(run.by_id) & set(forbidden)
    assert run.summary["posts"]["lost"] == 4


def test_where_robots_forbids_the_list_the_run_fails(clean_replica, tmp_path):
    clean_replica.server.disallow = ["/qa"]
    run = crawl(tmp_path, clean_replica.url, code=1)
    assert run.summary["finish_reason"] == "robots_forbidden"
    assert clean_replica.log.paths == ["/robots.txt"]


PLAIN = {"Content-Type": "text/plain"}
BOMB = gzip.compress(b"User-agent: *\nDisallow: /\n" + b"#" * 60_000_000)


@pytest.mark.drill("site")
@pytest.mark.parametrize(
    "robots",
    [
        (500, HTML, b"failed"),
        (200, {**PLAIN, "Content-Encoding": "gzip"}, BOMB),
        (200, PLAIN, b"#" * 9_000_000),
        (302, {"Location": "/robots.txt?again"}, b""),
        (302, {"Location": "http://192.0.2.1/robots.txt"}, b""),
    ],
    ids=["failed", "bomb", "too large", "loop", "another host"],
)
def test_a_robots_that_can_not_be_read_allows_nothing(tmp_path, robots):
    with TinySite({"/robots.txt": robots, "/qa": listed()}) as site:
        run = crawl(tmp_path, site.url, code=1)
        assert {path.split("?")[0] for path in site.requested} == {"/robots.txt"}
    assert (run.summary["finish_reason"], run.summary["blocked"]) == ("blocked", "robots")
    assert "Traceback" not in run.log


def test_a_site_that_can_not_be_reached_has_not_refused_us(tmp_path):
    with TinySite({}) as site:
        nobody = site.url
    run = crawl(tmp_path, nobody, code=1)
    assert (run.summary["finish_reason"], run.summary["blocked"]) == ("unreachable", None)
    assert run.summary["pages"] == 0
    assert run.log.endswith("error: the crawl ended early: unreachable\n")
    assert "Traceback" not in run.log
    assert (tmp_path / "stopped.json").exists()


@pytest.mark.parametrize("sign", WALLS)
def test_a_wall_stops_the_crawl_loudly(clean_replica, tmp_path, sign):
    clean_replica.server.trouble.wall = sign
    sign = sign.removesuffix(" 429")
    run = crawl(tmp_path, clean_replica.url, code=1)
    assert (run.summary["finish_reason"], run.summary["blocked"]) == ("blocked", sign)
    assert f"blocked ({sign})" in run.log
    assert run.rows == []
    assert len(clean_replica.log.paths) <= 6
    assert not (tmp_path / "stats.json").exists()


@pytest.mark.parametrize("sign", ["challenge", "refusals"])
def test_a_wall_in_the_middle_keeps_what_there_is_and_the_crawl_goes_on_later(clean_replica, tmp_path, sign):
    clean_replica.server.trouble = Troubles(sign, wall_after=30)
    run = crawl(tmp_path, clean_replica.url, code=1)
    assert run.summary["finish_reason"] == "blocked"
    assert 20 < len(run.rows) <= 30
    count = len(clean_replica.log.paths)
    # Nothing after the wall; single posts may be refused, five in a row are one too many.
    assert 1 + 30 + 1 <= count <= 1 + 30 + (5 if sign == "refusals" else 1)
    clean_replica.reset()
    whole = crawl(tmp_path, clean_replica.url)
    assert len(whole.rows) == len(whole.by_id) == len(clean_replica.posts())
    # The pages from before the wall are not requested again, and none of the wall's was kept.
    assert len(clean_replica.log.paths) + count < 1.15 * (len(clean_replica.posts()) + 60)
    assert whole.summary["errors"] == {}


def test_the_doors_into_the_process_are_closed(clean_replica, tmp_path):
    log = crawl(tmp_path, clean_replica.url, "2025-05-20", "2025-05-20", "--max-items", "1", "--log-level", "DEBUG").log
    enabled = log.partition("Enabled addons")[2]
    assert "Enabled extensions" in enabled
    assert not re.search(r"RemoteControl'|TelnetConsole'|CookiesMiddleware|HttpAuth|MetaRefresh", enabled)


CHALLENGES = (
    "<html><script src='x'></script><script>\nif (1) { document.cookie='acw_sc__v3=' + x }</script>",
    "<html><head><title> 百度安全验证 </title>",
    "<script type=application/json>acw_sc__v3</script><script>var arg1='5B9C0F'</script>",
    "<script type='text/javascript'>var arg1='5B9C0F'</script>",
)
WORDS = (
    "<p>有人说网站用 acw_sc__v2 和 arg1='5B9C0F' 来识别爬虫，是真的吗</p>",
    "<script>var ok = 1;</script><p>arg1='5B9C0F'</p>",
    "<title>验证码总是收不到，我崩溃了</title>",
    '<script type="application/json">{"text": "var arg1=\'5B9C0F\' ..."}</script>',
    "<script id='d' type='application/ld+json' >{'text': 'acw_sc__v2'}</script>",
)


def test_what_a_challenge_looks_like_and_that_a_person_may_write_of_one():
    for page in (*CHALLENGES, *WORDS):
        body, of_cloudflare = page.encode(), {"cf-mitigated": "challenge"}
        assert challenge_of_page(HtmlResponse("http://a/1", body=body)) == ("challenge" if page in CHALLENGES else None)
        assert challenge_of_page(HtmlResponse("http://a/1", body=body, headers=of_cloudflare)) == "challenge"


WALL_URLS = {
    "challenge": ["www.xinli001.com/qa/1?u_atoken=a&u_asession=b"],
    "captcha": [
        "wappass.baidu.com/static/captcha/tuxing.html", "sec.douban.com/b?r=x", "geo.captcha-delivery.com/interstitial",
        "www.douban.com/misc/sorry?original-url=x", "www.xinli001.com/qa/_____tmd_____/punish?x5secdata=a",
    ],
    "login": [
        "accounts.douban.com/passport", "bbs.a.org/member.php?mod=logging", "passport.a.org/", "a.org/login.php?to=/",
    ],
    None: [
        "www.xinli001.com/qa/100841601?page=2", "www.xinli001.com/qa?title=login", "a.org/thread-punish-12-1-1.html",
        "a.org/thread-12-1-1.html?from=/captcha", "a.org/t/login/5.json", "a.org/topic/5/captcha", "a.org/c/secrets",
    ],
}  # fmt: skip


def test_what_an_address_of_a_wall_looks_like():
    signs = {url: sign for sign, urls in WALL_URLS.items() for url in urls}
    assert {url: challenge_of_url(f"https://{url}") for url in signs} == signs
