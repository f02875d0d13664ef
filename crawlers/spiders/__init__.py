"""One spider class for every site: `scrapy crawl NAME` knows each file of `crawlers/sites/`, and any path to one."""

from typing import Self

from scrapy import Request
from scrapy.settings import BaseSettings

from crawlers.errors import RequestRefused
from crawlers.sites import Site, find_site, sites
from crawlers.spiders.base import ForumSpider


def spider_of(site: Site) -> type[ForumSpider]:
    """The spider class of `site`, under its name."""
    return type("SiteSpider", (ForumSpider,), {"name": site.name, "site": site, "__doc__": site.title})


class SiteLoader:
    """Scrapy's spider loader over sites, not over modules."""

    @classmethod
    def from_settings(cls, _settings: BaseSettings) -> Self:
        """As Scrapy makes it."""
        return cls()

    def load(self, spider_name: str) -> type[ForumSpider]:
        """The spider of a site. Raises KeyError, as Scrapy expects it, for a name that no site has."""
        try:
            return spider_of(find_site(spider_name))
        except RequestRefused as error:
            raise KeyError(str(error)) from None

    def find_by_request(self, request: Request) -> list[str]:
        """The sites on whose host `request` is."""
        return [name for name, site in sites().items() if f"//{site.host}" in request.url]

    def list(self) -> list[str]:
        """The names of the sites."""
        return sorted(sites())
