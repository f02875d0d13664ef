"""Pictures that a question shows a model: found by their bytes, and read again when they are sent.

A payload names a picture by its SHA-256; only what leaves for a host holds its bytes. So a key covers them, and neither
the ledger nor a recording holds any.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.errors import UnreadableFile

_SCHEME = "sha256:"
# How the files of each kind begin; WebP has its length between two marks.
_KINDS = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8", "image/webp": b"RIFF"}


@dataclass(frozen=True, slots=True)
class Image:
    """A picture in a file, as it was when it was named."""

    path: Path
    sha256: str
    media_type: str

    @classmethod
    def of(cls, path: Path) -> "Image":
        """The picture in a file. Raises UnreadableFile for what is no PNG, JPEG, GIF or WebP."""
        data = _read(path)
        for media_type, start in _KINDS.items():
            if data.startswith(start) and (media_type != "image/webp" or data[8:12] == b"WEBP"):
                return cls(path, hashlib.sha256(data).hexdigest(), media_type)
        raise UnreadableFile("no picture that models are shown", where=path, hint="name a PNG, JPEG, GIF or WebP")

    @property
    def part(self) -> dict[str, Any]:
        """The part of a message that names it."""
        return {"type": "image_url", "image_url": {"url": f"{_SCHEME}{self.sha256}"}}

    def data_url(self) -> str:
        """Its bytes, as hosts take them. Raises UnreadableFile where the file is no more what it was."""
        data = _read(self.path)
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise UnreadableFile("the picture has changed since it was named", where=self.path, hint="ask again")
        return f"data:{self.media_type};base64,{base64.b64encode(data).decode()}"


def with_bytes(payload: Mapping[str, Any], images: Iterable[Image]) -> dict[str, Any]:
    """The payload as it is sent: each picture with its bytes in the place of its hash. Raises UnreadableFile."""
    urls = {f"{_SCHEME}{image.sha256}": image for image in images}

    def sent(part: Any) -> Any:
        url = part["image_url"]["url"] if isinstance(part, dict) and part.get("type") == "image_url" else None
        return {"type": "image_url", "image_url": {"url": urls[url].data_url()}} if url in urls else part

    messages = [
        {**message, "content": list(map(sent, message["content"]))}
        if isinstance(message["content"], list)
        else message
        for message in payload["messages"]
    ]
    return {**payload, "messages": messages}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnreadableFile(f"the picture cannot be read: {error}", where=path, hint="name a file that is") from error
