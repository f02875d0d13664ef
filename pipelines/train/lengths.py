"""How long prompts and samples are in tokens of the model that is trained, before it is. Counts in `.venv-train`.

    python -m pipelines.train.lengths [--composed FILE] CONFIG KEY=VALUE…

Arguments are those of `compose`: of GRPO (`prompt`) or of SFT (`messages`). Prints the counts as JSON. A prompt is as
long as verl's filter finds it, a sample as the trainer's data set tokenises it. What is longer than its limit is lost:
of prompts verl's filter drops it, and without the filter the agent loop cuts it on the left, where the format is asked
for, and only warns; of samples our data set leaves it out, where verl's would end the run. What a sample teaches, its
longest target, has a limit where the policy that starts from it may write no more: a warm start names that as
`data.max_response_length`, as GRPO does.
"""

import argparse
import contextlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from pipelines.core.files import write_whole
from pipelines.core.modes import keep_private
from pipelines.errors import RequestError, UnreadableFile
from pipelines.train.compose import answered, composed
from pipelines.train.kinds import GIVEN

MOST = 0.01  # the share that may be over its limit: ours
QUANTILES = (0.5, 0.9, 0.99)
_EXAMPLES = 10
_UNCUT = 2**31 - 1  # a length that no sample has
_OURS = ("tokenize", "return_dict", "return_tensors")  # said by whoever counts, as verl does
_HINTS = {
    "prompt": "set prompts.tokenizer to the tokenizer of the model and make the release anew, which leaves long ones "
    f"out by name; or allow more (data.max_prompt_length: {GIVEN})",
    "sample": f"allow more (data.max_length: {GIVEN}), or release without them",
    "target": f"allow longer responses (+data.max_response_length: {GIVEN}), or release without them",
}


class Count(NamedTuple):
    """The lengths of one kind in one split, in tokens. `quantiles` are those of `QUANTILES`, `examples` some of the
    rows that are longer than `limit`, longest first; a limit of None is none.
    """

    split: str
    what: str
    limit: int | None
    rows: int
    over: int
    longest: int
    quantiles: tuple[int, ...]
    examples: tuple[str, ...]

    @property
    def share(self) -> float:
        """Of the rows, those over the limit: in [0, 1]."""
        return self.over / self.rows if self.rows else 0.0

    def __str__(self) -> str:
        limit = "" if self.limit is None else f"; {self.over:,} over {self.limit:,} ({self.share:.2%})"
        middle = ", ".join(f"{q:.0%} {n:,}" for q, n in zip(QUANTILES, self.quantiles, strict=True))
        return f"{self.what}s of {self.split}: {self.rows:,}, longest {self.longest:,} tokens ({middle}){limit}"


def counted(split: str, what: str, lengths: Mapping[str, int], limit: int | None) -> Count:
    """What is told of some lengths by row id. A row is over where it is longer than the limit, not as long."""
    ordered = sorted(lengths.values())
    over = sorted(
        (row for row, n in lengths.items() if limit is not None and n > limit), key=lambda row: (-lengths[row], row)
    )
    # the smallest length that a share q of the rows does not pass
    quantiles = [ordered[max(0, math.ceil(q * len(ordered)) - 1)] if ordered else 0 for q in QUANTILES]
    longest = ordered[-1] if ordered else 0
    return Count(split, what, limit, len(ordered), len(over), longest, tuple(quantiles), tuple(over[:_EXAMPLES]))


def checked(counts: Sequence[Count], most: float = MOST) -> list[str]:
    """A line for each count, to be told before a run.

    Raises RequestError where of one more than `most` of its rows are too long, or where nothing is left.
    """
    bad = [count for count in counts if count.share > most or (count.rows and count.over == count.rows)]
    if bad:
        told = "; ".join(
            f"{one.over:,} of {one.rows:,} {one.what}s of {one.split} are longer than {one.limit:,} tokens "
            f"({one.share:.1%}; at most {most:.0%} may be), the longest has {one.longest:,}"
            for one in bad
        )
        raise RequestError(
            told,
            where=", ".join(dict.fromkeys(row for one in bad for row in one.examples)),
            hint=" / ".join(dict.fromkeys(_HINTS[one.what] for one in bad)),
        )
    return [str(count) for count in counts]


def require_batch(rows: int, config: Mapping[str, Any]) -> None:
    """Raises RequestError where there are fewer training rows than one batch takes: verl leaves out a batch that is not
    full, and would divide by the steps that there are none of.

    Args:
        rows: Those that are not too long.
        config: Composed, of GRPO or SFT.
    """
    batch = int(config["data"]["train_batch_size"])
    if rows < batch:
        raise RequestError(
            f"there are {rows:,} training rows, and one batch takes {batch:,}",
            where="data.train_batch_size",
            hint=f"train on a release with more of them, or set a smaller batch (data.train_batch_size: {GIVEN})",
        )


def read(written: str | bytes) -> list[Count]:
    """The counts that the command has printed."""
    return [
        Count(**{**one, "quantiles": tuple(one["quantiles"]), "examples": tuple(one["examples"])})
        for one in json.loads(written)
    ]


def counts(config: Mapping[str, Any]) -> list[Count]:
    """The counts of every split that a composed configuration of verl's, of GRPO or SFT, names, training rows first.
    Needs verl.

    Raises UnreadableFile for a row that the model's chat template refuses: verl would leave it out as too long.
    """
    data = config["data"]
    found: list[Count] = []
    for split, files in (("train", data["train_files"]), ("validation", data.get("val_files"))):
        paths = [files] if isinstance(files, str) else list(files or ())
        if not paths:
            continue
        if "actor_rollout_ref" in config:
            found.append(counted(split, "prompt", _prompts(config, paths), data["max_prompt_length"]))
        else:
            samples, targets = _samples(config, paths)
            found.append(counted(split, "sample", samples, data["max_length"]))
            found.append(counted(split, "target", targets, data.get("max_response_length")))
    return found


def _prompts(config: Mapping[str, Any], paths: Sequence[str]) -> dict[str, int]:
    """As `RLHFDataset` measures them: see `doc2len` there."""
    from verl.utils.tokenizer import normalize_token_ids

    data = config["data"]
    tokens, processor = _reader(config["actor_rollout_ref"]["model"])
    template = {key: value for key, value in (data.get("apply_chat_template_kwargs") or {}).items() if key not in _OURS}

    def length(prompt: list[dict[str, str]]) -> int:
        if processor is not None:  # of a model that sees: rendered first, as verl does where there is no picture
            text = processor.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False, **template)
            return len(processor.tokenizer(text=text, add_special_tokens=False)["input_ids"])
        return len(
            normalize_token_ids(
                tokens.apply_chat_template(prompt, add_generation_prompt=True, tokenize=True, **template)
            )
        )

    found = {}
    for row, prompt in _rows(paths, data.get("prompt_key") or "prompt"):
        with _naming(row, paths):
            found[row] = length(prompt)
    return found


def _samples(config: Mapping[str, Any], paths: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Tokens of each sample, and of the longest turn that it teaches, by the trainer's data set; none is cut."""
    from omegaconf import OmegaConf

    from pipelines.train.verl_sft import ChatDataset

    tokens, processor = _reader(config["model"])
    told = {**config["data"], "max_length": _UNCUT, "pad_mode": "no_padding", "truncation": "right", "seed": None}
    dataset = ChatDataset(list(paths), tokens, OmegaConf.create(told), processor)
    samples, targets = {}, {}
    for place, (row, _) in enumerate(_rows(paths, config["data"].get("messages_key") or "messages")):
        with _naming(row, paths):
            sample = dataset[place]
            samples[row] = len(sample["input_ids"])
            targets[row] = _longest_run(sample["loss_mask"].tolist())
    return samples, targets


def _longest_run(mask: Sequence[int]) -> int:
    """Of ones: a sample of several turns teaches each of them."""
    return max((len(list(run)) for taught, run in groupby(mask) if taught), default=0)


def _reader(model: Mapping[str, Any]) -> tuple[Any, Any]:
    """The tokenizer of a model, and its processor where it has one, with the chat template that verl gives them."""
    from verl.utils import hf_processor, hf_tokenizer

    folder = model.get("tokenizer_path") or model["path"]
    try:
        tokens, processor = hf_tokenizer(folder), hf_processor(folder)
    except (OSError, ValueError) as error:
        raise UnreadableFile(
            f"the tokenizer cannot be loaded: {str(error).strip().splitlines()[0].strip(' :')}",
            where=folder,
            hint="name the model's folder, or its name on the Hub where that can be reached",
        ) from error
    if processor is not None:
        processor.chat_template = model.get("custom_chat_template") or processor.chat_template or tokens.chat_template
    tokens.chat_template = model.get("custom_chat_template") or tokens.chat_template
    return tokens, processor


def _rows(paths: Sequence[str], column: str) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """The id and the chat of every row, in verl's order: a file after the other. Without `row_id` its place is it."""
    import pyarrow.parquet as pq

    for path in paths:
        file = pq.ParquetFile(path)
        names = [name for name in ("row_id", column) if name in file.schema_arrow.names]
        place = 0
        for batch in file.iter_batches(columns=names):
            for row in batch.to_pylist():
                place += 1
                yield str(row.get("row_id") or f"{Path(path).name}:{place}"), row[column]


@contextlib.contextmanager
def _naming(row: str, paths: Sequence[str]) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # whatever a template, which is code of the model's, happens to raise
        raise UnreadableFile(
            f"the chat template of the model refuses {row}: {type(error).__name__}",
            where=", ".join(paths),
            hint="use the tokenizer of a chat model that knows the roles system, user and assistant",
        ) from error


def main() -> None:
    """Entry point."""
    keep_private()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("settings", nargs="*")
    parser.add_argument("--composed", type=Path, help="a file to leave the configuration in")
    told = parser.parse_args()
    answered(lambda: _counted(told))


def _counted(told: argparse.Namespace) -> list[dict[str, Any]]:
    config = composed(told.config, told.settings)
    if told.composed:
        write_whole(told.composed, json.dumps(config, indent=1, ensure_ascii=False, default=str).encode() + b"\n")
    found = counts(config)
    of_train = [one for one in found if one.split == "train"]
    if not any(one.share > MOST for one in of_train):  # else that is what is wrong
        require_batch(min(one.rows - one.over for one in of_train), config)
    return [one._asdict() for one in found]


if __name__ == "__main__":
    main()
