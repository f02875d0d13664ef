"""The entry point of a crawl, in and out of Dagster: `python -m crawlers.run SOURCE --from D --until D --job FOLDER`.

One crawl a process, because Twisted's reactor starts only once. Progress goes to the log, on standard error and, where
Dagster started us, to its own; at the end one line of JSON with the figures stands on standard output, and in the job's
folder. Exit codes: 0 done, 1 failed, blocked or stopped (the same command continues), 2 the request was wrong.
"""

import argparse
import asyncio
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from scrapy.crawler import AsyncCrawlerProcess
from scrapy.settings import Settings

from crawlers import settings as project
from crawlers.errors import CrawlError
from crawlers.job import DONE, note_refusal
from crawlers.options import Arguments
from crawlers.sites import find_site
from crawlers.spiders import spider_of


class _Forward(logging.Handler):
    """Forwards our own log lines to another log."""

    def __init__(self, to: logging.Logger) -> None:
        super().__init__(logging.INFO)
        self._to = to

    def emit(self, record: logging.LogRecord) -> None:
        self._to.log(record.levelno, record.getMessage())


@contextmanager
def _logged_by_dagster() -> Iterator[None]:
    """Where Dagster started this process and its Pipes library is installed, the log of its run has our lines too."""
    if "DAGSTER_PIPES_CONTEXT" not in os.environ or find_spec("dagster_pipes") is None:
        yield
        return
    from dagster_pipes import open_dagster_pipes

    with open_dagster_pipes() as pipes:
        logging.getLogger("crawlers").addHandler(_Forward(pipes.log))
        yield


def crawl(source: str, args: Mapping[str, str | None], settings: Settings) -> dict[str, Any]:
    """Crawls one window of `source`, a site's name or TOML file; gives the summary of `stats.json`.

    `args` are named as in `crawlers.options.Arguments`, `settings` are Scrapy's. Raises CrawlError for a wrong request,
    and for a folder that can not be used.
    """
    spider = spider_of(find_site(source))
    # At INFO our own lines show how the crawl goes; Scrapy's, what it is made of.
    quiet = settings.get("LOG_LEVEL") == "INFO"
    logging.disable(logging.INFO if quiet else logging.NOTSET)
    process = AsyncCrawlerProcess(settings)  # logs its versions, and sets the levels of its loggers
    logging.disable(logging.NOTSET)
    if quiet:
        logging.getLogger("scrapy").setLevel(logging.WARNING)
    crawler = process.create_crawler(spider)
    task: asyncio.Task[None] = process.crawl(crawler, **args)
    process.start()
    if task.done() and not task.cancelled() and (error := task.exception()) is not None:
        raise error
    summary: dict[str, Any] = getattr(crawler.spider, "summary", {})
    return summary or {"source": source, "finish_reason": "killed"}


def attempt(source: str, args: Mapping[str, str | None], settings: Settings) -> tuple[int, dict[str, Any]]:
    """Crawls as `crawl` does; gives the exit code and the summary, empty where nothing began. Prints errors."""
    os.umask(0o077)  # what people wrote is for nobody else on this machine
    try:
        summary = crawl(source, args, settings)
    except CrawlError as error:
        logger = logging.getLogger("crawlers")
        if logger.handlers:  # Dagster's; elsewhere the lines below are enough
            logger.error("%s", error.what)
        sys.stderr.write(f"error: {error}\n")
        if args.get("job"):
            note_refusal(Path(str(args["job"])), error)
        return error.exit_code, {}
    if summary["finish_reason"] in DONE:
        return 0, summary
    sign = f" ({summary['blocked']})" if summary.get("blocked") else ""
    sys.stderr.write(f"error: the crawl ended early: {summary['finish_reason']}{sign}\n")
    return 1, summary


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; gives the exit code."""
    args = vars(_parser().parse_args(arguments))
    source, level = args.pop("source"), args.pop("log_level")
    settings = Settings()
    settings.setmodule(project, priority="project")
    settings.set("LOG_LEVEL", level, priority="cmdline")
    with _logged_by_dagster():
        code, summary = attempt(source, args, settings)
    if summary:
        sys.stdout.write(json.dumps(summary, ensure_ascii=False) + "\n")
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m crawlers.run", description="Crawls one window of a site.")
    parser.add_argument("source", help="a site of crawlers/sites, or the path of a TOML file like those")
    for name, field in Arguments.model_fields.items():
        option = f"--{name.removesuffix('_date').replace('_', '-')}"
        parser.add_argument(option, dest=name, help=field.description, required=name == "job")
    parser.add_argument("--log-level", default="INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR"))
    return parser


if __name__ == "__main__":
    sys.exit(main())
