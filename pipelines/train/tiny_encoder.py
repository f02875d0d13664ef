"""A tiny encoder for `cpu_smoke`, to be trained as E's reward model. Runs in `.venv-train`.

    python -m pipelines.train.tiny_encoder FOLDER TRIPLETS.parquet… [--seed N] [--hidden N]

It reads the rows of the train split alone. Its tokenizer is trained on their texts. It is an ELECTRA without a layer, a
bag of tokens: some seventy questions teach attention nothing, and a layer would double what there is to train. Tokens
have random directions, and what counts of them starts as the texts have it: by inverse document frequency, for 什么
says less than 失眠, and about the mean of all texts, for what they have in common says nothing of any.
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
HIDDEN = 768
LENGTH = 512  # tokens of a text
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


def model(tokens: Any, hidden: int = HIDDEN) -> Any:
    """An ELECTRA of embeddings alone, to be given its weights by `weigh` and `centre`."""
    from transformers import ElectraConfig, ElectraModel

    config = ElectraConfig(
        vocab_size=len(tokens),
        embedding_size=hidden,
        hidden_size=hidden,
        num_hidden_layers=0,
        max_position_embeddings=LENGTH,
        pad_token_id=tokens.pad_token_id,
        hidden_dropout_prob=0.1,
    )
    return ElectraModel(config)


def weigh(made: Any, shares: Sequence[float], seed: int) -> None:
    """Let every token count by its share, 0 … 1, in a random direction.

    The layer norm brings the vectors of all tokens to one length. So a token's direction has its share of that length,
    and the rest lies in two places of opposite sign, which the norm then leaves out. The columns of the directions are
    orthogonal: its rows then have less in common than rows that are merely random. What places and types add to a
    token begins at nothing.
    """
    import torch

    torch.manual_seed(seed)
    share = torch.tensor(shares).clamp(0, 1)
    hidden = made.config.hidden_size
    with torch.no_grad():
        embeddings = made.embeddings
        words = embeddings.word_embeddings.weight
        direction = torch.linalg.qr(torch.randn(max(len(share), hidden), hidden - _BALLAST)).Q[: len(share)]
        direction = torch.nn.functional.normalize(direction - direction.mean(1, keepdim=True))
        rest = math.sqrt(hidden / _BALLAST) * (1 - share**2).sqrt()
        words[:, 0], words[:, 1] = rest, -rest
        words[:, _BALLAST:] = math.sqrt(hidden) * share[:, None] * direction
        for added in (embeddings.position_embeddings, embeddings.token_type_embeddings):
            added.weight.zero_()
        embeddings.LayerNorm.weight[:_BALLAST] = 0


def centre(encoder: Encoder, ids: Sequence[Sequence[int]]) -> None:
    """Let the mean of texts, given by their tokens, be 0: it becomes the bias of the layer norm, subtracted."""
    import torch

    with torch.no_grad():
        norm = encoder.model.embeddings.LayerNorm
        norm.bias -= torch.stack([encoder.model(torch.tensor([one])).last_hidden_state[0].mean(0) for one in ids]).mean(
            0
        )


def make(paths: Sequence[Path], folder: Path, seed: int = 0, hidden: int = HIDDEN) -> dict[str, int]:
    """Make the encoder for the triplets of Parquet files; gives its figures. Raises RequestError without train rows."""
    import pyarrow.parquet as pq

    texts: set[tuple[Kind, str]] = set()
    for path in paths:
        for row in pq.read_table(path, columns=[*_TEXTS, "split"], partitioning=None).to_pylist():
            if row["split"] == "train":
                texts |= {(kind, row[column]) for column, kind in _TEXTS.items()}
    if not texts:
        raise RequestError("there are no triplets to learn words from", where=paths, hint="name files with train rows")
    read = sorted(texts)
    tokens = tokenizer([*(text for _, text in read), *MARKS.values()])
    made = model(tokens, hidden)
    encoder = Encoder(made, tokens, max_length=LENGTH, device="cpu")
    ids = [encoder.ids([text], kind)[0] for kind, text in read]
    met = Counter(token for one in ids for token in set(one))
    most = math.log(1 + len(read))
    weigh(made, [math.log((1 + len(read)) / (1 + met[token])) / most for token in range(len(tokens))], seed)
    centre(encoder, ids)
    encoder.save(folder)
    return {"weights": sum(one.numel() for one in made.parameters()), "vocabulary": len(tokens), "texts": len(read)}


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("triplets", type=Path, nargs="+")
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
