"""`scrapy crawl SITE`: with Scrapy's own options, and with the exit codes and the words of `crawlers.run`.

Scrapy's own command exits with 0 from a crawl that was blocked, and shows a traceback for a day that is none.
"""

from argparse import Namespace

from scrapy.commands.crawl import Command as ScrapyCrawl
from scrapy.exceptions import UsageError

from crawlers.run import attempt


class Command(ScrapyCrawl):
    """Crawls one window of a site, into the feed of `-O` or into the folder of `-a job=`."""

    requires_crawler_process = False  # `attempt` makes its own

    def short_desc(self) -> str:
        """For `scrapy --help`."""
        return "Crawl one window of a site (scrapy list names them)"

    def run(self, args: list[str], opts: Namespace) -> None:
        """As Scrapy runs its commands; sets the exit code."""
        if len(args) != 1:
            raise UsageError("give one site; `scrapy list` names them")
        assert self.settings is not None
        self.exitcode, _ = attempt(args[0], opts.spargs, self.settings)
