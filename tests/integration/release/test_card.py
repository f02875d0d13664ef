"""The card: what machines read at its head, and what people read below."""

import re
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from published_rows import NAME

from pipelines.operations.paper_tables import e_table_1, m_table_1
from pipelines.release.publish.card import card, is_sensitive, licences
from pipelines.release.publish.folder import export_folder
from pipelines.release.publish.making import funnel, models
from pipelines.release.publish.measures import Measures, measure
from pipelines.release.publish.samples import samples
from pipelines.settings import ROOT
from pipelines.store.release_manifest import Calibration, Finding, Source, Spend
from schemas.tables import TABLES

REPO = "me/empathy"


@pytest.fixture(scope="module")
def exported(mixed, tmp_path_factory):
    target, posts = tmp_path_factory.mktemp("card") / "out", mixed.store.read("unique_posts").collect()
    tables = [m_table_1(posts), e_table_1(posts)]
    return export_folder(mixed.releases, NAME, mixed.store, target, tables, REPO), target


@pytest.fixture(scope="module")
def text(exported):
    return (exported[1] / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def front(text):
    return yaml.safe_load(text.split("---\n")[1])


def again(mixed, exported, **changes):
    """The card of the same release with something changed in its manifest."""
    release, folder = exported
    measures = measure(mixed.release, mixed.releases.folder(NAME), folder)
    return card(release.model_copy(update=changes), folder, measures, [], [], REPO)


def test_its_head_says_where_the_files_of_each_config_and_split_are_and_counts_what_is_there(front, exported):
    release, folder = exported
    assert [config["config_name"] for config in front["configs"]] == list(release.configs)
    assert [info["config_name"] for info in front["dataset_info"]] == list(release.configs)
    for config, info in zip(front["configs"], front["dataset_info"], strict=True):
        name, shards = config["config_name"], release.configs[config["config_name"]]
        for data in config["data_files"]:
            files = sorted(path.relative_to(folder).as_posix() for path in folder.glob(data["path"]))
            assert files == [shard.path for shard in shards if shard.split == data["split"]]
        counted = {split["name"]: split["num_examples"] for split in info["splits"]}
        assert counted == {shard.split: release.rows(name, shard.split) for shard in shards}
        files = list(folder.glob(f"{name}/*.parquet"))
        assert info["download_size"] == sum(path.stat().st_size for path in files)
        assert info["dataset_size"] == sum(pq.read_table(path).nbytes for path in files), "as `datasets` counts it"
    assert front["size_categories"] == ["n<1K"]
    assert front["language"] == ["zh"]


def test_access_is_gated_unless_everything_is_invented(front, mixed, exported):
    assert front["extra_gated_prompt"]
    assert "checkbox" in front["extra_gated_fields"].values()
    invented = [source for source in mixed.release.sources if source.consent == "invented"]
    assert is_sensitive(mixed.release)
    assert "extra_gated" not in again(mixed, exported, sources=invented)


def test_sources_are_there_with_licence_and_consent_and_licences_in_a_file_that_the_hub_links_to(front, text, exported):
    release, folder = exported
    assert (front["license"], front["license_name"], front["license_link"]) == ("other", "by-source", "LICENSE.md")
    linked = (folder / front["license_link"]).read_text(encoding="utf-8")
    for source in release.sources:
        assert f"| {source.name} | {source.licence} |" in linked
        line, chinese = [line for line in text.splitlines() if line.startswith(f"| {source.name} |")]
        assert source.licence in line
        assert source.licence in chinese
    assert "the writers were not asked; texts withheld here" in text
    assert "no 15 characters of such a text stand in it" in text


def test_one_licence_is_named_as_the_hub_names_it(mixed, exported):
    names = {"CC BY-NC 4.0": "cc-by-nc-4.0", "CC0-1.0 (invented)": "cc0-1.0", "all mine": "other"}
    for licence, name in names.items():
        one = Source(name="x", licence=licence, consent="given", lineage=["y"], rows=1, collected="imported 2026-11-22")
        assert f"license: {name}\n" in again(mixed, exported, sources=[one])
        assert bool(licences(exported[0].model_copy(update={"sources": [one]}))) == (name == "other")


def test_every_column_is_described_in_the_words_of_the_schemas(text, exported):
    for config in exported[0].configs:
        for name, meaning in TABLES[config].describe().items():
            assert f"| `{name}` |" in text
            assert meaning in text
    assert "| `prompt[].role` | string | as chat templates name it |" in text
    assert "| `withheld` | bool |" in text


def test_it_says_whether_rows_at_risk_are_in_it_and_what_share_lacked_media(mixed, exported, text):
    assert "are in no set of this release" in text
    assert "**are in this release**" in again(mixed, exported, settings={"prompts": {"allow_risk": True}})
    assert "Text only: no round lacked media." in text
    what = "text only: 1 of 8 rounds (12.5%) lacked media, and are left out"
    finding = Finding(check="media", severity="warn", count=1, what=what, hint="none")
    assert again(mixed, exported, findings=[finding]).count("ext only: 1 of 8 rounds (12.5%) lacked media") == 1


def test_a_line_a_kind_says_how_well_the_rules_find_it_where_it_was_measured(mixed, exported, text):
    assert "How well the rules find" not in text
    measured = {"gold": "gold.jsonl", "gold_sha256": "0" * 64, "posts": 1097, "precision": (0.96, 0.92, 0.98)}
    names = Calibration(**measured, stage="personal_data", kind="name", recall=(0.93, 0.88, 0.96), kappa=0.91, auc=None)
    emotional = Calibration(**measured, stage="relevance", kind="emotional", recall=None, kappa=None, auc=0.807)
    nothing = names.model_copy(update={"kind": "contact", "precision": None, "recall": None})
    lines = again(mixed, exported, calibrations=[names, nothing, emotional]).splitlines()
    at = lines.index("## How well the rules find what they look for")
    assert lines[at + 4 : at + 7] == [
        "* personal data, names: precision .96 [.92, .98], recall .93 [.88, .96] on 1,097 posts (`gold.jsonl`, κ .91)",
        "* relevance, emotional posts that stay: precision .96 [.92, .98], AUC of the score .81 on 1,097 posts "
        "(`gold.jsonl`)",
        "",
    ]


def test_the_papers_tables_and_the_pictures_are_in_it(text, exported):
    assert "### M Table 1: primary categories" in text
    assert "### E Table 1: the data set" in text
    shown = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    assert shown == ["pictures/lengths.png", "pictures/topics.png"]
    assert all((exported[1] / path).read_bytes().startswith(b"\x89PNG") for path in shown)


def test_it_says_how_to_load_how_to_be_taken_out_and_whom_to_call(text):
    assert f'load_dataset("{REPO}", "sft_coe", split="train", revision="{NAME}")' in text
    assert "## To have a row taken out" in text
    numbers = re.findall(r"\*\*(\d{3,5})\*\*", (ROOT / "docs" / "crisis.md").read_text(encoding="utf-8"))
    assert len(numbers) > 8
    assert set(numbers) <= set(re.findall(r"\*\*(\d{3,5})\*\*", text))


def test_rows_of_no_model_and_findings_are_listed(mixed, exported, text):
    assert "Rows that no model made" not in text
    finding = Finding(check="quasi_identifiers", severity="warn", count=3, what="rows are rare", hint="look")
    marked = again(mixed, exported, allowed=["not_from_a_model"], findings=[finding])
    assert "**Rows that no model made.**" in marked
    assert "* rows are rare (3 in all)." in marked
    counted = again(mixed, exported, findings=[finding.model_copy(update={"what": "3 rows are rare"})])
    assert "* 3 rows are rare." in counted, "a number once"
    release, folder = exported
    chains = release.rows("sft_coe")
    assert (
        f"**Unreviewed chains.** Professionals reviewed the chains that E's warm start learns. Of {chains} of" in text
    )
    assert "Unreviewed chains" not in card(release, folder, Measures(), [], [], REPO)
    measures = Measures(of_no_model=Counter(sft_coe=7))
    counted = card(release.model_copy(update={"allowed": ["not_from_a_model"]}), folder, measures, [], [], REPO)
    assert f"Of 7 of {release.rows('sft_coe'):,} rows of `sft_coe` a part was written or judged so" in counted


def test_it_says_how_the_rows_were_made_by_table_by_model_and_by_prompt(mixed, exported, text):
    posts = mixed.store.version("unique_posts", mixed.release.pins.get("unique_posts"))
    made = funnel(mixed.store, {"unique_posts": posts.version, "clean_posts": "gone"})
    assert made == [("unique_posts", posts.rows, posts.dropped, made[0][3])], (
        "of a version that is gone nothing is said"
    )
    asked = [
        Spend(stage="topics", model="qwen-plus", calls=40, usd="0.10"),
        Spend(stage="coe_chains", model="deepseek-r1", calls=2, usd="1.5 CNY"),
        Spend(stage="emotions", model="qwen-plus", calls=1_000, usd="0.25"),
    ]
    assert models(exported[0].model_copy(update={"spend": asked}))[-1] == ("all", "", 1_042, "0.35 + 1.5 CNY")
    shown = again(mixed, exported, spend=asked, prompts={"coe": "coe@1, coe@2"})
    for half in shown.split("## 中文说明"):
        assert "| topics | qwen-plus | 40 | 0.10 |" in half
        assert "coe@1, coe@2" in half
    assert again(mixed, exported, spend=[]).count("nothing was spent") == 1


def test_one_row_of_each_config_is_shown_as_a_chat_and_never_one_that_lacks_words_or_shows_risk(mixed, exported, text):
    release, folder = exported
    shown = samples(release, folder)
    assert shown.keys() == set(release.configs)
    assert samples(release, folder) == shown, "the same rows give the same sample"
    assert all(one.chat in text for one in shown.values())
    assert shown["sft_coe"].chat.startswith("[system] ")
    assert "[positive] " in shown["rm_triplets"].chat
    for config, one in shown.items():
        rows = pq.read_table([folder / shard.path for shard in release.configs[config]]).to_pylist()
        (row,) = [row for row in rows if row["row_id"] == one.row_id]
        assert not row["withheld"]
    asked = [source.model_copy(update={"consent": "not_asked"}) for source in release.sources]
    assert samples(release.model_copy(update={"sources": asked}), folder) == {}
    assert "## One row of each" not in again(mixed, exported, sources=asked)


def test_a_row_with_a_sign_of_risk_or_of_a_minor_is_no_sample(exported, tmp_path):
    release, _ = exported
    (shard,) = [one for one in release.configs["sft_coe"] if one.split == "train"]
    said = ["我不想活了，想从楼上跳下去。", "我今年十五岁，上初三。", "我累。", "最近总是睡不着，" * 10]
    source = next(one.name for one in release.sources if one.consent == "invented")
    rows = [
        {"row_id": f"{source}:{n}", "withheld": False, "messages": [{"role": "user", "content": text}]}
        for n, text in enumerate(said)
    ]
    path = tmp_path / shard.path
    path.parent.mkdir()
    shown = []
    for kept in (rows, rows[:3], rows[:2]):
        pq.write_table(pa.Table.from_pylist(kept), path)
        found = samples(release.model_copy(update={"configs": {"sft_coe": [shard]}}), tmp_path)
        shown.append(found["sft_coe"].row_id if found else None)
    assert shown == [f"{source}:3", f"{source}:2", None], "a long one first, a short one otherwise"


def test_it_can_be_cited_with_the_papers_and_names_creators_only_where_a_setting_does(mixed, exported, text, front):
    entries = re.findall(r"^@(\w+)\{([^,]+),$", text, re.M)
    assert [kind for kind, _ in entries] == ["misc", "inproceedings", "misc", "misc"]
    assert "eprint = {2509.14851}" in text
    assert "eprint = {2508.09521}" in text
    assert {"arxiv:2509.14851", "arxiv:2508.09521"} <= set(front["tags"])
    assert "author = {{The gongqing authors}}" in text
    assert "Made by Li" not in text
    named = again(mixed, exported, settings={"publish": {"creators": ["Li Lei", "Han Meimei"]}})
    assert "author = {{Li Lei} and {Han Meimei}}" in named
    assert "Made by Li Lei, Han Meimei." in named
    assert "制作者：Li Lei, Han Meimei。" in named


def test_one_config_is_the_default_and_the_hubs_own_reader_takes_the_head(front, text, exported):
    from huggingface_hub import DatasetCard

    assert [config.get("default") for config in front["configs"]] == [True, *[None] * (len(front["configs"]) - 1)]
    assert DatasetCard(text).data.to_dict()["configs"] == front["configs"]


def test_it_says_the_same_in_chinese(mixed, exported, text):
    half = text.partition("## 中文说明")[2]
    heads = re.findall(r"^### (.+)$", half, re.M)
    assert heads == ["怎样加载", "配置", "来源与许可", "数据是怎样做出来的", "用途", "局限", "风险与退出", "引用"]
    release, _ = exported
    for config in release.configs:
        (line,) = [line for line in half.splitlines() if line.startswith(f"| `{config}` |")]
        assert f"{release.rows(config, 'train'):,}" in line
    assert "不在任何配置中" in half
    assert "**在本次发布中**" in again(mixed, exported, settings={"prompts": {"allow_risk": True}})
    assert "模型不是热线" in half
