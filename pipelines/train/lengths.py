"""How long prompts and samples are in tokens of the model that is trained, before it is. Counts in `.venv-train`.

    python -m pipelines.train.lengths [--composed FILE] CONFIG KEY=VALUE…

Arguments are those of `compose`: of GRPO (`prompt`) or of SFT (`messages`). Prints the counts as JSON. A prompt is as
long as verl's filter finds it, a sample as the trainer's data set tokenises it; what is longer than its limit is lost:
verl's filter, or our data set, leaves it out. What a sample teaches, its longest target, has a limit where the policy
that starts from it may write no more: a warm start names that as `data.max_response_length`, as GRPO does.
"""

import argparse
import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipelines.core.files import write_whole
from pipelines.core.modes import keep_private
from pipelines.errors import RequestError, UnreadableFile
from pipelines.train.compose import compose_config, print_result
from pipelines.train.recipe import SETTINGS_PLACE

MOST = 0.01  # the share that may be over its limit: ours
QUANTILES = (0.5, 0.9, 0.99)
_EXAMPLES = 10
_UNCUT = 2**31 - 1  # a length that no sample has
_OURS = ("tokenize", "return_dict", "return_tensors")  # set by the caller, as verl does
_HINTS = {
    "prompt": "set prompts.tokenizer to the tokenizer of the model and make another release, which leaves long ones "
    f"out by name; or allow more (data.max_prompt_length: {SETTINGS_PLACE})",
    "sample": f"allow more (data.max_length: {SETTINGS_PLACE}), or release without them",
    "target": f"allow longer responses (+data.max_response_length: {SETTINGS_PLACE}), or release without them",
}


class Count(NamedTuple):
    """The lengths of one kind (prompt, sample, target) in one split, in tokens. `quantiles` are those of `QUANTILES`,
    `examples` some of the rows that are longer than `limit`, longest first; a limit of None: unlimited.
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


def summarise(split: str, what: str, lengths: Mapping[str, int], limit: int | None) -> Count:
    """The count of some lengths by row id. A row is over if it is longer than the limit, not as long."""
    longest_first = sorted(lengths, key=lambda row: (-lengths[row], row))
    over = [row for row in longest_first if limit is not None and lengths[row] > limit]
    values = list(lengths.values()) or [0]
    quantiles = tuple(map(int, np.quantile(values, QUANTILES, method="inverted_cdf")))
    return Count(split, what, limit, len(lengths), len(over), max(values), quantiles, tuple(over[:_EXAMPLES]))


def check_counts(counts: Sequence[Count]) -> list[str]:
    """A line for each count, to be shown before a run.

    Raises RequestError where of one more than `MOST` of its rows are too long, or where no row is left.
    """
    bad = [count for count in counts if count.share > MOST]
    if bad:
        what = "; ".join(
            f"{one.over:,} of {one.rows:,} {one.what}s of {one.split} are longer than {one.limit:,} tokens "
            f"({one.share:.1%}; at most {MOST:.0%} may be), the longest has {one.longest:,}"
            for one in bad
        )
        where = ", ".join(dict.fromkeys(row for one in bad for row in one.examples))
        raise RequestError(what, where=where, hint=" / ".join(dict.fromkeys(_HINTS[one.what] for one in bad)))
    return [str(count) for count in counts]


def require_batch(rows: int, config: Mapping[str, Any]) -> None:
    """Raises RequestError where there are fewer training rows (those not too long) than one batch of a composed
    configuration takes: verl leaves out a batch that is not full, and would divide by 0 steps.
    """
    batch = int(config["data"]["train_batch_size"])
    if rows < batch:
        raise RequestError(
            f"there are {rows:,} training rows, and one batch takes {batch:,}",
            where="data.train_batch_size",
            hint="train on a release with more of them, or set a smaller batch "
            f"(data.train_batch_size: {SETTINGS_PLACE})",
        )


def count_tokens(config: Mapping[str, Any]) -> list[Count]:
    """The counts of every split that a composed configuration of verl's, of GRPO or SFT, names, training rows first.
    Needs verl.

    Raises UnreadableFile for a row that the model's chat template refuses: verl would leave it out as too long.
    """
    data = config["data"]
    counts: list[Count] = []
    for split, files in (("train", data["train_files"]), ("validation", data.get("val_files"))):
        paths = [files] if isinstance(files, str) else list(files or ())
        if not paths:
            continue
        if "actor_rollout_ref" in config:
            counts.append(summarise(split, "prompt", _prompts(config, paths), data["max_prompt_length"]))
        else:
            samples, targets = _samples(config, paths)
            counts.append(summarise(split, "sample", samples, data["max_length"]))
            counts.append(summarise(split, "target", targets, data.get("max_response_length")))
    return counts


def _prompts(config: Mapping[str, Any], paths: Sequence[str]) -> dict[str, int]:
    """As `RLHFDataset` measures them: see `doc2len` there."""
    from verl.utils.tokenizer import normalize_token_ids

    data = config["data"]
    tokens, processor = _tokenizer(config["actor_rollout_ref"]["model"])
    template = {key: value for key, value in (data.get("apply_chat_template_kwargs") or {}).items() if key not in _OURS}
    template["add_generation_prompt"] = True

    def length(prompt: list[dict[str, str]]) -> int:
        if processor is not None:  # of a model that sees: rendered first, as verl does where there is no picture
            text = processor.apply_chat_template(prompt, tokenize=False, **template)
            return len(processor.tokenizer(text=text, add_special_tokens=False)["input_ids"])
        return len(normalize_token_ids(tokens.apply_chat_template(prompt, tokenize=True, **template)))

    lengths = {}
    for row, prompt in _rows(paths, data.get("prompt_key") or "prompt"):
        with _naming(row, paths):
            lengths[row] = length(prompt)
    return lengths


def _samples(config: Mapping[str, Any], paths: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Tokens of each sample, and of the longest turn that it teaches, by the trainer's data set; none is cut."""
    from omegaconf import OmegaConf

    from pipelines.train.verl_sft import ChatDataset

    tokens, processor = _tokenizer(config["model"])
    data = {**config["data"], "max_length": _UNCUT, "pad_mode": "no_padding", "truncation": "right", "seed": None}
    dataset = ChatDataset(list(paths), tokens, OmegaConf.create(data), processor)
    samples, targets = {}, {}
    for place, (row, _) in enumerate(_rows(paths, config["data"].get("messages_key") or "messages")):
        with _naming(row, paths):
            sample = dataset[place]
            samples[row] = len(sample["input_ids"])
            turns = groupby(sample["loss_mask"].tolist())  # a sample of several turns teaches each of them
            targets[row] = max((len(list(turn)) for taught, turn in turns if taught), default=0)
    return samples, targets


def _tokenizer(model: Mapping[str, Any]) -> tuple[Any, Any]:
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
    """The id and the chat of every row, in verl's order: file by file. Without `row_id` its place is its id."""
    import pyarrow.parquet as pq

    for path in paths:
        file = pq.ParquetFile(path)
        names = [name for name in ("row_id", column) if name in file.schema_arrow.names]
        rows = (row for batch in file.iter_batches(columns=names) for row in batch.to_pylist())
        for place, row in enumerate(rows, 1):
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
    args = parser.parse_args()
    print_result(lambda: _compose_and_count(args))


def _compose_and_count(args: argparse.Namespace) -> list[Count]:
    config = compose_config(args.config, args.settings)
    if args.composed:
        write_whole(args.composed, json.dumps(config, indent=1, ensure_ascii=False, default=str).encode() + b"\n")
    counts = count_tokens(config)
    of_train = [count for count in counts if count.split == "train"]
    if not any(count.share > MOST for count in of_train):  # else that is what is wrong
        require_batch(min(count.rows - count.over for count in of_train), config)
    return counts


if __name__ == "__main__":
    main()
