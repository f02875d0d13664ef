"""Pages per second of our crawl with its delays off, beside a bare Scrapy spider on the same replica in the same run.

    python benchmarks/crawl.py [--posts 400] [--repeat 3]

The bare spider requests the same pages, one at a time as ours does, and reads the same fields with plain selectors;
it has no cache, no journal, no pseudonyms, and none of our checks. Seconds between opening and closing of the spider;
the runs take turns; median; the ratio is what counts.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NOW = "2025-05-20T12:00+08:00"
FIRST, LAST = "2025-01-01", "2025-05-20"
WANTED = 0.85


def _ours(url: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "crawlers.run", "xinli001", "--from", FIRST, "--until", LAST, "--now", NOW]
    command += ["--job", str(folder), "--base-url", url, "--delays", "off", "--log-level", "ERROR"]
    ran = subprocess.run(command, cwd=ROOT, env=_environment(), check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(ran.stdout)


def _bare(url: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--bare", url]
    ran = subprocess.run(command, cwd=ROOT, env=_environment(), check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(ran.stdout)


def _environment() -> dict[str, str]:
    return {**os.environ, "GONGQING_AUTHOR_KEY": "of the benchmark alone", "PYTHONPATH": str(ROOT)}


def bare(url: str) -> None:
    """Runs the bare spider in this process; one line of JSON on standard output."""
    import scrapy
    from scrapy.crawler import AsyncCrawlerProcess
    from scrapy.http import Response

    class Bare(scrapy.Spider):
        name = "bare"
        start_urls = (url + "/qa?page=1&type=question&object_name=last&title=&level2_tag=0&sort=id",)

        def parse(self, response: Response) -> Iterator[Any]:
            for row in response.css("#left ul.content > li"):
                link = row.css("p.title > span > a::attr(href)").get()
                label = row.css("p.label > span::text").get()
                yield response.follow(link.split("?")[0], self.parse_post, priority=1, meta={"label": label})
            yield from self.next(response, self.parse)

        def next(self, response: Response, callback: Any, **kept: object) -> Iterator[Any]:
            for link in response.css("ul.pagination a"):
                if link.css("::text").get() == "»":
                    yield response.follow(link, callback, cb_kwargs=kept, priority=2)

        def parse_post(self, response: Response, post: dict[str, Any] | None = None) -> Iterator[Any]:
            if post is None:
                box = response.css("#left > div.content")
                post = {
                    "id": response.css("#answer-text::attr(data-question-id)").get(),
                    "title": box.css("div.title > h1::text").get("").strip(),
                    "asker": box.css("div.title > a::attr(href)").get(),
                    "n_answers": box.css("div.title > strong::text").get(),
                    "posted": box.css("p.read-capacity > span:first-child::text").get(),
                    "description": "\n".join(box.css("p.text ::text").getall()).strip(),
                    "tags": box.css("ul.detail-tag li::text").getall(),
                    "answers": [],
                }
            for row in response.css("#left > ul.content-ans > li"):
                post["answers"].append(
                    {
                        "id": row.css(".answer_zan::attr(data-answer-id)").get(),
                        "author": row.css("p.user > a::attr(href)").get(),
                        "text": "\n".join(row.css("div.text ::text").getall()).strip(),
                        "posted": row.css("p.created_time::text").get(),
                        "likes": row.css(".answer_zan font::text").get(),
                        "recommended": bool(row.css(".recommend-icon")),
                    }
                )
            further = list(self.next(response, self.parse_post, post=post))
            yield from further or [post]

    process = AsyncCrawlerProcess(
        {"CONCURRENT_REQUESTS_PER_DOMAIN": 1, "COOKIES_ENABLED": False, "ROBOTSTXT_OBEY": True, "LOG_LEVEL": "WARNING",
         "REMOTE_CONTROL_ENABLED": False, "TELNETCONSOLE_ENABLED": False}
    )  # fmt: skip
    crawler = process.create_crawler(Bare)
    process.crawl(crawler)
    process.start()
    stats = crawler.stats.get_stats()
    figures = {
        "pages": stats["downloader/response_count"],
        "items": stats["item_scraped_count"],
        "seconds": stats["elapsed_time_seconds"],
    }
    sys.stdout.write(json.dumps(figures) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--posts", type=int, default=400)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--bare", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        bare(options.bare)
        return
    sys.path.insert(0, str(ROOT))
    from rich.console import Console
    from rich.table import Table

    from samples.replica import Replica, Server
    from tests.doubles.invented_posts import make_world

    ours, bares = [], []
    server = Server(make_world(options.posts, datetime.fromisoformat(NOW)))
    with Replica(server) as replica, tempfile.TemporaryDirectory() as folder:
        _bare(replica.url)  # the replica renders every page once
        for number in range(options.repeat):
            bares.append(_bare(replica.url))
            ours.append(_ours(replica.url, Path(folder) / str(number)))
    pages, bare_pages = {run["pages"] for run in ours}, {run["pages"] for run in bares}
    if pages != bare_pages:
        sys.exit(f"not the same work: {sorted(pages)} pages of ours, {sorted(bare_pages)} of the bare spider's")
    speed, bare_speed = (statistics.median(run["pages"] / run["seconds"] for run in runs) for runs in (ours, bares))
    table = Table(title=f"{ours[0]['items']} posts, {ours[0]['pages']} pages, delays off")
    for name in ("", "pages/s", "ratio"):
        table.add_column(name, justify="left" if not name else "right")
    table.add_row("crawlers.run xinli001", f"{speed:.0f}", f"{speed / bare_speed:.2f} ×")
    table.add_row("a bare Scrapy spider", f"{bare_speed:.0f}", "1 ×")
    Console().print(table)
    if speed < WANTED * bare_speed:
        sys.exit(f"slower than {WANTED} × the bare spider")


if __name__ == "__main__":
    main()
