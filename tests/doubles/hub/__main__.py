"""`python -m tests.doubles.hub --port 8767 --folder DIR`: serves the stub until Ctrl-C."""

import argparse
import asyncio
from pathlib import Path

from tests.doubles.hub import Hub
from tests.doubles.hub.repositories import Repositories
from tests.doubles.hub.server import Server, serve
from tests.doubles.process import say, told_to_end


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.doubles.hub", description="A data-set hub on loopback. What is on it is on it alone."
    )
    add = parser.add_argument
    add("--port", type=int, default=8767, help="port on 127.0.0.1; 0 takes a free one (default: %(default)s)")
    add("--folder", type=Path, required=True, help="where repositories and files are kept")
    add("--token", default=Hub.token, help="the only token that is let in (default: %(default)s)")
    add("--with-parent", action="store_true", help="end when standard input ends")
    return parser.parse_args()


async def _main(options: argparse.Namespace) -> None:
    await serve(
        Server(Repositories(options.folder), options.token),
        options.port,
        started=say,
        until=told_to_end(options.with_parent),
    )


if __name__ == "__main__":
    asyncio.run(_main(_arguments()))
