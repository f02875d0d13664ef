"""A home on a disk that is mounted for reading: what only looks works, whatever else says why it does not."""

import pytest
from killing import IMPORT_POSTS, done, failed, home_with, started

pytestmark = [pytest.mark.slow, pytest.mark.drill("disk"), pytest.mark.timeout(1200)]


def test_a_home_that_can_only_be_read(disk, sample_home, tmp_path):
    home = home_with(sample_home, disk.folder, ("imported_posts", "imported_dialogues", "clean_dialogues"))
    disk.remount("ro")
    given = tmp_path / "given"
    for arguments in (("refresh",), IMPORT_POSTS, ("release", "v1"), ("export", "folder", str(given))):
        message = failed(home, *arguments)
        assert "Read-only file system" in message
        assert f"where: {home}" in message
        assert "mount it for writing" in message
    assert not given.exists()
    assert "clean_dialogues" in done(home, "tables")
    assert "dialogue_id" in done(home, "show", "clean_dialogues", "-n", "1", "--json")
    with started(home, "doctor") as doctor:
        assert doctor.wait() == 1
        assert f"{home} cannot be written to" in doctor.printed
    disk.remount("rw")
    done(home, "refresh", "--select", "clean_posts")
