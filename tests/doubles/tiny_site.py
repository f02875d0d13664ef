"""A site of a few fixed pages on this machine, for what the replica does not do."""

import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

Page = tuple[int, Mapping[str, str], bytes]
HTML = {"Content-Type": "text/html; charset=utf-8"}


class TinySite:
    """Serves `pages` by their address, or by its path alone; 404 for all others. `requested` is in order.

    Of a list of pages each is served once, and the last ever after.
    """

    def __init__(self, pages: Mapping[str, Page | list[Page]]) -> None:
        self.requested: list[str] = []
        requested = self.requested

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one piece: in two, the second waits for word of the first

            def do_GET(self) -> None:
                requested.append(self.path)
                nothing: Page = (404, HTML, b"nothing here")
                page = pages.get(self.path) or pages.get(self.path.split("?")[0], nothing)
                status, headers, body = page if isinstance(page, tuple) else page.pop(0) if page[1:] else page[0]
                self.send_response(status)
                length = {} if "Transfer-Encoding" in headers else {"Content-Length": str(len(body))}
                for name, value in {**length, **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
