"""Replicas of forums, beside that of Xinli001 on one host, each in a folder: their markup, our texts."""

from forums import discourse, discuz, douban, nodebb
from samples.replica import Forum

FORUMS: dict[str, Forum] = {
    "/discuz": (lambda world, request: discuz.respond(world, request, "utf-8"), discuz.ROBOTS),
    "/discuz-gbk": (lambda world, request: discuz.respond(world, request, "gbk"), discuz.ROBOTS),
    "/discourse": (discourse.respond, discourse.ROBOTS),
    "/nodebb": (nodebb.respond, nodebb.ROBOTS),
    "/douban": (douban.respond, douban.ROBOTS),
}
