"""Texts to vectors: a Hugging Face encoder, mean pooling, unit length. Runs in `.venv-train`.

A question and an answer are told apart by a word in front (`MARKS`), so that one encoder serves any base. A text longer
than the model reads at a time is read in windows, one behind the other, each with that word in front, and its vector is
the mean over the tokens of all of them; a maximum would pay for one good part of a text, whatever the rest says. That,
and the pooling, are our choice: E names neither.
"""

import json
import math
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from pipelines.rewards.contrastive import Reading

Kind: TypeAlias = Literal["query", "answer"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Vectors: TypeAlias = NDArray[np.float32]

NOTE = "encoder.json"  # in the folder of an encoder that we trained
MARKS: dict[Kind, str] = {"query": "问：", "answer": "答："}
MAX_LENGTH = 512  # tokens of a window, where neither the folder nor the model asks for fewer
# How a text longer than a window is read: the mean over its windows, or the first of them alone, as encoders that were
# trained before there were windows read it.
Windows: TypeAlias = Literal["mean", "first"]
_WINDOWS = 16  # of a text that are read, so that a longer one costs no more; ours
_CHARACTERS = 8  # of a text that are looked at for each token of a window
_TOKENS = 16_384  # side by side, padding counted


class Tokens(NamedTuple):
    """The tokens of a text, window by window, and whether its end is among them."""

    windows: list[list[int]]
    whole: bool


class Encoder:
    """An encoder with its tokenizer.

    Attributes:
        model: A `transformers` model whose `last_hidden_state` is [n, length, d].
        tokens: Its tokenizer.
        max_length: Tokens of a window.
        windows: How a text longer than that is read.
    """

    def __init__(
        self, model: Any, tokens: Any, *, max_length: int, windows: Windows = "mean", device: str = "auto"
    ) -> None:
        import torch

        self.device = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        self.model = model.to(self.device).eval()
        self.tokens = tokens
        self.max_length = min(max_length, _positions(model.config))
        self.windows = windows

    @classmethod
    def load(
        cls, folder: Path, *, max_length: int | None = None, windows: Windows | None = None, device: str = "auto"
    ) -> "Encoder":
        """An encoder from a folder, which reads as it was trained to, unless told otherwise. Raises OSError or
        ValueError, in words of `transformers`, for what is none.
        """
        from transformers import AutoModel, AutoTokenizer

        auto: Any = AutoTokenizer  # it has no types
        note = read_note(folder)
        return cls(
            AutoModel.from_pretrained(folder),
            auto.from_pretrained(folder),
            max_length=max_length or int(note.get("max_length", MAX_LENGTH)),
            windows=windows or note.get("windows", "first" if note else "mean"),
            device=device,
        )

    @property
    def dimension(self) -> int:
        """d, of a vector."""
        return int(self.model.config.hidden_size)

    def tokenise(self, text: str, kind: Kind) -> Tokens:
        """The windows of a text, each with the mark of its kind in front; of an empty text, that mark alone."""
        mark, most = MARKS[kind], 1 if self.windows == "first" else _WINDOWS
        windows: list[list[int]] = []
        while not windows or (len(windows) < most and not _blank(text)):
            part = text[: _CHARACTERS * self.max_length]
            cut: dict[str, Any] = {"truncation": True, "max_length": self.max_length, "return_overflowing_tokens": True}
            tokens = self.tokens(mark + part, **cut, return_offsets_mapping=True)
            windows.append(tokens["input_ids"][0])
            # What comes next begins where the first token that had no room does: a token may be a part of a character.
            left = [start for start, end in chain(*tokens["offset_mapping"][1:]) if end > start]
            text = text[max(1, left[0] - len(mark)) if left else len(part) :].lstrip()
        return Tokens(windows, _blank(text))

    def pooled(self, texts: Sequence[Sequence[Sequence[int]]]) -> Any:
        """Unit vectors [n, d] of texts by the tokens of their windows, as a tensor that knows its gradient."""
        return _unit(self._sums([window for one in texts for window in one]), [len(one) for one in texts])

    def vectors(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Unit vectors [n, d] of texts, without a gradient."""
        import torch

        of_texts = [self.tokenise(text, kind).windows for text in texts]
        windows = [window for one in of_texts for window in one]
        sums = torch.zeros(len(windows), self.dimension)
        order = sorted(range(len(windows)), key=lambda place: len(windows[place]))
        with torch.no_grad():
            while order:
                n = max(1, _TOKENS // len(windows[order[-1]]))
                taken, order = order[-n:], order[:-n]  # the longest together: little is padding
                sums[taken] = self._sums([windows[place] for place in taken]).cpu()
        vectors: Vectors = _unit(sums, [len(one) for one in of_texts]).numpy()
        return vectors

    def _sums(self, windows: Sequence[Sequence[int]]) -> Any:
        """[m, d], of each window the sum of the states of its tokens."""
        import torch

        width = max(map(len, windows))
        pad = self.tokens.pad_token_id or 0
        mask = torch.tensor([[1] * len(one) + [0] * (width - len(one)) for one in windows], device=self.device)
        filled = torch.tensor([[*one, *[pad] * (width - len(one))] for one in windows], device=self.device)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
            states = self.model(input_ids=filled, attention_mask=mask).last_hidden_state
        return (states.float() * mask.unsqueeze(-1).float()).sum(1)

    def save(self, folder: Path) -> None:
        """Weights and tokenizer, as `transformers` writes them."""
        self.model.save_pretrained(folder)
        self.tokens.save_pretrained(folder)


def read_note(folder: Path) -> dict[str, Any]:
    """The content of `encoder.json`; empty without one."""
    path = folder / NOTE
    note: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return note


def read_thresholds(note: dict[str, Any]) -> dict[Reading, float]:
    """T of each reading of an answer, from the content of `encoder.json`; empty without. One of before has one T."""
    noted = note.get("threshold")
    readings: tuple[Reading, ...] = get_args(Reading)
    values = [noted.get(one) if isinstance(noted, dict) else noted for one in readings]
    finite = [one for one in values if isinstance(one, float) and math.isfinite(one)]
    return dict(zip(readings, finite, strict=True)) if len(finite) == len(readings) else {}


def _unit(sums: Any, counts: Sequence[int]) -> Any:
    """Unit vectors [n, d] of texts by the sums over their windows: the direction of the mean over all their tokens."""
    import torch

    totals = torch.stack([of_text.sum(0) for of_text in sums.split(list(counts))]) if counts else sums
    return torch.nn.functional.normalize(totals, dim=-1)


def _blank(text: str) -> bool:
    """Whether no tokenizer makes a token of it: of separators, and of characters that are not seen."""
    return not any(one.isprintable() and not one.isspace() for one in text)


def _positions(config: Any) -> int:
    """How many places a model has; RoBERTa's begin to count behind its padding."""
    places = getattr(config, "max_position_embeddings", None) or MAX_LENGTH
    offset = (config.pad_token_id or 0) + 1 if getattr(config, "model_type", "") in {"roberta", "xlm-roberta"} else 0
    return int(places) - offset
