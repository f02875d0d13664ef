"""A run of a recipe: the command that trains, the services that it asks meanwhile, and its steps as they are made.

verl and torch live in an environment of their own (`.venv-train`), so they are reached as processes. What lies in the
folder of a run stands in `runs`.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from pipelines.core.files import write_whole
from pipelines.errors import RequestError, TrainingFailed
from pipelines.judge import backend
from pipelines.llm.profiles import profiles
from pipelines.settings import AUTHOR_KEY, ROOT, load
from pipelines.store.object_storage import SECRETS as STORAGE_SECRETS
from pipelines.store.release_manifest import Release, text_only
from pipelines.store.releases import Releases
from pipelines.train import embedding, stopping
from pipelines.train.compose import run_module
from pipelines.train.lengths import Count, check_counts
from pipelines.train.options import check_options
from pipelines.train.processes import Locks, at_work, follow_metrics, last_words, running
from pipelines.train.recipe import (
    Ablation,
    Overrides,
    Preset,
    Recipe,
    Service,
    as_arguments,
    load_recipe,
    recipe_names,
)
from pipelines.train.rows import are_rewritten, count_rows, count_unreviewed, count_variants, variants_of, write_rows
from pipelines.train.runs import (
    CACHE,
    CHECKPOINTS,
    CONFIG,
    DATA,
    MODEL,
    NOTE,
    REFUSED,
    ROWS,
    SCORED,
    START,
    TENSORBOARD,
    Metrics,
    describe_rows,
    next_metrics,
    read_metrics,
    read_note,
)
from pipelines.train.services import ADDRESSES, PYTHON, Judge, beside
from pipelines.train.trainers import TRAINERS, Trainer, command, last_step

OnStep = Callable[[int, Metrics], None]  # gets a step and its metrics
OnRows = Callable[[Sequence[str]], None]  # gets the rows, a line each (`runs.describe_rows`)


@dataclass(frozen=True)
class Run:
    """A run that may start, or go on."""

    folder: Path
    recipe: Recipe
    ablation: Ablation
    preset: Preset
    release: Release
    files: Mapping[str, Sequence[Path]]  # the release's, by split
    overrides: Overrides
    most_rows: int | None = None
    judge: Judge | None = None
    services: Mapping[Service, Sequence[str]] = field(default_factory=dict)  # what starts each
    details: Mapping[str, Any] = field(default_factory=dict)  # of the request: ablation, judge, encoder

    @property
    def home(self) -> Path:
        """The home that it lies in."""
        return self.folder.parents[1]

    @property
    def trainer(self) -> Trainer:
        """Who trains."""
        return TRAINERS[self.recipe.trainer]

    @property
    def steps(self) -> int | None:
        """How many steps are wanted; None where the rows decide."""
        steps = self.overrides.get(self.trainer.steps)
        return None if steps is None else int(steps)

    @property
    def rows(self) -> int:
        """How many it trains on."""
        return count_rows(self.files["train"], self.recipe, self.ablation, self.most_rows)

    def compose(self) -> dict[str, Any]:
        """The whole configuration, verl's by verl's own code. Raises RequestError for what verl refuses."""
        if self.trainer.config is None:
            return check_options(self.overrides).model_dump(mode="json")
        config: dict[str, Any] = json.loads(self._run_module("pipelines.train.compose"))
        return config

    def lengths(self) -> list[str]:
        """How long the rows are in tokens of the model, a line each split and kind; nothing for the encoder, which
        reads the beginning of any text. The configuration stays in the folder of the run.

        Raises RequestError for what verl refuses, where more than one percent are too long, and where those that are
        not are fewer than one batch takes.
        """
        path = self.folder / CONFIG
        if self.trainer.config is None:
            write_whole(path, json.dumps(self.compose(), indent=1).encode() + b"\n")
            return []
        output = self._run_module("pipelines.train.lengths", f"--composed={path}")
        return check_counts(TypeAdapter(list[Count]).validate_json(output))

    def check(self) -> None:
        """Raises RequestError for all that can be known to be wrong before anything is composed or trained: a run of
        this name with another request, a judge that would not start, an encoder without T, wrong options of the
        contrastive training.
        """
        if self.trainer.config is None:
            check_options(self.overrides)
        self._require_same()
        if self.judge is not None:
            judge = self.judge
            backend.require(self.home, load(self.home).llm, judge.provider, judge.models.values(), judge.budget)
        if self.recipe.reward == "empathy":
            encoder = self.home / self.details["encoder"]
            if not embedding.read_thresholds(embedding.read_note(encoder)):
                raise RequestError(
                    "the encoder has no threshold T, above which an answer fits",
                    where=encoder / embedding.NOTE,
                    hint="gongqing train empathy_encoder",
                )

    def prepare_rows(self, tokens: str | None = None) -> None:
        """Do all that comes before training, and train nothing: check, compose, write rows and count them, by the
        tokenizer of `tokens` where the model that it starts from is yet to be trained. Raises as `train` does.
        """
        with at_work(self.folder) as locks:
            if not (self.folder / MODEL).is_dir():
                self._prepare(locks, tokens)

    def train(self, on_step: OnStep, on_rows: OnRows = lambda _: None) -> Path:
        """Train to the last step, from the last checkpoint if there is one, and merge the weights.

        Returns:
            A folder that `transformers` loads.

        Raises:
            TrainingFailed: The trainer ended with an error, whose last words it repeats; the last checkpoint is kept.
            RequestError: As `check` does, or more than one percent of the rows are too long for the model.
            Busy: It is at work, or an erasure is, or is unfinished.
        """
        with at_work(self.folder) as locks:
            target = self.folder / MODEL
            if target.is_dir():
                self._require_same()
                return target
            self._prepare(locks)
            on_rows(describe_rows(self.folder))
            if self.steps is None or last_step(self.folder) < self.steps:  # verl would make one step more
                self._train(on_step, locks)
            if self.trainer.config is not None:  # ours writes the model itself
                self._merge(target, locks)
            return target

    def metrics(self) -> dict[int, Metrics]:
        """The metrics of every step."""
        return read_metrics(self.folder)

    def _prepare(self, locks: Locks, tokens: str | None = None) -> None:
        self.check()
        note = self.folder / NOTE
        if not note.exists():
            write_whole(note, json.dumps(self._request, indent=1, ensure_ascii=False).encode() + b"\n")
        if are_rewritten(self.recipe, self.ablation, self.most_rows):
            for split, paths in self.files.items():
                most = self.most_rows if split == "train" else None
                write_rows(paths, rewritten_rows(self.folder, split), self.recipe, self.ablation, most)
        self._make_start(locks)
        self._note_rows(tokens)

    def _train(self, on_step: OnStep, locks: Locks) -> None:
        path = next_metrics(self.folder)
        path.parent.mkdir(exist_ok=True)
        scored = self.folder / SCORED
        scored.mkdir(mode=0o700, exist_ok=True)
        (scored / stopping.REASON).unlink(missing_ok=True)  # of an earlier start
        environment = self._environment() | {
            "VERL_FILE_LOGGER_PATH": str(path),
            "TENSORBOARD_DIR": str(self.folder / TENSORBOARD),
            stopping.SCORED: str(scored),
        }
        log = f"log-{path.stem}.txt"
        with beside(self.services, self._service_environments(), self.folder) as addresses:
            trainer = [str(PYTHON), *command(self.recipe.trainer, self.overrides, self.folder, path)]
            with running(trainer, environment | addresses, self.folder / log, locks) as process:
                for step, metrics in follow_metrics(process, path):
                    on_step(step, metrics)
            shutil.rmtree(self.folder / CACHE, ignore_errors=True)
            self._require_success(process, log, "training")

    @property
    def _request(self) -> dict[str, Any]:
        return {
            "recipe": self.recipe.name,
            "preset": self.preset,
            **self.details,
            "release": {"name": self.release.name, "content": self.release.content},
            "overrides": self.overrides,
        }

    def _require_same(self) -> None:
        path = self.folder / NOTE
        if path.exists() and read_note(self.folder) != json.loads(json.dumps(self._request)):
            raise RequestError(
                "there is a run of this name, and it was asked for something else",
                where=path,
                hint="give this run another name (--name), or remove that folder",
            )

    def _note_rows(self, tokens: str | None) -> None:
        """Count the rows, and write down their lengths, variants, and what is lost with sound and pictures; the last
        only if they were counted by the tokenizer of the very model that is trained.
        """
        path = self.folder / ROWS
        if path.exists():
            return
        counted = self if tokens is None else replace(self, overrides={**self.overrides, self.trainer.model: tokens})
        try:
            lengths = [*counted.lengths(), *self._unvalidated()]
            rows: dict[str, Any] = {"text_only": text_only(self.release), "variants": self._variants()}
            rows |= {"unreviewed": self.unreviewed, "lengths": lengths}
        except RequestError:  # nothing was trained: the next request of this name may be another
            for folder in (DATA, START, CACHE):  # without its note an erasure would not look for rows in there
                shutil.rmtree(self.folder / folder, ignore_errors=True)
            (self.folder / CONFIG).unlink(missing_ok=True)
            (self.folder / NOTE).unlink()
            raise
        if tokens is None:
            write_whole(path, json.dumps(rows, indent=1, ensure_ascii=False).encode() + b"\n")

    def _variants(self) -> dict[str, int]:
        """How many rows of each variant it trains on; nothing where all are as they were written, and are to be."""
        counts = count_variants(self._learnt_files, variants_of(self.recipe, self.ablation))
        return {} if counts.keys() <= {"none"} else counts

    def _unvalidated(self) -> list[str]:
        """A line where the release has validation rows, and the run is not validated on them."""
        rows = self.release.rows(self.recipe.rows, "validation")
        if "validation" in self.files or not rows:
            return []
        batch = self.overrides.get("data.train_batch_size")
        return [f"not validated: there are {rows:,} rows for it, and one batch takes {batch}"]

    @property
    def unreviewed(self) -> int:
        """How many chains it learns that no professional has reviewed (E: all were)."""
        learns_chains = self.recipe.rows == "sft_coe" and self.ablation.chain
        return count_unreviewed(self._learnt_files) if learns_chains else 0

    @property
    def _learnt_files(self) -> list[Path]:
        files = self.overrides[self.trainer.train]
        return list(map(Path, [files] if isinstance(files, str) else files))

    def _make_start(self, locks: Locks) -> None:
        """The tiny model of `cpu_smoke`, where the run starts from no other."""
        start = self.folder / START
        if self.overrides[self.trainer.model] != str(start) or (start / "config.json").exists():
            return
        tiny = "tiny_encoder" if self.recipe.trainer == "contrastive" else "tiny"
        options = [f"--form={self.recipe.form}"] if self.recipe.form else []
        if tiny == "tiny":
            options += [f"--read={path}" for path in self._read_by_policies()]
        train = [str(path) for path in self.files["train"]]
        staged = start.with_name(".start.part")
        shutil.rmtree(staged, ignore_errors=True)
        self._run([f"pipelines.train.{tiny}", str(staged), *train, *options], "log-start.txt", "the start", locks)
        staged.replace(start)

    def _read_by_policies(self) -> list[Path]:
        """The prompts of the policies that may start from it, in the release that it trains on."""
        sets = {one.rows for one in map(load_recipe, recipe_names()) if self.recipe.name in one.starts}
        shards = [shard for name in sorted(sets) for shard in self.release.configs.get(name, ())]
        folder = Releases(self.home).folder(self.release.name)
        return [folder / shard.path for shard in shards if shard.split == "train"]

    def _merge(self, target: Path, locks: Locks) -> None:
        staged = target.with_name(f".{MODEL}.part")
        weights = self.folder / CHECKPOINTS / f"global_step_{last_step(self.folder)}" / self.trainer.weights
        if not weights.is_dir():
            raise TrainingFailed(
                "training has ended, and left no checkpoint",
                where=weights,
                hint="look whether the log beside it made any step, and train again under another name",
            )
        options = ["--backend", "fsdp", "--local_dir", str(weights), "--target_dir", str(staged)]
        self._run(["verl.model_merger", "merge", *options], "log-merge.txt", "merging the weights", locks)
        staged.replace(target)

    def _run(self, module: Sequence[str], log: str, doing: str, locks: Locks) -> None:
        with running([str(PYTHON), "-m", *module], self._environment(), self.folder / log, locks) as process:
            process.wait()
        self._require_success(process, log, doing)

    def _run_module(self, module: str, *options: str) -> bytes:
        arguments = [*options, str(self.trainer.config), *as_arguments(self.overrides)]
        return run_module(module, arguments, self._environment(), self.folder / REFUSED)

    def _require_success(self, process: "subprocess.Popen[bytes]", log: str, doing: str) -> None:
        if process.returncode:
            path = self.folder / log
            reason = stopping.reason(self.folder / SCORED) if doing == "training" else ""
            words = reason or last_words(path.read_text(encoding="utf-8", errors="replace"))
            raise TrainingFailed(
                f"{doing} ended with code {process.returncode}:\n{words}",
                where=path,
                hint="mend what it names, and run the same command again: it goes on from the last checkpoint",
            )

    def _service_environments(self) -> dict[Service, dict[str, str]]:
        """The judge has the keys of its models, the encoder a GPU of its own."""
        encoder = self._environment()
        if self.preset == "gpu":
            encoder["CUDA_VISIBLE_DEVICES"] = share_gpus(os.environ, self._gpus)[1]
        return {"judge": _without(os.environ, {AUTHOR_KEY}), "encoder": encoder}

    @property
    def _gpus(self) -> int:
        return int(self.overrides.get("trainer.n_gpus_per_node", 1))

    def _environment(self) -> dict[str, str]:
        ours = {
            "PYTHONPATH": str(ROOT),
            "HF_DATASETS_CACHE": str(self.folder / CACHE),  # else the rows lie in the user's home, and stay there
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "disabled",  # else a token is left in the user's home
            "TOKENIZERS_PARALLELISM": "false",
            "WANDB_MODE": "disabled",
        }
        if self.preset == "cpu_smoke":
            ours |= {
                "VERL_PLATFORM": "cpu",
                "VERL_USE_EXTERNAL_MODULES": "pipelines.train.verl_cpu",
                "VERL_ENGINE_DEVICE": "cuda",  # the key under which verl looks for its FSDP engine
                "HF_HUB_OFFLINE": "1",
                "OMP_NUM_THREADS": "1",
                "RAY_worker_niceness": "0",  # 15 otherwise: beside anything else that works, they would wait for it
            }
        else:
            ours["VERL_USE_EXTERNAL_MODULES"] = "pipelines.train.verl_text"
        if self.preset == "gpu" and "encoder" in self.services:
            ours["CUDA_VISIBLE_DEVICES"] = share_gpus(os.environ, self._gpus)[0]
        return {**_without(os.environ, {*ADDRESSES.values(), *secret_variables(self.home)}), **ours}


def secret_variables(home: Path) -> set[str]:
    """Variables with secrets that no trainer needs, and no encoder: of the judge's models, of authors' names, and of
    the bucket where releases lie: it reads a copy.
    """
    every = [*profiles().values(), *profiles(load(home).llm.profiles).values()]
    return {AUTHOR_KEY, *STORAGE_SECRETS, *(profile.key_variable for profile in every if profile.key_variable)}


def share_gpus(environment: Mapping[str, str], trainer: int) -> tuple[str, str]:
    """Which GPUs a trainer of so many sees, and which the encoder beside it, as CUDA_VISIBLE_DEVICES has them: the
    first that is left, or none, and then it reads on the CPU.
    """
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    gpus = [str(number) for number in range(trainer + 1)] if visible is None else list(filter(None, visible.split(",")))
    return ",".join(gpus[:trainer]), ",".join(gpus[trainer : trainer + 1])


def rewritten_rows(folder: Path, split: str) -> Path:
    """Where the rows of an ablation lie, below the folder of its run."""
    return folder / DATA / f"{split}.parquet"


def _without(environment: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in names}
