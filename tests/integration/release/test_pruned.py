"""A release outlives the removal of old versions: what it pins stays."""

import shutil
from pathlib import Path

from pipelines.core.home import Home
from pipelines.operations.prune import prune, unneeded
from pipelines.store import Store
from pipelines.store.releases import Releases


def test_what_a_release_pins_stays(released_home: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(released_home, home)
    store, pins = Store(Home(home).data), Releases(home).read("v1").pins
    pinned = store.version("grpo_ecot")
    for n in range(3):
        store.write("grpo_ecot", store.read("grpo_ecot", pinned.version).collect().head(n))
    assert pins["grpo_ecot"] == pinned.version
    assert [version.rows for version in unneeded(home, keep=1) if version.table == "grpo_ecot"] == [1, 0]
    removed = {f"{version.name}@{version.version}" for version, _ in prune(home, keep=1)}
    assert len(removed) > 2
    assert not removed & {f"{name}@{version}" for name, version in pins.items()}
    assert all(store.version(name, version) for name, version in pins.items() if "/" not in name)
    assert Releases(home).read("v1").pins == pins
