"""Asking a replica over HTTP, redirects left as they are."""

import http.client
import json
import urllib.error
import urllib.request
from typing import Any, NamedTuple

from parsel import Selector


class Response(NamedTuple):
    """An answer of the replica."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def page(self) -> Selector:
        """The body as HTML, in the charset of its header."""
        return Selector(self.body.decode(self.headers.get_content_charset() or "utf-8"))

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class _Stay(urllib.request.HTTPRedirectHandler):
    """Leaves redirects to the test."""

    def redirect_request(self, *_: object) -> None:
        return None


_opener = urllib.request.build_opener(_Stay)


def get(url: str) -> Response:
    """The answer to a GET, whatever its status; redirects are not followed."""
    try:
        with _opener.open(url, timeout=30) as answer:
            return Response(answer.status, answer.headers, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return Response(error.code, error.headers, error.read())
