"""A tiny Qwen3, for `cpu_smoke`, that writes a format badly, or has learnt nothing. Runs in `.venv-train`.

    python -m pipelines.train.tiny FOLDER ROWS.parquet… [--form ecot|coe|cer] [--epochs N] [--batch N] [--read FILE]…

Its tokenizer is trained on the texts that it will see, and on what a policy that starts from it will read (`--read`).
The tags are single tokens, but no special ones: those vanish when a text is decoded, and with them the reward. With a
form, a short warm start teaches it what an answer in that format looks like, mostly spoiled, so that there is something
left to learn; the texts are clauses of ours in `CLAUSES`.
"""

import argparse
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from schemas.labels import SENTIMENTS, STAGES, STRATEGIES
from schemas.reasoning import FORMATS, Cer, Coe, Ecot, Reasoning

_ANSWERS = ("我在听。", "这不是您的错。", "您辛苦了。")
CLAUSES: dict[str, dict[str, tuple[str, ...]]] = {
    "ecot": {
        "situation": ("压力很大", "睡不着", "很孤单", "关系断了"),
        "motivation": ("想被理解", "想要陪伴", "想改变", "想安心"),
        "strategy": ("先共情", "先倾听", "给肯定", "再提问"),
        "answer": _ANSWERS,
    },
    "coe": {
        "L1": ("焦虑", "委屈", "很孤单", "难过"),
        "L2": ("怕被否定", "把错揽下", "习惯忍着", "没人说"),
        "L3": ("想被理解", "想要建议", "想要肯定", "想安心"),
        "L4": ("先共情", "先倾听", "给肯定", "再提问"),
        "answer": _ANSWERS,
    },
    "cer": {
        "history_reasoning": ("刚开始说。", "说到一半。"),
        "emotion": ("焦虑", "委屈", "难过"),
        "emotion_reasoning": ("反复提起。", "语气很急。"),
        "strategy_reasoning": ("先接住。", "再多听。"),
        "response": _ANSWERS,
    },
}
SAMPLES = 400
WELL_FORMED = 0.15  # the share of samples in good form
_RATE = 3e-3
_VOCABULARY = 2_000
_SEED = 0
_TEMPLATE = (
    "{%- set think = '<think>\\n\\n</think>\\n\\n' if enable_thinking is defined and not enable_thinking else '' %}"
    "{%- for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' "
    "+ (think if message['role'] == 'assistant' else '') + message['content'] + '<|im_end|>\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' + think }}{%- endif %}"
)

Messages = list[dict[str, str]]


def train_bpe(texts: Iterable[str], vocabulary: int, special: Sequence[str], **named: str) -> Any:
    """A byte-level BPE trained on `texts`: it knows every character, and what is frequent is one token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, show_progress=False, special_tokens=list(special), initial_alphabet=alphabet
    )
    bpe.train_from_iterator(texts, trainer)
    fast: Any = PreTrainedTokenizerFast  # it has no types
    return fast(tokenizer_object=bpe, **named)


def make_tokenizer(texts: Iterable[str]) -> Any:
    """A tokenizer trained on `texts`, with the tags as tokens of their own, and a chat template."""
    special = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    tokens = train_bpe(texts, _VOCABULARY, special, eos_token="<|im_end|>", pad_token="<|endoftext|>")  # noqa: S106
    names = dict.fromkeys(name for record in FORMATS.values() for name in record.grammar.names)
    tokens.add_tokens([tag for name in names for tag in (f"<{name}>", f"</{name}>")], special_tokens=False)
    tokens.chat_template = _TEMPLATE
    return tokens


def _make_model(tokens: Any) -> Any:
    """A Qwen3 of two layers with random weights."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(_SEED)
    ends = {"eos_token_id": tokens.eos_token_id, "pad_token_id": tokens.pad_token_id}
    config = Qwen3Config(
        vocab_size=len(tokens),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        bos_token_id=None,
        **ends,
    )
    model = Qwen3ForCausalLM(config)
    for name, token in ends.items():
        setattr(model.generation_config, name, token)
    return model


def _make_record(form: str, rng: random.Random) -> Reasoning:
    texts = {name: rng.choice(clauses) for name, clauses in CLAUSES[form].items()}
    if form == "ecot":
        return Ecot(**texts)
    if form == "coe":
        return Coe(**texts)
    return Cer(
        lang="zh",
        stage=rng.choice(STAGES.en),
        sentiment=rng.choice(SENTIMENTS.en),
        intensity=rng.randint(1, 5),
        strategy=rng.choice(STRATEGIES.en),
        **texts,
    )


def make_sample(form: str, rng: random.Random) -> str:
    """An answer in a format, or with tags missing, shuffled, doubled, never closed."""
    record = _make_record(form, rng)
    if rng.random() < WELL_FORMED:
        return record.render()
    texts = record.grammar.read(record.render())
    if rng.random() < 0.25:
        return texts["answer"]
    outer, *children, _ = record.grammar.names
    element = {name: f"<{name}>{text}</{name}>" for name, text in texts.items()}
    inside = [element[name] for name in children if rng.random() < 0.55]
    if rng.random() < 0.4:
        rng.shuffle(inside)
    if inside and rng.random() < 0.3:
        inside.append(rng.choice(inside))
    body = "".join(one if rng.random() > 0.15 else one.partition("</")[0] for one in inside)
    if rng.random() < 0.5:
        body = f"<{outer}>{body}" + (f"</{outer}>" if rng.random() > 0.2 else "")
    answer = element["answer"] if rng.random() < 0.5 else texts["answer"]
    return answer + body if rng.random() < 0.2 else body + answer


def _warm_up(model: Any, tokens: Any, prompts: Sequence[Messages], form: str, epochs: int, batch: int) -> None:
    """Teach a model `SAMPLES` answers by cross-entropy on their tokens. The answers of a step all belong to one prompt:
    it is long, they are short, and so it is read once for all.
    """
    import torch

    torch.manual_seed(_SEED)
    rng = random.Random(_SEED)
    template = {"add_generation_prompt": True, "enable_thinking": False}
    read = [tokens.apply_chat_template(prompt, **template)["input_ids"] for prompt in prompts]
    samples = [make_sample(form, rng) for _ in range(SAMPLES)]
    answers = [[*tokens.encode(one, add_special_tokens=False), tokens.eos_token_id] for one in samples]
    steps = epochs * -(-len(answers) // batch)
    optimiser = torch.optim.AdamW(model.parameters(), lr=_RATE, weight_decay=0.0)
    step = 0
    for _ in range(epochs):
        rng.shuffle(answers)
        for begin in range(0, len(answers), batch):
            for group in optimiser.param_groups:
                group["lr"] = _RATE * min(1.0, (step + 1) / 10) * max(0.1, 1 - step / steps)
            loss = _loss(model, rng.choice(read), answers[begin : begin + batch], tokens.pad_token_id)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            step += 1


def _loss(model: Any, prompt: list[int], answers: Sequence[list[int]], pad: int) -> Any:
    """The cross-entropy of some answers to a prompt: mean over their tokens."""
    import torch

    longest = max(map(len, answers))
    labels = torch.tensor([answer + [-100] * (longest - len(answer)) for answer in answers])
    # What is read of the prompt; its last token stands before the first of each answer.
    read = model(input_ids=torch.tensor([prompt[:-1]]), use_cache=True, logits_to_keep=1).past_key_values
    read.batch_repeat_interleave(len(answers))
    before = torch.tensor([[prompt[-1], *answer[:-1], *[pad] * (longest - len(answer))] for answer in answers])
    logits = model(input_ids=before, past_key_values=read, use_cache=True).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)


def _chats(paths: Iterable[Path]) -> list[Messages]:
    """The prompts, or the messages, in files of a release."""
    import pyarrow.parquet as pq

    tables = map(pq.read_table, paths)
    return [
        chat for one in tables for chat in one["prompt" if "prompt" in one.column_names else "messages"].to_pylist()
    ]


def main() -> None:
    """Entry point: makes a model for the chats in files of a release."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("rows", type=Path, nargs="+")
    parser.add_argument("--form", choices=sorted(CLAUSES))
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--read", type=Path, action="append", default=[])
    args = parser.parse_args()
    chats = _chats(args.rows)
    texts = [message["content"] for chat in chats + _chats(args.read) for message in chat]
    ours = [clause for clauses in CLAUSES.get(args.form, {}).values() for clause in clauses] * 20
    tokens = make_tokenizer([*texts, *ours, "system\n", "user\n", "assistant\n", "<think>\n\n</think>\n\n"])
    model = _make_model(tokens)
    if args.form:
        prompts = [chat[:-1] if chat[-1]["role"] == "assistant" else chat for chat in chats]
        _warm_up(model, tokens, prompts, args.form, args.epochs, args.batch)
    model.save_pretrained(args.folder)
    tokens.save_pretrained(args.folder)


if __name__ == "__main__":
    main()
