"""The one entry of a crawl, in and out of Dagster: `python -m crawlers.run SOURCE --from D --until D --job FOLDER`.

One crawl a process, because Twisted's reactor starts only once. Progress goes to the log, on standard error and, where
Dagster started us, to it; at the end one line of JSON with the figures stands on standard output. Exit codes: 0 done,
1 failed, blocked or stopped (the same command goes on where it stopped), 2 the request was wrong.
"""

import argparse
import asyncio
import json
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from scrapy.crawler import AsyncCrawlerProcess
from scrapy.settings import Settings

from crawlers import settings as project
from crawlers.errors import CrawlError
from crawlers.job import DONE
from crawlers.sites import find_site
from crawlers.spiders.loader import spider_of


class Reporter(Protocol):
    """Whoever started the crawl and wants to know how it goes."""

    def log(self, level: int, message: str) -> None:
        """A line of progress, or a warning."""

    def figures(self, summary: dict[str, Any], *, done: bool) -> None:
        """What the crawl came to."""


class Nobody:
    """Outside Dagster: the log on standard error is all there is."""

    def log(self, level: int, message: str) -> None:
        """Says nothing."""

    def figures(self, summary: dict[str, Any], *, done: bool) -> None:
        """Says nothing."""


class Dagster:
    """Inside Dagster: lines of its log, and metadata at the end."""

    def __init__(self, pipes: Any) -> None:
        self._pipes = pipes

    def log(self, level: int, message: str) -> None:
        """Writes a line into the log of the run."""
        speak = self._pipes.log.warning if level >= logging.WARNING else self._pipes.log.info
        speak(message)

    def figures(self, summary: dict[str, Any], *, done: bool) -> None:
        """Reports the figures as a message, and as metadata of the asset where the crawl is done."""
        self._pipes.report_custom_message(summary)
        if done:
            flat = {name: json.dumps(value) if isinstance(value, dict) else value for name, value in summary.items()}
            self._pipes.report_asset_materialization(metadata={k: v for k, v in flat.items() if v is not None})


@contextmanager
def reporter() -> Iterator[Reporter]:
    """Dagster where it started this process and its small library is there; nobody otherwise."""
    if "DAGSTER_PIPES_CONTEXT" not in os.environ:
        yield Nobody()
        return
    try:
        from dagster_pipes import open_dagster_pipes
    except ImportError:
        yield Nobody()
        return
    with open_dagster_pipes() as pipes:
        yield Dagster(pipes)


class _Forward(logging.Handler):
    """Our own log lines, to the reporter."""

    def __init__(self, to: Reporter) -> None:
        super().__init__(logging.INFO)
        self._to = to

    def emit(self, record: logging.LogRecord) -> None:
        self._to.log(record.levelno, record.getMessage())


def crawl(source: str, said: dict[str, str | None], settings: dict[str, Any] | None = None) -> dict[str, Any]:
    """Crawls one window of `source`; gives the summary of `stats.json`.

    Args:
        source: the name of a site, or the path of its TOML file.
        said: arguments of the spider, by `crawlers.options.NAMES`.
        settings: of Scrapy, over the project's.

    Raises:
        CrawlError: for a request that can not be, and for a folder that can not be used.
    """
    values = Settings()
    values.setmodule(project, priority="project")
    values.setdict(settings or {}, priority="cmdline")
    process = AsyncCrawlerProcess(values)
    if values.get("LOG_LEVEL") == "INFO":  # ours tell how the crawl goes; Scrapy's, what it is made of
        logging.getLogger("scrapy").setLevel(logging.WARNING)
    crawler = process.create_crawler(spider_of(find_site(source)))
    task: asyncio.Task[None] = process.crawl(crawler, **said)
    process.start()
    if task.done() and not task.cancelled() and (error := task.exception()) is not None:
        raise error
    summary: dict[str, Any] = getattr(crawler.spider, "summary", {})
    return summary or {"source": source, "finish_reason": "killed"}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; gives the exit code."""
    said = vars(_parser().parse_args(arguments))
    source, level = said.pop("source"), said.pop("log_level")
    with reporter() as to:
        logging.getLogger("crawlers").addHandler(_Forward(to))
        try:
            summary = crawl(source, said, {"LOG_LEVEL": level})
        except CrawlError as error:
            sys.stderr.write(f"error: {error}\n")
            return error.exit_code
        done = summary["finish_reason"] in DONE
        to.figures(summary, done=done)
    sys.stdout.write(json.dumps(summary, ensure_ascii=False) + "\n")
    if not done:
        sign = f" ({summary['blocked']})" if summary.get("blocked") else ""
        sys.stderr.write(f"error: the crawl ended early: {summary['finish_reason']}{sign}\n")
    return 0 if done else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m crawlers.run", description="Crawls one window of a site.")
    parser.add_argument("source", help="a site of crawlers/sites, or the path of a TOML file like those")
    parser.add_argument(
        "--from", dest="from_date", metavar="DAY", help="first day of posting (Shanghai); default: the last"
    )
    parser.add_argument("--until", dest="until_date", metavar="DAY", help="last day of posting; default: today")
    parser.add_argument("--job", required=True, metavar="FOLDER", help="folder of this window; the same one to go on")
    parser.add_argument("--base-url", metavar="URL", help="another address of the site: its replica's")
    parser.add_argument("--max-items", metavar="N", help="posts at most")
    parser.add_argument("--since-id", metavar="ID", help="the last id that is known: nothing at or below it")
    parser.add_argument("--sample", metavar="SHARE", help="a share of the posts, in (0, 1], chosen by their ids")
    parser.add_argument("--seen", metavar="FILE", help="seen.jsonl of earlier jobs: unchanged posts are not fetched")
    parser.add_argument("--takedown", metavar="FILE", help="ids that are never fetched, one a line")
    parser.add_argument("--contact", metavar="WHO", help="mail address or URL; default: GONGQING_CRAWL_CONTACT")
    parser.add_argument("--now", metavar="TIME", help="a clock that stands still (tests)")
    parser.add_argument("--delays", choices=("on", "off"), help="off: on this machine alone")
    parser.add_argument("--log-level", default="INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR"))
    return parser


if __name__ == "__main__":
    sys.exit(main())
