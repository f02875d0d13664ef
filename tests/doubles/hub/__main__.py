"""`python -m tests.doubles.hub --port 8767 --folder DIR`: serves the stub until Ctrl-C."""

import argparse
import asyncio
from pathlib import Path

from tests.doubles.hub.repositories import Repositories
from tests.doubles.hub.server import Server
from tests.doubles.process import say, told_to_end
from tests.doubles.vendor.server import serve


async def _main(options: argparse.Namespace) -> None:
    server = Server(Repositories(options.folder))
    await serve(server, options.port, started=say, until=told_to_end(options.with_parent))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A data-set hub on loopback. What is on it is on it alone.")
    parser.add_argument("--port", type=int, default=8767, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--folder", type=Path, required=True, help="where the content of files is kept")
    parser.add_argument("--with-parent", action="store_true", help="end when standard input ends")
    asyncio.run(_main(parser.parse_args()))
