"""Disks that are made for a test, and what the rooms share whose writers are killed."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from crawl_fixtures import clean_replica, replica
from llm_fixtures import _stub_ends
from store_fixtures import store

__all__ = ["Disk", "_stub_ends", "clean_replica", "disk", "replica", "store"]


class Disk:
    """A file system in memory, whose size and rights can be changed while it is in use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def mount(self, *options: str) -> subprocess.CompletedProcess[str]:
        """As root's `mount -o`."""
        command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "gongqing-test", str(self.folder)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def leave(self, free: int | None) -> None:
        """So many bytes are free from now on; None: as many as anybody needs."""
        room = os.statvfs(self.folder)
        used = (room.f_blocks - room.f_bfree) * room.f_frsize
        self.remount(f"size={used + (1 << 30 if free is None else free)}")

    def remount(self, *options: str) -> None:
        """With other options."""
        mounted = self.mount("remount", *options)
        assert mounted.returncode == 0, mounted.stderr


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk with room for anything."""
    if os.geteuid() != 0:
        pytest.skip("mounting a disk needs root")
    disk = Disk(tmp_path / "home")
    disk.folder.mkdir()
    mounted = disk.mount("size=1g")
    if mounted.returncode:
        pytest.skip(f"no disk of our own here: {mounted.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", disk.folder], check=True)
