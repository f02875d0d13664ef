"""A tiny encoder for `cpu_smoke`, to be trained as E's reward model. Runs in `.venv-train`.

    python -m pipelines.train.tiny_encoder FOLDER TRIPLETS.parquet… [--hidden N]

It reads the rows of the train split alone. It is an ELECTRA without a layer, a bag of tokens: some seventy questions
teach attention nothing. Tokens have random directions, and their weight starts by inverse document frequency and about
the mean of all texts.
"""

import argparse
import math
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from pipelines.errors import GongqingError, RequestError
from pipelines.train.embedding import MARKS, Encoder, Kind
from pipelines.train.tiny import train_bpe

_VOCABULARY = 1_500
_LENGTH = 512  # tokens of a text
_TEXTS: dict[str, Kind] = {"query": "query", "positive": "answer", "negative": "answer"}
_BALLAST = 2  # places of a token's vector that hold the rest of its length
_SEED = 0


def make_encoder(paths: Sequence[Path], folder: Path, hidden: int) -> None:
    """Make the encoder for the triplets of Parquet files. Raises RequestError without train rows."""
    import pyarrow.parquet as pq

    texts: set[tuple[Kind, str]] = set()
    for path in paths:
        for row in pq.read_table(path, columns=[*_TEXTS, "split"], partitioning=None).to_pylist():
            if row["split"] == "train":
                texts |= {(kind, row[column]) for column, kind in _TEXTS.items()}
    if not texts:
        raise RequestError("there are no triplets to learn words from", where=paths, hint="name files with train rows")
    import torch
    from transformers import ElectraConfig, ElectraModel

    ordered = sorted(texts)
    tokens = train_bpe([*(text for _, text in ordered), *MARKS.values()], _VOCABULARY, ["<pad>"], pad_token="<pad>")  # noqa: S106
    config = ElectraConfig(
        vocab_size=len(tokens),
        embedding_size=hidden,
        hidden_size=hidden,
        num_hidden_layers=0,
        max_position_embeddings=_LENGTH,
        pad_token_id=tokens.pad_token_id,
        hidden_dropout_prob=0.1,
    )
    encoder = Encoder(ElectraModel(config), tokens, max_length=_LENGTH, device="cpu")
    ids = [encoder.tokenise(text, kind).windows for kind, text in ordered]
    documents = Counter(token for windows in ids for token in set(chain.from_iterable(windows)))
    n = len(ordered)
    _weigh(
        encoder.model, [math.log((1 + n) / (1 + documents[token])) / math.log(1 + n) for token in range(len(tokens))]
    )
    with torch.no_grad():  # the mean of all texts becomes 0
        states = [[encoder.model(torch.tensor([one])).last_hidden_state[0] for one in windows] for windows in ids]
        means = [torch.cat(of_windows).mean(0) for of_windows in states]
        encoder.model.embeddings.LayerNorm.bias -= torch.stack(means).mean(0)
    encoder.save(folder)


def _weigh(model: Any, shares: Sequence[float]) -> None:
    """Let every token count by its share, 0 … 1, in a random direction. The layer norm brings the vectors of all tokens
    to one length. So a token's direction has its share of that length, and the rest lies in two places of opposite
    sign, which the norm then leaves out. The columns of the directions are orthogonal: its rows then have less in
    common than rows that are merely random. Positions and types begin at 0.
    """
    import torch

    torch.manual_seed(_SEED)
    share = torch.tensor(shares).clamp(0, 1)
    hidden = model.config.hidden_size
    with torch.no_grad():
        embeddings = model.embeddings
        words = embeddings.word_embeddings.weight
        direction = torch.linalg.qr(torch.randn(max(len(share), hidden), hidden - _BALLAST)).Q[: len(share)]
        direction = torch.nn.functional.normalize(direction - direction.mean(1, keepdim=True))
        rest = math.sqrt(hidden / _BALLAST) * (1 - share**2).sqrt()
        words[:, 0], words[:, 1] = rest, -rest
        words[:, _BALLAST:] = math.sqrt(hidden) * share[:, None] * direction
        for added in (embeddings.position_embeddings, embeddings.token_type_embeddings):
            added.weight.zero_()
        embeddings.LayerNorm.weight[:_BALLAST] = 0


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("triplets", type=Path, nargs="+")
    parser.add_argument("--hidden", type=int, default=768, help="numbers of a vector")
    args = parser.parse_args()
    try:
        make_encoder(args.triplets, args.folder, args.hidden)
    except GongqingError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
