"""A release in the forms of other trainers."""

import json

import polars as pl
import pytest
from published_rows import NAME
from release_rows import made

from pipelines.errors import RequestError, UnknownName
from pipelines.release.publish.folder import export_folder
from pipelines.release.publish.jsonl import export_jsonl
from pipelines.store.releases import Releases
from schemas.tables import TABLES


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def first(mixed, config, split="train"):
    return mixed.releases.frame(NAME, config, split).head(1).collect().to_dicts()[0]


def test_every_row_is_written_or_left_out_with_a_reason_and_triplets_are_openais_preferences(mixed, tmp_path):
    exported_rows = export_jsonl(mixed.release, mixed.releases.folder(NAME), tmp_path, "openai")
    prompts = mixed.release.rows("grpo_ecot")
    assert sum(exported_rows.written.values()) + prompts == sum(map(mixed.release.rows, mixed.release.configs))
    assert exported_rows.left_out == {"grpo_ecot: a prompt set has no answer to imitate": prompts}
    assert {name: len(lines(tmp_path / name)) for name in exported_rows.written} == exported_rows.written
    row, triplet = lines(tmp_path / "rm_triplets_train.jsonl")[0], first(mixed, "rm_triplets")
    assert row["input"] == {"messages": [{"role": "user", "content": triplet["query"]}]}
    assert row["preferred_output"] == [{"role": "assistant", "content": triplet["positive"]}]
    assert row["non_preferred_output"] == [{"role": "assistant", "content": triplet["negative"]}]


def test_llama_factory_finds_every_file_by_its_description(mixed, tmp_path):
    exported_rows = export_jsonl(mixed.release, mixed.releases.folder(NAME), tmp_path, "llama-factory")
    described = json.loads((tmp_path / "dataset_info.json").read_text())
    assert {one["file_name"] for one in described.values()} == exported_rows.written.keys()
    chat, pair = described["sft_coe_train"], described["rm_triplets_train"]
    assert (chat["formatting"], chat["columns"]["messages"]) == ("sharegpt", "messages")
    row = lines(tmp_path / "sft_coe_train.jsonl")[0]
    assert row == {"messages": first(mixed, "sft_coe")["messages"]}
    assert {message[chat["tags"]["role_tag"]] for message in row["messages"]} == {
        chat["tags"][f"{role}_tag"] for role in ("system", "user", "assistant")
    }
    assert pair["ranking"] is True
    ranked = lines(tmp_path / "rm_triplets_train.jsonl")[0]
    assert set(pair["columns"].values()) == ranked.keys()


def test_what_a_warm_start_is_not_to_learn_has_no_weight_and_a_chat_that_the_supporter_opens_is_left_out(tmp_path):
    chats = {"s:1#2/1": ("user", "assistant", "user"), "s:2#2/1": ("assistant", "user")}
    rows = [
        {
            "row_id": f"{made_from}/sft_cer",
            "made_from": made_from,
            "group_id": "g1",
            "split": "train",
            "variant": "none",
        }
        | {"providers": [], "messages": [{"role": role, "content": role} for role in ("system", *roles, "assistant")]}
        for made_from, roles in chats.items()
    ]
    made(tmp_path, "v1", {"sft_cer": pl.DataFrame(rows, schema=TABLES["sft_cer"].polars_schema())})
    releases = Releases(tmp_path)
    opened = {"sft_cer: LLaMA-Factory takes no chat that the supporter opens": 1}
    for form, left_out in (("openai", {}), ("llama-factory", opened)):
        (tmp_path / form).mkdir()
        exported_rows = export_jsonl(releases.read("v1"), releases.folder("v1"), tmp_path / form, form)
        assert exported_rows == ({"sft_cer_train.jsonl": 2 - sum(left_out.values())}, left_out)
    written = lines(tmp_path / "openai" / "sft_cer_train.jsonl")
    weights = [[one.get("weight", 1) for one in row["messages"]] for row in written]
    assert weights == [[1, 1, 0, 1, 1], [1, 0, 1, 1]]


def test_sharegpt_names_the_speakers_its_own_way(mixed, tmp_path):
    export_jsonl(mixed.release, mixed.releases.folder(NAME), tmp_path, "sharegpt")
    assert not (tmp_path / "dataset_info.json").exists()
    said = lines(tmp_path / "sft_coe_train.jsonl")[0]["conversations"]
    assert [turn["from"] for turn in said] == ["system", "human", "gpt"]
    assert [turn["value"] for turn in said] == [one["content"] for one in first(mixed, "sft_coe")["messages"]]


def test_rows_that_lack_words_are_left_out_and_a_file_without_rows_is_not_written(mixed, tmp_path):
    public = export_folder(mixed.releases, NAME, mixed.store, tmp_path / "public")
    (tmp_path / "out").mkdir()
    exported_rows = export_jsonl(public, tmp_path / "public", tmp_path / "out", "openai")
    withheld = pl.read_parquet(tmp_path / "public" / "sft_coe" / "*.parquet")["withheld"].sum()
    assert exported_rows.left_out["sft_coe: words are withheld"] == withheld > 0
    assert not [one for one in tmp_path.glob("out/*.jsonl") if "⟦" in one.read_text(encoding="utf-8")]
    for path in (tmp_path / "public" / "rm_triplets").glob("train-*"):
        pl.read_parquet(path).with_columns(withheld=True).write_parquet(path)
    (tmp_path / "none").mkdir()
    exported_rows = export_jsonl(public, tmp_path / "public", tmp_path / "none", "llama-factory")
    assert sorted(path.name for path in (tmp_path / "none").glob("*.jsonl")) == sorted(exported_rows.written)
    assert "rm_triplets_train" not in (tmp_path / "none" / "dataset_info.json").read_text(), "no file without rows"


def test_prompts_alone_are_no_file_for_a_trainer_and_another_form_is_refused(mixed, tmp_path):
    prompts = mixed.release.model_copy(update={"configs": {"grpo_ecot": mixed.release.configs["grpo_ecot"]}})
    with pytest.raises(RequestError, match="a prompt set has no answer to imitate"):
        export_jsonl(prompts, mixed.releases.folder(NAME), tmp_path, "openai")
    with pytest.raises(UnknownName, match="llama-factory"):
        export_jsonl(prompts, mixed.releases.folder(NAME), tmp_path, "llama_factory")
    assert list(tmp_path.iterdir()) == []
