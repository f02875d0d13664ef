"""The card: what machines read at its head, and what people read below."""

import json
import re
from collections import Counter
from html import escape

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from published_rows import NAME

from pipelines.llm.questions import REASONS
from pipelines.operations.paper_tables import e_table_1, m_table_1
from pipelines.release.checks.released import CONFIGS
from pipelines.release.publish.card import card, is_sensitive, licences
from pipelines.release.publish.folder import export_folder
from pipelines.release.publish.making import flow, kept, making, models
from pipelines.release.publish.measures import Measures, measure
from pipelines.release.publish.samples import samples
from pipelines.release.publish.words import words
from pipelines.settings import ROOT
from pipelines.store.release_manifest import Agreed, Calibration, Finding, Judge, Source, Spend
from schemas.labels import CONSENTS
from schemas.tables import TABLES

REPO = "me/empathy"
_HEADS = (
    [
        *("How to load it", "One row as a chat", "How the rows were made", "Uses", "Known limits", "Risk policy"),
        *("To have a row taken out", "How to cite", "What was measured", "For reference"),
    ],
    [
        *("怎样加载", "样例", "数据是怎样做出来的", "用途", "局限", "风险"),
        *("怎样删除一行", "引用", "测量结果", "备查"),
    ],
)


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
        assert text.count(f"| {source.name} | {source.rows:,} | {source.licence} |") == 2, "in both languages"
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
    assert "What was measured" not in text
    measured = {"gold": "gold.jsonl", "gold_sha256": "0" * 64, "posts": 1097, "precision": (0.96, 0.92, 0.98)}
    names = Calibration(**measured, stage="personal_data", kind="name", recall=(0.93, 0.88, 0.96), kappa=0.91, auc=None)
    emotional = Calibration(**measured, stage="relevance", kind="emotional", recall=None, kappa=None, auc=0.807)
    nothing = names.model_copy(update={"kind": "contact", "precision": None, "recall": None})
    rows = [
        "| personal data, names | .96 [.92, .98] | .93 [.88, .96] | – | .91 | 1,097 | `gold.jsonl` |",
        "| relevance, emotional posts that stay | .96 [.92, .98] | – | .81 | – | 1,097 | `gold.jsonl` |",
    ]
    for half in again(mixed, exported, calibrations=[names, nothing, emotional]).split("## 中文说明"):
        lines = half.splitlines()
        at = lines.index(rows[0])
        assert lines[at + 1 : at + 3] == [rows[1], ""]


def test_the_papers_tables_and_the_pictures_are_in_it(text, exported):
    assert "<summary>M Table 1: primary categories</summary>" in text
    assert "<summary>E Table 1: the data set</summary>" in text
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
    assert "* rows are rare (3)." in marked
    assert "* quasi_identifiers（rows are rare (3)）。" in marked
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
    made = kept(mixed.store, {"unique_posts": posts.version, "clean_posts": "gone", "splits": "of no interest"})
    assert made == [("unique_posts", posts.rows, posts.dropped, [])], "of a version that is gone nothing is said"
    asked = [
        Spend(stage="topics", model="qwen-plus", calls=40, usd="0.10"),
        Spend(stage="coe_chains", model="deepseek-r1", calls=2, usd="1.5 CNY"),
        Spend(stage="emotions", model="qwen-plus", calls=1_000, usd="0.25"),
    ]
    assert models(exported[0].model_copy(update={"spend": asked}))[-1] == ("all", "", 1_042, "0.35 + 1.5 CNY")
    shown = again(mixed, exported, spend=asked, prompts={"coe": "coe@1, coe@2"})
    for half in shown.split("## 中文说明"):
        assert "| topics | qwen-plus | 40 | 0.10 |" in half
        assert "* `coe@1`\n* `coe@2`\n" in half
    assert again(mixed, exported, spend=[]).count("nothing was spent") == 1


def test_one_row_of_each_config_is_shown_as_a_chat_and_never_one_that_lacks_words_or_shows_risk(mixed, exported, text):
    release, folder = exported
    shown = samples(release, folder)
    assert shown.keys() == set(release.configs)
    assert samples(release, folder) == shown, "the same rows give the same sample"
    for one in shown.values():
        for speaker, said in one.chat:
            assert f"<p><b>{speaker}</b><br>{escape(said, quote=False).replace(chr(10), '<br>')}</p>\n" in text
    assert shown["sft_coe"].chat[0][0] == "system"
    assert [speaker for speaker, _ in shown["rm_triplets"].chat] == ["user", "positive", "negative"]
    for config, one in shown.items():
        rows = pq.read_table([folder / shard.path for shard in release.configs[config]]).to_pylist()
        (row,) = [row for row in rows if row["row_id"] == one.row_id]
        assert not row["withheld"]
    asked = [source.model_copy(update={"consent": "not_asked"}) for source in release.sources]
    assert samples(release.model_copy(update={"sources": asked}), folder) == {}
    assert "## One row as a chat" not in again(mixed, exported, sources=asked)


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
    for some in (rows, rows[:3], rows[:2]):
        pq.write_table(pa.Table.from_pylist(some), path)
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


def _numbers(text: str) -> Counter[str]:
    """Those of a section, without what only one half has: code, names of papers, the row of the schemas' columns."""
    text = re.sub(
        r"(?s)```.*?```|`[^`\n]*`|<details open>.*?</details>|<details><summary><code>.*?</details>", "", text
    )
    return Counter(re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?", text))


def test_it_says_the_same_in_chinese(mixed, exported, text, sample_store):
    """Of each section the other half has the same figures, wherever they are words of its own."""
    release, folder = exported
    measured = {"gold": "gold.jsonl", "gold_sha256": "0" * 64, "posts": 1097, "precision": (0.96, 0.92, 0.98)}
    full = {
        "allowed": ["not_from_a_model"],
        "findings": [
            *release.findings,
            Finding(check="k_anonymity", severity="warn", count=23, what="23 of 158 seekers tell 2 or more", hint=""),
            Finding(check="media", severity="warn", count=3, what="text only: 3 of 139 rounds lacked media", hint=""),
        ],
        "spend": [Spend(stage="topics", model="qwen", calls=40, usd="0.10")],
        "prompts": {"coe": "coe@1, coe@2"},
        "calibrations": [Calibration(**measured, stage="minors", kind="any", recall=None, kappa=0.5, auc=None)],
        "agreement": [Agreed(kind="cer", question="step1", items=33, people=3, figures={"ac1": (0.9, 0.7, 1.0)})],
        "judges": [
            Judge(
                **{"kind": "cer", "question": "step1", "model": "m", "people": 3, "items": 34, "epsilon": 0.1},
                **{"omega": 0.67, "rho": 0.8, "kappa": 0.6, "kappa_of_people": None},
            )
        ],
    }
    measures = measure(mixed.release, mixed.releases.folder(NAME), folder)
    measures.of_no_model.update(sft_coe=7)
    made = making(sample_store, release.model_copy(update={"pins": _pins(sample_store)}), mixed.releases.folder(NAME))
    whole = card(release.model_copy(update=full), folder, measures, [], [], REPO, made)
    english, chinese = whole.partition("# gongqing")[2].split("\n## 中文说明\n")
    english = re.sub(r"(?s)\n## 需要帮助的时候.*?(?=\n## )", "", english)  # in both languages
    of_english, of_chinese = re.split("^## ", english, flags=re.M), re.split("^### ", chinese, flags=re.M)
    titles = [
        (one.partition("\n")[0], other.partition("\n")[0]) for one, other in zip(of_english, of_chinese, strict=False)
    ]
    assert titles[1:] == list(zip(*_HEADS, strict=True))
    for title, one, other in zip(titles, of_english, of_chinese, strict=True):
        assert _numbers(one) == _numbers(other), title
    for config in release.configs:
        assert words()["configs"][config] in chinese
    for plain in (english, chinese):
        assert plain.count("gongqing restore") == 1, "how to restore"
    assert "不在任何配置中" in chinese
    assert "**在本次发布中**" in again(mixed, exported, settings={"prompts": {"allow_risk": True}})


def _pins(store) -> dict[str, str]:
    every = (one for table in TABLES for one in store.current(table))
    return {f"{one.table}/{one.partition}" if one.partition else one.table: one.version for one in every}


def test_of_each_source_it_counts_what_came_stayed_and_is_released(sample_store, mixed):
    posts, dialogues = (
        sample_store.read(f"unique_{unit}s").collect().filter(pl.col("source") == "sample")
        for unit in ("post", "dialogue")
    )
    counted = {one[:2]: one[2:] for one in flow(sample_store, _of(sample_store, mixed), mixed.releases.folder(NAME))}
    came, cleaned, unique, released = counted["sample", "post"]
    assert came > cleaned > unique == posts.height > released > 0
    assert counted["sample", "answer"][2:] == (posts["answers"].list.len().sum(), None)
    assert counted["sample", "dialogue"][2:] == (dialogues.height, 0)


def _of(store, mixed):
    return mixed.release.model_copy(update={"pins": _pins(store)})


def test_every_reason_table_and_finding_has_words_in_both_languages(sample_store):
    known = words()
    shown = {*known["tables"], *known["configs"]}
    assert set(CONFIGS) == set(known["configs"])
    assert shown <= TABLES.keys()
    assert set(CONSENTS) == known["consents"].keys()
    reasons = {
        (unit, reason)
        for table in shown
        for one in sample_store.current(table)
        for unit, _, reason in (why.partition(": ") for why in one.manifest.reasons)
    }
    assert len(reasons) > 20
    assert {reason for _, reason in reasons} - known["reasons"].keys() == set()
    assert {unit for unit, _ in reasons} - known["units"].keys() == set()
    assert set(REASONS) <= known["reasons"].keys()
    for group in ("consents", "units", "tables", "reasons"):
        assert all(len(both) == 2 and re.search("[一-鿿]", both[1]) for both in known[group].values())


def test_a_folder_that_is_given_away_names_no_repository(mixed, tmp_path):
    export_folder(mixed.releases, NAME, mixed.store, tmp_path / "out")
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert text.count('load_dataset("path/of/this/folder", "sft_coe", split="train")') == 2
    for lacking in ("OWNER/NAME", "revision=", "import hub", "huggingface.co", "Open a discussion"):
        assert lacking not in text
    assert "Write to whoever gave you these files" in text
    assert "请联系给你这些文件的人" in text


def test_long_texts_are_cut_at_the_end_of_a_sentence_and_what_judges_see_reads_as_a_chat(exported, tmp_path):
    release, _ = exported
    source = next(one.name for one in release.sources if one.consent == "invented")
    shard = release.configs["sft_coe"][0]
    dialogue = [{"role": "seeker", "text": "我跟室友吵了一架。"}, {"role": "supporter", "text": "怎么了？"}]
    shown = {"dialogue": dialogue, "before": [{"step": 1, "text": "阶段：探索"}], "step": 2, "text": "情绪：烦躁"}
    long = "他说<b>好</b>。" * 400
    chats = {
        "rm_process": ["你是评审。", json.dumps(shown, ensure_ascii=False), "第二步正确。"],
        "rm_outcome": ["你是评审。", '{"A": "嗯。", "B": "我懂。"}', "回应B更好。"],
        "sft_coe": ["先想。" * 50, long, "{不是 JSON}"],
    }
    configs = {}
    for number, (config, texts) in enumerate(chats.items()):
        messages = [
            {"role": role, "content": content}
            for role, content in zip(("system", "user", "assistant"), texts, strict=True)
        ]
        path = f"{config}.parquet"
        row = {"row_id": f"{source}:{number}", "withheld": False, "messages": messages}
        pq.write_table(pa.Table.from_pylist([row]), tmp_path / path)
        configs[config] = [shard.model_copy(update={"path": path})]
    found = samples(release.model_copy(update={"configs": configs}), tmp_path)
    assert found["rm_process"].chat == [
        ("system", "你是评审。"),
        *(("seeker", "我跟室友吵了一架。"), ("supporter", "怎么了？")),
        *(("step 1", "阶段：探索"), ("step 2", "情绪：烦躁")),
        ("assistant", "第二步正确。"),
    ]
    assert found["rm_outcome"].chat[1:3] == [("response A", "嗯。"), ("response B", "我懂。")]
    (_, system), (_, user), (_, assistant) = found["sft_coe"].chat
    assert len(system) <= 122
    assert system.endswith("先想。 …")
    assert len(user) <= 1_202
    assert user.endswith("</b>。 …")
    assert assistant == "{不是 JSON}"
    given = [one.model_copy(update={"consent": "given"}) for one in release.sources]
    found = samples(release.model_copy(update={"configs": configs, "sources": given}), tmp_path)
    assert len(found["sft_coe"].chat[1][1]) <= 62, "of what people wrote the beginning"


def test_two_sets_show_different_posts_where_there_are_several(exported, tmp_path):
    release, _ = exported
    source = next(one.name for one in release.sources if one.consent == "invented")
    shard = release.configs["sft_coe"][0]
    for config in ("grpo_ecot", "grpo_coe"):
        rows = [
            {
                **{"row_id": f"{source}:{n}", "withheld": False},
                "messages": [{"role": "user", "content": "最近总是睡不着，" * 10}],
            }
            for n in range(3)
        ]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"{config}.parquet")
    configs = {config: [shard.model_copy(update={"path": f"{config}.parquet"})] for config in ("grpo_ecot", "grpo_coe")}
    shown = samples(release.model_copy(update={"configs": configs}), tmp_path)
    assert shown["grpo_ecot"].row_id != shown["grpo_coe"].row_id
