"""A board on Discuz! X3.x in the default template, as guests see it: twenty threads and ten messages a page.

`/discuz/…` is in UTF-8, `/discuz-gbk/…` in GBK. Both address forms are served; pages link in the form they were request
in. Lists follow the last message; notices are stuck on top of page 1.
Messages come with what makes them hard to read: anti-copy jammers, hidden spans, quotes, notes of edits, bans.
"""

import re

from samples.replica.page import (
    NOTE,
    Page,
    PageRequest,
    discuz_date,
    discuz_exact,
    discuz_time,
    figure,
    hidden,
    last_page,
    lines,
    local,
    person,
    sheet,
    text,
    whole_number,
)
from samples.replica.posts import Answer, Post
from samples.replica.world import World
from schemas.ids import digest

THREADS_A_PAGE = 20
MESSAGES_A_PAGE = 10
FIRST_TID = 38_600
FIRST_PID = 53_800
# Two boards: talk has one of its own.
BOARDS = {2: "心理互助", 36: "人际与茶话"}
_TALK = ("人际", "科普", "热点")
ROBOTS = (
    *("/api/", "/data/", "/source/", "/template/default/", "/config/", "/uc_client/", "/uc_server/"),
    *("/admin.php", "/search.php", "/member.php", "/misc.php", "/connect.php", "/forum.php?mod=redirect*"),
    *("/forum.php?mod=post*", "/home.php?mod=spacecp*", "/*?mod=misc*", "/*?mod=attachment*", "/*mobile=yes*"),
)

_FORUM = re.compile(r"/forum-([0-9]{1,6})-([0-9]{1,6})\.html")
_THREAD = re.compile(r"/thread-([0-9]{1,9})-([0-9]{1,6})-([0-9]{1,6})\.html")
_FLOORS = ("楼主", "沙发", "板凳", "地板")


def tid(post: Post) -> int:
    """The site's id of a thread."""
    return FIRST_TID + post.number


def pid(message: Post | Answer) -> int:
    """The site's id of a message: the question is one too."""
    return FIRST_PID + 2 * message.number + isinstance(message, Answer)


def board_of(post: Post) -> int:
    """The board in which a post stands."""
    return 36 if post.topic in _TALK else 2


def respond(world: World, request: PageRequest, charset: str) -> Page | None:
    """The page at this address, None where there is none."""
    query = request.query
    if match := _FORUM.fullmatch(request.path):
        return _forum(world, request, charset, int(match[1]), int(match[2]), rewritten=True)
    if match := _THREAD.fullmatch(request.path):
        return _thread(world, request, charset, int(match[1]), int(match[2]), rewritten=True)
    if request.path == "/forum.php" and query.get("mod") == "forumdisplay":
        return _forum(
            world, request, charset, whole_number(query.get("fid"), 0), whole_number(query.get("page")), rewritten=False
        )
    if request.path == "/forum.php" and query.get("mod") == "viewthread":
        return _thread(
            world, request, charset, whole_number(query.get("tid"), 0), whole_number(query.get("page")), rewritten=False
        )
    return None


def _forum(world: World, request: PageRequest, charset: str, fid: int, page: int, *, rewritten: bool) -> Page:
    if fid not in BOARDS:
        return _message(request, charset, "抱歉，指定的版块不存在")
    posts = [post for post in world.most_active() if board_of(post) == fid]
    stuck = [post for post in posts if post.notice] if page <= 1 else []
    normal = [post for post in posts if not post.notice]
    rows = "".join(_row(post, request, fid, rewritten, stuck=True) for post in stuck)
    rows += (
        '<tbody id="separatorline">\n<tr class="ts"><td>&nbsp;</td><th>版块主题</th><td>&nbsp;</td></tr>\n</tbody>\n'
    )
    rows += "".join(_row(post, request, fid, rewritten) for post in sheet(normal, max(1, page), THREADS_A_PAGE))
    plain = f"forum.php?mod=forumdisplay&amp;fid={fid}&amp;page="
    pager = _pager(
        f"forum-{fid}-" if rewritten else plain, ".html" if rewritten else "", page, len(normal), THREADS_A_PAGE
    )
    body = (
        f'<div id="pgt" class="bm bw0 pgs cl">{pager}</div>\n'
        f'<div id="threadlist" class="tl bm bmw">\n<div class="th">\n<table cellspacing="0" cellpadding="0"><tr>'
        '<th colspan="2">筛选</th><td class="by">作者</td><td class="num">回复/查看</td>'
        '<td class="by">最后发表</td></tr>'
        f'</table>\n</div>\n<div class="bm_c">\n<form method="post" name="moderate" id="moderate">\n'
        f'<table summary="forum_{fid}" cellspacing="0" cellpadding="0" id="threadlisttableid">\n{rows}</table>\n'
        f'</form>\n</div>\n</div>\n<div class="bm bw0 pgs cl">{pager}</div>\n'
    )
    return _document(request, charset, BOARDS[fid], _trail(fid, rewritten), body)


def _row(post: Post, request: PageRequest, fid: int, rewritten: bool, *, stuck: bool = False) -> str:
    who, link = person(post.author), _thread_link(post, 1, rewritten)
    author = "匿名" if who is None else f'<a href="{_space(who.uid, rewritten)}" c="1">{text(who.name)}</a>'
    last = post.answers[-1] if post.answers else None
    last_who = person(last.author, last.author_role) if last else who
    last_name = (
        "匿名" if last_who is None else f'<a href="{_space(last_who.uid, rewritten)}" c="1">{text(last_who.name)}</a>'
    )
    active = discuz_time(post.active_at, request.now, f"{discuz_date(post.active_at)} {local(post.active_at):%H:%M}")
    today = ' class="xi1"' if local(post.posted_at).date() == local(request.now).date() else ""
    icon = '<img src="static/image/common/pin_1.gif" alt="本版置顶" />' if stuck else '<i class="fico-thread"></i>'
    pages = last_page(1 + len(post.answers), MESSAGES_A_PAGE)
    more = "".join(
        f'<a href="{_thread_link(post, page, rewritten)}">{page}</a>' for page in range(2, min(pages, 6) + 1)
    )
    views = 30 + len(post.answers) + figure(2000, "views", post.number)
    return (
        f'<tbody id="{"stick" if stuck else "normal"}thread_{tid(post)}">\n<tr>\n'
        f'<td class="icn"><a href="{link}" title="新窗口打开" target="_blank">{icon}</a></td>\n'
        f'<th class="{"common" if post.answers else "new"}">\n'
        f'<a class="tdpre y" href="javascript:void(0);" onclick="previewThread(\'{tid(post)}\')">预览</a>\n'
        f'<em>[<a href="forum.php?mod=forumdisplay&amp;fid={fid}&amp;filter=typeid&amp;typeid=1">'
        f"{text(post.topic)}</a>]</em> "
        f'<a href="{link}" onclick="atarget(this)" class="s xst">{text(post.title)}</a>\n'
        f"{f'<span class={chr(34)}tps{chr(34)}>&nbsp;...{more}</span>' if more else ''}\n</th>\n"
        f'<td class="by">\n<cite>{author}</cite>\n'
        f"<em><span{today}>{discuz_time(post.posted_at, request.now, discuz_date(post.posted_at))}</span></em>\n</td>\n"
        f'<td class="num"><a href="{link}" class="xi2">{len(post.answers)}</a><em>{views}</em></td>\n'
        f'<td class="by">\n<cite>{last_name}</cite>\n'
        f'<em><a href="forum.php?mod=redirect&amp;tid={tid(post)}&amp;goto=lastpost#lastpost">{active}</a>'
        "</em>\n</td>\n"
        "</tr>\n</tbody>\n"
    )


def _thread(world: World, request: PageRequest, charset: str, thread: int, page: int, *, rewritten: bool) -> Page:
    post = world.post(thread - FIRST_TID)
    if post is None:
        return _message(request, charset, "抱歉，指定的主题不存在或已被删除或正在被审核")
    messages: list[Post | Answer] = [post, *post.answers]
    pages = last_page(len(messages), MESSAGES_A_PAGE)
    # Beyond the last page Discuz shows the last one.
    page = min(max(1, page), pages)
    shown = sheet(list(enumerate(messages)), page, MESSAGES_A_PAGE)
    before = (
        f"thread-{thread}-" if rewritten else f"forum.php?mod=viewthread&amp;tid={thread}&amp;extra=page%3D1&amp;page="
    )
    pager = _pager(before, "-1.html" if rewritten else "", page, len(messages), MESSAGES_A_PAGE)
    fid = board_of(post)
    kind = (
        f'<a href="forum.php?mod=forumdisplay&amp;fid={fid}&amp;filter=typeid&amp;typeid=1">[{text(post.topic)}]</a>\n'
    )
    views = 30 + len(post.answers) + figure(2000, "views", post.number)
    body = (
        f'<div id="pgt" class="pgs mbm cl">{pager}</div>\n<div id="postlist" class="pl bm">\n'
        '<table cellspacing="0" cellpadding="0"><tr><td class="pls ptn pbn"><div class="hm ptn">\n'
        f'<span class="xg1">查看:</span> <span class="xi1">{views}</span><span class="pipe">|</span>'
        f'<span class="xg1">回复:</span> <span class="xi1">{len(post.answers)}</span>\n</div></td>\n'
        f'<td class="plc ptm pbn vwthd"><h1 class="ts">\n{kind}'
        f'<span id="thread_subject">{text(post.title)}</span>\n</h1>\n'
        f'<span class="xg1"><a href="{_thread_link(post, 1, rewritten)}">[复制链接]</a></span></td></tr></table>\n'
        f"{''.join(_message_row(message, floor, request, post, rewritten) for floor, message in shown)}"
        '<div id="postlistreply" class="pl">'
        '<div id="post_new" class="viewthread_table" style="display: none"></div></div>\n'
        f'</div>\n<div class="pgs mtm mbm cl">{pager}</div>\n'
    )
    return _document(request, charset, post.title, _trail(fid, rewritten), body)


def _message_row(message: Post | Answer, floor: int, request: PageRequest, post: Post, rewritten: bool) -> str:
    number = pid(message)
    role = message.author_role if isinstance(message, Answer) else "member"
    who = person(message.author, role)
    side = "匿名 <em>该用户匿名发帖</em>"
    only = ""
    if who is not None:
        space = _space(who.uid, rewritten)
        side = f'<a href="{space}" target="_blank" class="xw1">{text(who.name)}</a>'
        only = (
            f'<span class="pipe">|</span><a href="forum.php?mod=viewthread&amp;tid={tid(post)}&amp;page=1&amp;'
            f'authorid={who.uid}" rel="nofollow">只看该作者</a>'
        )
    shown = _FLOORS[floor] if floor < len(_FLOORS) else f"<em>{floor + 1}</em><sup>#</sup>"
    posted = discuz_time(message.posted_at, request.now, discuz_exact(message.posted_at))
    words = message.description if isinstance(message, Post) else message.text
    if isinstance(message, Answer) and hidden(message):
        content = '<div class="locked">提示: <em>作者被禁止或删除 内容自动屏蔽</em></div>'
    else:
        inner = f'<td class="t_f" id="postmessage_{number}">\n{_words(words, message, post)}</td>'
        content = f'<div class="t_fsz">\n<table cellspacing="0" cellpadding="0"><tr>{inner}</tr></table>\n</div>'
    likes = f'<span id="review_support_{number}">{message.likes}</span>' if isinstance(message, Answer) else ""
    comment = '<div class="pstl"><div class="psta">虚构</div><div class="psti">一条虚构的点评</div></div>'
    return (
        f'<div id="post_{number}">'
        f'<table id="pid{number}" class="plhin" summary="pid{number}" cellspacing="0" cellpadding="0">\n'
        f'<tr>\n<td class="pls" rowspan="2">\n<div id="favatar{number}" class="pls favatar">\n'
        '<div class="pi"><div class="authi">'
        f'{side}</div></div>\n<div class="avatar"><img src="uc_server/images/noavatar_middle.gif" />'
        "</div>\n</div>\n</td>\n"
        '<td class="plc">\n<div class="pi">\n<strong>'
        f'<a href="forum.php?mod=redirect&amp;goto=findpost&amp;ptid={tid(post)}'
        f'&amp;pid={number}" id="postnum{number}">{shown}</a></strong>\n<div class="pti"><div class="pdbt"></div>\n'
        '<div class="authi">'
        f'<img class="authicn vm" id="authicon{number}" src="static/image/common/online_member.gif" />\n'
        f'<em id="authorposton{number}">发表于 {posted}</em>\n{only}\n<code>来自 - 虚构省</code>\n</div>\n'
        "</div>\n</div>\n"
        f'<div class="pct"><div class="pcb">\n{content}\n'
        f'<div id="comment_{number}" class="cm">{comment if figure(6, "comment", number) == 0 else ""}</div>\n'
        f'<div id="post_rate_div_{number}"></div>\n</div></div>\n</td></tr>\n'
        f'<tr><td class="plc plm"><div class="sign">虚构的签名档</div></td></tr>\n'
        f'<tr><td class="pls"></td><td class="plc"><div class="po hin"><div class="pob cl"><em>'
        f'<a class="replyadd" href="forum.php?mod=misc&amp;action=postreview&amp;do=support&amp;'
        f'tid={tid(post)}&amp;pid={number}">'
        f"支持 {likes}</a></em></div></div></td></tr>\n</table>\n</div>\n"
    )


def _words(words: str, message: Post | Answer, post: Post) -> str:
    """A writer's words, with what Discuz puts around and between them."""
    number = pid(message)
    before = ""
    if figure(9, "edited", number) == 0:
        when = f"{discuz_date(message.posted_at)} {local(message.posted_at):%H:%M}"
        before += f'<i class="pstatus"> 本帖最后由 虚构用户 于 {when} 编辑 </i><br /><br />\n'
    if isinstance(message, Answer) and figure(7, "quote", number) == 0:
        quoted = text(" ".join(post.description.split())[:40])
        before += (
            f'<div class="quote"><blockquote><font size="2"><a href="forum.php?mod=redirect&amp;goto=findpost&amp;'
            f'pid={pid(post)}&amp;ptid={tid(post)}" target="_blank"><font color="#999999">虚构用户 发表于 '
            f"{discuz_date(post.posted_at)}</font></a></font><br />{quoted}</blockquote></div><br />\n"
        )
    if figure(2, "jammed", number):
        return before + lines(words) + "<br />\n"
    jammed = []
    for k, line in enumerate(words.split("\n")):
        noise = digest(f"{number}/{k}", 10)
        hidden_span = f'<span style="display:none">{noise[:4]} {noise[4:]}</span>'
        jammed.append(f'{text(line)}{hidden_span}<font class="jammer">{noise}</font><br />\n')
    return before + "".join(jammed)


def _thread_link(post: Post, page: int, rewritten: bool) -> str:
    if rewritten:
        return f"thread-{tid(post)}-{page}-1.html"
    link = f"forum.php?mod=viewthread&amp;tid={tid(post)}&amp;extra=page%3D1"
    return link if page == 1 else f"{link}&amp;page={page}"


def _space(uid: int, rewritten: bool) -> str:
    return f"space-uid-{uid}.html" if rewritten else f"home.php?mod=space&amp;uid={uid}"


def _pager(before: str, after: str, page: int, n_items: int, size: int) -> str:
    pages = last_page(n_items, size)
    if pages == 1:
        return ""

    def link(number: int, shown: str, kind: str = "") -> str:
        return f'<a href="{before}{number}{after}"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{shown}</a>'

    low = max(1, min(page - 2, pages - 9))
    high = min(pages, low + 9)
    parts = [link(1, "1 ...", "first")] if low > 1 else []
    if page > 1:
        parts.append(link(page - 1, "&nbsp;&nbsp;", "prev"))
    parts += [f"<strong>{k}</strong>" if k == page else link(k, str(k)) for k in range(low, high + 1)]
    if high < pages:
        parts.append(link(pages, f"... {pages}", "last"))
    parts.append(
        f'<label><input type="text" name="custompage" class="px" size="2" value="{page}" />'
        f'<span title="共 {pages} 页"> / {pages} 页</span></label>'
    )
    if page < pages:
        parts.append(link(page + 1, "下一页", "nxt"))
    return f'<div class="pg">{"".join(parts)}</div>'


def _trail(fid: int, rewritten: bool) -> str:
    href = f"forum-{fid}-1.html" if rewritten else f"forum.php?mod=forumdisplay&amp;fid={fid}"
    return (
        '<div id="pt" class="bm cl"><div class="z"><a href="./" class="nvhm" title="首页">虚构论坛</a><em>&raquo;</em>'
        f'<a href="forum.php">论坛</a> <em>&rsaquo;</em> <a href="{href}">{BOARDS[fid]}</a></div></div>\n'
    )


def _message(request: PageRequest, charset: str, words: str) -> Page:
    """What Discuz shows in place of what there is not: with status 200."""
    body = f'<div id="messagetext" class="alert_error"><p>{words}</p></div>\n'
    return _document(request, charset, "提示信息", "", body)


def _document(request: PageRequest, charset: str, title: str, trail: str, body: str) -> Page:
    page = (
        '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" '
        '"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">\n'
        '<html xmlns="http://www.w3.org/1999/xhtml">\n<head>\n'
        f'<meta http-equiv="Content-Type" content="text/html; charset={charset}" />\n'
        f"<title>{text(title)} - 虚构论坛 - Powered by Discuz!</title>\n"
        f'<base href="{text(request.base)}/" />\n</head>\n<body id="nv_forum">\n{NOTE}\n<div id="wp" class="wp">\n'
        f'{trail}<div id="ct" class="wp cl">\n{body}</div>\n</div>\n</body>\n</html>\n'
    )
    # What GBK has no place for stands as a character reference, as browsers send it to such a board.
    return Page(page.encode(charset, "xmlcharrefreplace"), f"text/html; charset={charset}")
