"""E's reward model: an encoder in which a question is nearer to its answers than to others (E eq. 5). In `.venv-train`.

    python -m pipelines.train.contrastive CONFIG.json METRICS.jsonl

CONFIG holds `Options` as JSON: the files of triplets, the encoder to start from, the folder `out`, and numbers.

For a triplet (q, a⁺, a⁻) of `rm_triplets` the loss is max(0, cos(q, a⁻) − cos(q, a⁺) + m), over its own a⁻ (mismatched
emotion, generic, another answer) and, as E's third kind, over the a⁺ of other rows of the batch. Rows of one question,
of one group or with the same answer are masked from each other (`apart`), so no answer of a question is its
negative. The two means are added. `out` appears, whole, once all is done: weights, tokenizer, and `encoder.json` with T
(`choose_threshold`) for each way in which the reward reads an answer. A run that was killed goes on from its last
checkpoint, beside `out`, with what it would have drawn. (transformers' own trainer writes a checkpoint in place: what a
kill leaves of one, its resume takes for whole.)
"""

import json
import math
import os
import random
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.core.estimates import auc
from pipelines.core.files import sha256_of, sync
from pipelines.core.modes import keep_private
from pipelines.errors import GongqingError, RequestError, TrainingFailed
from pipelines.rewards.contrastive import Quotable, Reading
from pipelines.train.embedding import KINDS, MARKS, NOTE, Encoder, Kind, Tokens, read_note
from pipelines.train.options import Options, check_options
from schemas.ids import digest

_WARM_UP = 0.1  # the share of steps over which the rate rises; it falls to 0 over the rest
_CLIP = 1.0  # of the gradient's norm
_ACROSS = 400  # questions of validation of which every answer is compared with every other
# Options that decide what is learnt.
_IN_REQUEST = {"epochs", "batch", "rate", "margin", "seed", "max_length", "windows"}


class Triplet(NamedTuple):
    """A row of `rm_triplets`, as far as it is learnt from or measured on. `same_topic` came later than the rest."""

    made_from: str
    group_id: str
    kind: str
    query: str
    positive: str
    negative: str
    same_topic: bool | None = None


def read_triplets(paths: Sequence[Path]) -> list[Triplet]:
    """Triplets of Parquet files. Raises RequestError for a file of something else than `rm_triplets`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    triplets: list[Triplet] = []
    for path in paths:
        try:
            columns = [name for name in Triplet._fields if name in pq.read_schema(path).names]
            rows = pq.read_table(path, columns=columns, partitioning=None).to_pylist()
            triplets += [Triplet(**row) for row in rows]
        except (OSError, pa.ArrowException, TypeError) as error:
            raise RequestError(
                f"no rows of rm_triplets: {str(error).splitlines()[0]}", where=path, hint="name a file of a release"
            ) from error
    return triplets


def require_several(triplets: Sequence[Triplet], split: str) -> None:
    """Raises RequestError for fewer than two groups of questions: nothing is an answer to another question then."""
    groups = {one.group_id for one in triplets}
    if len(groups) < 2:
        raise RequestError(
            f"{len(triplets)} triplets of {len(groups)} groups of questions are too few to learn from or to measure on",
            where=split,
            hint="gongqing refresh --select training on more questions with answers, then make another release",
        )


def apart(triplets: Sequence[Triplet]) -> NDArray[np.bool_]:
    """[n, n], whether the positive of column j is a negative for the question of row i: of another question, of another
    group, and another text.
    """
    mask = np.ones((len(triplets), len(triplets)), bool)
    for column in ("made_from", "group_id", "positive", "query"):
        _, number = np.unique([getattr(one, column) for one in triplets], return_inverse=True)
        mask &= number[:, None] != number[None, :]
    return mask


def plan_batches(triplets: Sequence[Triplet], size: int, epochs: int, seed: int) -> list[list[int]]:
    """The rows of every step. Each epoch has each row once, in an order that follows from the seed and its number; a
    row never ends up alone, without others to be held against.
    """
    plan: list[list[int]] = []
    for epoch in range(epochs):
        order = list(range(len(triplets)))
        random.Random(f"{seed}/{epoch}").shuffle(order)
        n = math.ceil(len(order) / size)
        plan += [order[place::n] for place in range(n)]
    return plan


def loss(queries: Any, positives: Any, negatives: Any, mask: Any, margin: float) -> tuple[Any, dict[str, float]]:
    """E eq. 5 over a batch of unit vectors [n, d]; `mask` [n, n] as by `apart`. Also its parts, for the metrics."""
    similarity = (queries * positives).sum(-1)
    own = (queries * negatives).sum(-1) - similarity + margin
    others = (queries @ positives.T - similarity[:, None] + margin)[mask]
    total = own.clamp(min=0).mean() + (others.clamp(min=0).mean() if len(others) else 0.0)
    wrong = (own > margin).float().mean()
    return total, {"train/similarity": float(similarity.detach().mean()), "train/own_negative_nearer": float(wrong)}


class Training:
    """A run: its encoder, its optimiser, and the number of steps that are done."""

    def __init__(self, encoder: Encoder, triplets: Sequence[Triplet], options: Options) -> None:
        import torch

        self.encoder, self.triplets, self.options = encoder, triplets, options
        self.plan = plan_batches(triplets, options.batch, options.epochs, options.seed)
        self.done = 0
        self._optimiser = torch.optim.AdamW(encoder.model.parameters(), lr=options.rate, weight_decay=0.01)
        self._tokens_of: dict[Kind, dict[str, Tokens]] = {kind: {} for kind in KINDS}
        if encoder.model.supports_gradient_checkpointing:  # the windows of a batch are many
            encoder.model.gradient_checkpointing_enable({"use_reentrant": False})

    def step(self) -> dict[str, float]:
        """Makes the next step; its metrics. Raises TrainingFailed for a loss, or a gradient, that is not finite:
        nothing is learnt then.
        """
        import torch

        rows = [self.triplets[place] for place in self.plan[self.done]]
        self.encoder.model.train()
        torch.manual_seed(self.options.seed * 1_000_003 + self.done)  # a run that goes on draws what it would have
        rate = self.options.rate * self._share_of_rate()
        for group in self._optimiser.param_groups:
            group["lr"] = rate
        total, parts = loss(
            self._vectors([row.query for row in rows], "query"),
            self._vectors([row.positive for row in rows], "answer"),
            self._vectors([row.negative for row in rows], "answer"),
            torch.from_numpy(apart(rows)).to(self.encoder.device),
            self.options.margin,
        )
        value = float(total.detach())
        self._optimiser.zero_grad()
        total.backward()
        norm = float(torch.nn.utils.clip_grad_norm_(self.encoder.model.parameters(), _CLIP))
        for name, figure in (("loss", value), ("norm of the gradient", norm)):
            if not math.isfinite(figure):
                raise TrainingFailed(
                    f"the {name} of step {self.done + 1} is {figure}",
                    hint="lower the rate; the last checkpoint is kept",
                )
        self._optimiser.step()
        self.done += 1
        return {"train/loss": value, "train/rate": rate, "train/grad_norm": norm, **parts}

    def save(self, folder: Path, request: dict[str, Any]) -> None:
        """Writes a checkpoint: it appears whole, or not at all."""
        import torch

        state = {"model": self.encoder.model.state_dict(), "optimiser": self._optimiser.state_dict()}
        with _whole(folder) as staged:
            torch.save({"asked": json.dumps(request), "done": self.done, **state}, staged / "state.pt")

    def restore(self, folder: Path, request: dict[str, Any]) -> None:
        """Goes on from a checkpoint. Raises RequestError for one of a run with another request."""
        import torch

        state = torch.load(folder / "state.pt", map_location=self.encoder.device, weights_only=True)
        _require_same(json.loads(state["asked"]), request, folder)
        self.done = state["done"]
        self.encoder.model.load_state_dict(state["model"])
        self._optimiser.load_state_dict(state["optimiser"])

    def cut_shares(self) -> dict[str, float]:
        """The share of questions and answers, each text once, of which the end is not read."""
        answers = {text for one in self.triplets for text in (one.positive, one.negative)}
        texts: dict[Kind, set[str]] = {"query": {one.query for one in self.triplets}, "answer": answers}
        return {
            kind: sum(not self._tokens(text, kind).whole for text in texts[kind]) / len(texts[kind]) for kind in KINDS
        }

    def _share_of_rate(self) -> float:
        rising = max(1, round(_WARM_UP * len(self.plan)))
        if self.done < rising:
            return (self.done + 1) / rising
        return (len(self.plan) - self.done) / max(1, len(self.plan) - rising)

    def _vectors(self, texts: Sequence[str], kind: Kind) -> Any:
        return self.encoder.pooled([self._tokens(text, kind).windows for text in texts])

    def _tokens(self, text: str, kind: Kind) -> Tokens:
        cache = self._tokens_of[kind]
        if text not in cache:
            cache[text] = self.encoder.tokenise(text, kind)
        return cache[text]


Scores = NDArray[np.float64]
MOST_PASSING = 0.05  # of the negatives of a kind: ours


class Threshold(NamedTuple):
    """T, and what passes it: the share of positives and of each kind of negatives, and the balanced accuracy, of which
    kinds are equal parts. Of each kind also how often a positive scores higher (AUC, a tie is half).
    """

    value: float
    balanced_accuracy: float
    positives: float
    passes: dict[str, float]
    auc: dict[str, float]

    def figures(self) -> dict[str, Any]:
        """What `encoder.json` notes of it, T aside."""
        passes = {"positive": self.positives, **self.passes}
        return {"balanced_accuracy": self.balanced_accuracy, "passes": passes, "auc": self.auc}

    def metrics(self, prefix: str) -> dict[str, float]:
        """The same as metrics of a step, T included."""
        figures = self.figures()
        named = {f"{name}/{kind}": share for name in ("passes", "auc") for kind, share in figures[name].items()}
        plain = {"threshold": self.value, "balanced_accuracy": self.balanced_accuracy}
        return {f"{prefix}/{name}": value for name, value in (plain | named).items()}


def choose_threshold(positives: Scores, negatives: Mapping[str, Scores]) -> Threshold:
    """T for cosines of positives and of each kind of negatives (E eq. 6; how it is chosen is ours).

    T is the lowest place at which at most `MOST_PASSING` of every kind of negatives pass (cos > T): the score of a
    negative, which does not pass itself; of fewer than twenty negatives of a kind none may. Where the balanced accuracy
    would be higher at a lower T, that one is not taken: what passes is paid for, and a policy looks for it.

    Raises ValueError where either is missing, and FloatingPointError for cosines that are no finite numbers.
    """
    every = np.concatenate([positives, *negatives.values()])
    if lost := int((~np.isfinite(every)).sum()):
        raise FloatingPointError(f"of {len(every):,} cosines {lost:,} are NaN or infinite: no threshold parts them")
    kinds = {kind: np.sort(scores) for kind, scores in negatives.items() if len(scores)}
    if not len(positives) or not kinds:
        raise ValueError("a threshold stands between positives and negatives, and there are none")
    # Of each kind the lowest score that no more than `MOST_PASSING` are above; a twentieth of 20 is 1.
    value = max(-1.0, *(float(one[-1 - int(MOST_PASSING * len(one) + 1e-9)]) for one in kinds.values()))
    passes = {kind: float((one > value).mean()) for kind, one in kinds.items()}
    passing = float((positives > value).mean())
    accuracy = (passing + 1 - sum(passes.values()) / len(passes)) / 2
    areas = {kind: area for kind, one in kinds.items() if (area := auc(positives, one)) is not None}
    return Threshold(value, accuracy, passing, passes, areas)


SAME_TOPIC = "mismatched_emotion/same_topic"


def measure(encoder: Encoder, triplets: Sequence[Triplet]) -> dict[Reading, Threshold]:
    """T on triplets that were not learnt from, for each reading of an answer. Beside their own negatives stand, as
    `in_batch`, the positives of all other questions.

    The AUC of `SAME_TOPIC` is over those triplets of mismatched emotion of which the negative answers a question of the
    same topic, their positives against their negatives: what is left to tell when the subject is the same.
    """
    encoder.model.eval()
    once = list({one.made_from: one for one in triplets}.values())
    positives = [(one.query, one.positive) for one in once]
    own = [(one.query, one.negative) for one in triplets]
    some = once[:_ACROSS]
    across = [(some[i].query, some[j].positive) for i, j in np.argwhere(apart(some))]
    kinds = np.array([one.kind for one in triplets])
    alike = np.array([one.kind == "mismatched_emotion" and one.same_topic is True for one in triplets])
    asked = {one.made_from: place for place, one in enumerate(once)}
    its_positive = np.array([asked[one.made_from] for one in triplets])
    found: dict[Reading, Threshold] = {}
    for reading, scores in _similarities(encoder, [*positives, *own, *across]).items():
        of_positives, of_own, of_across = np.split(scores, [len(positives), len(positives) + len(own)])
        negatives = {str(kind): of_own[kinds == kind] for kind in np.unique(kinds)} | {"in_batch": of_across}
        chosen = choose_threshold(of_positives, negatives)
        area = auc(of_positives[its_positive[alike]], of_own[alike])
        if area is not None:
            chosen.auc[SAME_TOPIC] = area
        found[reading] = chosen
    return found


def _similarities(encoder: Encoder, pairs: Sequence[tuple[str, str]]) -> dict[Reading, Scores]:
    """[n] for each reading, of questions and answers: of whole answers, and of what they do not quote of the question;
    −1, which never passes, where an answer is nothing but quoted.
    """
    parsed = lru_cache(2 * _ACROSS)(Quotable)  # a text comes again and again, and the runs of all would fill the memory
    left = [parsed(answer).without(parsed(query)) for query, answer in pairs]
    read: dict[Reading, list[str]] = {"paper": [answer for _, answer in pairs], "guarded": left}
    queries = _by_text(encoder, {query for query, _ in pairs}, "query")
    answers = _by_text(encoder, {one for texts in read.values() for one in texts} - {""}, "answer")
    return {
        reading: np.array(
            [queries[query] @ answers[one] if one else -1.0 for (query, _), one in zip(pairs, texts, strict=True)],
            np.float64,
        )
        for reading, texts in read.items()
    }


def _by_text(encoder: Encoder, texts: set[str], kind: Kind) -> dict[str, NDArray[np.float64]]:
    ordered = sorted(texts)
    return dict(zip(ordered, encoder.vectors(ordered, kind).astype(np.float64), strict=True))


def train(options: Options, metrics: Path) -> dict[str, Any]:
    """Train an encoder, choose T, and write the folder `options.out`; the content of its `encoder.json`. `metrics` gets
    a line a step, behind what is there.

    Raises:
        RequestError: Too few questions, no triplets, no encoder, or a run in `out` with another request.
        TrainingFailed: The loss, or a vector of the encoder in the end, is not finite.
    """
    files = {"train": options.train, "validation": options.validation}
    rows = {split: read_triplets(paths) for split, paths in files.items()}
    for split, triplets in rows.items():
        require_several(triplets, split)
    start, out = options.start, options.out
    request = options.model_dump(include=_IN_REQUEST) | {
        "base": start.name if start.is_dir() else str(start),
        "base_digest": _folder_digest(start),
        "rows": [_file_digest(split, path) for split, paths in files.items() for path in paths],
    }
    if (out / NOTE).exists():
        _require_same(read_note(out)["asked"], request, out)
        return read_note(out)
    try:
        encoder = Encoder.load(start, max_length=options.max_length, windows=options.windows, device=options.device)
    except (OSError, ValueError) as error:
        raise RequestError(f"no encoder: {str(error).splitlines()[0]}", where=start, hint="name its folder") from error
    training = Training(encoder, rows["train"], options)
    checkpoints = out.with_name(f"{out.name}.checkpoints")
    if folders := _numbered(checkpoints):
        training.restore(folders[-1], request)
    metrics.parent.mkdir(parents=True, exist_ok=True)
    with metrics.open("a", encoding="utf-8") as lines:
        while training.done < len(training.plan):
            figures = training.step()
            lines.write(json.dumps({"step": training.done, "data": figures}) + "\n")
            lines.flush()
            if training.done % options.save_every == 0 or training.done == len(training.plan):
                training.save(checkpoints / str(training.done), request)
                for older in _numbered(checkpoints)[:-1]:
                    shutil.rmtree(older)
        try:
            thresholds = measure(encoder, rows["validation"])
        except FloatingPointError as error:
            raise TrainingFailed(
                f"the weights are broken: on validation, {error}",
                where=checkpoints,
                hint="so is the last checkpoint: train again under another name, with a lower rate",
            ) from error
        figures = thresholds["paper"].metrics("validation/paper") | thresholds["guarded"].metrics("validation")
        lines.write(json.dumps({"step": training.done, "data": figures}) + "\n")
    note = _note(training, thresholds, rows, request)
    with _whole(out) as staged:
        encoder.save(staged)
        (staged / NOTE).write_text(json.dumps(note, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    shutil.rmtree(checkpoints)
    return note


def _note(
    training: Training, thresholds: Mapping[Reading, Threshold], rows: dict[str, list[Triplet]], request: dict[str, Any]
) -> dict[str, Any]:
    return {
        "threshold": {reading: one.value for reading, one in thresholds.items()},
        "margin": training.options.margin,
        "max_length": training.encoder.max_length,
        "windows": training.encoder.windows,
        "marks": MARKS,
        "base": request["base"],
        "weights": sum(one.numel() for one in training.encoder.model.parameters()),
        "figures": {
            **thresholds["guarded"].figures(),
            "paper": thresholds["paper"].figures(),
            "rows": {split: dict(Counter(one.kind for one in triplets)) for split, triplets in rows.items()},
            "questions": {split: len({one.made_from for one in triplets}) for split, triplets in rows.items()},
            "cut": training.cut_shares(),
            "steps": training.done,
        },
        "asked": request,
    }


def _file_digest(split: str, path: Path) -> list[Any]:
    """Name, rows, and a digest of what is learnt from: the bytes of the file depend on its writer."""
    rows = read_triplets([path])
    return [f"{split}/{path.name}", len(rows), digest(json.dumps(rows))]


def _folder_digest(folder: Path) -> str:
    """Of the files of an encoder: weights, configuration, tokenizer; empty for a name of the Hub's."""
    files = sorted(path for path in folder.glob("[!.]*") if path.is_file())
    return digest("".join(f"{path.name} {sha256_of(path)}\n" for path in files)) if folder.is_dir() else ""


def _require_same(earlier: dict[str, Any], request: dict[str, Any], where: Path) -> None:
    if earlier != request:
        raise RequestError(
            "there is a run of this name, and it was asked for something else",
            where=where,
            hint="name another folder (out), or remove that one",
        )


def _numbered(checkpoints: Path) -> list[Path]:
    return sorted((path for path in checkpoints.glob("*") if path.name.isdecimal()), key=lambda path: int(path.name))


@contextmanager
def _whole(folder: Path) -> Iterator[Path]:
    """A folder that appears once the block has ended well: written beside its place, flushed, and renamed."""
    staged = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(staged, ignore_errors=True)  # of a run that was killed
    staged.mkdir(mode=0o700, parents=True)
    yield staged
    for path in (*staged.rglob("*"), staged):
        sync(path)
    staged.replace(folder)
    sync(folder.parent)


def main() -> None:
    """Entry point. Ends with 2 for a request that cannot be carried out, with 1 for a loss that is not finite."""
    keep_private()
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    config, metrics = map(Path, sys.argv[1:])
    try:
        note = train(check_options(json.loads(config.read_bytes())), metrics)
    except GongqingError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
    sys.stdout.write(json.dumps(note, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
