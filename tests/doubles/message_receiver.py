"""Who is told, on loopback: takes messages of apprise's json:// and can refuse them."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Self


class Receiver:
    """A host that keeps what it was sent: title and text each. `status` is what it answers, `location` where it sends
    on.
    """

    def __init__(self) -> None:
        self.messages: list[tuple[str, str]] = []
        self.status, self.location = 200, ""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if outer.status == 200:
                    outer.messages.append((body["title"], body["message"]))
                self.send_response(outer.status)
                if outer.location:
                    self.send_header("Location", outer.location)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        place = f"127.0.0.1:{self._server.server_port}/told"
        self.address, self.url = f"json://{place}", f"http://{place}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
