"""The server: what huggingface_hub and datasets ask for, with LFS and without xet, and switches under `/_hub/`.

A signed address of an upload holds a secret, as the Hub's do: it must stand in no log.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any

from aiohttp import web

from tests.doubles.hub import Hub
from tests.doubles.hub.repositories import LFS_SUFFIXES, File, Refused, Repositories, Repository

_API = "/api/datasets/{owner}/{name}"
_SIGNATURE = "invented-signature"
_CHUNK = 1 << 14
_WHEN = "2026-01-01T00:00:00.000Z"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class Trouble:
    """What goes wrong next."""

    spared: int = 0  # uploads that go well before `cut` begins
    cut: int = 0  # uploads whose connection breaks in the middle
    slow: float = 0.0  # seconds that every upload takes longer
    overtaken: int = 0  # commits before which somebody else's lands
    unheard: int = 0  # commits that are made, and the connection breaks before the answer
    tagless: int = 0  # requests for a tag whose connection breaks, and there is no tag


class Server:
    """Answers requests and remembers them."""

    def __init__(self, repositories: Repositories) -> None:
        self.repositories = repositories
        self.trouble = Trouble()
        self.requests: list[dict[str, Any]] = []

    def app(self) -> web.Application:
        """The aiohttp application."""
        app = web.Application(middlewares=[self._remembering], client_max_size=1 << 30)
        for method, path, handler in (
            ("POST", "/api/repos/create", self._create),
            ("POST", "/api/validate-yaml", self._validate),
            ("GET", _API, self._info),
            ("GET", _API + "/revision/{revision}", self._info),
            ("GET", _API + "/refs", self._refs),
            ("GET", _API + "/tree/{revision}", self._tree),
            ("GET", _API + "/tree/{revision}/{path:.*}", self._tree),
            ("POST", _API + "/paths-info/{revision}", self._paths),
            ("PUT", _API + "/settings", self._settings),
            ("POST", _API + "/preupload/{revision}", self._preupload),
            ("POST", _API + "/commit/{revision}", self._commit),
            ("POST", _API + "/tag/{revision}", self._tag),
            ("POST", "/datasets/{owner}/{name}.git/info/lfs/objects/batch", self._batch),
            ("PUT", "/_lfs/{sha256}", self._upload),
            ("GET", "/datasets/{owner}/{name}/resolve/{revision}/{path:.*}", self._resolve),
            ("GET", "/_hub/requests", self._told),
            ("GET", "/_hub/state/{owner}/{name}", self._state),
            ("POST", "/_hub/trouble", self._switch),
            ("POST", "/_hub/anew", self._anew),
        ):
            app.router.add_route(method, path, handler)
            if handler == self._resolve:
                app.router.add_route("HEAD", path, handler)
        return app

    @web.middleware
    async def _remembering(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Every request of a client is remembered, and let in with the token or a signed address alone."""
        if request.path.startswith("/_hub/"):
            return await handler(request)
        known = request.headers.get("Authorization") == f"Bearer {Hub.token}"
        signed = request.query.get("signature") == _SIGNATURE
        told = {"method": request.method, "path": request.path, "token": known, "status": 0}
        self.requests.append(told)
        try:
            if not (known or signed):
                raise Refused(401, "Unauthorized", "Invalid credentials")
            response = await handler(request)
        except Refused as refused:
            headers = {"X-Error-Code": refused.code, "X-Error-Message": refused.message}
            response = web.json_response({"error": refused.message}, status=refused.status, headers=headers)
        told["status"] = response.status
        return response

    async def _create(self, request: web.Request) -> web.Response:
        asked = await request.json()
        name, private = f"{asked['organization']}/{asked['name']}", asked.get("visibility") == "private"
        answer = {"url": f"{_origin(request)}/datasets/{name}", "name": name, "id": "invented"}
        if name in self.repositories.by_name:
            return web.json_response({"error": "You already created this dataset repo", **answer}, status=409)
        self.repositories.create(name, private=private or bool(asked.get("private")))
        return web.json_response(answer)

    async def _validate(self, _: web.Request) -> web.Response:
        return web.json_response({"errors": [], "warnings": []})

    async def _info(self, request: web.Request) -> web.Response:
        repository = self._repository(request)
        oid = repository.commit(request.match_info.get("revision", "main"))
        files = [{"rfilename": path} for path in sorted(repository.commits[oid])]
        return web.json_response(
            {
                **{"_id": "1", "id": _name(request), "author": request.match_info["owner"], "sha": oid},
                **{"private": repository.private, "gated": repository.gated, "disabled": False, "siblings": files},
                **{"lastModified": _WHEN, "createdAt": _WHEN, "tags": [], "downloads": 0, "likes": 0},
            }
        )

    async def _refs(self, request: web.Request) -> web.Response:
        repository = self._repository(request)

        def told(names: dict[str, str], kind: str) -> list[dict[str, str]]:
            return [{"name": name, "ref": f"refs/{kind}/{name}", "targetCommit": oid} for name, oid in names.items()]

        return web.json_response(
            {"branches": told(repository.refs, "heads"), "tags": told(repository.tags, "tags"), "converts": []}
        )

    async def _tree(self, request: web.Request) -> web.Response:
        tree = self._repository(request).tree(request.match_info["revision"])
        folder = request.match_info.get("path", "").strip("/")
        deep = request.query.get("recursive", "").lower() in ("true", "1")
        prefix = f"{folder}/" if folder else ""
        below = {path: _entry(path, file) for path, file in tree.items() if path.startswith(prefix)}
        if not below:
            raise Refused(404, "EntryNotFound", f"there is no {folder}")
        folders = {str(parent) for path in below for parent in PurePosixPath(path).parents} - {"."}
        entries = {path: _folder(path) for path in sorted(folders) if len(path) > len(prefix)} | below
        shown = [entry for path, entry in entries.items() if deep or "/" not in path.removeprefix(prefix)]
        return web.json_response(shown)

    async def _paths(self, request: web.Request) -> web.Response:
        tree = self._repository(request).tree(request.match_info["revision"])
        if "json" in request.content_type:
            asked = (await request.json())["paths"]
        else:
            asked = (await request.post()).getall("paths")
        found = []
        for path in asked:
            if path in tree:
                found.append(_entry(path, tree[path]))
            elif any(known.startswith(path.rstrip("/") + "/") for known in tree):
                found.append(_folder(path))
        return web.json_response(found)

    async def _settings(self, request: web.Request) -> web.Response:
        repository, asked = self._repository(request), await request.json()
        repository.gated = asked.get("gated", repository.gated)
        repository.private = asked.get("private", asked.get("visibility", repository.private) in (True, "private"))
        return web.json_response(asked)

    async def _preupload(self, request: web.Request) -> web.Response:
        repository, files = self._repository(request), []
        oid = repository.commit(request.match_info["revision"])
        for path in (asked["path"] for asked in (await request.json())["files"]):
            mode = "lfs" if path.endswith(LFS_SUFFIXES) else "regular"
            known = repository.commits[oid].get(path)
            # The name that the client compares with its own: what is equal is no part of the commit.
            etag = known.etag if known else None
            files.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": etag})
        return web.json_response({"files": files, "commitOid": oid})

    async def _batch(self, request: web.Request) -> web.Response:
        self._repository(request)
        objects = []
        for asked in (await request.json())["objects"]:
            answer: dict[str, Any] = {"oid": asked["oid"], "size": asked["size"], "authenticated": True}
            if not (self.repositories.folder / asked["oid"]).exists():
                href = f"{_origin(request)}/_lfs/{asked['oid']}?signature={_SIGNATURE}"
                answer["actions"] = {"upload": {"href": href}}
            objects.append(answer)
        return web.json_response({"transfer": "basic", "objects": objects}, content_type="application/vnd.git-lfs+json")

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        content, half = bytearray(), (request.content_length or 0) // 2
        cutting = not self.trouble.spared and self.trouble.cut > 0
        self.trouble.spared = max(0, self.trouble.spared - 1)
        await asyncio.sleep(self.trouble.slow)
        async for chunk in request.content.iter_chunked(_CHUNK):
            content += chunk
            if cutting and len(content) >= half:
                self.trouble.cut -= 1
                return _hung_up(request)
        sha256 = request.match_info["sha256"]
        if hashlib.sha256(content).hexdigest() != sha256:
            raise Refused(400, "BadDigest", "the content is not what its name says")
        (self.repositories.folder / sha256).write_bytes(content)
        return web.Response()

    async def _commit(self, request: web.Request) -> web.StreamResponse:
        name = _name(request)
        assert request.match_info["revision"] == "main"
        if self.trouble.overtaken:
            self.trouble.overtaken -= 1
            self.repositories.overtake(name)
        oid = self.repositories.commit(name, (await request.text()).splitlines())
        if self.trouble.unheard:
            self.trouble.unheard -= 1
            return _hung_up(request)
        url = f"{_origin(request)}/datasets/{name}/commit/{oid}"
        return web.json_response({"success": True, "commitOid": oid, "commitUrl": url, "hookOutput": ""})

    async def _tag(self, request: web.Request) -> web.StreamResponse:
        repository, asked = self._repository(request), await request.json()
        if self.trouble.tagless:
            self.trouble.tagless -= 1
            return _hung_up(request)
        if asked["tag"] in repository.tags:
            raise Refused(409, "TagExists", "Tag reference exists already")
        repository.tags[asked["tag"]] = repository.commit(request.match_info["revision"])
        return web.Response(status=201)

    async def _resolve(self, request: web.Request) -> web.StreamResponse:
        repository, path = self._repository(request), request.match_info["path"]
        oid = repository.commit(request.match_info["revision"])
        file = repository.commits[oid].get(path)
        if file is None:
            raise Refused(404, "EntryNotFound", f"there is no {path}")
        etag = f'"{file.etag}"'
        headers = {"X-Repo-Commit": oid, "ETag": etag, "X-Linked-Size": str(file.size), "X-Linked-Etag": etag}
        return web.FileResponse(self.repositories.folder / file.blob, headers=headers)

    async def _told(self, _: web.Request) -> web.Response:
        return web.json_response(self.requests)

    async def _state(self, request: web.Request) -> web.Response:
        return web.json_response(asdict(self._repository(request)))

    async def _switch(self, request: web.Request) -> web.Response:
        for name, value in (await request.json()).items():
            setattr(self.trouble, name, value)
        return web.json_response({})

    async def _anew(self, _: web.Request) -> web.Response:
        self.repositories.forget()
        self.trouble = Trouble()
        self.requests.clear()
        return web.json_response({})

    def _repository(self, request: web.Request) -> Repository:
        return self.repositories.get(_name(request))


def _name(request: web.Request) -> str:
    return f"{request.match_info['owner']}/{request.match_info['name']}"


def _origin(request: web.Request) -> str:
    return str(request.url.origin())


def _entry(path: str, file: File) -> dict[str, Any]:
    told: dict[str, Any] = {"type": "file", "oid": file.oid, "size": file.size, "path": path}
    return told | ({"lfs": {"oid": file.blob, "size": file.size, "pointerSize": 130}} if file.lfs else {})


def _folder(path: str) -> dict[str, Any]:
    return {"type": "directory", "oid": hashlib.sha1(path.encode()).hexdigest(), "size": 0, "path": path}


def _hung_up(request: web.Request) -> web.Response:
    """The connection breaks: no answer will reach the client."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
