"""A release on the Hub: one commit, and a tag of the release's name.

The commit is made on the head that was there when the work began, or not at all; nothing can be seen before it. Files
are uploaded first, one after the other; what has arrived stays there, so that the same command goes on where it broke
off. A repository is made private and its access gated before anything is in it.
"""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from pydantic import ValidationError

from pipelines.errors import HubMoved, RequestError, TagTaken
from pipelines.release.publish.card import is_sensitive
from pipelines.release.publish.client import Progress, hub_client, hub_errors, require_repo
from pipelines.release.publish.folder import EXTRA_FILES
from pipelines.store.manifest import MANIFEST
from pipelines.store.release_manifest import Release

_DATA_SET: dict[str, Any] = {"repo_type": "dataset"}
_PRECONDITION_FAILED = 412


class Published(NamedTuple):
    """Where a release stands on the Hub, and whether this call put it there."""

    repo: str
    tag: str
    commit: str
    new: bool


def publish(
    release: Release,
    folder: Path,
    repo: str,
    *,
    private: bool = True,
    progress: Progress | None = None,
    before_commit: Callable[[], None],
) -> Published:
    """Put a release on the Hub; of one that is there already nothing is sent.

    `folder` is what `export_folder` wrote. The data set is made where there is none; access is given by hand, unless
    everything in it is invented. `before_commit` is called before anything of the release can be seen there.

    Raises NoKey without HF_TOKEN; RequestError for a wrong name, and for a public data set where `private` is asked
    for; TagTaken where the tag stands for something else; HubMoved where somebody committed meanwhile; HubError.
    """
    require_repo(repo)
    api = hub_client()
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    with hub_errors("making the data set", repo):
        api.create_repo(repo, private=True, exist_ok=True, **_DATA_SET)
        _guard(api, repo, private, is_sensitive(release))
    with hub_errors("reading the data set", repo):
        head = api.dataset_info(repo).sha
        tags = {ref.name: ref.target_commit for ref in api.list_repo_refs(repo, **_DATA_SET).tags}
        tagged = tags.get(release.name)
        at_head = _manifest_at(api, repo, head)
        commit = _published_commit(api, repo, release, head, at_head, tagged)
    new = commit is None
    if commit is None:
        paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        additions = [CommitOperationAdd(path, folder / path) for path in paths]
        _upload(api, repo, additions, progress)
        removed = sorted(_our_files(api, repo, head, at_head) - set(paths))
        before_commit()
        operations = [*additions, *map(CommitOperationDelete, removed)]
        commit = _commit(api, repo, operations, release, head)
    if tagged is None:
        with hub_errors("tagging the release", repo):
            api.create_tag(repo, tag=release.name, revision=commit, tag_message=release.content, **_DATA_SET)
    if not private:
        with hub_errors("making the data set public", repo):
            api.update_repo_settings(repo, private=False, **_DATA_SET)
    return Published(repo, release.name, commit, new)


def _guard(api: Any, repo: str, private: bool, gated: bool) -> None:
    """Refuses a public data set for a private upload, and gates access."""
    info = api.dataset_info(repo)
    if private and not info.private:
        hint = "say --public, or make it private there first"
        raise RequestError("the data set is public on the Hub", where=repo, hint=hint)
    if gated and info.gated != "manual":  # "auto" lets in everybody who asks
        api.update_repo_settings(repo, gated="manual", **_DATA_SET)


def _manifest_at(api: Any, repo: str, revision: str) -> Release | None:
    """What a revision of the data set says of itself; None where it holds no release of ours."""
    from huggingface_hub.errors import RemoteEntryNotFoundError

    with TemporaryDirectory() as scratch:  # a cache would outlive the release
        try:
            path = api.hf_hub_download(repo, MANIFEST, revision=revision, local_dir=scratch, **_DATA_SET)
            return Release.model_validate_json(Path(path).read_bytes())
        except (RemoteEntryNotFoundError, ValidationError):
            return None


def _published_commit(
    api: Any, repo: str, release: Release, head: str, at_head: Release | None, tagged: str | None
) -> str | None:
    """The commit that holds the release, or None. Where it has no tag, an earlier call was broken off in between."""
    there = at_head if tagged is None else _manifest_at(api, repo, tagged)
    is_release = there is not None and (there.name, there.content) == (release.name, release.content)
    if tagged is None:
        return head if is_release and _is_whole(api, repo, head, release) else None
    if not is_release:
        raise TagTaken(
            f"the tag {release.name} is there and stands for something else",
            where=repo,
            hint="a release is never changed: give this one another name",
        )
    return tagged


def _is_whole(api: Any, repo: str, head: str, release: Release) -> bool:
    """Whether every shard is at the head as it was uploaded: somebody may have changed the data set since."""
    shards = {shard.path: shard.sha256 for shard in release.shards}
    there = api.get_paths_info(repo, list(shards), revision=head, **_DATA_SET)
    return {file.path: file.lfs and file.lfs.sha256 for file in there if file.path in shards} == shards


def _our_files(api: Any, repo: str, head: str, at_head: Release | None) -> set[str]:
    """The files that the release at the head brought with it and that are still there."""
    if at_head is None:
        return set()
    shards = {shard.path for shard in at_head.shards}
    with hub_errors("reading the data set", repo):
        there = api.list_repo_files(repo, revision=head, **_DATA_SET)
    return (shards | EXTRA_FILES) & set(there)


def _upload(api: Any, repo: str, additions: list[Any], progress: Progress | None) -> None:
    """The large files one after the other; the small ones go with the commit."""
    total = sum(addition.upload_info.size for addition in additions)
    done = 0
    for number, addition in enumerate(additions, 1):
        with hub_errors(f"uploading file {number} of {len(additions)}", repo):
            # The files must still be there for the commit, which compares them with what it replaces.
            api.preupload_lfs_files(repo, [addition], free_memory=False, **_DATA_SET)
        done += addition.upload_info.size
        if progress:
            progress(done, total)


def _commit(api: Any, repo: str, operations: list[Any], release: Release, parent: str) -> str:
    from huggingface_hub.errors import HfHubHTTPError

    with hub_errors("committing the release", repo):
        try:
            made = api.create_commit(
                repo,
                operations,
                commit_message=f"Release {release.name}",
                commit_description=json.dumps({"content": release.content, "code": release.code}),
                parent_commit=parent,
                **_DATA_SET,
            )
        except HfHubHTTPError as error:
            if error.response is not None and error.response.status_code == _PRECONDITION_FAILED:
                raise HubMoved(
                    "somebody else has changed the data set since this began; nothing of the release is to be seen",
                    where=repo,
                    hint="look at what was changed there, then run the same command again",
                ) from None
            raise
    return str(made.oid)
