"""Repositories: commits, refs and tags in memory; content in a folder, by its SHA-256."""

import base64
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

LFS_SUFFIXES = (".parquet", ".png")


class Refused(Exception):
    """A request that the Hub would answer with `status`, and `code` in X-Error-Code."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


@dataclass(frozen=True, slots=True)
class File:
    """A file of a tree. `oid` is git's name of it, `blob` the SHA-256 of its content."""

    oid: str
    blob: str
    size: int
    lfs: bool

    @property
    def etag(self) -> str:
        """What a client takes for its content's name: an LFS file's SHA-256, git's name of any other."""
        return self.blob if self.lfs else self.oid


Tree = dict[str, File]


@dataclass(slots=True)
class Repository:
    private: bool
    gated: str | bool = False
    commits: dict[str, Tree] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    def commit(self, revision: str) -> str:
        """The commit that a branch, tag or commit name stands for. Refuses any other."""
        revision = unquote(revision)
        found = self.refs.get(revision) or self.tags.get(revision) or (revision if revision in self.commits else None)
        if found is None:
            raise Refused(404, "RevisionNotFound", f"there is no revision {revision}")
        return found

    def tree(self, revision: str) -> Tree:
        """The files of a revision."""
        return self.commits[self.commit(revision)]

    def add(self, parent: str, title: str, tree: Tree) -> str:
        """A commit on main; its name."""
        said = json.dumps([parent, title, sorted((path, file.oid) for path, file in tree.items())])
        oid = hashlib.sha1(said.encode(), usedforsecurity=False).hexdigest()
        self.commits[oid] = tree
        self.refs["main"] = oid
        return oid


class Repositories:
    """All of them, by name."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.by_name = folder, dict[str, Repository]()

    def get(self, name: str) -> Repository:
        """A repository. Refuses one that is not there."""
        if name not in self.by_name:
            raise Refused(404, "RepoNotFound", "Repository not found")
        return self.by_name[name]

    def create(self, name: str, *, private: bool) -> None:
        """A repository with a first commit, as the Hub makes it."""
        attributes = "".join(f"*{suffix} filter=lfs diff=lfs merge=lfs -text\n" for suffix in LFS_SUFFIXES)
        self.by_name[name] = Repository(private)
        self.by_name[name].add("", "initial commit", {".gitattributes": self.stored(attributes.encode())})

    def forget(self) -> None:
        """Takes everything away."""
        self.by_name.clear()
        for path in self.folder.iterdir():
            path.unlink()

    def stored(self, content: bytes) -> File:
        """An ordinary file with this content."""
        sha256 = hashlib.sha256(content).hexdigest()
        (self.folder / sha256).write_bytes(content)
        return File(_git_name(content), sha256, len(content), lfs=False)

    def commit(self, name: str, lines: Iterable[str]) -> str:
        """Carries out a commit in NDJSON and gives its name. Refuses one whose parent is not the branch's head, and
        one with a file that was never uploaded: then nothing has happened.
        """
        repository = self.get(name)
        head = repository.refs["main"]
        tree, header = dict(repository.commits[head]), dict[str, Any]()
        for line in lines:
            operation = json.loads(line)
            kind, value = operation["key"], operation["value"]
            if kind == "header":
                header = value
            elif kind == "file":
                tree[value["path"]] = self.stored(base64.b64decode(value["content"]))
            elif kind == "lfsFile":
                tree[value["path"]] = self._uploaded(value["oid"])
            else:
                assert kind == "deletedFile"
                del tree[value["path"]]
        if header.get("parentCommit") not in (None, head):
            raise Refused(412, "PreconditionFailed", "A commit has happened since. Please refresh and try again.")
        return repository.add(head, header["summary"], tree)

    def overtake(self, name: str) -> None:
        """Somebody else's commit on main."""
        repository = self.get(name)
        head = repository.refs["main"]
        tree = {**repository.commits[head], "NOTES.md": self.stored(f"after {head}\n".encode())}
        repository.add(head, "somebody else's commit", tree)

    def _uploaded(self, sha256: str) -> File:
        path = self.folder / sha256
        if not path.exists():
            raise Refused(400, "BadRequest", f"the LFS file {sha256} was never uploaded")
        size = path.stat().st_size
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n"
        return File(_git_name(pointer.encode()), sha256, size, lfs=True)


def _git_name(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
