"""Repositories on disk: content by its SHA-256, and of each repository one JSON file with commits, refs and tags."""

import base64
import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

_LFS_SUFFIXES = (".parquet", ".png", ".arrow", ".gz", ".zst")
_LFS_BYTES = 10 * 2**20
_ATTRIBUTES = "".join(f"*{suffix} filter=lfs diff=lfs merge=lfs -text\n" for suffix in _LFS_SUFFIXES).encode()


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
class Commit:
    """One commit. `parent` is empty for the first."""

    parent: str
    title: str
    tree: Tree


@dataclass(slots=True)
class Repository:
    """A data-set repository as it lies on disk."""

    private: bool
    gated: str | bool = False
    commits: dict[str, Commit] = field(default_factory=dict)
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
        return self.commits[self.commit(revision)].tree

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> "Repository":
        """The inverse of `asdict`."""
        commits = {
            oid: Commit(one["parent"], one["title"], {path: File(**file) for path, file in one["tree"].items()})
            for oid, one in told.pop("commits").items()
        }
        return cls(**told, commits=commits)


class Repositories:
    """All of them, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("blobs", "repositories"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    def _file(self, name: str) -> Path:
        return self.folder / "repositories" / f"{name.replace('/', '@')}.json"

    def get(self, name: str) -> Repository:
        """A repository. Refuses one that is not there."""
        path = self._file(name)
        if not path.exists():
            raise Refused(404, "RepoNotFound", "Repository not found")
        return Repository.from_dict(json.loads(path.read_text(encoding="utf-8")))

    def save(self, name: str, repository: Repository) -> None:
        """Puts it on disk, whole or not at all."""
        path = self._file(name)
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(repository), indent=1), encoding="utf-8")
        fresh.replace(path)

    def create(self, name: str, *, private: bool) -> None:
        """A repository with a first commit, as the Hub makes it. Refuses one that is there."""
        if self._file(name).exists():
            raise Refused(409, "RepoExists", "You already created this dataset repo")
        repository = Repository(private)
        self._add(repository, "", "initial commit", {".gitattributes": self.stored(_ATTRIBUTES)})
        self.save(name, repository)

    def forget(self) -> None:
        """Takes everything away."""
        for path in self.folder.glob("*/*"):
            path.unlink()

    def blob(self, sha256: str) -> Path:
        """Where content lies, or would."""
        return self.folder / "blobs" / sha256

    def stored(self, content: bytes) -> File:
        """An ordinary file with this content."""
        sha256 = hashlib.sha256(content).hexdigest()
        self.blob(sha256).write_bytes(content)
        return File(_git_name(content), sha256, len(content), lfs=False)

    def upload_mode(self, path: str, size: int) -> str:
        """What .gitattributes and the size say: lfs or regular."""
        return "lfs" if path.endswith(_LFS_SUFFIXES) or size > _LFS_BYTES else "regular"

    def commit(self, name: str, branch: str, lines: Iterable[str]) -> str:
        """Carries out a commit in NDJSON and gives its name. Refuses one whose parent is not the branch's head, and
        one with a file that was never uploaded: then nothing has happened.
        """
        repository = self.get(name)
        head = repository.commit(branch)
        tree, header = dict(repository.commits[head].tree), {}
        for line in lines:
            operation = json.loads(line)
            kind, value = operation["key"], operation["value"]
            if kind == "header":
                header = value
            elif kind == "file":
                tree[value["path"]] = self.stored(base64.b64decode(value["content"]))
            elif kind == "lfsFile":
                tree[value["path"]] = self._uploaded(value["oid"])
            elif kind == "deletedFile":
                if tree.pop(value["path"], None) is None:
                    raise Refused(404, "EntryNotFound", "A file with this name doesn't exist")
            else:
                raise Refused(400, "BadRequest", f"no operation {kind}")
        if header.get("parentCommit") not in (None, head):
            raise Refused(412, "PreconditionFailed", "A commit has happened since. Please refresh and try again.")
        made = self._add(repository, head, header["summary"], tree)
        repository.refs[unquote(branch)] = made
        self.save(name, repository)
        return made

    def overtake(self, name: str) -> None:
        """Somebody else's commit on main."""
        repository = self.get(name)
        head = repository.refs["main"]
        tree = {**repository.commits[head].tree, "NOTES.md": self.stored(f"after {head}\n".encode())}
        self._add(repository, head, "somebody else's commit", tree)
        self.save(name, repository)

    def _uploaded(self, sha256: str) -> File:
        path = self.blob(sha256)
        if not path.exists():
            raise Refused(400, "BadRequest", f"the LFS file {sha256} was never uploaded")
        size = path.stat().st_size
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n"
        return File(_git_name(pointer.encode()), sha256, size, lfs=True)

    @staticmethod
    def _add(repository: Repository, parent: str, title: str, tree: Tree) -> str:
        told = json.dumps([parent, title, sorted((path, file.oid) for path, file in tree.items())])
        oid = hashlib.sha1(told.encode(), usedforsecurity=False).hexdigest()
        repository.commits[oid] = Commit(parent, title, tree)
        repository.refs["main"] = oid
        return oid


def _git_name(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
