"""A process that uses the Hub, so that each major of the client is tried in a process of its own.

It reads calls as lines of JSON, and answers each with a line: the result, or the error's type and words.
"""

import json
import sys
import time
from pathlib import Path

from pipelines.errors import GongqingError
from pipelines.release.publish.fetch import fetch
from pipelines.release.publish.hub import publish
from pipelines.store.release_manifest import Release
from pipelines.store.releases import Releases

_sleep = time.sleep
time.sleep = lambda seconds: _sleep(min(seconds, 0.02))  # the client waits longer and longer between its attempts


def version():
    import huggingface_hub

    return huggingface_hub.__version__


BEGUN = []  # repositories that uploads were begun to


def begun(repo):
    return BEGUN.count(repo)


def by_hand(call, *arguments, **options):
    """What the owner of the data set does there."""
    from huggingface_hub import HfApi

    getattr(HfApi(), call)(*arguments, **options, repo_type="dataset")


def put(folder, repo, **options):
    release, progress = Release.model_validate_json((Path(folder) / "manifest.json").read_bytes()), []
    options |= {"progress": lambda *counts: progress.append(counts), "before_commit": lambda: BEGUN.append(repo)}
    published = publish(release, Path(folder), repo, **options)
    return {**published._asdict(), "progress": progress}


def get(home, repo, revision):
    return fetch(Releases(Path(home)), repo, revision).name


def load(path, config, split, cache, **options):
    from datasets import load_dataset

    return load_dataset(path, config, split=split, cache_dir=cache, **options).to_list()


if __name__ == "__main__":
    for line in sys.stdin:
        name, arguments, options = json.loads(line)
        try:
            answer = {"gave": globals()[name](*arguments, **options)}
        except GongqingError as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)  # noqa: T201
