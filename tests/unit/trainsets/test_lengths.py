"""How long a prompt is: by a real tokenizer, made here, or by characters; a folder without one says so."""

import json
import sys
from pathlib import Path

import pytest

from pipelines.errors import UnreadableFile
from pipelines.trainsets.prompt_sets import ruler

PROMPT = [
    {"role": "system", "content": "你是一位温和的倾听者。"},
    {"role": "assistant", "content": "你好，请讲。"},
    {"role": "user", "content": "我和室友吵架了，I cannot sleep 😀"},
]
TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>"
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}{% endif %}"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A byte-level BPE like Qwen's, small, trained on the spot, with a chat template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|system|>", "<|user|>", "<|assistant|>", "<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([message["content"] for message in PROMPT] * 5, trainer)
    path = tmp_path_factory.mktemp("tokenizers") / "tiny-bpe"
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    fast.chat_template = TEMPLATE
    fast.save_pretrained(path)
    return path


def test_the_length_is_that_of_the_chat_template_with_thinking_off(folder: Path):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    written = "".join(f"<|{one['role']}|>{one['content']}<|end|>" for one in PROMPT) + "<|assistant|><think></think>"
    measured = ruler(folder)
    assert measured.length(PROMPT) == len(tokenizer(written)["input_ids"])
    encoded = tokenizer.apply_chat_template(PROMPT, add_generation_prompt=True, enable_thinking=False)
    assert measured.length(PROMPT) == len(encoded["input_ids"])
    assert 10 < measured.length(PROMPT) < len(written.encode())


def test_a_folder_without_a_whole_tokenizer_is_refused(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for content in (None, "{nope"):
        if content is not None:
            (tmp_path / "tokenizer.json").write_text(content, encoding="utf-8")
        with pytest.raises(UnreadableFile, match="no tokenizer") as caught:
            ruler(tmp_path)
        assert (caught.value.where, bool(caught.value.hint)) == (tmp_path, True)
    for path in folder.glob("*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        content.pop("chat_template", None)
        (tmp_path / path.name).write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UnreadableFile, match="no chat template"):
        ruler(tmp_path)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UnreadableFile, match="transformers is not installed"):
        ruler(folder)


def test_without_a_tokenizer_the_limit_is_an_estimate():
    measured = ruler(None)
    assert measured.unit == "characters"
    assert (measured.limit(1024, "zh"), measured.limit(1024, "en")) == (1433, 4096)
