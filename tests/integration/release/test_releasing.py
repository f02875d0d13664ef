"""`gongqing release`: what is planted is refused, each by its name and all at once; what is whole is written once."""

import asyncio
import json
import re
import stat
from pathlib import Path

import polars as pl
import pytest
from planted_home import of_split, planted_home, say

from pipelines.core.files import held
from pipelines.errors import Busy, ReleaseRefused, RequestError, UnknownName
from pipelines.flow.runner import parents_of
from pipelines.flow.stages import STAGES
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Answer, Call
from pipelines.llm.money import Usage
from pipelines.llm.questions import NOT_ASKED_YET
from pipelines.operations.release import release
from pipelines.release.checks.leaks import LEAKS
from pipelines.settings import Crawl, Sampling, Settings
from pipelines.store import Store
from pipelines.store.release_manifest import Release
from pipelines.store.releases import Releases
from schemas.dropped import drops

PHONE = "13912345678"


@pytest.fixture(scope="module")
def clean_home(sample_home, released_home, tmp_path_factory) -> Path:
    """Every table as if a model had answered, nothing planted. Tests write releases into it, and no tables."""
    return planted_home(sample_home, tmp_path_factory.mktemp("clean"), read=released_home)


@pytest.fixture(scope="module")
def first(clean_home) -> Release:
    return release(clean_home, "v1", settings=Settings())


class Plants:
    """Everything that a release must not hold, planted in the rows of one home; each tells which row it is in."""

    def __init__(self, store: Store) -> None:
        self.split_of = dict(store.read("splits").select("group_id", "split").collect().iter_rows())
        self.posts = {row["post_id"]: row for row in store.read("unique_posts").collect().to_dicts()}
        self.dialogues = {row["dialogue_id"]: row for row in store.read("unique_dialogues").collect().to_dicts()}
        self.ids: dict[str, str] = {}

    def ecot(self, rows):
        held_out = of_split(rows, "test")["extra_info"]["dialogue"][0]["text"]
        copied = of_split(rows, "train", 1)
        say(copied, held_out.replace("。", "！", 2) + "谢谢大家。")
        self.ids["near_duplicates"] = copied["row_id"]
        young = of_split(rows, "train", 2)
        say(young, "我今年16岁，上高一。" + young["extra_info"]["dialogue"][0]["text"])
        self.ids["minors"] = young["row_id"]

    def coe(self, rows):
        row = of_split(rows, "train", 3)
        row["extra_info"]["references"][0] += f"想聊的话打我电话{PHONE}。"
        self.ids["personal_data"] = row["row_id"]
        at_risk = of_split(rows, "train", 4)
        say(at_risk, at_risk["extra_info"]["dialogue"][0]["text"] + "我不想活了，想自杀。")
        self.ids["risk"] = at_risk["row_id"]

    def cer(self, rows):
        # As SMILE was written from PsyQA: the story of a held-out question, told turn by turn in looser words.
        question = next(post for name, post in sorted(self.posts.items()) if self.split_of[post["group_id"]] == "test")
        told = [part for part in question["description"].split("。") if part]
        expanded = of_split(rows, "train")
        retold = (f"其实吧，{part[:-4]}……" for part in told[1:])
        say(expanded, f"老师您好，我想和您说说，{told[0]}，就是这样。", *retold)
        self.ids["text_reuse"] = expanded["row_id"].partition("#")[0]
        torn = of_split(rows, "test")
        torn["split"] = torn["extra_info"]["split"] = "train"
        self.ids["groups"] = self.dialogues[torn["row_id"].partition("#")[0]]["group_id"]

    def chains(self, rows):
        held_out = next(post for post in self.posts.values() if self.split_of[post["group_id"]] == "test")
        rows[0] |= {"post_id": held_out["post_id"], "group_id": held_out["group_id"]}
        self.ids["descendants"] = held_out["post_id"]

    def topics(self, rows):
        rows[0]["provider"] = "written"
        self.ids["not_from_a_model"] = rows[0]["row_id"]

    def unlicensed(self, rows):
        next(row for row in rows if self.split_of[row["group_id"]] == "train")["licence"] = " "
        self.ids["licence"] = "sample"


@pytest.fixture(scope="module")
def refused(sample_home, released_home, tmp_path_factory) -> tuple[Path, Plants, ReleaseRefused]:
    """A home with every plant, and what came of releasing it."""
    plants = Plants(Store(sample_home / "data"))
    edits = {"grpo_ecot": plants.ecot, "grpo_coe": plants.coe, "grpo_cer": plants.cer, "ecot_chains": plants.chains}
    edits |= {"topics": plants.topics, "unique_posts": plants.unlicensed}
    home = planted_home(sample_home, tmp_path_factory.mktemp("planted"), edits, read=released_home)
    gone = sorted(Store(home / "data").read("grpo_coe").collect()["row_id"])[-1]
    (home / "takedown.txt").write_text(f"{gone}  # asked for by its writer\n", encoding="utf-8")
    plants.ids["erased"] = gone
    with pytest.raises(ReleaseRefused) as told:
        release(home, "v1", settings=Settings())
    return home, plants, told.value


def test_everything_planted_is_named_in_one_refusal_and_nothing_is_written(refused):
    home, plants, told = refused
    refusals = [one for one in told.findings if one.severity == "refuse"]
    assert {one.check for one in refusals} == plants.ids.keys() - set(LEAKS)
    assert len(plants.ids) == 10
    for check, row_id in plants.ids.items():
        findings = [one for one in told.findings if one.check == check]
        assert {one.severity for one in findings} == {"leave_out" if check in LEAKS else "refuse"}, check
        assert any(row_id in example for one in findings for example in one.examples), check
    assert all(one.count >= 1 and one.hint and one.what in str(told) for one in refusals)
    assert told.exit_code == 1
    assert Releases(home).names() == []
    assert Releases(home).current() is None


def test_findings_hold_no_text(refused):
    _, plants, told = refused
    said = json.dumps([one.model_dump() for one in told.findings], ensure_ascii=False)
    texts = [post["description"] for post in plants.posts.values()]
    runs = {text[at : at + 8] for text in texts for at in range(len(text) - 8)}
    assert PHONE not in said
    assert not any(run in said for run in runs)


def test_a_clean_home_is_released_read_only_and_says_where_its_rows_come_from(clean_home, first):
    store = Store(clean_home / "data")
    assert set(first.configs) >= {"grpo_ecot", "grpo_coe", "grpo_cer"}
    assert {one.severity for one in first.findings} == {"warn"}
    assert {"empty", "k_anonymity"} <= {one.check for one in first.findings}
    assert first.allowed == []
    assert first.pins["imported_posts/sample"] == store.version("imported_posts", partition="sample").version
    assert first.pins["grpo_cer"] == store.version("grpo_cer").version
    assert Releases(clean_home).current() == first
    (source,) = first.sources
    assert (source.name, source.consent) == ("sample", "invented")
    assert source.rows == sum(first.rows(config) for config in first.configs)
    assert re.fullmatch(r"imported \d{4}-\d\d-\d\d(, \d{4}-\d\d-\d\d)?", source.collected), "no file's name"
    assert first.prompts["ecot"].startswith("ecot@1-")
    assert first.settings["sampling"]["n_samples"] == 3
    files = [path for path in Releases(clean_home).folder("v1").rglob("*") if path.is_file()]
    assert len(files) == 1 + sum(map(len, first.configs.values()))
    assert not any(path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) for path in files)
    for config in first.configs:
        rows = store.read(config, first.pins[config]).collect()
        splits = [Releases(clean_home).frame("v1", config, split).collect() for split in rows["split"].unique()]
        assert pl.concat(splits).sort("row_id").equals(rows.sort("row_id")), config


def test_the_same_content_is_the_same_release_and_under_another_name_the_same_bytes(clean_home, first):
    assert release(clean_home, "v1", settings=Settings()) == first
    other = release(clean_home, "v1.again", settings=Settings())
    assert other.content == first.content
    assert other.configs == first.configs
    assert Releases(clean_home).names()[:1] == ["v1"]
    assert Releases(clean_home).current() == other


def test_a_wrong_name_and_a_check_that_nobody_may_allow_are_refused_first(clean_home):
    with pytest.raises(RequestError, match="cannot name a release"):
        release(clean_home, "V1", settings=Settings())
    with pytest.raises(UnknownName, match="not_from_a_model"):
        release(clean_home, "v2", allow=("near_duplicates",), settings=Settings())


def test_nothing_is_released_while_a_table_is_stale_or_a_refresh_at_work(clean_home):
    with pytest.raises(ReleaseRefused) as told:
        release(clean_home, "v2", settings=Settings(sampling=Sampling(n_samples=1)))
    refusals = [(one.check, one.examples) for one in told.value.findings if one.severity == "refuse"]
    assert refusals == [("stale", ["sampled_rewrites", "sampled_turns"])]
    with held(clean_home / "refresh.lock"), pytest.raises(Busy):
        release(clean_home, "v2", settings=Settings())


def test_what_a_budget_paid_for_is_released_with_a_warning_and_the_rest_is_counted(
    sample_home, released_home, tmp_path
):
    home = planted_home(sample_home, tmp_path / "home", read=released_home)
    store = Store(home / "data")
    version, rows = store.version("ecot_chains"), store.read("ecot_chains").collect()
    dropped = store.read_dropped("ecot_chains").collect()
    run, reason = version.manifest.runs[-1], pl.lit(NOT_ASKED_YET)
    lost = drops(rows.head(2), "ecot_chains", "post", "post_id", reason, pl.lit("the budget was used up"))
    known = {
        "parents": parents_of(next(one for one in STAGES if one.name == "ecot_chains"), store),
        "code": run.code,
        "settings": run.settings,
    }
    store.write("ecot_chains", rows.slice(2), pl.concat([dropped, lost]), **known)
    made = release(home, "v1", settings=Settings())
    assert [(one.severity, one.what) for one in made.findings if one.check == "unanswered"] == [
        ("warn", "rows lack answers: ecot_chains 2")
    ]


def test_a_name_that_holds_something_else_and_a_damaged_table_are_refused(sample_home, released_home, tmp_path):
    home = planted_home(sample_home, tmp_path / "home", read=released_home)
    release(home, "v1", settings=Settings())

    def fewer(rows):
        rows.pop()

    planted_home(sample_home, home, {"grpo_cer": fewer})
    with pytest.raises(RequestError, match="holds something else"):
        release(home, "v1", settings=Settings())
    assert release(home, "v2", settings=Settings()) == Releases(home).current()
    file = next((home / "data" / "sampled_turns").glob("*/rows/*.parquet"))
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(ReleaseRefused) as told:
        release(home, "v3", settings=Settings())
    assert {one.check for one in told.value.findings} == {"damaged", "stale"}


def test_it_says_what_was_spent_by_stage_and_model_and_nothing_of_the_machine_or_its_user(clean_home, first):
    with Ledger(clean_home / "ledger.sqlite") as ledger:
        for key, cost, currency in (("a" * 64, 250_000_000, "USD"), ("b" * 64, 5, "USD"), ("c" * 64, 10**9, "CNY")):
            call = Call(key, "topics", "qwen-plus", "qwen-plus", b"{}", currency=currency)
            attempt = asyncio.run(ledger.begin(call, reserve=cost, budget=None))
            asyncio.run(ledger.answered(attempt, Answer(b"{}", "qwen-plus", "stop", Usage(10, 0, 5), cost)))
    made = release(clean_home, "v-spend", settings=Settings(crawl=Crawl(contact="mailto:owner@example.org")))
    assert [(one.stage, one.model, one.calls, one.usd) for one in made.spend] == [
        ("topics", "qwen-plus", 1, "1 CNY"),
        ("topics", "qwen-plus", 2, "0.250000005"),
    ]
    assert not [word for word in ("owner@example.org", str(clean_home)) if word in made.to_bytes().decode()]
