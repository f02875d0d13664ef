"""A tiny BERT for `cpu_smoke`, to be trained as E's reward model. Runs in `.venv-train`.

    python -m pipelines.train.tiny_encoder TRIPLETS.parquet… FOLDER [--seed N] [--hidden N]

It reads the rows of the train split alone. Its tokenizer is trained on their texts. Its weights are random, but for how
much a token counts: it starts by inverse document frequency, for some seventy questions are too few to learn that
什么 says less than 失眠.
"""

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pipelines.errors import GongqingError, RequestError
from pipelines.train.embedding import MARKS, Encoder, Kind

VOCABULARY = 1_500
HIDDEN = 256
LENGTH = 256  # tokens of a text
_TEXTS: dict[str, Kind] = {"query": "query", "positive": "answer", "negative": "answer"}
_BALLAST = 2  # places of a token's vector that hold what does not count of it


def tokenizer(texts: Iterable[str]) -> Any:
    """A byte-level BPE trained on `texts`: it knows every character, and what is often said is one token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        show_progress=False,
        special_tokens=["<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    bpe.train_from_iterator(texts, trainer)
    fast: Any = PreTrainedTokenizerFast  # it has no types
    return fast(tokenizer_object=bpe, pad_token="<pad>")  # noqa: S106


def model(tokens: Any, seed: int, hidden: int = HIDDEN) -> Any:
    """A BERT of one layer with random weights."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(tokens),
        hidden_size=hidden,
        intermediate_size=hidden // 2,
        num_hidden_layers=1,
        num_attention_heads=4,
        max_position_embeddings=LENGTH,
        pad_token_id=tokens.pad_token_id,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
    )
    return BertModel(config)


def weigh(made: Any, shares: Sequence[float]) -> None:
    """Let every token count by its share, 0 … 1.

    BERT brings the vectors of all tokens to one length. So a token's random direction has its share of that length, and
    the rest lies in two places of opposite sign, which the last layer norm leaves out. What attention, places and types
    add to it begins at nothing, else it would be what all texts have in common.
    """
    import torch

    share = torch.tensor(shares).clamp(0, 1)
    hidden = made.config.hidden_size
    with torch.no_grad():
        words = made.embeddings.word_embeddings.weight
        direction = torch.randn(len(share), hidden - _BALLAST)
        direction = torch.nn.functional.normalize(direction - direction.mean(1, keepdim=True))
        rest = math.sqrt(hidden / _BALLAST) * (1 - share**2).sqrt()
        words[:, 0], words[:, 1] = rest, -rest
        words[:, _BALLAST:] = math.sqrt(hidden) * share[:, None] * direction
        for added in (made.embeddings.position_embeddings, made.embeddings.token_type_embeddings):
            added.weight.zero_()
        for layer in made.encoder.layer:
            layer.attention.output.dense.weight.zero_()
            layer.output.dense.weight.zero_()
        made.encoder.layer[-1].output.LayerNorm.weight[:_BALLAST] = 0


def make(paths: Sequence[Path], folder: Path, seed: int = 0, hidden: int = HIDDEN) -> dict[str, int]:
    """Make the encoder for the triplets of Parquet files; gives its figures. Raises RequestError without train rows."""
    import pyarrow.parquet as pq

    texts: set[tuple[Kind, str]] = set()
    for path in paths:
        for row in pq.read_table(path, columns=[*_TEXTS, "split"], partitioning=None).to_pylist():
            if row["split"] == "train":
                texts |= {(kind, row[column]) for column, kind in _TEXTS.items()}
    if not texts:
        raise RequestError(
            "there are no triplets to learn words from", where=paths, remedy="name files with train rows"
        )
    read = sorted(texts)
    tokens = tokenizer([*(text for _, text in read), *MARKS.values()])
    made = model(tokens, seed, hidden)
    encoder = Encoder(made, tokens, max_length=LENGTH, device="cpu")
    met = Counter(token for kind, text in read for token in set(encoder.ids([text], kind)[0]))
    most = math.log(1 + len(read))
    weigh(made, [math.log((1 + len(read)) / (1 + met[token])) / most for token in range(len(tokens))])
    encoder.save(folder)
    return {"weights": sum(one.numel() for one in made.parameters()), "vocabulary": len(tokens), "texts": len(read)}


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("triplets", type=Path, nargs="+")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hidden", type=int, default=HIDDEN, help="numbers of a vector")
    told = parser.parse_args()
    try:
        sys.stdout.write(json.dumps(make(told.triplets, told.folder, told.seed, told.hidden)) + "\n")
    except GongqingError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
