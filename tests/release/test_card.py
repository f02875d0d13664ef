"""The card: what machines read at its head, and what people read below."""

import re

import pytest
import yaml

from pipelines.release.card import card, is_sensitive
from pipelines.release.folder import export_folder
from pipelines.release.manifest import Finding, Source
from pipelines.release.measures import measure
from pipelines.release.pictures import pictures
from pipelines.settings import ROOT
from pipelines.stats import e_table_1, m_table_1
from schemas.tables import TABLES
from tests.release.published_rows import NAME

REPO = "me/empathy"


@pytest.fixture(scope="module")
def exported(mixed, tmp_path_factory):
    target = tmp_path_factory.mktemp("card") / "out"
    posts = mixed.store.read("unique_posts").collect()
    tables = [m_table_1(posts), e_table_1(posts)]
    return export_folder(mixed.releases, NAME, mixed.store, target, tables, REPO), target


@pytest.fixture(scope="module")
def told(exported):
    return (exported[1] / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def front(told):
    return yaml.safe_load(told.split("---\n")[1])


def again(mixed, exported, **changes):
    """The card of the same release with something changed in its manifest."""
    release, folder = exported
    found = measure(mixed.release, mixed.releases.folder(NAME))
    return card(release.model_copy(update=changes), folder, found, [], [], REPO)


def test_its_head_says_where_the_files_of_each_config_and_split_are(front, exported):
    release, folder = exported
    for config in front["configs"]:
        for data in config["data_files"]:
            files = sorted(path.relative_to(folder).as_posix() for path in folder.glob(data["path"]))
            shards = release.configs[config["config_name"]]
            assert files == [shard.path for shard in shards if shard.split == data["split"]]
    assert [config["config_name"] for config in front["configs"]] == list(release.configs)


def test_its_head_counts_what_is_there(front, exported):
    release, _ = exported
    counted = {
        (info["config_name"], split["name"]): split["num_examples"]
        for info in front["dataset_info"]
        for split in info["splits"]
    }
    assert counted == {
        (config, shard.split): release.rows(config, shard.split)
        for config, shards in release.configs.items()
        for shard in shards
    }
    assert front["size_categories"] == ["n<1K"]
    assert front["language"] == ["zh"]


def test_access_is_gated_unless_everything_is_invented(front, mixed, exported):
    assert front["extra_gated_prompt"]
    assert "checkbox" in front["extra_gated_fields"].values()
    invented = [source for source in mixed.release.sources if source.consent == "invented"]
    assert is_sensitive(mixed.release)
    assert "extra_gated" not in again(mixed, exported, sources=invented)


def test_licences_that_differ_are_told_by_source(front, mixed, exported):
    assert (front["license"], front["license_name"]) == ("other", "by-source")
    one = Source(name="x", licence="CC BY-NC 4.0", consent="given", lineage=["y"], rows=1, collected="a file")
    assert "license: cc-by-nc-4.0" in again(mixed, exported, sources=[one])


def test_every_column_is_described_in_the_words_of_the_schemas(told, exported):
    for config in exported[0].configs:
        for name, meaning in TABLES[config].describe().items():
            assert f"| `{name}` |" in told
            assert meaning in told
    assert "| `prompt[].role` | string | as chat templates name it |" in told
    assert "| `withheld` | bool |" in told


def test_every_source_is_there_with_licence_and_consent(told, mixed):
    for source in mixed.release.sources:
        (line,) = [line for line in told.splitlines() if line.startswith(f"| {source.name} |")]
        assert source.licence in line
    assert "the writers were not asked; texts withheld here" in told
    assert "no 15 characters of such a text stand in it" in told


def test_the_papers_tables_and_the_pictures_are_in_it(told, exported):
    assert "### M Table 1: primary categories" in told
    assert "### E Table 1: the data set" in told
    shown = re.findall(r"!\[[^]]+\]\(([^)]+)\)", told)
    assert shown == ["pictures/lengths.png", "pictures/topics.png"]
    assert all((exported[1] / path).read_bytes().startswith(b"\x89PNG") for path in shown)


def test_it_says_how_to_load_how_to_be_taken_out_and_whom_to_call(told):
    assert f'load_dataset("{REPO}", "sft_coe", split="train", revision="{NAME}")' in told
    assert "## To have a row taken out" in told
    numbers = re.findall(r"\*\*(\d{3,5})\*\*", (ROOT / "docs" / "crisis.md").read_text(encoding="utf-8"))
    assert len(numbers) > 8
    assert set(numbers) <= set(re.findall(r"\*\*(\d{3,5})\*\*", told))


def test_rows_by_rules_and_what_the_checks_found_are_told(mixed, exported, told):
    assert "Rows by rules" not in told
    finding = Finding(check="quasi_identifiers", severity="warn", count=3, what="rows are rare", remedy="look")
    marked = again(mixed, exported, allowed=["rules_rows"], findings=[finding])
    assert "**Rows by rules.**" in marked
    assert "* rows are rare (3)." in marked


def test_every_table_of_it_is_one(told):
    """Rows of a Markdown table have as many cells as its head."""
    table: list[int] = []
    for line in [*told.splitlines(), ""]:
        if line.startswith("|"):
            table.append(len(re.findall(r"(?<!\\)\|", line)))
        else:
            assert len(set(table)) <= 1, line
            table = []


def test_the_same_rows_draw_the_same_pictures(mixed):
    found = measure(mixed.release, mixed.releases.folder(NAME))
    assert pictures(found) == pictures(found)
    assert sum(map(len, found.lengths.values())) == sum(map(mixed.release.rows, mixed.release.configs))
