"""The Batch API of the stub: `/v1/files`, `/v1/batches`, and a switch `/_vendor/batches`. Everything is invented."""

import asyncio
import json
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from aiohttp import web

from schemas.ids import unit_interval

if TYPE_CHECKING:
    from tests.doubles.vendor.server import Server

_SHARE = Fraction(1, 2)
_LOOKS = 0.01  # seconds
_FILES_AT_ONCE = 2  # in a list
_REFUSALS = {"filtered": "content_filter", "wrong": "invalid_request"}
_TROUBLES = {"sick": (503, "server_error"), "busy": (429, "rate_limit_exceeded"), "refused": (400, "billing")}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class BatchScript:
    """How batches go."""

    held: bool = False  # batches wait until it is off
    answered: float = 1.0  # the share of a batch's lines that are answered
    ends: str = "expired"  # how it ends where that is not all
    flooded: float = 0.0  # the share of lines that get a 429
    hidden: float = 0.0  # seconds for which a batch is not in the list
    retry_after: float = 0.0  # seconds that a 429 asks to wait
    forgetful: bool = False  # nothing is known any more
    # What becomes of the next requests to `upload`, `files` (their list), `delete`, `create`, or of `any` kind: `sick`
    # (503), `busy` (429), `refused` (400), or done, but `unheard` (the connection breaks), or `late` (408).
    next: dict[str, list[str]] = field(default_factory=dict)
    # By custom_id, what becomes of a line: `filtered`, `wrong`, `unreadable`, `silent` about its tokens, `missing` from
    # the results, or with an `unread` line in its place.
    odd: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Batch:
    told: dict[str, Any]
    listed_from: float


class Batches:
    """Files and batches of a server."""

    def __init__(self, server: "Server") -> None:
        self.server = server
        self.script = BatchScript()
        self.files: dict[str, dict[str, Any]] = {}  # what is told of them, by id
        self.contents: dict[str, bytes] = {}
        self.uploads = 0
        self.batches: dict[str, _Batch] = {}
        self.running: set[asyncio.Task[None]] = set()

    def forget(self) -> None:
        """Nothing was ever uploaded or made, and all goes well again."""
        for task in self.running:
            task.cancel()
        self.script = BatchScript()
        self.files.clear()
        self.batches.clear()

    def add_to(self, app: web.Application) -> None:
        """Serves them beside the rest."""
        for method, path, kind, handler in (
            ("POST", "/v1/files", "upload", self._upload),
            ("GET", "/v1/files", "files", self._list_files),
            ("GET", "/v1/files/{id}/content", "", self._content),
            ("DELETE", "/v1/files/{id}", "delete", self._delete),
            ("POST", "/v1/batches", "create", self._create),
            ("GET", "/v1/batches", "", self._list),
            ("GET", "/v1/batches/{id}", "", self._retrieve),
        ):
            app.router.add_route(method, path, self._behaving(kind, handler))
        app.router.add_post("/_vendor/batches", self._switch)

    def _behaving(self, kind: str, handler: Handler) -> Handler:
        """As the script has it."""

        async def behave(request: web.Request) -> web.StreamResponse:
            script = self.script
            how = next((waiting.pop(0) for name in ("any", kind) if (waiting := script.next.get(name))), "")
            if how in _TROUBLES:
                return error(*_TROUBLES[how], retry_after=script.retry_after if how == "busy" else 0)
            known = request.match_info.get("id")
            if known is not None and (script.forgetful or known not in {*self.files, *self.batches}):
                return error(404, "not_found")
            response = await handler(request)
            if how == "late":  # somebody on the way gave up
                return error(408, "timeout")
            return dropped(request) if how == "unheard" else response

        return behave

    async def _upload(self, request: web.Request) -> web.Response:
        sent = await request.post()
        assert sent["purpose"] == "batch"
        file = sent["file"]
        assert isinstance(file, web.FileField)
        return web.json_response(self._add_file(file.file.read(), "batch", file.filename))

    def _add_file(self, content: bytes, purpose: str, filename: str) -> dict[str, Any]:
        name = f"file-invented-{self.uploads}"
        self.uploads += 1
        self.contents[name] = content
        told = {"id": name, "object": "file", "bytes": len(content), "created_at": int(time.time())}
        self.files[name] = told | {"filename": filename, "purpose": purpose, "status": "processed"}
        return self.files[name]

    async def _list_files(self, request: web.Request) -> web.Response:
        """A page of a few at a time, whatever is asked for."""
        return _page(request, self.files, _FILES_AT_ONCE)

    async def _content(self, request: web.Request) -> web.Response:
        return web.Response(body=self.contents[request.match_info["id"]], content_type="application/octet-stream")

    async def _delete(self, request: web.Request) -> web.Response:
        del self.files[request.match_info["id"]]
        return web.json_response({"id": request.match_info["id"], "object": "file", "deleted": True})

    async def _create(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        if asked["input_file_id"] not in self.files:
            return error(404, "not_found")
        name = f"batch-invented-{len(self.batches)}"
        told = {"id": name, "object": "batch", "status": "validating", "created_at": int(time.time())}
        told |= {key: asked.get(key) for key in ("endpoint", "completion_window", "input_file_id", "metadata")}
        self.batches[name] = _Batch(told, time.monotonic() + self.script.hidden)
        task = asyncio.create_task(self._run(told, self.contents[asked["input_file_id"]]))
        self.running.add(task)
        task.add_done_callback(self.running.discard)
        return web.json_response(told)

    async def _run(self, told: dict[str, Any], content: bytes) -> None:
        lines = [json.loads(line) for line in content.split(b"\n") if line]
        models = [line["body"]["model"] for line in lines]
        if other := next((n for n, model in enumerate(models, 1) if model != models[0]), None):
            wrong = {"code": "mismatched_model", "line": other, "message": "invented"}
            told |= {"status": "failed", "errors": {"object": "list", "data": [wrong]}}
            return
        told["status"] = "in_progress"
        while self.script.held:
            await asyncio.sleep(_LOOKS)
        await asyncio.sleep(self.server.script.latency)
        reached = lines[: math.ceil(self.script.answered * len(lines))]
        output: list[dict[str, Any] | str] = []
        errors: list[dict[str, Any] | str] = []
        for line in reversed(reached):  # the order of results is nobody's promise
            digest, entry = self.server.entry(line["body"])
            odd = self.script.odd.get(line["custom_id"])
            if unit_interval(digest, entry.asked) < self.script.flooded:
                errors.append(_result(line, 429, {"error": {"code": "rate_limit_exceeded", "message": "invented"}}))
            elif code := self.server.unwanted(line["body"]) or _REFUSALS.get(odd or ""):
                errors.append(_result(line, 400, {"error": {"code": code, "message": "invented"}}))
            else:
                body = self.server.completion(line["body"], entry, share=_SHARE)
                if odd == "silent":
                    del body["usage"]
                if odd != "missing":
                    body = {"id": "invented"} if odd == "unreadable" else body
                    output.append("{not json" if odd == "unread" else _result(line, 200, body))
        for line in lines[len(reached) :]:
            expired = {"code": f"batch_{self.script.ends}", "message": "invented: too late"}
            errors.append({"id": "invented", "custom_id": line["custom_id"], "response": None, "error": expired})
        for name, results in (("output_file_id", output), ("error_file_id", errors)):
            if results:
                written = [one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in results]
                content = "".join(f"{one}\n" for one in written).encode()
                told[name] = self._add_file(content, "batch_output", f"{name}.jsonl")["id"]
        told["status"] = "completed" if len(reached) == len(lines) else self.script.ends

    async def _list(self, request: web.Request) -> web.Response:
        now = time.monotonic()
        listed = {name: batch.told for name, batch in self.batches.items() if batch.listed_from <= now}
        return _page(request, listed, int(request.query.get("limit", "20")))

    async def _retrieve(self, request: web.Request) -> web.Response:
        return web.json_response(self.batches[request.match_info["id"]].told)

    async def _switch(self, request: web.Request) -> web.Response:
        for name, value in (await request.json()).items():
            setattr(self.script, name, value)
        told = {"files": list(self.files), "batches": [batch.told for batch in self.batches.values()]}
        return web.json_response(told)


def _page(request: web.Request, things: dict[str, dict[str, Any]], most: int) -> web.Response:
    """Newest first."""
    names = list(reversed(things))
    if after := request.query.get("after"):
        names = names[names.index(after) + 1 :]
    page = [things[name] for name in names[:most]]
    return web.json_response({"object": "list", "data": page, "has_more": len(names) > most})


def _result(line: dict[str, Any], status: int, body: dict[str, Any]) -> dict[str, Any]:
    response = {"status_code": status, "request_id": "invented", "body": body}
    return {"id": "invented", "custom_id": line["custom_id"], "response": response, "error": None}


def error(status: int, code: str, *, retry_after: float = 0) -> web.Response:
    """An error as vendors of this kind say it; with a header where it says when to come back."""
    headers = {"Retry-After": f"{retry_after:g}"} if retry_after else {}
    told = {"error": {"message": "invented", "code": code, "type": code}}
    return web.json_response(told, status=status, headers=headers)


def dropped(request: web.Request) -> web.StreamResponse:
    """No answer at all: the connection is gone."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
