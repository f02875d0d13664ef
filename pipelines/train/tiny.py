"""A tiny Qwen3 that writes M's format badly, for `cpu_smoke`. Runs in `.venv-train`.

    python -m pipelines.train.tiny ROWS.parquet FOLDER [--seed N]

Its tokenizer is trained on the prompts that it will see. The tags are single tokens, but no special ones: those vanish
when a text is decoded, and with them the reward. A short warm start teaches it what an answer in the format looks like,
mostly spoiled, so that there is something left to learn; the texts are the first clauses of ours in `CLAUSES`.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from schemas.reasoning import ECOT_TAGS, Ecot

CLAUSES = {
    "situation": ("压力很大", "睡不着", "很孤单", "关系断了"),
    "motivation": ("想被理解", "想要陪伴", "想改变", "想安心"),
    "strategy": ("先共情", "先倾听", "给肯定", "再提问"),
    "answer": ("我在听。", "这不是您的错。", "您辛苦了。"),
}
SAMPLES = 400
WELL_FORMED = 0.15  # the share of samples in good form
_VOCABULARY = 2_000
_TEMPLATE = (
    "{%- set think = '<think>\\n\\n</think>\\n\\n' if enable_thinking is defined and not enable_thinking else '' %}"
    "{%- for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' "
    "+ (think if message['role'] == 'assistant' else '') + message['content'] + '<|im_end|>\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' + think }}{%- endif %}"
)

Messages = list[dict[str, str]]


def tokenizer(texts: Iterable[str]) -> Any:
    """A byte-level BPE trained on `texts`, with the tags as tokens of their own."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_VOCABULARY,
        show_progress=False,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    bpe.train_from_iterator(texts, trainer)
    fast: Any = PreTrainedTokenizerFast  # it has no types
    made = fast(tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|endoftext|>")  # noqa: S106
    made.add_tokens([tag for name in ECOT_TAGS for tag in (f"<{name}>", f"</{name}>")], special_tokens=False)
    made.chat_template = _TEMPLATE
    return made


def model(tokens: Any, seed: int) -> Any:
    """A Qwen3 of two layers with random weights."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    made = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokens),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=16,
            max_position_embeddings=2048,
            tie_word_embeddings=True,
            eos_token_id=tokens.eos_token_id,
            pad_token_id=tokens.pad_token_id,
            bos_token_id=None,
        )
    )
    made.generation_config.eos_token_id = tokens.eos_token_id
    made.generation_config.pad_token_id = tokens.pad_token_id
    return made


def sample(rng: random.Random) -> str:
    """An answer in M's format, or with tags missing, shuffled, doubled, never closed."""
    said = {name: rng.choice(clauses) for name, clauses in CLAUSES.items()}
    if rng.random() < WELL_FORMED:
        return Ecot(**said).render()
    if rng.random() < 0.25:
        return said["answer"]
    element = {name: f"<{name}>{text}</{name}>" for name, text in said.items()}
    inside = [element[name] for name in ("situation", "motivation", "strategy") if rng.random() < 0.55]
    if rng.random() < 0.4:
        rng.shuffle(inside)
    if inside and rng.random() < 0.3:
        inside.append(rng.choice(inside))
    body = "".join(one if rng.random() > 0.15 else one.partition("</")[0] for one in inside)
    if rng.random() < 0.5:
        body = f"<thinking>{body}" + ("</thinking>" if rng.random() > 0.2 else "")
    answer = element["answer"] if rng.random() < 0.5 else said["answer"]
    return answer + body if rng.random() < 0.2 else body + answer


def warm_up(
    made: Any,
    tokens: Any,
    prompts: Sequence[Messages],
    seed: int,
    *,
    epochs: int = 20,
    batch: int = 16,
    rate: float = 3e-3,
) -> list[float]:
    """Teach a model `SAMPLES` answers by cross-entropy on their tokens; gives the loss of each step."""
    import torch

    torch.manual_seed(seed)
    rng = random.Random(seed)
    rows = []
    for place in range(SAMPLES):
        prompt = tokens.apply_chat_template(
            prompts[place % len(prompts)], add_generation_prompt=True, enable_thinking=False
        )["input_ids"]
        rows.append((prompt, [*tokens.encode(sample(rng), add_special_tokens=False), tokens.eos_token_id]))
    steps = epochs * -(-len(rows) // batch)
    optimiser = torch.optim.AdamW(made.parameters(), lr=rate, weight_decay=0.0)
    losses: list[float] = []
    for _ in range(epochs):
        rng.shuffle(rows)
        for begin in range(0, len(rows), batch):
            for group in optimiser.param_groups:
                group["lr"] = rate * min(1.0, (len(losses) + 1) / 10) * max(0.1, 1 - len(losses) / steps)
            loss = made(**_batch(rows[begin : begin + batch], tokens.pad_token_id)).loss
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(made.parameters(), 1.0)
            optimiser.step()
            losses.append(float(loss.detach()))
    return losses


def _batch(rows: Sequence[tuple[list[int], list[int]]], pad: int) -> dict[str, Any]:
    """Some rows side by side, padded on the left as rollouts are. A prompt is read and not learnt: the words behind it
    are all that the model's head, which costs most of such a small model, is asked for.
    """
    import torch

    width = max(len(prompt) + len(answer) for prompt, answer in rows)
    longest = max(len(answer) for _, answer in rows) + 1  # the first word of an answer follows from what is before it
    filled = [(width - len(prompt) - len(answer), prompt + answer) for prompt, answer in rows]
    mask = torch.tensor([[0] * left + [1] * len(ids) for left, ids in filled])
    return {
        "input_ids": torch.tensor([[pad] * left + ids for left, ids in filled]),
        "attention_mask": mask,
        "position_ids": (mask.cumsum(-1) - 1).clamp(min=0),
        "labels": torch.tensor([[-100] * (longest - len(answer)) + answer for _, answer in rows]),
        "logits_to_keep": longest,
    }


def make(rows: Path, folder: Path, seed: int = 0) -> dict[str, Any]:
    """Make the model of `cpu_smoke` for the prompts in a Parquet file of a release; gives its figures."""
    import pyarrow.parquet as pq

    prompts: list[Messages] = pq.read_table(rows, columns=["prompt"])["prompt"].to_pylist()
    said = [message["content"] for prompt in prompts for message in prompt]
    ours = [clause for clauses in CLAUSES.values() for clause in clauses] * 20
    tokens = tokenizer([*said, *ours, *("system\n", "user\n", "assistant\n", "<think>\n\n</think>\n\n")])
    made = model(tokens, seed)
    losses = warm_up(made, tokens, prompts, seed)
    made.save_pretrained(folder)
    tokens.save_pretrained(folder)
    lengths = [len(tokens.apply_chat_template(prompt, add_generation_prompt=True)["input_ids"]) for prompt in prompts]
    return {
        "parameters": sum(one.numel() for one in made.parameters()),
        "vocabulary": len(tokens),
        "longest_prompt": max(lengths),
        "loss": [losses[0], losses[-1]],
    }


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    sys.stdout.write(json.dumps(make(told.rows, told.folder, told.seed)) + "\n")


if __name__ == "__main__":
    main()
