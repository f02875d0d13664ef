"""`python -m tests.doubles.vendor --port 8766`: serves the stub until Ctrl-C."""

import argparse
import asyncio
import json
from dataclasses import fields

from tests.doubles.process import say, told_to_end
from tests.doubles.vendor.server import FAULTS, Script, Server, serve


def _arguments() -> argparse.Namespace:
    known = ", ".join(field.name for field in fields(Script))
    parser = argparse.ArgumentParser(
        prog="python -m tests.doubles.vendor",
        description="A vendor of models on loopback: $2.5 a million tokens in, $10 out. All that it says is invented.",
        epilog=f"faults are shares by kind, of {', '.join(FAULTS)}",
    )
    parser.add_argument("--port", type=int, default=8766, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--script", type=json.loads, default={}, help=f"how it behaves, a JSON object of {known}")
    parser.add_argument("--with-parent", action="store_true", help="end when standard input ends")
    return parser.parse_args()


async def _main(options: argparse.Namespace) -> None:
    server = Server(Script(**options.script))
    await serve(server, options.port, started=say, until=told_to_end(options.with_parent))


if __name__ == "__main__":
    asyncio.run(_main(_arguments()))
