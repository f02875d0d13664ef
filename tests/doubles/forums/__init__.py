"""Replicas of forums, beside that of Xinli001 on one host, each in a folder: their markup, our texts."""

from functools import partial

from forums import discourse, discuz, douban, nodebb
from samples.replica import Forum

# With some of what their robots.txt forbids.
FORUMS: dict[str, Forum] = {
    "/discuz": (partial(discuz.respond, charset="utf-8"), ("/admin.php", "/forum.php?mod=post*", "/*?mod=misc*")),
    "/discuz-gbk": (partial(discuz.respond, charset="gbk"), ("/search.php", "/*mobile=yes*")),
    "/discourse": (discourse.respond, ("/admin/", "/*?api_key*", "/t/*/*.rss", "/g")),
    "/nodebb": (nodebb.respond, ("/admin/", "/compose")),
    "/douban": (douban.respond, ("/search", "/people/")),
}
