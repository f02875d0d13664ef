"""The spider of every engine: reads the lists, fetches the posts of the window with all their answers, yields rows.

An engine (a module of `crawlers.pages`) says where its lists are and how its pages are read. The outcome of every post
is counted; a list that can not be read to its end makes the crawl fail, for then posts may be missing unseen. A post
that can not be read is remembered, and requested by every later crawl without counting as an error again.
"""

import json
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Self

from parsel import Selector
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.http import Response, TextResponse, XmlResponse
from scrapy.spidermiddlewares.httperror import HttpError
from twisted.python.failure import Failure

from crawlers.cache import PageStore
from crawlers.dates import Days, day_of
from crawlers.errors import RequestRefused
from crawlers.extensions.blocked import Blocked, block, first_url, stop_where_unwritten
from crawlers.extensions.fence import Refused
from crawlers.extensions.log import delay_of
from crawlers.frontier import IdSearch, ListFrontier, page_of_ids
from crawlers.job import DONE, Job, lock_host, request_of
from crawlers.options import Known, Options, read_options
from crawlers.pages import guard
from crawlers.records import Answer, AnswerError, Listed, ListPage, PageError, PostPage, Question, UnknownLayout, row_of
from crawlers.sites import Board, Site

logger = logging.getLogger(__name__)

_DETAILS_FIRST, _ANSWERS_FIRST = 10, 20  # priorities; a list has 0
_GONE = frozenset({404, 410})
_REFUSED = frozenset({"http_403", "http_429", "http_503"})
_NO_SIGN = frozenset({"unreachable", "unwritten"})  # the site has not refused us
_BUSY = frozenset({408, 429})  # as an error of the server's: another time it may answer
_END = 4096  # bytes in which a page must end; scripts of statistics may follow


@dataclass(slots=True)
class Tally:
    """How much pages state, and how much of it came."""

    stated: int = 0
    found: int = 0
    missing: int = 0

    def add(self, stated: int, found: int) -> None:
        """Adds a post or a list: one that has more than it states makes up for no other."""
        self.stated += stated
        self.found += found
        self.missing += max(0, stated - found)

    def lacks(self, least: int, share: float) -> bool:
        """Whether so many are missing, and more than this share."""
        return self.missing >= least and self.missing > share * self.stated


@dataclass(slots=True)
class Draft:
    """A post that is being fetched, page by page."""

    listed: Listed
    listed_at: datetime  # when the page of the list was fetched
    frontier: ListFrontier
    board: Board | None
    unread_before: bool = False  # an earlier crawl could not read it, and the list shows it as it was then
    fresh: bool = False  # this job had it with too few answers: its pages are requested past the cache
    question: Question | None = None
    answers: list[Answer] = field(default_factory=list)
    layout: str = ""
    fetched_at: datetime | None = None
    urls: set[str] = field(default_factory=set)
    next_urls: deque[tuple[str, bool]] = field(default_factory=deque)  # and whether each was counted
    n_answers: int | None = None  # as the site states it
    n_found: int = 0  # answers on the pages that came, also those without text
    n_unread: int = 0  # answers of which each could not be read
    settled: bool = False
    cut: bool = False
    outdated: bool = False  # a page of it is older than that of the list, which may show answers that it lacks


def list_paths(site: Site, engine: Any) -> list[tuple[Board | None, str]]:
    """The lists that a crawl of a site begins with: its boards, or the engine's one list of all posts.

    Raises RequestRefused where there is none: such a crawl would end well, without a post.
    """
    if site.boards and hasattr(engine, "board_path"):
        return [(board, engine.board_path(site, board)) for board in site.boards]
    if engine.LATEST is None:
        raise RequestRefused(
            f"{site.name} names no board, and {site.engine} has no list of all posts",
            where=site.name,
            hint='name its boards: boards = [{ id = "2" }]',
        )
    return [(None, engine.LATEST)]


class ForumSpider(Spider):
    """A crawl of one site, with the arguments of `crawlers.options.Arguments`."""

    site: ClassVar[Site]

    @classmethod
    def from_crawler(cls, crawler: Crawler, *_: Any, **args: str | None) -> Self:
        """Reads the request and opens the job; raises CrawlError before anything is fetched."""
        options = read_options(cls.site, args)
        contact = f" (+{options.contact})" if options.contact else ""
        delays = options.args.delays == "on"
        # Above the project's settings, below a command line's `-s`.
        changes = {
            "USER_AGENT": f"gongqing/{version('gongqing')}{contact}",
            "DOWNLOAD_DELAY": options.site.politeness.delay if delays else 0.0,
            "AUTOTHROTTLE_START_DELAY": options.site.politeness.delay,
            "AUTOTHROTTLE_ENABLED": delays,
            "CRAWL_DELAYS": delays,
            "HTTPCACHE_ENABLED": options.args.job is not None,
        }
        crawler.settings.setdict(changes, priority="spider")
        spider = cls(options)
        spider._set_crawler(crawler)
        for known in spider._had.values():
            spider._tally(known.stated, known.found)
        crawler.signals.connect(spider._idle, signal=signals.spider_idle)
        crawler.signals.connect(spider._unexpected, signal=signals.spider_error)
        return spider

    def __init__(self, options: Options) -> None:
        super().__init__()
        self.options = options
        self.summary: dict[str, object] = {}
        self._engine: Any = import_module(f"crawlers.pages.{self.site.engine}")
        self._lists = list_paths(self.site, self._engine)
        self._lock = lock_host(options.base_url)
        self.job = Job(options.args.job, request_of(options)) if options.args.job else None
        if self.job is not None:
            oldest = options.clock().timestamp() - options.args.keep_pages_days * 24 * 3600.0
            self.pages = PageStore(self.job.pages, expire_before=oldest)
        journal = self.job.had if self.job else {}
        # What lacks answers is read again: the page may be whole by now, or its reader better.
        self._had = {i: known for i, known in journal.items() if known.found >= known.stated}
        self._short = journal.keys() - self._had.keys()
        self._items = len(self._had)
        self._outcomes: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._listed: dict[str, Listed] = {}
        self._dated: dict[str, str | None] = {}  # when the posts that were fetched were written
        self._fingerprints: dict[str, str | None] = {}  # of the posts that were read: what the list showed before that
        self._unread_ids: set[str] = set()
        self._frontiers: list[ListFrontier] = []
        self._unread_in_a_row = 0
        self._requested = 0  # posts
        self._failed = 0  # of these, those that the server failed to give; and as many in a row
        self._failed_in_a_row = 0
        # Of the posts that were yielded and whose answers the site counts; and of those with more than a page of them,
        # for a lost pager is not seen among many posts of one answer.
        self._answers, self._long = Tally(), Tally()

    # Lists.

    async def start(self) -> AsyncIterator[Request]:
        """Requests the first page of each list."""
        if self._full:
            return
        if self.options.ids is not None:
            for request in self._search(IdSearch(self.options.ids, self.options.window)):
                yield request
            return
        for board, path in self._lists:
            frontier = ListFrontier(self.options, self._had, self._outcomes, self._listed, ordered=self._engine.ORDERED)
            self._frontiers.append(frontier)
            yield self._list_request(self.options.base_url + path, frontier, board)

    def parse_list(self, response: Response, frontier: ListFrontier, board: Board | None) -> Iterator[Request]:
        """Reads a page of a list."""
        try:
            page: ListPage = self._read(self._engine.list_page, response)
            if page.refused and not page.posts:
                raise PageError("no link of the list leads to a post of its host")
        except PageError as error:
            again = self._once_more(response)
            if not again:
                self._count_unread(response, error)
                reason = "unknown_layout" if isinstance(error, UnknownLayout) else "list_failed"
                raise CloseSpider(reason) from error
            yield from again
            return
        if not page.posts and response.meta.get("counted"):
            frontier.end()
            return
        if not page.posts:
            # The site may have shown nothing for a while: a stored page of that must not stand for it for ever.
            again = self._once_more(response)
            if again:
                yield from again
                return
            # Pages in HTML are linked because they have posts; an API may well end with one that has none.
            if frontier.number == 0 or not (self._engine.JSON or frontier.behind):
                block(self.crawler, "emptiness", first_url(response))
                return
        if page.refused:
            self._count(self._refused, "refused", "offsite", page.refused)
        wanted = frontier.read(page, response.url)
        yield from self._post_requests(wanted, self._fetched_at(response), frontier, board)
        yield from self._go_on(frontier, board)

    def failed_list(self, failure: Failure) -> None:
        """A page of a list did not come: what stands below it would be missing, so the crawl ends as failed."""
        kind = self._count_failure(failure)
        if kind == "gone" and failure.request.meta.get("counted"):  # type: ignore[attr-defined]
            failure.request.cb_kwargs["frontier"].end()  # type: ignore[attr-defined]
        elif kind in _REFUSED:
            block(self.crawler, "refusals", first_url(failure.request))  # type: ignore[attr-defined]
        elif kind != "blocked":
            raise CloseSpider("robots_forbidden" if kind == "robots" else "list_failed")

    def _go_on(self, frontier: ListFrontier, board: Board | None) -> Iterator[Request]:
        if not frontier.settled or frontier.ended or frontier.next_url is None:
            return
        if frontier.number >= self.settings.getint("CRAWL_LIST_PAGES_MAX"):
            raise CloseSpider("list_too_long")
        if self.options.ids is not None:
            yield from self._walk(frontier, int(frontier.next_url))
        else:
            yield self._list_request(frontier.next_url, frontier, board, counted=frontier.counted)

    # Ids.

    def _search(self, search: IdSearch) -> Iterator[Request]:
        """Looks at the next post of a search; walks from where it ends."""
        if self.options.window.last >= day_of(self.options.clock()) or search.probe is None:
            frontier = ListFrontier(self.options, self._had, self._outcomes, self._listed, ordered=True)
            self._frontiers.append(frontier)
            yield from self._walk(frontier, search.stop)
        else:
            url, context = self._url_of(search.probe), {"search": search}
            yield Request(url, self.parse_probe, errback=self.failed_probe, cb_kwargs=context)

    def parse_probe(self, response: Response, search: IdSearch) -> Iterator[Request]:
        """Reads when a post was written, and nothing else of it."""
        self._failed_in_a_row = 0
        try:
            question = self._read(self._engine.post_page, response).question
            search.take(Days.of(question.posted) if question and question.posted else None)
        except PageError:
            search.take(None)
        yield from self._search(search)

    def failed_probe(self, failure: Failure) -> Iterator[Request]:
        """There is no such post, or it does not come: the next one is looked at."""
        self._fail_in_a_row(failed=_is_of_the_server(failure.value))
        kind = self._count_failure(failure)
        if kind == "robots":
            raise CloseSpider("robots_forbidden")
        if kind != "blocked":
            search: IdSearch = failure.request.cb_kwargs["search"]  # type: ignore[attr-defined]
            search.take(None)
            yield from self._search(search)

    def _walk(self, frontier: ListFrontier, stop: int) -> Iterator[Request]:
        """Reads pages of ids, below `stop`, down to one that has posts to fetch."""
        ids, at = self.options.ids, self.options.clock()
        assert ids is not None
        while True:
            wanted = frontier.read(page_of_ids(ids, stop, self._url_of), str(stop))
            yield from self._post_requests(wanted, at, frontier, None)
            if not frontier.settled or frontier.ended or frontier.next_url is None:
                return
            if frontier.number >= self.settings.getint("CRAWL_LIST_PAGES_MAX"):
                raise CloseSpider("list_too_long")
            stop = int(frontier.next_url)

    def _url_of(self, source_id: int) -> str:
        path: str = self._engine.post_path(source_id)
        return self.options.base_url + path

    # Posts.

    def parse_post(self, response: Response, draft: Draft) -> Iterator[Any]:
        """Reads a page of a post: the question from the first, answers from each."""
        self._failed_in_a_row = 0
        if self._full:
            return  # it was under way as the last post that was wanted came
        try:
            page: PostPage = self._read(self._engine.post_page, response)
            inside = self._take(draft, page, response)
            further = self._further(draft) if inside else None
            if inside and further is None and draft.n_answers and not draft.n_found + draft.n_unread:
                raise PageError("the page states answers and holds none")
        except PageError as error:
            if response.meta.get("counted"):  # what is not there can not be read: its answers are missing
                yield from self._finish(draft)
                return
            if self.options.ids is not None and "redirect_urls" in response.meta:
                # To where a site sends its readers for what is gone.
                yield from self._lose(draft, gone=True)
                return
            again = [] if draft.unread_before else self._once_more(response)
            if again:
                yield from again
                return
            self._count_unread(response, error, known=draft.unread_before)
            yield from self._lose(draft)
            self._unread_in_a_row += not draft.unread_before
            if self._unread_in_a_row >= self.settings.getint("CRAWL_UNREAD_MAX"):
                reason = "unknown_layout" if isinstance(error, UnknownLayout) else "blocked"
                block(self.crawler, "emptiness", first_url(response), reason)
            return
        self._unread_in_a_row = 0
        yield from self._settle(draft)
        if further is not None:
            yield further
        elif inside:
            yield from self._finish(draft)

    def failed_post(self, failure: Failure) -> Iterator[Any]:
        """A page of a post did not come: the post is counted, and new for the next crawl where the server failed.

        A refusal of the one page is remembered as a page is that can not be read.
        """
        draft: Draft = failure.request.cb_kwargs["draft"]  # type: ignore[attr-defined]
        failed = _is_of_the_server(failure.value)
        kind = self._count_failure(failure, known=draft.unread_before and not failed)
        if kind == "blocked":
            return
        if kind == "gone" and draft.question is not None:  # a further page: its answers are missing, not the post
            yield from self._finish(draft)
        else:
            yield from self._lose(draft, gone=kind == "gone", failed=failed)
        self._fail_in_a_row(failed=failed)

    def _fail_in_a_row(self, *, failed: bool) -> None:
        self._failed_in_a_row = self._failed_in_a_row + 1 if failed else 0
        if self._failed_in_a_row >= self.settings.getint("CRAWL_LOST_MAX"):
            raise CloseSpider("too_many_lost")

    def _take(self, draft: Draft, page: PostPage, response: Response) -> bool:
        """Takes a page into the draft; gives whether the post is one of the window. Raises PageError for a first page
        without its question, or with another one.
        """
        if page.question is not None:
            draft.n_answers = draft.listed.n_answers if page.n_answers is None else page.n_answers
        if draft.question is None:
            question = page.question
            if question is None or question.source_id != draft.listed.source_id:
                raise PageError("the page holds another post than the list links")
            posted = question.posted or draft.listed.posted
            if posted is None:
                raise PageError("the page has no time of posting")
            draft.question = replace(question, posted=posted)
            draft.layout = page.layout
            draft.fetched_at = self._fetched_at(response)
            # "2 hours ago" at two in the morning may be either day: the post is taken by both windows, and the next
            # crawl learns nothing of its day.
            days, window = Days.of(posted), self.options.window
            self._dated[question.source_id] = posted.at.isoformat() if days.first == days.last else None
            if window.surely_older(days) or window.surely_newer(days):
                self._conclude("outside")
                return False
        draft.outdated |= self._fetched_at(response) < draft.listed_at
        draft.urls.add(response.url)
        before = {answer.source_id for answer in draft.answers}
        new = [answer for answer in page.answers if answer.source_id is None or answer.source_id not in before]
        if page.answers and not new:  # a site shows its first page for a number that it does not have
            return True
        draft.next_urls.extend((url, page.counted) for url in page.next_urls)
        draft.answers.extend(new)
        draft.n_found += page.n_found - len(page.answers) + len(new)
        draft.n_unread += page.n_unread
        for _ in range(page.n_unread):
            self._count_unread(response, AnswerError("an answer that can not be read"))
        return True

    def _further(self, draft: Draft) -> Request | None:
        """The request for more answers of a post; None where there are none, or it has too many pages."""
        url, counted = draft.next_urls.popleft() if draft.next_urls else (None, False)
        if url is None or url in draft.urls:
            return None
        if len(draft.urls) >= self.settings.getint("CRAWL_POST_PAGES_MAX"):
            draft.cut = True
            logger.warning("a post of more than %s pages, cut there: %s", len(draft.urls), draft.listed.url)
            return None
        return self._post_request(url, draft, _ANSWERS_FIRST, counted=counted)

    def _finish(self, draft: Draft) -> Iterator[dict[str, Any]]:
        """Journals and yields the row of a post whose pages have come."""
        question = draft.question
        assert question is not None
        assert draft.fetched_at is not None
        topic = draft.board.topic if draft.board else None
        key = self.options.key
        row = row_of(self.site, question, draft.answers, key, draft.fetched_at, draft.layout, topic)
        # A post of which an answer can not be read is new for the next crawl, whose reader may be better.
        fingerprint = None if draft.outdated or draft.n_unread else draft.listed.fingerprint
        counts = (0, 0) if draft.n_answers is None or draft.cut else (draft.n_answers, draft.n_found)
        if self.job is not None:
            with stop_where_unwritten(self.crawler, self.job.items):
                self.job.append(row, fingerprint, *counts)
            if question.source_id not in self.job.had:
                self._errors["unwritten"] += 1
                self._conclude("lost")
                return
        self._fingerprints[question.source_id] = fingerprint
        self._items += 1
        self._conclude("cut" if draft.cut else "fetched")
        self._tally(*counts)
        if counts[1] < counts[0]:
            logger.info("%s of the %s answers that a post states: %s", counts[1], counts[0], draft.listed.url)
        yield row
        if self._full:
            raise CloseSpider("max_items")

    def _tally(self, stated: int, found: int) -> None:
        self._answers.add(stated, found)
        if stated > self.settings.getint("CRAWL_MISSING_MIN"):
            self._long.add(stated, found)

    def _settle(self, draft: Draft) -> Iterator[Request]:
        if draft.settled:
            return
        draft.settled = True
        posted = draft.question.posted if draft.question else None
        more = draft.frontier.settle(draft.listed.source_id, Days.of(posted).last if posted else None)
        yield from self._post_requests(more, draft.listed_at, draft.frontier, draft.board)
        yield from self._go_on(draft.frontier, draft.board)

    def _lose(self, draft: Draft, *, gone: bool = False, failed: bool = False) -> Iterator[Request]:
        if gone:
            self._conclude("gone")
        elif failed:  # of its page nothing is known: it stays new
            self._conclude("lost")
            self._failed += 1
        else:
            self._conclude("unread_before" if draft.unread_before else "lost")
            self._unread_ids.add(draft.listed.source_id)
        yield from self._settle(draft)

    def _conclude(self, outcome: str) -> None:
        """Counts a post that was to be fetched by its outcome."""
        self._outcomes["fetch"] -= 1
        self._outcomes[outcome] += 1

    # Requests and pages.

    def _list_request(self, url: str, frontier: ListFrontier, board: Board | None, *, counted: bool = False) -> Request:
        context = {"frontier": frontier, "board": board}
        return Request(url, self.parse_list, errback=self.failed_list, cb_kwargs=context, meta={"counted": counted})

    def _post_requests(
        self, wanted: list[Listed], listed_at: datetime, frontier: ListFrontier, board: Board | None
    ) -> Iterator[Request]:
        self._requested += len(wanted)
        for listed in wanted:
            known = self.options.seen.get(listed.source_id)
            unread_before = known is not None and known.unread and known.fingerprint == listed.fingerprint
            draft = Draft(listed, listed_at, frontier, board, unread_before, listed.source_id in self._short)
            request = self._post_request(listed.url, draft, _DETAILS_FIRST)
            request.meta["unread_before"] = unread_before
            yield request

    def _post_request(self, url: str, draft: Draft, priority: int, *, counted: bool = False) -> Request:
        request = Request(url, self.parse_post, priority=priority, errback=self.failed_post, cb_kwargs={"draft": draft})
        request.meta.update({"counted": counted} | ({"dont_cache": True} if draft.fresh else {}))
        return request

    def _once_more(self, response: Response) -> list[Request]:
        """A second request, past the cache, for a page that could not be read: it may have been cut on its way."""
        if response.meta.get("dont_cache"):
            return []
        assert response.request is not None
        return [response.request.replace(url=first_url(response), meta={"dont_cache": True})]

    def _read(self, reader: Callable[..., Any], response: Response) -> Any:
        """The records of a page; PageError for one that can not be read."""
        try:
            if self._engine.JSON:
                try:
                    body = json.loads(response.body)
                except (ValueError, RecursionError):
                    raise UnknownLayout("not JSON") from None
                return reader(body, response.url, self._fetched_at(response))
            css = {**self._engine.SELECTORS, **self.site.overrides}
            return reader(self._selector_of(response), response.url, self._fetched_at(response), css)
        except PageError:
            raise
        except Exception as error:  # noqa: BLE001 - one page never stops a crawl; its message may hold a text
            raise PageError(f"the reader failed with {type(error).__name__}") from None

    def _selector_of(self, response: Response) -> Selector:
        # Read as HTML whatever its type: no entity is defined, none is resolved, nothing else is loaded.
        if not isinstance(response, TextResponse) or isinstance(response, XmlResponse):
            raise UnknownLayout("not a page in HTML")
        if b"</html" not in response.body[-_END:].lower():
            # Half a list would look like its last page.
            raise PageError("the page is cut short")
        text = response.body.decode(self.site.charset, "replace") if self.site.charset else response.text
        return guard.read_html(text, getattr(self._engine, "ANSWERS", None))

    def _fetched_at(self, response: Response) -> datetime:
        if "cached" in response.flags:
            return datetime.fromtimestamp(response.meta["cache_timestamp"], UTC)
        return self.options.clock()

    # Counts.

    def _count(self, counts: Counter[str], group: str, kind: str, n: int = 1) -> None:
        counts[kind] += n
        self.crawler.stats.inc_value(f"crawl/{group}/{kind}", n)

    def _count_unread(self, response: Response, error: PageError, *, known: bool = False) -> None:
        if not known:
            kinds = {UnknownLayout: "unknown_layout", AnswerError: "answer"}
            self._count(self._errors, "errors", kinds.get(type(error), "page"))
        where: Path | str = "not saved: -a job=FOLDER saves it"
        if self.job is not None:
            with stop_where_unwritten(self.crawler, self.job.folder / "unknown"):
                where = self.job.keep_page(response.url, response.body)
        logger.warning("%s at %s (%s)", error, first_url(response), where)

    def _count_failure(self, failure: Failure, *, known: bool = False) -> str:
        error = failure.value
        assert error is not None
        url = first_url(failure.request)  # type: ignore[attr-defined]
        kind = _kind_of(error)
        if kind == "blocked":
            return kind
        if known:
            logger.info("%s, as before: %s", kind, url)
            return kind
        if kind == "too_large" or (isinstance(error, IgnoreRequest) and not isinstance(error, HttpError)):
            self._count(self._refused, "refused", kind)
        elif kind != "gone":  # an outcome of a post, no error
            self._count(self._errors, "errors", kind)
        logger.warning("%s: %s", kind, url)
        return kind

    @property
    def _full(self) -> bool:
        return (most := self.options.args.max_items) is not None and self._items >= most

    # The end.

    def _unexpected(self, failure: Failure) -> None:
        """A page on which our own code failed: its post is lost, and the crawl has failed with it."""
        self._errors["unexpected"] += 1
        logger.error("unexpected %s", type(failure.value).__name__)

    def _idle(self) -> None:
        """Nothing is under way: the crawl is over, and has failed where a list was not read to its end."""
        if any(not (frontier.settled and frontier.ended) for frontier in self._frontiers):
            raise CloseSpider("incomplete")
        read = self._items or self._dated.keys() - self._unread_ids or self._outcomes["unchanged"]
        none_there = self.options.ids is not None and self._outcomes["gone"]
        if not read and (+self._errors or self._outcomes["lost"] or none_there):
            raise CloseSpider("nothing_read")

    def closed(self, reason: str) -> None:
        """Writes the figures of the crawl; a job that is done is marked so, last."""
        for lost in ("unwritten", "unexpected"):
            if reason in DONE and self._errors[lost]:
                reason = lost
        most, share = self.settings.getint("CRAWL_LOST_MAX"), self.settings.getfloat("CRAWL_LOST_SHARE")
        if reason in DONE and self._failed >= max(most, share * (self._requested + self._outcomes["had"])):
            reason = "too_many_lost"  # the same job requests them once more
        lists, least = Tally(), self.settings.getint("CRAWL_MISSING_MIN")
        for frontier in self._frontiers:
            lists.add(*frontier.whole)
        for what, tallies in (("posts", (lists,)), ("answers", (self._answers, self._long))):
            for tally in tallies:
                if reason in DONE and tally.lacks(least, self.options.args.missing_share):
                    reason = f"{what}_missing"
                    logger.error("%s of the %s %s that pages state are missing", tally.missing, tally.stated, what)
        summary = self._sum_up(reason) | {"list_posts": asdict(lists)}
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
        self._lock.close()

    def _seen(self) -> Iterator[dict[str, object]]:
        """What the next crawl is to know. A post that was never read has no fingerprint: it stays new. One that could
        not be read has that of the failure.
        """
        for source_id in dict.fromkeys((*self._listed, *self._had)):
            known = self._had.get(source_id) or self.options.seen.get(source_id) or Known(None, None, None)
            fingerprint, unread = known.fingerprint, known.unread
            if source_id in self._fingerprints:
                fingerprint, unread = self._fingerprints[source_id], False
            elif source_id in self._unread_ids:
                fingerprint, unread = self._listed[source_id].fingerprint, True
            elif unread and source_id in self._dated:  # it can be read now, and is outside the window
                fingerprint, unread = None, False
            posted_at = self._dated.get(source_id) or known.posted_at
            if unread or posted_at is not None:
                line: dict[str, object] = {"source_id": source_id, "fingerprint": fingerprint, "posted_at": posted_at}
                yield {**line, "unread": True} if unread else line

    def _sum_up(self, reason: str) -> dict[str, object]:
        stats = self.crawler.stats
        errors, refused = +self._errors, +self._refused
        nothing_lost = not errors and not self._outcomes["lost"]  # a link that leads elsewhere is no post
        outcomes = sorted((+self._outcomes).items())
        started = stats.get_value("start_time")
        return {
            "source": self.site.name,
            "from": self.options.window.first.isoformat(),
            "until": self.options.window.last.isoformat(),
            "ids": self.options.args.ids,
            "finish_reason": reason,
            "blocked": None if reason in _NO_SIGN else stats.get_value("blocked/sign"),
            "items": self._items,
            "nothing_new": reason in DONE and not self._items and nothing_lost,
            "pages": stats.get_value("crawl/pages", 0),
            "pages_cached": stats.get_value("httpcache/hit", 0),
            "bytes": stats.get_value("crawl/bytes", 0),
            "list_pages": sum(frontier.number for frontier in self._frontiers),
            "list_ended_first": self.options.ids is None and any(each.ended_first for each in self._frontiers),
            "posts": {
                "listed": len(self._listed),
                **{("left" if outcome == "fetch" else outcome): n for outcome, n in outcomes},
            },
            "answers": asdict(self._answers),
            "answers_of_long_posts": asdict(self._long),
            "errors": dict(sorted(errors.items())),
            "refused": dict(sorted(refused.items())),
            "retries": stats.get_value("retry/count", 0),
            "robots": {
                "refusals": stats.get_value("robotstxt/forbidden", 0),
                "crawl_delay": stats.get_value("robots/crawl_delay"),
                "status": stats.get_value("robots/status"),
                "sha256": stats.get_value("robots/sha256"),
            },
            "delay": delay_of(self.crawler),
            "seconds": round((datetime.now(UTC) - started).total_seconds(), 3) if started else 0.0,
        }


def _is_of_the_server(error: BaseException | None) -> bool:
    """Whether a page did not come because the server, or the way to it, failed: that says nothing of the page."""
    if isinstance(error, HttpError):
        status = error.response.status
        return status >= 500 or status in _BUSY
    return error is not None and not isinstance(error, IgnoreRequest) and _kind_of(error) != "too_large"


def _kind_of(error: BaseException) -> str:
    """The name under which a failure is counted; never its message."""
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
