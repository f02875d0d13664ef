"""Ctrl-C while answers are under way: they are paid for, so the first one waits for them."""

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


@asynccontextmanager
async def deferred(stop: Callable[[], None]) -> AsyncIterator[None]:
    """Within the block the first SIGINT calls `stop`, and does what it would have done when the block is left; the
    second one does that at once. In the main thread alone: others never see the signal.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
        yield
        return
    loop = asyncio.get_running_loop()
    came = False

    def first() -> None:
        nonlocal came
        came = True
        restore()
        stop()

    def restore() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)

    loop.add_signal_handler(signal.SIGINT, first)
    try:
        yield
    finally:
        restore()
        if came:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(0)  # where the handler cancels this task
