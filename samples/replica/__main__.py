"""`python -m samples.replica --port 8765 [--now 2025-05-20T12:00+08:00]`: serves the replica until Ctrl-C."""

import argparse
from datetime import datetime
from pathlib import Path

from aiohttp import web

from samples.replica import Server
from samples.replica.world import SAMPLES, SHANGHAI, World, read_posts
from samples.replica.xinli001 import LAYOUTS


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m samples.replica", description="A replica of Xinli001. Everything in it is invented."
    )
    add = parser.add_argument
    add("--port", type=int, default=8765, help="port on 127.0.0.1 (default: %(default)s)")
    add("--file", type=Path, default=SAMPLES, help="posts in the form of samples/posts.jsonl")
    add("--now", type=datetime.fromisoformat, help="the server's time (naive: Shanghai), which then stands still")
    add("--layout", choices=LAYOUTS, default="2023", help="layout of Xinli001 (default: %(default)s)")
    add("--crawl-delay", type=float, default=1, help="Crawl-delay of robots.txt in seconds, 0: none (default: 1)")
    options = parser.parse_args()
    if options.now and options.now.tzinfo is None:
        options.now = options.now.replace(tzinfo=SHANGHAI)
    return options


if __name__ == "__main__":
    args = _arguments()
    server = Server(World(read_posts(args.file), args.now), layout=args.layout, crawl_delay=args.crawl_delay)
    web.run_app(server.app(), host="127.0.0.1", port=args.port, access_log=None)
