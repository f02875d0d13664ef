"""Pages of Xinli001 for a `TinySite`: lists and questions in the layout of 2023, as few tags as the reader wants."""

from collections.abc import Mapping

from tiny_site import HTML, Page

UNREADABLE: Page = (200, HTML, "<html><body><main>一页谁也没见过的布局</main></body></html>".encode())


LAST = "<ul class='pagination'><li class='active'><span>1</span></li></ul>"


def question(
    source_id: int,
    day: str = "2025-05-20",
    n_answers: int = 0,
    *,
    page: int = 1,
    more: bool = False,
    states: int | None = None,
) -> Page:
    """A question with so many answers on this `page` of it; `more`: a link leads to the next; it `states` so many."""
    states = n_answers if states is None else states
    answers = "".join(
        f"<li><p class='user'><a href='/user/7'></a></p><div class='text'>回答{n}</div>"
        f"<span class='answer_zan' data-answer-id='{source_id}{page:03}{n:02}'><font>0</font></span></li>"
        for n in range(n_answers)
    )
    further = f"<ul class='pagination'><a href='/qa/{source_id}?page={page + 1}'>»</a></ul>" if more else ""
    return _page(
        f"<div class='content'><div class='title'><h1>题目{source_id}</h1><strong>{states}个回答</strong></div>"
        f"<p class='read-capacity'><span>{day}</span></p><p class='text'>正文</p></div>"
        f"<div id='answer-text' data-question-id='{source_id}'></div><ul class='content-ans'>{answers}</ul>{further}"
    )


def long_post(source_id: int, states: int, n_pages: int) -> dict[str, Page]:
    """A list with one question that states so many answers; there are some pages of ten, and none has a pager."""
    pages = {
        f"/qa/{source_id}?page={n}": question(source_id, n_answers=10, page=n, states=states)
        for n in range(2, n_pages + 1)
    }
    return {
        "/qa": listed((source_id, states)),
        f"/qa/{source_id}": question(source_id, n_answers=10, states=states),
        **pages,
    }


def listed(*questions: tuple[int, int], links: tuple[str, ...] = (), pager: str = LAST) -> Page:
    """A list of questions, each with its number of answers; `links` stand there like questions."""
    rows = "".join(
        f"<li><p class='title'><span><a href='/qa/{source_id}'>题目{source_id}</a></span></p>"
        f"<p class='label'><span>回答 {n_answers} · 有用 0   2025-05-20</span></p></li>"
        for source_id, n_answers in questions
    )
    rows += "".join(f"<li><p class='title'><span><a href='{link}'>题目</a></span></p></li>" for link in links)
    return _page(f"<ul class='content'>{rows}</ul>{pager}")


def site_of(ids: range, others: Mapping[int, Page] | None = None) -> dict[str, Page]:
    """A list of questions without answers, and their pages; `others` replace some of these."""
    pages = {f"/qa/{i}": (others or {}).get(i) or question(i) for i in ids}
    return {"/qa": listed(*((i, 0) for i in ids)), **pages}


def _page(inner: str) -> Page:
    page = f"<html><body><div id='main'><div id='left'>{inner}</div></div><footer></footer></body></html>"
    return 200, HTML, page.encode()
