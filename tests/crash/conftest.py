"""Disks whose size and rights change while they are in use."""

import os
import subprocess
from pathlib import Path

import pytest


class Disk:
    """A file system in memory, whose size and rights can be changed while it is in use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def leave(self, free: int | None) -> None:
        """So many bytes are free from now on; None: as many as anybody needs."""
        room = os.statvfs(self.folder)
        used = (room.f_blocks - room.f_bfree) * room.f_frsize
        self.remount(f"size={used + (1 << 30 if free is None else free)}")

    def remount(self, options: str) -> None:
        """As root's `mount -o remount,…`."""
        subprocess.run(["mount", "-o", f"remount,{options}", self.folder], check=True)


@pytest.fixture
def disk(small_disk: Path) -> Disk:
    """A disk with room for anything."""
    disk = Disk(small_disk)
    disk.remount("size=1g,nr_inodes=100k")
    return disk
