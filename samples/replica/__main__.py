"""`python -m samples.replica --port 8765 [--posts 2000]`: serves the replica until Ctrl-C."""

import argparse
import asyncio
from datetime import datetime
from pathlib import Path

from samples.process import say, told_to_end
from samples.replica.posts import SAMPLES, SHANGHAI, read_posts
from samples.replica.server import Server, serve
from samples.replica.world import World
from samples.replica.xinli001 import LAYOUTS


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m samples.replica", description="A replica of the sites. Everything in it is invented."
    )
    add = parser.add_argument
    add("--port", type=int, default=8765, help="port on 127.0.0.1; 0 takes a free one (default: %(default)s)")
    add("--posts", type=int, default=None, help="posts in all: the samples, then invented ones (default: the samples)")
    add("--file", type=Path, default=SAMPLES, help="posts in the form of samples/posts.jsonl")
    add("--now", type=datetime.fromisoformat, default=None, help="the server's time, which then stands still")
    add("--days", type=float, default=14, help="invented posts are spread over so many days (default: %(default)s)")
    add("--seed", type=int, default=0, help="of the invented posts and of the broken pages (default: %(default)s)")
    add("--layout", choices=LAYOUTS, default="2023", help="layout of Xinli001 (default: %(default)s)")
    add("--crawl-delay", type=float, default=1, help="Crawl-delay of robots.txt in seconds, 0: none (default: 1)")
    add("--arrivals", type=float, default=0, help="new posts per minute, each with a late answer to an older one")
    add("--with-parent", action="store_true", help="end when standard input ends")
    return parser.parse_args()


async def _main(options: argparse.Namespace) -> None:
    now = options.now
    if now is not None and now.tzinfo is None:
        now = now.replace(tzinfo=SHANGHAI)
    posts = read_posts(options.file)
    wanted = len(posts) if options.posts is None else options.posts
    world = World(posts[:wanted], now, invented=max(0, wanted - len(posts)), days=options.days, seed=options.seed)
    server = Server(world, layout=options.layout, crawl_delay=options.crawl_delay, seed=options.seed)
    await serve(server, options.port, arrivals=options.arrivals, started=say, until=told_to_end(options.with_parent))


if __name__ == "__main__":
    asyncio.run(_main(_arguments()))
