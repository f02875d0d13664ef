"""`python -m tests.doubles.vendor --port 8766 [--latency 0.05]`: serves the stub until Ctrl-C."""

import argparse
import asyncio
import importlib
import json

from tests.doubles.process import say, told_to_end
from tests.doubles.vendor.replies import Answers
from tests.doubles.vendor.server import FAULTS, Script, Server, serve


def _shares(text: str) -> dict[str, float]:
    shares: dict[str, float] = json.loads(text)
    if unknown := shares.keys() - set(FAULTS):
        raise argparse.ArgumentTypeError(f"no fault {', '.join(sorted(unknown))}: known are {', '.join(FAULTS)}")
    return shares


def _answers(name: str) -> Answers:
    module, _, attribute = name.partition(":")
    answers: Answers = getattr(importlib.import_module(module), attribute)
    return answers


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.doubles.vendor",
        description="A vendor of models on loopback. Everything that it says is invented.",
    )
    add = parser.add_argument
    add("--port", type=int, default=8766, help="port on 127.0.0.1; 0 takes a free one (default: %(default)s)")
    add("--latency", type=float, default=0.0, help="seconds until a reply (default: %(default)s)")
    add("--hang", type=float, default=2.0, help="seconds until a timeout gives up (default: %(default)s)")
    add("--faults", type=_shares, default={}, help=f"JSON of shares by kind, of {', '.join(FAULTS)}")
    add("--retry-after", type=float, default=0.0, help="seconds that a 429 asks to wait (default: %(default)s)")
    add("--seed", type=int, default=0, help="of the faults (default: %(default)s)")
    add("--key", default=None, help="the only key that is let in (default: any)")
    add("--models", nargs="*", default=(), help="the only models there are (default: any)")
    add("--price-input", type=int, default=2_500, help="nano-units a token (default: %(default)s)")
    add("--price-output", type=int, default=10_000, help="nano-units a token (default: %(default)s)")
    add("--greedy", action="store_true", help="bill every call at its worst case")
    add("--answers", type=_answers, default=None, help="module:name of answers by task, instead of the stub's own")
    add("--with-parent", action="store_true", help="end when standard input ends")
    return parser.parse_args()


async def _main(options: argparse.Namespace) -> None:
    script = Script(
        seed=options.seed,
        latency=options.latency,
        hang=options.hang,
        retry_after=options.retry_after,
        key=options.key,
        models=tuple(options.models),
        price_input=options.price_input,
        price_output=options.price_output,
        greedy=options.greedy,
        faults=options.faults,
    )
    await serve(Server(script, options.answers), options.port, started=say, until=told_to_end(options.with_parent))


if __name__ == "__main__":
    asyncio.run(_main(_arguments()))
