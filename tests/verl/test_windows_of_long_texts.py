"""A text longer than an encoder reads at a time: nothing of it is lost, and one that is not is read as ever."""

import json
from typing import Any

import numpy as np
import pytest
from train_env import script_result

from pipelines.train.embedding import MARKS

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("training")]

# A BERT of two layers with random weights, with [CLS] and [SEP], whose tokens are single characters: 64 at a time; and
# the tiny encoder of `cpu_smoke`, a bag of tokens: 512 at a time. Beside our vectors stand what `transformers` gives of
# a text with its mark in front, cut to one window, and the mean over the same text in parts.
SCRIPT = """
import json, sys
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast
from pipelines.train.embedding import MARKS, Encoder, read_note
from pipelines.train.tiny_encoder import make_encoder

folder, said = Path(sys.argv[1]), json.load(sys.stdin)
letters = sorted({one for text in [*said["texts"], *MARKS.values()] for one in text if not one.isspace()})
names = {one: place for place, one in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters])}
one = Tokenizer(models.WordPiece(names, unk_token="[UNK]"))
one.normalizer = normalizers.BertNormalizer(handle_chinese_chars=True)
one.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
one.post_processor = processors.TemplateProcessing(
    single="[CLS] $A [SEP]", special_tokens=[("[CLS]", names["[CLS]"]), ("[SEP]", names["[SEP]"])]
)
tokens = PreTrainedTokenizerFast(tokenizer_object=one, pad_token="[PAD]", unk_token="[UNK]")
torch.manual_seed(0)
sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
bert = BertModel(BertConfig(vocab_size=len(names), max_position_embeddings=64, pad_token_id=0, **sizes)).eval()
(folder / "bert").mkdir()
Encoder(bert, tokens, max_length=64, device="cpu").save(folder / "bert")
row = dict.fromkeys(("query", "positive", "negative"), said["query"]) | {"split": "train"}
pq.write_table(pa.Table.from_pylist([row]), folder / "rows.parquet")
make_encoder([folder / "rows.parquet"], folder / "bag", 64)

def states(encoder, ids):
    with torch.no_grad():
        return encoder.model(input_ids=torch.tensor([ids])).last_hidden_state[0]

def unit(rows):
    return torch.nn.functional.normalize(rows.mean(0), dim=-1).tolist()

made = {}
for name in ("bert", "bag"):
    encoder = Encoder.load(folder / name, device="cpu")
    first = Encoder.load(folder / name, windows="first", device="cpu")
    made[name] = {"length": encoder.max_length, "texts": []}
    for text in said["texts"]:
        whole = encoder.tokenise(text, "answer")
        part, length = text[: 8 * encoder.max_length], encoder.max_length
        cut = encoder.tokens(MARKS["answer"] + part, truncation=True, max_length=length)["input_ids"]
        alone = encoder.tokens(MARKS["answer"] + text)["input_ids"]
        made[name]["texts"].append({
            "windows": [len(one) for one in whole.windows],
            "decoded": [encoder.tokens.decode(one, skip_special_tokens=True) for one in whole.windows],
            "whole": whole.whole, "first_is_whole": first.tokenise(text, "answer").whole, "n_tokens": len(alone),
            "mean": encoder.vectors([text], "answer")[0].tolist(),
            "first": first.vectors([text], "answer")[0].tolist(),
            "cut": unit(states(encoder, cut)),
            "over_windows": unit(torch.cat([states(encoder, one) for one in whole.windows])),
        })
    made[name]["together"] = encoder.vectors(said["texts"], "answer").tolist()
    with torch.no_grad():
        windows = [encoder.tokenise(one, "answer").windows for one in said["texts"]]
        made[name]["pooled"] = encoder.pooled(windows).tolist()
    made[name]["query"] = encoder.vectors([said["query"]], "query")[0].tolist()

def gradient(checkpointing):
    encoder = Encoder.load(folder / "bert", device="cpu")
    if checkpointing:
        encoder.model.gradient_checkpointing_enable({"use_reentrant": False})
    encoder.model.train()
    torch.manual_seed(1)
    encoder.pooled([encoder.tokenise(text, "answer").windows for text in said["texts"][:4]])[:, 0].sum().backward()
    return [float(one.grad.norm()) for _, one in sorted(encoder.model.named_parameters()) if one.grad is not None]

made["gradients"] = [gradient(False), gradient(True)]
read = {}
for note in ({"windows": "mean"}, {"windows": "first"}, {"threshold": 0.5}, None):
    path = folder / "bert" / "encoder.json"
    path.unlink(missing_ok=True)
    if note is not None:
        path.write_text(json.dumps(note))
    read[json.dumps(note)] = Encoder.load(folder / "bert", device="cpu").windows
made["read"] = read
print(json.dumps(made))
"""
QUERY = "最近总是失眠，凌晨三点还醒着，怎么办？"
FILLER = "和父母慢慢谈一谈，把心里的话写下来，先照顾好每天的饭，再看看能做些什么。"
FACT = "失眠的时候先起来坐一坐，凌晨三点还醒着也不要看钟。"
LONG = FILLER * 40
BEHIND = FILLER * 6
TEXTS = [
    QUERY,
    FACT,
    FILLER,
    "",
    "  \n ",
    LONG,
    BEHIND,
    BEHIND + FACT,
    FILLER * 1000,
    FILLER[:30] + " " * 3000 + FACT,  # of separators alone no window is made
    "好" * 60,  # one window of the BERT to its last place: two for its ends, two for the mark
    "好" * 61,
]
NAMES = ("bert", "bag")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What both encoders read of the texts, and how."""
    found: dict[str, Any] = script_result(
        SCRIPT, tmp_path_factory.mktemp("windows"), stdin={"texts": TEXTS, "query": QUERY}
    )
    return found


def of(made: dict[str, Any], name: str) -> dict[str, dict[str, Any]]:
    return dict(zip(TEXTS, made[name]["texts"], strict=True))


def test_a_text_shorter_than_a_window_and_the_first_window_alone_are_read_as_ever(made):
    short = {
        name: [
            text
            for text, one in of(made, name).items()
            if one["n_tokens"] <= made[name]["length"] and len(text) <= 8 * made[name]["length"]
        ]
        for name in NAMES
    }
    assert {FACT, FILLER, "", "好" * 60} <= set(short["bert"]) & set(short["bag"])
    assert not {LONG, "好" * 61} & set(short["bert"])
    for name in NAMES:
        for text, one in of(made, name).items():
            assert one["first"] == pytest.approx(one["cut"], abs=1e-6), text[:50]
            if text in short[name]:
                assert one["mean"] == pytest.approx(one["cut"], abs=1e-6), text[:50]
                assert (len(one["windows"]), one["whole"], one["first_is_whole"]) == (1, True, True)


def test_the_windows_of_a_text_are_all_of_it_each_with_its_mark_and_none_longer_than_the_model_reads(made):
    mark = MARKS["answer"]
    for name in NAMES:
        for text, one in of(made, name).items():
            parts = ["".join(part.replace("[CLS]", "").replace("[SEP]", "").split()) for part in one["decoded"]]
            assert all(part.startswith(mark) for part in parts), text[:50]
            letters = [part.removeprefix(mark).rstrip("\ufffd") for part in parts]  # of a character that is cut: bytes
            assert max(one["windows"]) <= made[name]["length"]
            if one["whole"]:
                assert "".join(letters) == "".join(text.split()), "nothing is lost, and nothing is read twice"
            assert all(letters[1:])
        assert len(of(made, name)[FILLER * 1000]["windows"]) == 16
        cut = [text for text, one in of(made, name).items() if not one["whole"]]
        assert cut == {"bert": [LONG, FILLER * 1000], "bag": [FILLER * 1000]}[name]


def test_the_vector_is_the_mean_over_the_tokens_of_all_windows_alone_or_beside_others(made):
    for name in NAMES:
        wanted = np.array([one["over_windows"] for one in made[name]["texts"]])
        for got in ([one["mean"] for one in made[name]["texts"]], made[name]["together"], made[name]["pooled"]):
            assert np.array(got) == pytest.approx(wanted, abs=1e-5)


def test_what_stands_behind_the_512th_token_changes_the_similarity(made):
    of_bag = of(made, "bag")
    assert of_bag[BEHIND]["windows"][0] == made["bag"]["length"] == 512
    near = {
        (text, how): np.dot(made["bag"]["query"], of_bag[text][how])
        for text in (BEHIND, BEHIND + FACT)
        for how in ("mean", "first")
    }
    assert near[BEHIND + FACT, "mean"] > near[BEHIND, "mean"] + 0.01
    assert near[BEHIND + FACT, "first"] == pytest.approx(near[BEHIND, "first"], abs=1e-6)


def test_a_step_that_keeps_fewer_states_has_the_same_gradient(made):
    plain, checkpointed = made["gradients"]
    assert len(plain) > 10
    assert checkpointed == pytest.approx(plain, rel=1e-4, abs=1e-7)


def test_an_encoder_reads_as_it_was_trained_and_one_of_before_there_were_windows_the_first_alone(made):
    said = ({"windows": "mean"}, {"windows": "first"}, {"threshold": 0.5}, None)
    assert [made["read"][json.dumps(one)] for one in said] == ["mean", "first", "first", "mean"]
