"""A manifest from elsewhere is not believed: nothing that it names lies outside a release."""

import json

import pytest

from pipelines.errors import HubError, RequestError
from pipelines.release.fetch import read_manifest


@pytest.fixture
def manifest(mixed, tmp_path):
    """Writes the manifest of a release with something changed."""

    def write(change):
        told = json.loads(mixed.release.to_bytes())
        change(told)
        path = tmp_path / "manifest.json"
        path.write_text(json.dumps(told), encoding="utf-8")
        return path

    return write


def with_path(path):
    def change(told):
        told["configs"]["sft_coe"][0]["path"] = path

    return change


def test_a_manifest_of_ours_is_read(mixed, manifest):
    assert read_manifest(manifest(lambda told: None), "me/x") == mixed.release


@pytest.mark.parametrize(
    "path",
    [
        "../../.ssh/authorized_keys",
        "/etc/passwd",
        "sft_coe/../x.parquet",
        "sft_coe/train-00000-of-00001.parquet/..",
        "sft_coe/train.parquet",
        "rm_triplets/train-00000-of-00001.parquet",
        "sft_coe/train-00000-of-00001.parquet\n",
        "secrets/train-00000-of-00001.parquet",
    ],
)
def test_a_file_outside_its_config_is_refused(manifest, path):
    with pytest.raises(HubError, match="names a file"):
        read_manifest(manifest(with_path(path)), "me/x")


@pytest.mark.parametrize("name", ["../other", "Release", "", "a" * 65])
def test_a_name_that_is_no_folder_is_refused(manifest, name):
    with pytest.raises(RequestError, match="cannot name a release"):
        read_manifest(manifest(lambda told: told.update(name=name)), "me/x")


@pytest.mark.parametrize("change", [lambda told: told.pop("configs"), lambda told: told.update(more=1)])
def test_another_manifest_is_none_of_a_release(manifest, change):
    with pytest.raises(HubError, match="none of a release"):
        read_manifest(manifest(change), "me/x")
