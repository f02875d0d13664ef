"""Vectors of texts, by a local model."""

import sys
from pathlib import Path

import numpy as np
import pytest

from pipelines.errors import RequestError
from pipelines.rewrite.encoding import encoder_id, sentence_encoder, similarity

BEFORE = "最近我总是睡不着，一闭眼就想起那天和室友吵架的事。"
REWORDED = "这阵子我老睡不着，眼睛一闭就想起那天跟室友吵架。"
OTHER = "公司下个月要裁员，领导还没有找我谈话。"


def lines_apart(texts):
    """Unit rows at right angles, but for texts that are equal."""
    return np.eye(8)[[sum(map(ord, text)) % 8 for text in texts]]


def test_lines_are_compared_with_those_that_stand_opposite_and_count_by_their_length():
    assert similarity(lines_apart, ["a", "bbb"], ["a", "bbb"]) == 1
    assert similarity(lines_apart, ["a", "bbb"], ["a", "c"]) == pytest.approx(1 / 4)
    assert similarity(lines_apart, [], []) == 0
    with pytest.raises(ValueError, match="2 lines before, 1 after"):
        similarity(lines_apart, ["a", "b"], ["a"])


# --- a model


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sentence-transformers model of a few words, made on the spot."""
    reason = "needs sentence-transformers: pip install -r requirements/encoder.txt"
    pytest.importorskip("sentence_transformers", reason=reason)
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: number for number, word in enumerate(["[UNK]", *"睡不着很难过开心她我你"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    weights = np.random.default_rng(0).normal(size=(len(vocabulary), 16)).astype(np.float32)
    folder = tmp_path_factory.mktemp("models") / "tiny"
    SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights)], device="cpu").save(str(folder))
    return folder


def test_a_model_gives_unit_rows_that_do_not_hang_on_their_neighbours(tiny: Path):
    encode = sentence_encoder(tiny)
    rows = encode(["我睡不着", "我很难过", "她很开心"])
    assert (rows.shape, rows.dtype) == ((3, 16), np.float64)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1] * 3, abs=1e-5)
    assert (encode(["我很难过"])[0] == rows[1]).all()
    assert encode([]).shape == (0, 16)
    assert similarity(encode, ["我睡不着"], ["我睡不着"]) == pytest.approx(1, abs=1e-5)
    assert similarity(encode, ["我睡不着"], ["她很开心"]) < 0.9


def test_a_damaged_model_is_told_of(tiny: Path, tmp_path: Path):
    (tmp_path / "modules.json").write_text("no json")
    with pytest.raises(RequestError, match="cannot be read"):
        sentence_encoder(tmp_path)


def test_without_sentence_transformers_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "modules.json").write_text("[]")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(RequestError, match="not installed") as told:
        sentence_encoder(tmp_path)
    assert "requirements/encoder.txt" in told.value.hint


@pytest.mark.parametrize("make", [sentence_encoder, encoder_id])
def test_a_folder_that_is_no_model_is_told_of(make, tmp_path: Path):
    with pytest.raises(RequestError, match="no sentence-transformers model") as told:
        make(tmp_path / "nowhere")
    assert told.value.exit_code == 2


def test_the_id_of_a_model_is_that_of_its_files(tmp_path: Path):
    one, other = tmp_path / "one", tmp_path / "elsewhere" / "other"
    for folder in (one, other):
        (folder / "0_Part").mkdir(parents=True)
        (folder / "modules.json").write_text("[]")
        (folder / "0_Part" / "weights.bin").write_bytes(b"123")
    assert encoder_id(one) == encoder_id(other)
    (other / "README.md").write_text("a card")
    (other / ".cache").mkdir()
    (other / ".cache" / "download").write_text("x")
    assert encoder_id(one) == encoder_id(other)
    (other / "0_Part" / "weights.bin").write_bytes(b"124")
    assert encoder_id(one) != encoder_id(other)
    assert encoder_id(one).startswith("sentence-transformers-")
