"""What a host sends, before anything reads it: its size, its key, and where it sends to."""

import asyncio
import gzip

import httpx2
import pytest
from batch_calls import MODEL, PATIENCE
from hostile_host import HostileHost
from openai import AsyncOpenAI

from pipelines.llm.providers import batch
from pipelines.llm.providers.batch import BatchHost
from pipelines.llm.providers.endpoint import Redirected, TooLarge, response_hook

KEY = "sk-secretmarker"


async def fetched(pieces, most=1000, status=200, headers=None, path="/v1/chat/completions"):
    """The body and the headers that a client with our hook makes of what a host sends."""

    async def sent():
        for piece in pieces:
            yield piece

    transport = httpx2.MockTransport(lambda _: httpx2.Response(status, headers=headers or {}, content=sent()))
    async with httpx2.AsyncClient(transport=transport, event_hooks={"response": [response_hook(most, KEY)]}) as client:
        response = await client.get(f"http://host{path}")
        return response.content, response.headers


def body(pieces, **more):
    return asyncio.run(fetched(pieces, **more))[0]


def test_a_key_is_found_wherever_the_pieces_of_a_body_end_and_every_other_byte_comes_through():
    said = f"<{KEY}>".encode()
    assert {body([said[:cut], said[cut:]]) for cut in range(len(said) + 1)} == {b"<[key]>"}
    said = f"{KEY[:-1]} sk- s {KEY[1:]} sk-secretmarke".encode()
    assert body([said[n : n + 1] for n in range(len(said))]) == said
    assert body([gzip.compress(said)], headers={"Content-Encoding": "gzip"}) == said


def test_headers_lose_the_key_and_what_was_true_of_the_transfer_alone():
    sent = {"Content-Encoding": "gzip", "X-Id": KEY, "Retry-After": "3"}
    _, headers = asyncio.run(fetched([gzip.compress(b"x")], headers=sent))
    assert "content-encoding" not in headers
    assert (headers["x-id"], headers["retry-after"]) == ("[key]", "3")


def test_a_body_may_be_so_long_and_no_longer_once_it_is_unpacked():
    assert len(body([b"a" * 1000])) == 1000
    with pytest.raises(TooLarge):
        body([b"a" * 1001])
    packed = gzip.compress(b"a" * 1001)
    assert len(packed) < 100
    with pytest.raises(TooLarge):
        body([packed], headers={"Content-Encoding": "gzip"})
    assert len(body([b"a" * 1001], path="/v1/files/f/content")) == 1001
    with pytest.raises(TooLarge):  # an error, which is read whole
        body([b"a" * 1001], path="/v1/files/f/content", status=400)


def test_a_redirect_names_the_host_alone():
    for location, to in (
        ("https://evil.example:8443/v1?text=x", "evil.example:8443"),
        ("/v2", "another path of its own"),
        ("http://[", "an address that is none"),
    ):
        with pytest.raises(Redirected) as caught:
            body([], status=307, headers={"Location": location})
        assert caught.value.to == to


@pytest.mark.drill("model host")
def test_a_file_of_results_is_read_line_by_line_and_a_line_without_end_fills_no_memory(monkeypatch, caplog):
    monkeypatch.setattr(batch, "reply_bytes", lambda _: 1 << 20)
    taken = []

    async def take(lines):
        taken.extend(lines)

    async def read(base_url):
        async with AsyncOpenAI(base_url=base_url, api_key="invented", max_retries=0) as client:
            await BatchHost(client, MODEL, PATIENCE).read("file-x", take)

    packed = gzip.compress(b'{"a":1}\n' + b" " * (8 << 20) + b'\n{"b":2}')
    with HostileHost(lambda handler, _: handler.give(packed, Content_Encoding="gzip")) as host:
        asyncio.run(read(host.base_url))
    assert taken == [b'{"a":1}', b'{"b":2}']
    assert "1 lines" in caplog.text
