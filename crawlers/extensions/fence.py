"""The fence around a site: no request leaves its own host, whatever a page links or redirects to."""

from typing import Self
from urllib.parse import urljoin, urlsplit

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from w3lib.url import safe_url_string

from crawlers.extensions.blocked import block, challenge_of_url, first_url, is_robots


class Refused(IgnoreRequest):
    """Raised for a request that we do not make, or an answer that we do not take; `reason` is counted."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"refused: {reason}")


def outside(url: str, host: str) -> str | None:
    """Why a crawl of `host` (with its port) may not request `url`; None where it may."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        return "scheme"
    return None if parts.netloc == host else "offsite"


class Fence:
    """Refuses requests that leave the site. Scrapy's own filter drops them unseen, and lets other ports through."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As Scrapy makes its middlewares."""
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        """Raises Refused for another host, port or scheme."""
        reason = outside(request.url, self._crawler.spider.options.host)  # type: ignore[union-attr]
        if reason is not None:
            raise Refused(reason)


class SameSiteRedirects(RedirectMiddleware):
    """Follows a redirect within the site alone, a few times; a redirect to a wall against crawlers ends the crawl."""

    def process_response(
        self,
        request: Request,
        response: Response,
        spider: Spider | None = None,  # noqa: ARG002 - of Scrapy's own signature
    ) -> Request | Response:
        """The redirected request, or the response where it is none.

        Raises Refused for a redirect to another host or scheme, and for one that goes on and on.
        """
        location = response.headers.get("Location")
        if location is None or response.status not in (301, 302, 303, 307, 308):
            return response
        target = urljoin(request.url, safe_url_string(location))
        here = self.crawler.spider
        assert here is not None
        if urlsplit(target).path.endswith("/503-error.html"):
            again = get_retry_request(request, spider=here, reason="overload")
            if again is not None:
                return again
            raise block(self.crawler, "overload", first_url(request))
        sign = challenge_of_url(target)
        if sign is not None:
            raise block(self.crawler, sign, first_url(request))
        reason = outside(target, here.options.host)  # type: ignore[attr-defined]
        if reason is not None:
            if is_robots(request):  # rules that we may not follow a link to allow nothing
                raise block(self.crawler, "robots", first_url(request))
            raise Refused(f"redirect_{reason}")
        try:
            return super().process_response(request, response)
        except IgnoreRequest as error:
            raise Refused("redirect_loop") from error
