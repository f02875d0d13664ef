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
_FILES_AT_ONCE = 3  # in a list
_REFUSALS = {"filtered": "content_filter", "wrong": "invalid_request"}
_TROUBLES = {"sick": (503, "server_error"), "busy": (429, "rate_limit_exceeded"), "refused": (400, "billing")}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class BatchScript:
    """How batches go. What becomes of the next batches and files: `unheard` (made, and the connection breaks), `sick`
    (503), `busy` (429), `refused` (400).
    """

    held: bool = False  # batches wait until it is off
    answered: float = 1.0  # the share of a batch's lines that are answered
    ends: str = "expired"  # how it ends where that is not all
    flooded: float = 0.0  # the share of lines that get a 429
    creates: list[str] = field(default_factory=list)
    uploads: list[str] = field(default_factory=list)
    hidden: float = 0.0  # seconds for which a batch is not in the list
    sick: int = 0  # how many requests get a 503
    busy: int = 0  # and then how many a 429
    retry_after: float = 0.0  # seconds that a 429 asks to wait
    keeping: int = 0  # how many requests to delete a file get a 503
    unlisted: int = 0  # how many requests for the list of files get a 503
    forgetful: bool = False  # nothing is known any more
    # By custom_id, what becomes of a line: `filtered`, `wrong`, `unreadable`, `silent` about its tokens, `missing` from
    # the results, or with an `unread` line in its place.
    odd: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Batch:
    told: dict[str, Any]
    listed_from: float
    lines: list[dict[str, Any]] = field(default_factory=list)


class Batches:
    """Files and batches of a server."""

    def __init__(self, server: "Server") -> None:
        self.server = server
        self.script = BatchScript()
        self.files: dict[str, bytes] = {}
        self.names: dict[str, str] = {}  # under which files were uploaded, by id
        self.uploads = 0
        self.batches: dict[str, _Batch] = {}
        self.running: set[asyncio.Task[None]] = set()

    def forget(self) -> None:
        """Nothing was ever uploaded or made, and all goes well again."""
        for task in self.running:
            task.cancel()
        self.script = BatchScript()
        self.files.clear()
        self.names.clear()
        self.batches.clear()

    def add_to(self, app: web.Application) -> None:
        """Serves them beside the rest."""
        for method, path, handler in (
            ("POST", "/v1/files", self._upload),
            ("GET", "/v1/files", self._list_files),
            ("GET", "/v1/files/{id}/content", self._content),
            ("DELETE", "/v1/files/{id}", self._delete),
            ("POST", "/v1/batches", self._create),
            ("GET", "/v1/batches", self._list),
            ("GET", "/v1/batches/{id}", self._retrieve),
        ):
            app.router.add_route(method, path, self._behaving(handler))
        app.router.add_post("/_vendor/batches", self._switch)

    def _behaving(self, handler: Handler) -> Handler:
        """As the script has it: sick, busy, forgetful."""

        async def behave(request: web.Request) -> web.StreamResponse:
            script = self.script
            if script.sick:
                script.sick -= 1
                return _error(*_TROUBLES["sick"])
            if script.busy:
                script.busy -= 1
                return self._trouble("busy")
            if script.forgetful and "id" in request.match_info:
                return _error(404, "not_found")
            return await handler(request)

        return behave

    def _trouble(self, kind: str) -> web.Response:
        error = _error(*_TROUBLES[kind])
        if kind == "busy" and self.script.retry_after:
            error.headers["Retry-After"] = f"{self.script.retry_after:g}"
        return error

    async def _upload(self, request: web.Request) -> web.Response:
        sent: dict[str, Any] = {}
        name = None
        async for part in await request.multipart():
            assert not isinstance(part, str)
            sent[str(getattr(part, "name", ""))] = bytes(await part.read())  # type: ignore[union-attr]
            name = getattr(part, "filename", None) or name
        how = self.script.uploads.pop(0) if self.script.uploads else ""
        if how in _TROUBLES:
            return self._trouble(how)
        if sent.get("purpose") != b"batch":
            return _error(400, "purpose")
        told = self._file(sent["file"], "batch", name)
        if how == "late":  # somebody on the way gave up
            return _error(408, "timeout")
        if how == "unheard":
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        return web.json_response(told)

    def _file(self, content: bytes, purpose: str, filename: str | None = None) -> dict[str, Any]:
        name = f"file-invented-{self.uploads}"
        self.uploads += 1
        self.files[name] = content
        self.names[name] = filename or f"{name}.jsonl"
        return self._told_of(name, purpose)

    def _told_of(self, name: str, purpose: str) -> dict[str, Any]:
        told = {"id": name, "object": "file", "bytes": len(self.files[name]), "created_at": int(time.time())}
        return told | {"filename": self.names[name], "purpose": purpose, "status": "processed"}

    async def _list_files(self, request: web.Request) -> web.Response:
        """Newest first, a page of a few at a time, whatever is asked for."""
        if self.script.unlisted:
            self.script.unlisted -= 1
            return _error(*_TROUBLES["sick"])
        names = list(reversed(self.files))
        if after := request.query.get("after"):
            names = names[names.index(after) + 1 :]
        page = [self._told_of(name, request.query.get("purpose", "batch")) for name in names[:_FILES_AT_ONCE]]
        return web.json_response({"object": "list", "data": page, "has_more": len(names) > _FILES_AT_ONCE})

    async def _content(self, request: web.Request) -> web.Response:
        if (content := self.files.get(request.match_info["id"])) is None:
            return _error(404, "not_found")
        return web.Response(body=content, content_type="application/octet-stream")

    async def _delete(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        if self.script.keeping:
            self.script.keeping -= 1
            return _error(*_TROUBLES["sick"])
        if self.files.pop(name, None) is None:
            return _error(404, "not_found")
        return web.json_response({"id": name, "object": "file", "deleted": True})

    async def _create(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        how = self.script.creates.pop(0) if self.script.creates else ""
        if how in _TROUBLES:
            return self._trouble(how)
        content = self.files.get(asked["input_file_id"])
        if content is None:
            return _error(404, "not_found")
        name = f"batch-invented-{len(self.batches)}"
        told = {"id": name, "object": "batch", "status": "validating", "created_at": int(time.time())}
        told |= {key: asked.get(key) for key in ("endpoint", "completion_window", "input_file_id", "metadata")}
        batch = _Batch(told, time.monotonic() + self.script.hidden)
        self.batches[name] = batch
        task = asyncio.create_task(self._run(batch, content))
        self.running.add(task)
        task.add_done_callback(self.running.discard)
        if how == "unheard":
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        return web.json_response(told)

    async def _run(self, batch: _Batch, content: bytes) -> None:
        lines = [json.loads(line) for line in content.split(b"\n") if line]
        if wrong := _wrong(lines):
            batch.told |= {"status": "failed", "errors": {"object": "list", "data": [wrong]}}
            return
        batch.told["status"] = "in_progress"
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
            elif (code := self.server.unwanted(line["body"])) is not None:
                errors.append(_result(line, 400, {"error": {"code": code, "message": "invented"}}))
            elif odd in _REFUSALS:
                errors.append(_result(line, 400, {"error": {"code": _REFUSALS[odd], "message": "invented"}}))
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
                lines_ = (one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in results)
                written = "".join(f"{one}\n" for one in lines_)
                batch.told[name] = self._file(written.encode(), "batch_output")["id"]
        batch.told["status"] = "completed" if len(reached) == len(lines) else self.script.ends

    async def _list(self, request: web.Request) -> web.Response:
        now = time.monotonic()
        names = [name for name, batch in reversed(self.batches.items()) if batch.listed_from <= now]
        if after := request.query.get("after"):
            names = names[names.index(after) + 1 :]
        most = int(request.query.get("limit", "20"))
        page = [self.batches[name].told for name in names[:most]]
        return web.json_response({"object": "list", "data": page, "has_more": len(names) > most})

    async def _retrieve(self, request: web.Request) -> web.Response:
        batch = self.batches.get(request.match_info["id"])
        return _error(404, "not_found") if batch is None else web.json_response(batch.told)

    async def _switch(self, request: web.Request) -> web.Response:
        for name, value in (await request.json()).items():
            setattr(self.script, name, value)
        told = {"files": list(self.files), "batches": [batch.told for batch in self.batches.values()]}
        return web.json_response(told)


def _wrong(lines: list[dict[str, Any]]) -> dict[str, Any] | None:
    """What makes a vendor refuse a whole file."""
    seen = set()
    for number, line in enumerate(lines, 1):
        if line["custom_id"] in seen:
            return {"code": "duplicate_custom_id", "line": number, "message": "invented"}
        if line["body"]["model"] != lines[0]["body"]["model"]:
            return {"code": "mismatched_model", "line": number, "message": "invented"}
        seen.add(line["custom_id"])
    return None


def _result(line: dict[str, Any], status: int, body: dict[str, Any]) -> dict[str, Any]:
    response = {"status_code": status, "request_id": "invented", "body": body}
    return {"id": "invented", "custom_id": line["custom_id"], "response": response, "error": None}


def _error(status: int, code: str) -> web.Response:
    return web.json_response({"error": {"message": "invented", "code": code, "type": code}}, status=status)
