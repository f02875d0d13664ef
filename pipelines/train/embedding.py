"""Texts to vectors: a Hugging Face encoder, mean pooling, unit length. Runs in `.venv-train`.

A question and an answer are told apart by a word in front (`MARKS`), so that one encoder serves any base. That, and the
pooling, are our choice: E names neither.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

Kind: TypeAlias = Literal["query", "answer"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Vectors: TypeAlias = NDArray[np.float32]

NOTE = "encoder.json"  # in the folder of an encoder that we trained
MARKS: dict[Kind, str] = {"query": "问：", "answer": "答："}
MAX_LENGTH = 512  # tokens, where neither the folder nor the model asks for fewer
_CHARACTERS = 8  # of a text that are read for each token that may be kept, so that a long one costs no more
_TOKENS = 16_384  # side by side, padding counted


class Encoder:
    """An encoder with its tokenizer.

    Attributes:
        model: A `transformers` model whose `last_hidden_state` is [n, length, d].
        tokens: Its tokenizer.
        max_length: Tokens of a text that are read; the rest is cut.
    """

    def __init__(self, model: Any, tokens: Any, *, max_length: int, device: str = "auto") -> None:
        import torch

        self.device = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        self.model = model.to(self.device).eval()
        self.tokens = tokens
        self.max_length = min(max_length, _positions(model.config))

    @classmethod
    def load(cls, folder: Path, *, max_length: int | None = None, device: str = "auto") -> "Encoder":
        """An encoder from a folder. Raises OSError or ValueError, in words of `transformers`, for what is none."""
        from transformers import AutoModel, AutoTokenizer

        auto: Any = AutoTokenizer  # it has no types
        return cls(
            AutoModel.from_pretrained(folder),
            auto.from_pretrained(folder),
            max_length=max_length or int(read_note(folder).get("max_length", MAX_LENGTH)),
            device=device,
        )

    @property
    def dimension(self) -> int:
        """d, of a vector."""
        return int(self.model.config.hidden_size)

    def ids(self, texts: Sequence[str], kind: Kind) -> list[list[int]]:
        """The tokens of texts, each cut to `max_length`; of an empty one, those of its mark."""
        marked = [MARKS[kind] + text[: _CHARACTERS * self.max_length] for text in texts]
        ids: list[list[int]] = self.tokens(marked, truncation=True, max_length=self.max_length)["input_ids"]
        return ids

    def is_cut(self, text: str, ids: Sequence[int]) -> bool:
        """Whether a text is longer than its tokens, as `ids` cut them."""
        return len(ids) >= self.max_length or len(text) > _CHARACTERS * self.max_length

    def pooled(self, ids: Sequence[Sequence[int]]) -> Any:
        """Unit vectors [n, d] of texts by their tokens, as a tensor that knows its gradient."""
        import torch

        width = max(map(len, ids))
        pad = self.tokens.pad_token_id or 0
        mask = torch.tensor([[1] * len(one) + [0] * (width - len(one)) for one in ids], device=self.device)
        filled = torch.tensor([[*one, *[pad] * (width - len(one))] for one in ids], device=self.device)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
            states = self.model(input_ids=filled, attention_mask=mask).last_hidden_state
        weights = mask.unsqueeze(-1).float()
        return torch.nn.functional.normalize((states.float() * weights).sum(1) / weights.sum(1), dim=-1)

    def vectors(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Unit vectors [n, d] of texts, without a gradient."""
        import torch

        ids = self.ids(texts, kind)
        vectors: Vectors = np.zeros((len(ids), self.dimension), np.float32)
        order = sorted(range(len(ids)), key=lambda place: len(ids[place]))
        with torch.no_grad():
            while order:
                n = max(1, _TOKENS // len(ids[order[-1]]))
                taken, order = order[-n:], order[:-n]  # the longest together: little is padding
                vectors[taken] = self.pooled([ids[place] for place in taken]).cpu().numpy()
        return vectors

    def save(self, folder: Path) -> None:
        """Weights and tokenizer, as `transformers` writes them."""
        self.model.save_pretrained(folder)
        self.tokens.save_pretrained(folder)


def read_note(folder: Path) -> dict[str, Any]:
    """The content of `encoder.json`; empty without one."""
    path = folder / NOTE
    note: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return note


def _positions(config: Any) -> int:
    """How many places a model has; RoBERTa's begin to count behind its padding."""
    places = getattr(config, "max_position_embeddings", None) or MAX_LENGTH
    offset = (config.pad_token_id or 0) + 1 if getattr(config, "model_type", "") in {"roberta", "xlm-roberta"} else 0
    return int(places) - offset
