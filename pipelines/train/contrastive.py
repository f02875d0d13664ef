"""E's reward model: an encoder in which a question is nearer to its answers than to others (E eq. 5). In `.venv-train`.

    python -m pipelines.train.contrastive --train F… --validation F… --start ENCODER --out FOLDER --metrics FILE.jsonl

For a triplet (q, a⁺, a⁻) of `rm_triplets` the loss is max(0, cos(q, a⁻) − cos(q, a⁺) + m), over its own a⁻ (mismatched
emotion, generic, another answer) and, as E's third kind, over the a⁺ of other rows of the batch. Rows of one question,
of one group or with the same answer are masked from each other (`triplets.apart`), so no answer of a question is its
negative. The two means are added. `FOLDER` is there, whole, once all is done: weights, tokenizer, and `encoder.json`
with T (`pipelines.train.threshold`). A run that was killed goes on from its last checkpoint, beside FOLDER, with what
it would have drawn.
"""

import argparse
import json
import math
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.core.files import sha256_of, sync
from pipelines.core.modes import keep_private
from pipelines.errors import GongqingError, RequestError, TrainingFailed
from pipelines.rewards.contrastive import Said
from pipelines.train.embedding import KINDS, MARKS, NOTE, Encoder, Kind, note
from pipelines.train.options import DEVICES, OPTIONS, Option
from pipelines.train.threshold import Threshold, threshold
from pipelines.train.triplets import Triplet, apart, batches, read, require_several
from schemas.ids import digest

_WARM_UP = 0.1  # the share of steps over which the rate rises; it falls to 0 over the rest
_CLIP = 1.0  # of the gradient's norm
_ACROSS = 400  # questions of validation of which every answer is held against every other


@dataclass(frozen=True)
class Asked:
    """What decides a run: another start of it must be asked for the same. `max_length` of None is the encoder's."""

    epochs: int
    batch: int
    rate: float
    margin: float  # m of E eq. 5
    seed: int
    max_length: int | None
    max_rows: int | None
    base: str = ""
    base_digest: str = ""  # of its files; of one that is no folder, but a name of the hub's, there is none
    rows: tuple[tuple[str, int, str], ...] = ()  # of every file: how many, and a digest of them


def loss(queries: Any, positives: Any, negatives: Any, there: Any, margin: float) -> tuple[Any, dict[str, float]]:
    """E eq. 5 over a batch of unit vectors [n, d]; `there` [n, n] as by `apart`. Also its parts, for the metrics."""
    fits = (queries * positives).sum(-1)
    own = (queries * negatives).sum(-1) - fits + margin
    others = (queries @ positives.T - fits[:, None] + margin)[there]
    total = own.clamp(min=0).mean() + (others.clamp(min=0).mean() if len(others) else 0.0)
    wrong = (own > margin).float().mean()
    return total, {"train/similarity": float(fits.detach().mean()), "train/own_negative_nearer": float(wrong)}


class Training:
    """A run: its encoder, its optimiser, and the steps it has made."""

    def __init__(self, encoder: Encoder, triplets: Sequence[Triplet], asked: Asked) -> None:
        import torch

        self.encoder, self.triplets, self.asked = encoder, triplets, asked
        self.plan = batches(triplets, asked.batch, asked.epochs, asked.seed)
        self.done = 0
        self._optimiser = torch.optim.AdamW(encoder.model.parameters(), lr=asked.rate, weight_decay=0.01)
        self._ids: dict[Kind, dict[str, list[int]]] = {kind: {} for kind in KINDS}

    def step(self) -> dict[str, float]:
        """The next step; gives its metrics. Raises TrainingFailed for a loss, or a gradient, that is no number:
        nothing is learnt.
        """
        import torch

        rows = [self.triplets[place] for place in self.plan[self.done]]
        self.encoder.model.train()
        torch.manual_seed(self.asked.seed * 1_000_003 + self.done)  # a run that goes on draws what it would have
        rate = self.asked.rate * self._share()
        for group in self._optimiser.param_groups:
            group["lr"] = rate
        found, parts = loss(
            self._vectors([one.query for one in rows], "query"),
            self._vectors([one.positive for one in rows], "answer"),
            self._vectors([one.negative for one in rows], "answer"),
            torch.from_numpy(apart(rows)).to(self.encoder.device),
            self.asked.margin,
        )
        value = float(found.detach())
        self._optimiser.zero_grad()
        found.backward()
        norm = float(torch.nn.utils.clip_grad_norm_(self.encoder.model.parameters(), _CLIP))
        for name, figure in (("loss", value), ("norm of the gradient", norm)):
            if not math.isfinite(figure):
                raise TrainingFailed(
                    f"the {name} of step {self.done + 1} is {figure}",
                    hint="lower --rate; the last checkpoint is kept",
                )
        self._optimiser.step()
        self.done += 1
        return {"train/loss": value, "train/rate": rate, "train/grad_norm": norm, **parts}

    def save(self, folder: Path) -> None:
        """A checkpoint: there, whole, or not there."""
        import torch

        with _whole(folder) as staged:
            torch.save(
                {
                    "asked": json.dumps(self.asked.__dict__),
                    "done": self.done,
                    "model": self.encoder.model.state_dict(),
                    "optimiser": self._optimiser.state_dict(),
                },
                staged / "state.pt",
            )

    def restore(self, folder: Path) -> None:
        """Go on from a checkpoint. Raises RequestError for one of a run that was asked for something else."""
        import torch

        state = torch.load(folder / "state.pt", map_location=self.encoder.device, weights_only=True)
        _require_same(state["asked"], self.asked, folder)
        self.done = state["done"]
        self.encoder.model.load_state_dict(state["model"])
        self._optimiser.load_state_dict(state["optimiser"])

    def cut(self) -> dict[str, float]:
        """The share of questions and answers, each text once, of which the end is not read."""
        texts: dict[Kind, set[str]] = {
            "query": {one.query for one in self.triplets},
            "answer": {text for one in self.triplets for text in (one.positive, one.negative)},
        }
        return {
            kind: sum(self.encoder.is_cut(text, self._read(text, kind)) for text in texts[kind]) / len(texts[kind])
            for kind in KINDS
        }

    def _share(self) -> float:
        """Of the rate, at the step that comes."""
        rising = max(1, round(_WARM_UP * len(self.plan)))
        if self.done < rising:
            return (self.done + 1) / rising
        return (len(self.plan) - self.done) / max(1, len(self.plan) - rising)

    def _vectors(self, texts: Sequence[str], kind: Kind) -> Any:
        return self.encoder.pooled([self._read(text, kind) for text in texts])

    def _read(self, text: str, kind: Kind) -> list[int]:
        known = self._ids[kind]
        if text not in known:
            [known[text]] = self.encoder.ids([text], kind)
        return known[text]


def measured(encoder: Encoder, triplets: Sequence[Triplet]) -> Threshold:
    """T on triplets that were not learnt from. Beside their own negatives stand, as `in_batch`, the positives of all
    other questions. Each answer is read as the reward reads it: without what it quotes of the question.
    """
    encoder.model.eval()
    once = list({one.made_from: one for one in triplets}.values())
    fits = [(one.query, one.positive) for one in once]
    own = [(one.query, one.negative) for one in triplets]
    some = once[:_ACROSS]
    across = [(some[i].query, some[j].positive) for i, j in np.argwhere(apart(some))]
    found = _similarities(encoder, [*fits, *own, *across])
    positives, of_own, of_across = np.split(found, [len(fits), len(fits) + len(own)])
    kinds = np.array([one.kind for one in triplets])
    negatives = {str(kind): of_own[kinds == kind] for kind in np.unique(kinds)}
    return threshold(positives, negatives | {"in_batch": of_across})


def _similarities(encoder: Encoder, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
    """[n], of questions and answers; −1, which never passes, where an answer is nothing but quoted."""
    said = lru_cache(2 * _ACROSS)(Said)  # a text comes again and again, and the runs of all would fill the memory
    left = [said(answer).without(said(query)) for query, answer in pairs]
    queries = _by_text(encoder, {query for query, _ in pairs}, "query")
    answers = _by_text(encoder, set(left) - {""}, "answer")
    scores = [queries[query] @ answers[one] if one else -1.0 for (query, _), one in zip(pairs, left, strict=True)]
    return np.array(scores, np.float64)


def _by_text(encoder: Encoder, texts: set[str], kind: Kind) -> dict[str, NDArray[np.float64]]:
    ordered = sorted(texts)
    return dict(zip(ordered, encoder.vectors(ordered, kind).astype(np.float64), strict=True))


def train(
    start: Path,
    out: Path,
    metrics: Path,
    *,
    files: dict[str, Sequence[Path]],
    asked: Asked,
    device: str = "auto",
    save_every: int = 100,
) -> dict[str, Any]:
    """Train an encoder, choose T, and write the folder `out`; gives what `encoder.json` says.

    Args:
        start: A folder of an encoder.
        out: The folder to be made.
        metrics: Where a line a step is written, behind what is there.
        files: Parquet files of `train` and of `validation`.
        asked: How.
        device: `cpu`, `cuda`, or `auto`.
        save_every: Steps from one checkpoint to the next.

    Raises:
        RequestError: Too few questions, no triplets, no encoder, or a run in `out` that was asked for something else.
        TrainingFailed: The loss, or what the encoder gives in the end, is no number.
    """
    rows = {split: read(paths, asked.max_rows) for split, paths in files.items()}
    for split, triplets in rows.items():
        require_several(triplets, split)
    told_of_rows = tuple(_told_of_rows(split, path) for split, paths in files.items() for path in paths)
    base = {"base": start.name if start.is_dir() else str(start), "base_digest": _digest_of_folder(start)}
    asked = Asked(**(asked.__dict__ | base | {"rows": told_of_rows}))
    if (out / NOTE).exists():
        _require_same(json.dumps(note(out)["asked"]), asked, out)
        return note(out)
    try:
        encoder = Encoder.load(start, max_length=asked.max_length, device=device)
    except (OSError, ValueError) as error:
        raise RequestError(f"no encoder: {str(error).splitlines()[0]}", where=start, hint="name its folder") from error
    training = Training(encoder, rows["train"], asked)
    checkpoints = out.with_name(f"{out.name}.checkpoints")
    if last := _last(checkpoints):
        training.restore(last)
    metrics.parent.mkdir(parents=True, exist_ok=True)
    with metrics.open("a", encoding="utf-8") as lines:
        while training.done < len(training.plan):
            told = training.step()
            lines.write(json.dumps({"step": training.done, "data": told}) + "\n")
            lines.flush()
            if training.done % save_every == 0 or training.done == len(training.plan):
                training.save(checkpoints / str(training.done))
                for older in _numbered(checkpoints)[:-1]:
                    shutil.rmtree(older)
        try:
            found = measured(encoder, rows["validation"])
        except FloatingPointError as error:
            raise TrainingFailed(
                f"the weights are broken: on validation, {error}",
                where=checkpoints,
                hint="so is the last checkpoint: train anew under another name, with a lower rate",
            ) from error
        lines.write(json.dumps({"step": training.done, "data": _as_metrics(found)}) + "\n")
    told = _told(training, found, rows)
    with _whole(out) as staged:
        encoder.save(staged)
        (staged / NOTE).write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    shutil.rmtree(checkpoints, ignore_errors=True)  # without a step there are none
    return told


def _told(training: Training, found: Threshold, rows: dict[str, list[Triplet]]) -> dict[str, Any]:
    return {
        "threshold": found.value,
        "margin": training.asked.margin,
        "max_length": training.encoder.max_length,
        "marks": MARKS,
        "base": training.asked.base,
        "weights": sum(one.numel() for one in training.encoder.model.parameters()),
        "figures": {
            "balanced_accuracy": found.balanced_accuracy,
            "passes": {"positive": found.positives, **found.passes},
            "auc": found.auc,
            "rows": {split: dict(Counter(one.kind for one in triplets)) for split, triplets in rows.items()},
            "questions": {split: len({one.made_from for one in triplets}) for split, triplets in rows.items()},
            "cut": training.cut(),
            "steps": training.done,
        },
        "asked": training.asked.__dict__,
    }


def _as_metrics(found: Threshold) -> dict[str, float]:
    return {
        "validation/threshold": found.value,
        "validation/balanced_accuracy": found.balanced_accuracy,
        "validation/passes/positive": found.positives,
        **{f"validation/passes/{kind}": share for kind, share in found.passes.items()},
    }


def _told_of_rows(split: str, path: Path) -> tuple[str, int, str]:
    """Of a file: the digest is of what is learnt from, and not of bytes that depend on who wrote them."""
    found = read([path])
    return f"{split}/{path.name}", len(found), digest(json.dumps(found))


def _digest_of_folder(folder: Path) -> str:
    """Of the files of an encoder: weights, configuration, tokenizer."""
    files = sorted(path for path in folder.glob("[!.]*") if path.is_file())
    return digest("".join(f"{path.name} {sha256_of(path)}\n" for path in files)) if folder.is_dir() else ""


def _require_same(there: str, asked: Asked, where: Path) -> None:
    if json.loads(there) != json.loads(json.dumps(asked.__dict__)):
        raise RequestError(
            "there is a run of this name, and it was asked for something else",
            where=where,
            hint="give another --out, or remove that folder",
        )


def _numbered(checkpoints: Path) -> list[Path]:
    return sorted((path for path in checkpoints.glob("*") if path.name.isdecimal()), key=lambda path: int(path.name))


def _last(checkpoints: Path) -> Path | None:
    found = _numbered(checkpoints)
    return found[-1] if found else None


@contextmanager
def _whole(folder: Path) -> Iterator[Path]:
    """A folder that is there once the block has ended well: written beside its place, flushed, and renamed."""
    staged = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(staged, ignore_errors=True)  # of a run that was killed
    staged.mkdir(mode=0o700, parents=True)
    yield staged
    for path in (*staged.rglob("*"), staged):
        sync(path)
    staged.replace(folder)
    sync(folder.parent)


def _reading(option: Option) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            return option.read(text)
        except ValueError as error:  # argparse repeats no words of this one
            raise argparse.ArgumentTypeError(str(error)) from error

    return read


def main() -> None:
    """Entry point. Ends with 2 for a request that cannot be carried out, with 1 for a loss that is no number."""
    keep_private()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for split in ("train", "validation"):
        parser.add_argument(f"--{split}", type=Path, nargs="+", required=True)
    for name in ("start", "out", "metrics"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name, option in OPTIONS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=_reading(option), default=option.default)
    parser.add_argument("--device", default=DEVICES[0], choices=DEVICES)
    told = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    asked = Asked(told.epochs, told.batch, told.rate, told.margin, told.seed, told.max_length, told.max_rows)
    files = {"train": told.train, "validation": told.validation}
    try:
        found = train(
            told.start, told.out, told.metrics, files=files, asked=asked, device=told.device, save_every=told.save_every
        )
    except GongqingError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
    sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
