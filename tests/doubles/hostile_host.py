"""A host of models that means no good, in threads of the test's own process: one kind of answer, whatever is asked."""

import json
import threading
import time
import zlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

GOOD = '{"emotion":"焦虑","intensity":3,"why":"编造的"}'
DRIP = 0.05  # seconds
BOMB = 1_200_000_000  # bytes, once unpacked


def bomb() -> bytes:
    """1.2 GB of zeros, in 1.2 MB."""
    packer, zeros = zlib.compressobj(wbits=31), bytes(1 << 20)  # gzip's
    return b"".join(packer.compress(zeros) for _ in range(BOMB >> 20)) + packer.flush()


def completion(text: str, asked: dict[str, Any], **more: Any) -> bytes:
    """A completion, with a usage as hosts tell it unless `more` says another."""
    usage = {"prompt_tokens": sum(len(one["content"]) for one in asked["messages"]), "completion_tokens": len(text)}
    message = {"role": "assistant", "content": text}
    told = {"model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": message}], "usage": usage}
    return json.dumps(told | more).encode()


class HostileHost:
    """Serves on 127.0.0.1, on a free port, within the block. `answer` is given the handler and the payload, or is the
    text of every completion. `requests` counts, and `received` is all bytes that came.
    """

    def __init__(self, answer: "str | Callable[[Any, dict[str, Any]], None]") -> None:
        self.requests = 0
        self.received = b""
        self.alive = True
        lock, outer = threading.Lock(), self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def give(self, body: bytes, status: int = 200, **headers: str) -> None:
                self.send_response(status)
                for name, value in {"Content_Type": "application/json", **headers}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self) -> None:
                if not outer.alive:  # a connection that was kept
                    self.close_connection = True
                    return
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                with lock:
                    outer.requests += 1
                    outer.received += str(self.headers).encode() + body
                try:
                    asked = json.loads(body) if body.startswith(b"{") else {}
                    if isinstance(answer, str):
                        self.give(completion(answer, asked))
                    else:
                        answer(self, asked)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            do_GET = do_DELETE = do_POST  # noqa: N815 - as http.server names them

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_: object) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.base_url = f"{self.url}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.die()

    def die(self) -> None:
        """From here on nobody listens."""
        if self.alive:
            self.alive = False
            self._server.shutdown()
            self._server.server_close()


def drip(handler: Any, asked: dict[str, Any]) -> None:
    """White space, for ever."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.end_headers()
    for _ in range(int(60 / DRIP)):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(DRIP)
    handler.close_connection = True
