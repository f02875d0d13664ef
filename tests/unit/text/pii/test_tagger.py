"""A model for token classification beside the rules: what it is sure of is replaced as well."""

import importlib.util
from pathlib import Path

import polars as pl
import pytest

from pipelines.errors import RequestError
from pipelines.text.pii import redact, tagger
from pipelines.text.pii.tagger import tagged

TEXTS = ["昨天程雪在门口站着", "我在星海读书", "他去了云溪镇", "王菲的歌", "昨天Zorbin在门口站着", "昨天雪桐在门口站着"]
LABELS = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC"]
MARKS = {"程": 1, "雪": 2, "星": 3, "海": 4, "云": 5, "溪": 6, "镇": 6, "王": 1, "菲": 2, "zorbin": 1, "桐": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of one table from characters to labels, made here: it knows the nine characters of MARKS."""
    torch = pytest.importorskip("torch", reason="needs torch: pip install -r requirements/encoder.txt")
    from transformers import BertConfig, BertForTokenClassification, BertTokenizerFast

    folder = tmp_path_factory.mktemp("ner")
    characters = sorted({*(one for one in "".join(TEXTS) if not one.isascii()), *MARKS, *"，,。"})
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters]), "utf-8")
    tokenizer = BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=64)
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "num_hidden_layers": 0, "num_attention_heads": 1, "intermediate_size": 8}
    labels = {"id2label": dict(enumerate(LABELS)), "label2id": {name: number for number, name in enumerate(LABELS)}}
    model = BertForTokenClassification(BertConfig(vocab_size=tokenizer.vocab_size, **shape, **labels)).eval()
    places = model.bert.embeddings.position_embeddings.weight  # where a character stands means nothing
    places.requires_grad_(False).zero_()
    read = tokenizer(" ".join(characters), return_tensors="pt")
    wanted = torch.tensor([[0, *(MARKS.get(one, 0) for one in characters), 0]])
    learnt = [weights for weights in model.parameters() if weights.requires_grad]
    optimiser = torch.optim.Adam(learnt, lr=0.05)
    for _ in range(300):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(**read).logits[0], wanted[0])
        loss.backward()
        optimiser.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_what_the_model_is_sure_of_is_replaced_beside_what_the_rules_find(folder):
    assert redact(TEXTS[:1]).counts.is_empty(), "a name without a witness"
    made = redact([TEXTS[0] + "，我叫王慧敏", *TEXTS[1:3]], ner=folder).texts.to_list()
    assert made == ["昨天[姓名]在门口站着，我叫[姓名2]", "我在[单位]读书", "他去了[地址]"]


def test_whom_everybody_knows_stays(folder):
    assert tagged(pl.Series([TEXTS[3]]), folder).is_empty()


def test_nothing_else_that_the_model_is_sure_of_stays(folder):
    """The rules take a Latin name, and one that nothing announces, only where it is announced."""
    assert redact(TEXTS[4:]).counts.is_empty()
    assert redact(TEXTS[4:], ner=folder).counts["count"].to_list() == [1, 1]


def test_a_text_of_many_windows_is_read_whole_and_a_few_at_a_time(folder, monkeypatch):
    _, model = tagger._loaded(folder)
    read: list[int] = []
    forward = model.forward
    monkeypatch.setattr(model, "forward", lambda **kwargs: read.append(len(kwargs["input_ids"])) or forward(**kwargs))
    text = "我读书" * 1000 + "程雪"
    assert {(start, end) for _, start, end, *_ in tagged(pl.Series([text]), folder).iter_rows()} == {(9000, 9006)}
    assert sum(read) > max(read) == 16


def test_a_folder_without_a_model_is_named_and_where_nothing_can_read_one_what_to_install(tmp_path):
    readable = importlib.util.find_spec("torch") is not None
    expected = "no model for token classification" if readable else "torch and transformers are not installed"
    with pytest.raises(RequestError, match=expected) as error:
        tagged(pl.Series(["我"]), tmp_path)
    assert "cleaning.ner" in str(error.value)
