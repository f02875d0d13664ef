"""Bodies compressed, each with a checksum: SQLite has none for its pages."""

import threading

import zstandard

_LEVEL = 3


class _Zstd(threading.local):
    """One of each for every thread."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        self.decompressor = zstandard.ZstdDecompressor()


_zstd = _Zstd()


def packed(body: bytes) -> bytes:
    """Compressed."""
    return _zstd.compressor.compress(body)


def unpacked(body: bytes) -> bytes:
    """As it was before it was compressed. Raises ZstdError where it is not what was written."""
    return _zstd.decompressor.decompress(body)
