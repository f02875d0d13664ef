"""A release as a folder that may be published: public shards, card, pictures, manifest. `datasets` loads it offline.

The Hub gets exactly such a folder (`pipelines.release.publish.hub`).
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pipelines.core.files import full_disk_reported, sync
from pipelines.core.modes import hand_over
from pipelines.errors import RequestError
from pipelines.release.publish.card import LICENCES, PaperTable, card, licences
from pipelines.release.publish.making import making
from pipelines.release.publish.measures import PICTURES, measure, pictures
from pipelines.release.publish.private import read_private
from pipelines.release.publish.public import is_public, publish_rows, require_no_private_text, restore_rows
from pipelines.release.readings import Readings
from pipelines.store.manifest import MANIFEST
from pipelines.store.release_manifest import Release
from pipelines.store.releases import Releases
from pipelines.store.store import Store

CARD = "README.md"
EXTRA_FILES = {LICENCES, *PICTURES}  # of a publication, beside its shards, its card and its manifest


def export_folder(
    releases: Releases,
    name: str,
    store: Store,
    target: Path,
    tables: Sequence[PaperTable] = (),
    repo: str = "",
    *,
    with_card: bool = True,
) -> Release:
    """Write what may be published of a release to `target`, which must be new or empty: all of it or nothing.

    `store` has the texts that may not be printed; `tables` and `repo` (none: a folder is given away) are for the card,
    which what is only turned into another form has no need of (`with_card`). A release that came from the Hub was
    published by somebody who had the texts that it withholds: its rows stay as they are.

    Returns the release as it is published. Raises as `Releases.read`; RequestError where `target` holds something;
    PrivateText where words would be published that may not be: nothing was written.
    """
    release = releases.read(name)
    folder = releases.folder(name)
    ours = not is_public(release, folder)
    private = read_private(store, release.pins if ours else None)
    with made_whole(target, releases.home) as staged:
        if ours:
            readings = Readings(releases.home)
            published = publish_rows(release, folder, staged, private, readings)
            readings.save()
        else:
            published = release
            for config in release.configs:
                shutil.copytree(folder / config, staged / config, copy_function=shutil.copyfile)
        if with_card:
            measures = measure(release, folder, staged)
            drawn = pictures(measures)
            for path, png in drawn.items():
                (staged / path).parent.mkdir(exist_ok=True)
                (staged / path).write_bytes(png)
            made = making(store, release, folder) if ours else None
            written = card(published, staged, measures, tables, drawn, repo, made)
            (staged / CARD).write_text(written, encoding="utf-8")
        if text := licences(published):
            (staged / LICENCES).write_text(text, encoding="utf-8")
        (staged / MANIFEST).write_bytes(published.to_bytes())
        require_no_private_text(staged, private)
    return published


def restore_folder(releases: Releases, name: str, store: Store, target: Path) -> tuple[Release, list[str]]:
    """Write a release that came from the Hub to `target` with the withheld words restored from this home's tables.

    The words are found by the digest in their reference, so a text that has changed since is not mistaken for it.
    Returns the release in `target`, and the ids of posts, answers and dialogues whose text is not at hand as it was.

    Raises as `export_folder`, but for PrivateText; RequestError also where words are withheld and the home has none.
    """
    release = releases.read(name)
    known = read_private(store).by_digest
    if not known and any(finding.check == "withheld" for finding in release.findings):
        hint = f"crawl or import them first: {', '.join(source.name for source in release.sources)}"
        what = "this home has no text of anybody who was not asked: nothing can be restored"
        raise RequestError(what, where=name, hint=hint)
    with made_whole(target, releases.home) as staged:
        restored, missing = restore_rows(release, releases.folder(name), staged, known)
        (staged / MANIFEST).write_bytes(restored.to_bytes())
    return restored, missing


@contextmanager
def made_whole(target: Path, home: Path) -> Iterator[Path]:
    """A folder beside `target` to write in, which takes its place at the end; nothing is left of a failure.

    Outside of the home it is its user's to share: it has the modes that the user's umask gives. Until it is whole, and
    in the home, it is for its owner alone. Raises StorageFull where there is no room for it.
    """
    target, home = target.resolve(), home.resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise RequestError("the target is there and not empty", where=target, hint="name a new or an empty folder")
    missing = [path for path in target.parents if not path.exists()]
    staged = target.with_name(f".{target.name}.part")
    with full_disk_reported(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(staged, ignore_errors=True)  # of a process that was killed
        staged.mkdir()
        try:
            yield staged
            for path in (*staged.rglob("*"), staged, *missing):
                if not path.is_relative_to(home):
                    hand_over(path)
            for path in (*staged.rglob("*"), staged):
                sync(path)
            staged.replace(target)
            sync(target.parent)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
