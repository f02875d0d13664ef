"""Pictures that a model is asked about: known by their bytes, which are read again when they are sent.

A payload names a picture by its hash, so its key covers the bytes, and neither the ledger nor a recording holds them.
"""

from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Self

from pipelines.errors import UnreadableFile

# How the files begin that hosts of OpenAI's kind read.
_KINDS = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


class Image(NamedTuple):
    """A picture in a file, as it was when it was named."""

    sha256: str
    path: Path

    @classmethod
    def of(cls, path: Path) -> Self:
        """The picture of a file. Raises UnreadableFile, also for what is none."""
        return cls(sha256(_read(path)[1]).hexdigest(), path)

    @property
    def part(self) -> dict[str, Any]:
        """The part of a message that names it."""
        return {"type": "image_url", "image_url": {"url": f"sha256:{self.sha256}"}}

    @property
    def sent(self) -> dict[str, Any]:
        """The part of a message that holds it. Raises UnreadableFile where the file is gone, or holds another."""
        kind, content = _read(self.path)
        if sha256(content).hexdigest() != self.sha256:
            raise UnreadableFile("the picture is another than was asked about", where=self.path, hint="ask again")
        return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{b64encode(content).decode()}"}}


def _read(path: Path) -> tuple[str, bytes]:
    """The media type and the bytes."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UnreadableFile(
            f"the picture cannot be read: {error.strerror}", where=path, hint="name a file that is there"
        ) from error
    kind = next((kind for start, kind in _KINDS.items() if content.startswith(start)), None)
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        kind = "image/webp"
    if kind is None:
        raise UnreadableFile("this is no picture", where=path, hint="PNG, JPEG, GIF and WebP can be sent")
    return kind, content
