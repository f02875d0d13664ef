"""What every spider does: walk down the lists, fetch the posts of the window with all their answers, give rows.

An engine adds where its lists stand, how its pages are read, and how it asks for more answers. Whatever becomes of a
post is counted; a list that can not be read to its end makes the crawl fail, for then posts may be missing unseen. A
post that can not be read is remembered, and asked for by every later crawl without counting as an error again.
"""

import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, ClassVar, Protocol, Self

from parsel import Selector
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.http import Response, TextResponse, XmlResponse
from scrapy.settings import BaseSettings
from scrapy.spidermiddlewares.httperror import HttpError
from twisted.python.failure import Failure

from crawlers import html
from crawlers.cache import PageStore
from crawlers.extensions.blocked import Blocked, asked_url, block
from crawlers.extensions.fence import Refused
from crawlers.extensions.unwritten import stop_where_unwritten
from crawlers.hosts import take_turn
from crawlers.job import DONE, Job, request_of
from crawlers.options import Known, Options, read_options
from crawlers.records import Answer, Listed, ListPage, PageError, PostPage, Question, UnknownLayout
from crawlers.rows import row_of
from crawlers.sites import Board, Site
from crawlers.walk import Walk
from crawlers.window import Days

logger = logging.getLogger(__name__)

_DETAILS_FIRST, _ANSWERS_FIRST = 10, 20
_GONE = frozenset({404, 410})
_REFUSED = frozenset({"http_403", "http_429", "http_503"})
_NO_SIGN = frozenset({"unreachable", "unwritten"})  # the site has not refused us
_BUSY = frozenset({408, 429})  # as an error of the server's: another time it may answer
_END = 4096  # bytes in which a page says that it ends; scripts of statistics may follow


class Reader(Protocol):
    """A function of `crawlers.pages`."""

    def __call__(self, body: Any, url: str, fetched_at: datetime, overrides: dict[str, str], /) -> Any:
        """The records of a page."""


@dataclass(slots=True)
class Draft:
    """A post that is being fetched, page by page."""

    listed: Listed
    listed_at: datetime  # when the page of the list was fetched
    walk: Walk
    board: Board | None
    unread_before: bool = False  # an earlier crawl could not read it, and the list shows it as it was then
    question: Question | None = None
    answers: list[Answer] = field(default_factory=list)
    layout: str = ""
    fetched_at: datetime | None = None
    urls: set[str] = field(default_factory=set)
    more_ids: tuple[str, ...] = ()
    n_answers: int | None = None  # as the site states it
    n_found: int = 0  # answers on the pages that came, also those without text
    settled: bool = False
    cut: bool = False
    outdated: bool = False  # a page of it is older than that of the list, which may show answers that it lacks


class ForumSpider(Spider):
    """The base of all engines. A crawl is told what to do by its arguments (`crawlers.options.NAMES`)."""

    site: ClassVar[Site]
    list_page: ClassVar[Reader]
    post_page: ClassVar[Reader]
    json: ClassVar[bool] = False  # the engine answers in JSON
    ordered: ClassVar[bool] = False  # its lists are in the order of posting, not of the last answer

    options: Options
    job: Job | None
    pages: PageStore  # of the job
    _turn: IO[str]  # the lock of the host

    @classmethod
    def from_crawler(cls, crawler: Crawler, *_: Any, **said: str | None) -> Self:
        """Reads the request, refuses what can not be, and opens the job.

        Raises:
            CrawlError: before anything is fetched.
        """
        options = read_options(cls.site, said)
        _apply(options, crawler.settings)
        spider = cls()
        spider.options = options
        spider._turn = take_turn(options.base_url)
        spider.job = Job(options.job, request_of(options)) if options.job else None
        if spider.job is not None:
            oldest = options.clock().timestamp() - options.keep_pages_days * 24 * 3600.0
            spider.pages = PageStore(spider.job.pages, expire_before=oldest)
        spider._set_crawler(crawler)
        crawler.signals.connect(spider._idle, signal=signals.spider_idle)
        crawler.signals.connect(spider._unexpected, signal=signals.spider_error)
        crawler.signals.connect(spider._unwritten, signal=signals.item_error)
        crawler.signals.connect(spider._unwritten, signal=signals.item_dropped)
        spider._prepare()
        return spider

    def _prepare(self) -> None:
        self.fates: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.listed: dict[str, Listed] = {}
        self.dated: dict[str, str | None] = {}  # when the posts that were fetched were written
        self.fingerprints: dict[str, str | None] = {}  # of the posts that were read: what the list showed before that
        self.summary: dict[str, object] = {}
        self._unread_ids: set[str] = set()
        self._walks: list[Walk] = []
        self._unread_in_a_row = 0
        self._set_out = 0  # posts that were asked for
        self._failed = 0  # of these, those that the server failed to give; and as many in a row
        self._failed_in_a_row = 0
        self._answers = {"stated": 0, "found": 0}  # of the posts that were given and whose answers the site counts
        had = self.job.had if self.job else {}
        self._had = dict(had)
        self._items = len(had)

    # What an engine says.

    def lists(self) -> Iterator[tuple[Board | None, str]]:
        """The board (None: the site has but one list) and the first page of every list of the site."""
        # Not `abc`: Scrapy's feeds read every attribute of a spider by name, and an abstract class has one that fails.
        raise NotImplementedError

    def more(self, draft: Draft) -> tuple[str, Callable[..., Any]] | None:  # noqa: ARG002 - an engine's
        """The next request for answers of a post beyond its `next_url`, and what reads it; None: there is none."""
        return None

    # Lists.

    async def start(self) -> AsyncIterator[Request]:
        """Asks for the first page of each list."""
        if self._full:
            return
        for board, url in self.lists():
            walk = Walk(self.options, self._had, self.fates, self.listed, ordered=self.ordered)
            self._walks.append(walk)
            yield self._list_request(url, walk, board)

    def parse_list(self, response: Response, walk: Walk, board: Board | None) -> Iterator[Any]:
        """Reads a page of a list."""
        try:
            page: ListPage = self._read(type(self).list_page, response)
            if page.refused and not page.posts:
                raise PageError("no link of the list leads to a post of its host", response.url)
        except PageError as error:
            again = self._once_more(response)
            if not again:
                self._count_unread(response, error)
                reason = "unknown_layout" if isinstance(error, UnknownLayout) else "list_failed"
                raise CloseSpider(reason) from error
            yield from again
            return
        if not page.posts:
            # The site may have shown nothing for a while: what was kept of that must not stand for it for ever.
            again = self._once_more(response)
            if again:
                yield from again
                return
            # Pages in HTML are linked because they have posts; an API may well end with one that has none.
            if walk.number == 0 or not (self.json or walk.behind):
                block(self.crawler, "emptiness", _asked_url(response))
                return
        if page.refused:  # links of posts that lead to another host
            self.refused["offsite"] += page.refused
            self.crawler.stats.inc_value("crawl/refused/offsite", page.refused)
        wanted = walk.read(page, response.url)
        yield from self._post_requests(wanted, self._fetched_at(response), walk, board)
        yield from self._go_on(walk, board)

    def failed_list(self, failure: Failure) -> None:
        """A page of a list did not come: what stands below it would be missing, so the crawl ends and says so."""
        kind = self._count_failure(failure)
        if kind in _REFUSED:
            block(self.crawler, "refusals", asked_url(failure.request))  # type: ignore[attr-defined]
        elif kind != "blocked":
            raise CloseSpider("robots_forbidden" if kind == "robots" else "list_failed")

    def _go_on(self, walk: Walk, board: Board | None) -> Iterator[Request]:
        if not walk.settled or walk.ended or walk.next_url is None:
            return
        if walk.number >= self.settings.getint("CRAWL_LIST_PAGES_MAX"):
            raise CloseSpider("list_too_long")
        yield self._list_request(walk.next_url, walk, board)

    # Posts.

    def parse_post(self, response: Response, draft: Draft) -> Iterator[Any]:
        """Reads a page of a post: the question from the first, answers from each."""
        self._failed_in_a_row = 0
        if self._full:
            return  # it was under way as the last post that was wanted came
        try:
            page: PostPage = self._read(type(self).post_page, response)
            inside = self._take(draft, page, response)
            further = self._further(draft, page.next_url) if inside else None
            if inside and further is None and draft.n_answers and not draft.n_found:
                raise PageError("the page states answers and holds none", response.url)
        except PageError as error:
            again = [] if draft.unread_before else self._once_more(response)
            if again:
                yield from again
                return
            self._count_unread(response, error, known=draft.unread_before)
            yield from self._lose(draft)
            self._unread_in_a_row += not draft.unread_before
            if self._unread_in_a_row >= self.settings.getint("CRAWL_UNREAD_MAX"):
                reason = "unknown_layout" if isinstance(error, UnknownLayout) else "blocked"
                block(self.crawler, "emptiness", _asked_url(response), reason)
            return
        self._unread_in_a_row = 0
        yield from self._settle(draft)
        if further is not None:
            yield further
        elif inside:
            yield from self._give(draft)

    def failed_post(self, failure: Failure) -> Iterator[Any]:
        """A page of a post did not come: the post is counted, and new for the next crawl where the server failed.

        A refusal of the one page is remembered as a page is that can not be read.
        """
        draft: Draft = failure.request.cb_kwargs["draft"]  # type: ignore[attr-defined]
        failed = _is_of_the_server(failure.value)
        kind = self._count_failure(failure, known=draft.unread_before and not failed)
        if kind == "blocked":
            return
        yield from self._lose(draft, gone=kind == "gone", failed=failed)
        self._failed_in_a_row = self._failed_in_a_row + 1 if failed else 0
        if self._failed_in_a_row >= self.settings.getint("CRAWL_LOST_MAX"):
            raise CloseSpider("too_many_lost")

    def _take(self, draft: Draft, page: PostPage, response: Response) -> bool:
        """Takes a page into the draft; gives whether the post is one of the window.

        Raises:
            PageError: for a first page without its question, or with another one.
        """
        if page.question is not None:
            draft.n_answers = draft.listed.n_answers if page.n_answers is None else page.n_answers
        if draft.question is None:
            question = page.question
            if question is None or question.source_id != draft.listed.source_id:
                raise PageError("the page holds another post than the list said", response.url)
            posted = question.posted or draft.listed.posted
            if posted is None:
                raise PageError("nothing says when the post was written", response.url)
            draft.question = Question(
                question.source_id, question.url, question.title, question.description,
                question.topic, question.subtopics, question.author, posted,
            )  # fmt: skip
            draft.layout = page.layout
            draft.more_ids = page.more_ids
            draft.fetched_at = self._fetched_at(response)
            # "2 hours ago" at two in the morning may be either day: the post is taken by both windows, and the next
            # crawl is told nothing of its day.
            days, window = Days.of(posted), self.options.window
            self.dated[question.source_id] = posted.at.isoformat() if days.first == days.last else None
            if window.surely_older(days) or window.surely_newer(days):
                self._became("outside")
                return False
        draft.outdated |= self._fetched_at(response) < draft.listed_at
        draft.urls.add(response.url)
        draft.answers.extend(page.answers)
        draft.n_found += page.n_found
        return True

    def _further(self, draft: Draft, next_url: str | None) -> Request | None:
        """The request for more answers of a post; None where there are none, or no more are asked for."""
        found = (next_url, self.parse_post) if next_url else self.more(draft)
        if found is None or found[0] in draft.urls:
            return None
        if len(draft.urls) >= self.settings.getint("CRAWL_POST_PAGES_MAX"):
            draft.cut = True
            logger.warning("a post of more than %s pages, cut there: %s", len(draft.urls), draft.listed.url)
            return None
        url, callback = found
        return self._request(url, callback, self.failed_post, _ANSWERS_FIRST, draft=draft)

    def _give(self, draft: Draft) -> Iterator[Any]:
        """The row of a post whose pages have come."""
        assert draft.question is not None
        assert draft.fetched_at is not None
        row = row_of(
            self.site, draft.question, draft.answers, key=self.options.key, fetched_at=draft.fetched_at,
            layout=draft.layout, topic=draft.board.topic if draft.board else None,
        )  # fmt: skip
        self.fingerprints[draft.question.source_id] = None if draft.outdated else draft.listed.fingerprint
        self._items += 1
        self._became("cut" if draft.cut else "fetched")
        if draft.n_answers is not None:
            self._answers["stated"] += draft.n_answers
            self._answers["found"] += draft.n_found
        yield row
        if self._full:
            raise CloseSpider("max_items")

    def _settle(self, draft: Draft) -> Iterator[Request]:
        if draft.settled:
            return
        draft.settled = True
        posted = draft.question.posted if draft.question else None
        more = draft.walk.settle(draft.listed.source_id, Days.of(posted).last if posted else None)
        yield from self._post_requests(more, draft.listed_at, draft.walk, draft.board)
        yield from self._go_on(draft.walk, draft.board)

    def _lose(self, draft: Draft, *, gone: bool = False, failed: bool = False) -> Iterator[Request]:
        if gone:
            self._became("gone")
        elif failed:  # of its page nothing is known: it stays new
            self._became("lost")
            self._failed += 1
        else:
            self._became("unread_before" if draft.unread_before else "lost")
            self._unread_ids.add(draft.listed.source_id)
        yield from self._settle(draft)

    def _became(self, fate: str) -> None:
        """A post that was to be fetched is to be counted otherwise."""
        self.fates["fetch"] -= 1
        self.fates[fate] += 1

    # Requests and pages.

    def _list_request(self, url: str, walk: Walk, board: Board | None) -> Request:
        return self._request(url, self.parse_list, self.failed_list, 0, walk=walk, board=board)

    def _post_requests(
        self, wanted: list[Listed], listed_at: datetime, walk: Walk, board: Board | None
    ) -> Iterator[Request]:
        self._set_out += len(wanted)
        for listed in wanted:
            known = self.options.seen.get(listed.source_id)
            unread_before = known is not None and known.unread and known.fingerprint == listed.fingerprint
            draft = Draft(listed, listed_at, walk, board, unread_before)
            request = self._request(listed.url, self.parse_post, self.failed_post, _DETAILS_FIRST, draft=draft)
            request.meta["unread_before"] = unread_before
            yield request

    def _request(
        self, url: str, callback: Callable[..., Any], errback: Callable[..., Any], priority: int, **kept: object
    ) -> Request:
        return Request(url, callback=callback, errback=errback, priority=priority, cb_kwargs=kept)

    def _once_more(self, response: Response) -> list[Request]:
        """A page that could not be read may have been cut on its way: it is asked for once more, past the cache."""
        if response.meta.get("again"):
            return []
        assert response.request is not None
        return [response.request.replace(url=_asked_url(response), meta={"again": True})]

    def _read(self, reader: Reader, response: Response) -> Any:
        """The records of a page.

        Raises:
            PageError: for whatever can not be read.
        """
        try:
            body = self._json_of(response) if self.json else self._selector_of(response)
            return reader(body, response.url, self._fetched_at(response), self.site.overrides)
        except PageError:
            raise
        except Exception as error:  # noqa: BLE001 - one page never stops a crawl; its message may hold a text
            raise PageError(f"the reader failed with {type(error).__name__}", response.url) from None

    def _selector_of(self, response: Response) -> Selector:
        # Read as HTML whatever it says: no entity is defined, none is resolved, nothing else is loaded.
        if not isinstance(response, TextResponse) or isinstance(response, XmlResponse):
            raise UnknownLayout("not a page in HTML", response.url)
        if b"</html" not in response.body[-_END:].lower():
            # Half a list would look like its last page.
            raise PageError("the page is cut short", response.url)
        text = response.body.decode(self.site.charset, "replace") if self.site.charset else response.text
        try:
            return html.parsed(text)
        except ValueError as error:
            raise PageError(f"the page: {error}", response.url) from error

    def _json_of(self, response: Response) -> Any:
        try:
            return json.loads(response.body)
        except (ValueError, RecursionError):
            raise UnknownLayout("not JSON", response.url) from None

    def _fetched_at(self, response: Response) -> datetime:
        if "cached" in response.flags:
            return datetime.fromtimestamp(response.meta["cache_timestamp"], UTC)
        return self.options.clock()

    # Accounts.

    def _count_unread(self, response: Response, error: PageError, *, known: bool = False) -> None:
        if not known:
            kind = "unknown_layout" if isinstance(error, UnknownLayout) else "page"
            self.errors[kind] += 1
            self.crawler.stats.inc_value(f"crawl/errors/{kind}")
        where: Path | str = "not saved: -a job=FOLDER saves it"
        if self.job is not None:
            with stop_where_unwritten(self.crawler, self.job.folder / "unknown"):
                where = self.job.keep_page(response.url, response.body)
        logger.warning("%s at %s (%s)", error.what, _asked_url(response), where)

    def _count_failure(self, failure: Failure, *, known: bool = False) -> str:
        error = failure.value
        assert error is not None
        url = asked_url(failure.request)  # type: ignore[attr-defined]
        kind = _kind_of(error)
        if kind == "blocked":
            return kind
        if known:
            logger.info("%s, as before: %s", kind, url)
            return kind
        if kind == "too_large" or (isinstance(error, IgnoreRequest) and not isinstance(error, HttpError)):
            self.refused[kind] += 1
            self.crawler.stats.inc_value(f"crawl/refused/{kind}")
        elif kind != "gone":  # a fate of a post, no error
            self.errors[kind] += 1
            self.crawler.stats.inc_value(f"crawl/errors/{kind}")
        logger.warning("%s: %s", kind, url)
        return kind

    @property
    def _too_many_lost(self) -> bool:
        """Whether the server failed to give so many posts that the same job should ask for them once more."""
        most, share = self.settings.getint("CRAWL_LOST_MAX"), self.settings.getfloat("CRAWL_LOST_SHARE")
        return self._failed >= most and self._failed >= share * (self._set_out + self.fates["had"])

    @property
    def _full(self) -> bool:
        return self.options.max_items is not None and self._items >= self.options.max_items

    def _unexpected(self, failure: Failure) -> None:
        """A page on which our own code failed: what it held is lost, and the crawl has failed with it."""
        self.errors["unexpected"] += 1
        logger.error("unexpected %s", type(failure.value).__name__)

    def _unwritten(self, item: dict[str, Any]) -> None:
        """A post that could not be written into the journal: it is not there, whatever was counted."""
        self._items -= 1
        self.fates["fetched"] -= 1
        self.fates["lost"] += 1
        self.fingerprints.pop(item["source_id"], None)
        self.errors["unwritten"] += 1

    def _idle(self) -> None:
        """Nothing is under way: the crawl is over, and has failed where a list was not walked to its end."""
        if any(not (walk.settled and walk.ended) for walk in self._walks):
            raise CloseSpider("incomplete")
        read = self._items or self.dated.keys() - self._unread_ids or self.fates["unchanged"]
        if not read and (+self.errors or self.fates["lost"]):
            raise CloseSpider("nothing_read")

    def closed(self, reason: str) -> None:
        """Writes what the crawl came to; a job that is done is marked so, last."""
        for lost in ("unwritten", "unexpected"):
            if reason in DONE and self.errors[lost]:
                reason = lost
        if reason in DONE and self._too_many_lost:
            reason = "too_many_lost"
        summary = self._sum_up(reason)
        if summary["list_ended_first"]:
            first = self.options.window.first
            logger.warning("a list ended before anything older than %s: its site may show no more", first)
        if self.job is not None:
            try:
                if reason in DONE:
                    self.job.finish(self._seen(), summary)
                else:
                    self.job.stop(summary)
            except OSError as error:
                logger.error("unwritten (%s) at %s: how the crawl ended", error.strerror, self.job.folder)
                summary |= {"finish_reason": "unwritten", "blocked": None, "nothing_new": False}
            self.job.close()
        self.summary = summary  # last: without its figures on disk no crawl is done
        self._turn.close()

    def _seen(self) -> Iterator[dict[str, object]]:
        """What the next crawl is to know.

        A post that was never read has no fingerprint: it stays new. One that could not be read has that of the failure.
        """
        for source_id in dict.fromkeys((*self.listed, *self._had)):
            known = self._had.get(source_id) or self.options.seen.get(source_id) or Known(None, None, None)
            fingerprint, unread = known.fingerprint, known.unread
            if source_id in self.fingerprints:
                fingerprint, unread = self.fingerprints[source_id], False
            elif source_id in self._unread_ids:
                fingerprint, unread = self.listed[source_id].fingerprint, True
            elif unread and source_id in self.dated:  # it can be read now, and is none of the window
                fingerprint, unread = None, False
            line: dict[str, object] = {
                "source_id": source_id,
                "fingerprint": fingerprint,
                "posted_at": self.dated.get(source_id) or known.posted_at,
            }
            if unread:
                yield {**line, "unread": True}
            elif line["posted_at"] is not None:
                yield line

    def _sum_up(self, reason: str) -> dict[str, object]:
        stats = self.crawler.stats
        errors, refused = +self.errors, +self.refused
        nothing_lost = not errors and not self.fates["lost"]  # links of a list that lead elsewhere are no posts
        fates = {("left" if fate == "fetch" else fate): count for fate, count in sorted((+self.fates).items())}
        started = stats.get_value("start_time")
        return {
            "source": self.site.name,
            "from": self.options.window.first.isoformat(),
            "until": self.options.window.last.isoformat(),
            "finish_reason": reason,
            "blocked": None if reason in _NO_SIGN else stats.get_value("blocked/sign"),
            "items": self._items,
            "nothing_new": reason in DONE and not self._items and nothing_lost,
            "pages": stats.get_value("crawl/pages", 0),
            "pages_cached": stats.get_value("httpcache/hit", 0),
            "bytes": stats.get_value("crawl/bytes", 0),
            "list_pages": sum(walk.number for walk in self._walks),
            "list_ended_first": any(walk.ended_first for walk in self._walks),
            "posts": {"listed": len(self.listed), **fates},
            "answers": self._answers,
            "errors": dict(sorted(errors.items())),
            "refused": dict(sorted(refused.items())),
            "retries": stats.get_value("retry/count", 0),
            "robots": {
                "refusals": stats.get_value("robotstxt/forbidden", 0),
                "crawl_delay": stats.get_value("robots/crawl_delay"),
                "status": stats.get_value("robots/status"),
                "sha256": stats.get_value("robots/sha256"),
            },
            "delay": max((slot.delay for slot in self.crawler.engine.downloader.slots.values()), default=0.0),
            "seconds": round((datetime.now(UTC) - started).total_seconds(), 3) if started else 0.0,
        }


def _apply(options: Options, settings: BaseSettings) -> None:
    """What of Scrapy's settings depends on the request. It wins over the project's, not over a command line's -s."""
    contact = f" (+{options.contact})" if options.contact else ""
    set_ = {
        "USER_AGENT": f"gongqing/{version('gongqing')}{contact}",
        "DOWNLOAD_DELAY": options.site.politeness.delay if options.delays else 0.0,
        "AUTOTHROTTLE_START_DELAY": options.site.politeness.delay,
        "AUTOTHROTTLE_ENABLED": options.delays,
        "CRAWL_DELAYS": options.delays,
        "HTTPCACHE_ENABLED": options.job is not None,
    }
    settings.setdict(set_, priority="spider")


def _asked_url(response: Response) -> str:
    assert response.request is not None
    return asked_url(response.request)


def _is_of_the_server(error: BaseException | None) -> bool:
    """Whether a page did not come because the server, or the way to it, failed: it says nothing of the page."""
    if isinstance(error, HttpError):
        status = error.response.status
        return status >= 500 or status in _BUSY
    return error is not None and not isinstance(error, IgnoreRequest) and _kind_of(error) != "too_large"


def _kind_of(error: BaseException) -> str:
    """The name under which a failure is counted; never its words."""
    if isinstance(error, Blocked):
        return "blocked"
    if isinstance(error, Refused):
        return error.reason
    if isinstance(error, HttpError):
        status = error.response.status
        return "gone" if status in _GONE else f"http_{status}"
    if isinstance(error, IgnoreRequest):
        # Scrapy has one exception for both; what is too large once decompressed names the setting.
        return "robots" if "robots.txt" in str(error) else "too_large" if "MAXSIZE" in str(error) else "ignored"
    name = type(error).__name__
    return "too_large" if name == "DownloadCancelledError" else name
