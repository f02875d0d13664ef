"""When a service that was started beside something ends: with the process that started it, at a message, or by it.

The starter holds the other end of its standard input, which closes however the starter dies.
"""

import asyncio
import os
import signal
import subprocess
import threading

END = b"end"  # on standard input: the work is done


def over() -> "asyncio.Future[bool]":
    """Done when the service of this event loop is to end: whether the message `END` came before its
    standard input closed. A signal, SIGINT or SIGTERM, ends it as well, and says nothing of the work.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[bool] = loop.create_future()

    def end(in_order: bool) -> None:
        if not ended.done():
            ended.set_result(in_order)

    def listen() -> None:
        received = b""
        while some := os.read(0, 1024):  # not sys.stdin: a thread that waits in it cannot be left behind
            received += some
        loop.call_soon_threadsafe(end, received.strip().endswith(END))

    threading.Thread(target=listen, name="stdin", daemon=True).start()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end, False)
    return ended


def end_session(process: "subprocess.Popen[bytes]", patience: float) -> None:
    """Ends a process and its session, by force where it does not end in `patience` seconds."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
