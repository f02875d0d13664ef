"""A run of a recipe: the command that trains, what it asks meanwhile, and what is told of it as it goes.

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

from pipelines.core.files import write_whole
from pipelines.errors import RequestError, TrainingFailed
from pipelines.llm.profiles import profiles
from pipelines.settings import AUTHOR_KEY, ROOT, load
from pipelines.store.release_manifest import Release, text_only
from pipelines.train import configuration, stopping
from pipelines.train import rows as of_arm
from pipelines.train.checks import require_judge, require_threshold
from pipelines.train.lengths import checked, read
from pipelines.train.options import checked as checked_options
from pipelines.train.processes import Locks, at_work, followed, last_words, running
from pipelines.train.recipe import Arm, Overrides, Preset, Recipe, Service, as_arguments
from pipelines.train.runs import (
    CACHE,
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
    metrics,
    next_metrics,
    note,
    told_of_rows,
)
from pipelines.train.services import ADDRESSES, PYTHON, Judge, beside
from pipelines.train.trainers import TRAINERS, Trainer, command, last_step, last_weights

Told = Callable[[int, Metrics], None]  # of a step and its metrics
ToldRows = Callable[[Sequence[str]], None]  # of the rows, a line each (`runs.told_of_rows`)


@dataclass(frozen=True)
class Run:
    """A run that may start, or go on."""

    folder: Path
    recipe: Recipe
    arm: Arm
    preset: Preset
    release: Release
    files: Mapping[str, Sequence[Path]]  # the release's, by split
    overrides: Overrides
    most_rows: int | None = None
    judge: Judge | None = None
    services: Mapping[Service, Sequence[str]] = field(default_factory=dict)  # what starts each
    asked: Mapping[str, Any] = field(default_factory=dict)  # what else was asked for: arm, judge, encoder

    @property
    def trainer(self) -> Trainer:
        """Who trains."""
        return TRAINERS[self.recipe.trainer]

    @property
    def steps(self) -> int | None:
        """How many there are to be; None where the rows decide."""
        told = self.overrides.get(self.trainer.steps)
        return None if told is None else int(told)

    @property
    def rows(self) -> int:
        """How many it trains on."""
        return of_arm.count(self.files["train"], self.recipe, self.arm, self.most_rows)

    def composed(self) -> dict[str, Any]:
        """The whole configuration, verl's by verl's own code. Raises RequestError for what verl refuses."""
        if self.trainer.config is None:
            return checked_options(self.overrides)
        found: dict[str, Any] = json.loads(self._asked("pipelines.train.compose"))
        return found

    def lengths(self) -> list[str]:
        """How long the rows are in tokens of the model, a line each split and kind; nothing for the encoder, which
        reads the beginning of any text. What was composed to count them stays in the folder of the run.

        Raises RequestError for what verl refuses, where more than one percent are too long, and where those that are
        not are fewer than one batch takes.
        """
        if self.trainer.config is None:
            return []
        return checked(read(self._asked("pipelines.train.lengths", f"--composed={self.folder / CONFIG}")))

    def check(self) -> None:
        """Raises RequestError for all that can be known to be wrong before anything is composed or trained: a run of
        this name that was asked for something else, a judge that would not start, an encoder that knows no threshold,
        options of the contrastive training that there are not.
        """
        if self.trainer.config is None:
            checked_options(self.overrides)
        self._require_same()
        if self.judge is not None:
            require_judge(self.folder.parents[1], self.judge)
        if self.recipe.reward == "empathy":
            require_threshold(self.folder.parents[1] / self.asked["encoder"])

    def ready(self, tokens: str | None = None) -> None:
        """Do all that comes before training, and train nothing: check, compose, write rows and count them.

        Args:
            tokens: What the model that it starts from is made of, where that is yet to be trained: it has its tokens.

        Raises as `train` does.
        """
        with at_work(self.folder) as locks:
            if not (self.folder / MODEL).is_dir():
                self._ready(locks, tokens)

    def train(self, told: Told, counted: ToldRows = lambda _: None) -> Path:
        """Train to the last step, from the last checkpoint where there is one, and merge the weights. `counted` is told
        before.

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
            self._ready(locks)
            counted(told_of_rows(self.folder))
            if self.steps is None or last_step(self.folder) < self.steps:  # verl would make one step more
                self._train(told, locks)
            return self._merge(target, locks)

    def metrics(self) -> dict[int, Metrics]:
        """The metrics of every step."""
        return metrics(self.folder)

    def _ready(self, locks: Locks, tokens: str | None = None) -> None:
        self.check()
        self._note()
        self._write_rows()
        self._make_start(locks)
        self._note_rows(tokens)

    def _train(self, told: Told, locks: Locks) -> None:
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
        with beside(self.services, self._beside(), self.folder) as addresses:
            asked = [str(PYTHON), *command(self.recipe.trainer, self.overrides, path)]
            with running(asked, environment | addresses, self.folder / log, locks) as process:
                for step, found in followed(process, path):
                    told(step, found)
            shutil.rmtree(self.folder / CACHE, ignore_errors=True)
            self._require_end(process, log, "training")

    @property
    def _request(self) -> dict[str, Any]:
        return {
            "recipe": self.recipe.name,
            "preset": self.preset,
            **self.asked,
            "release": {"name": self.release.name, "content": self.release.content},
            "overrides": self.overrides,
        }

    def _require_same(self) -> None:
        path = self.folder / NOTE
        if path.exists() and note(self.folder) != json.loads(json.dumps(self._request)):
            raise RequestError(
                "there is a run of this name, and it was asked for something else",
                where=path,
                hint="give this run another name (--name), or remove that folder",
            )

    def _note(self) -> None:
        path = self.folder / NOTE
        if not path.exists():
            write_whole(path, json.dumps(self._request, indent=1, ensure_ascii=False).encode() + b"\n")

    def _note_rows(self, tokens: str | None) -> None:
        """What the rows are, once they are known to fit: their lengths, and what is lost with sound and pictures. It is
        written down once they are counted by the model that is trained itself.
        """
        path = self.folder / ROWS
        if not path.exists():
            asked = self if tokens is None else replace(self, overrides={**self.overrides, self.trainer.model: tokens})
            try:
                told = {
                    "text_only": text_only(self.release),
                    "variants": self._variants(),
                    "lengths": asked.lengths(),
                }
                if self.trainer.config is None:
                    write_whole(self.folder / CONFIG, json.dumps(self.composed(), indent=1).encode() + b"\n")
            except RequestError:  # nothing was trained: who asks for something else is not held to this
                for made in (DATA, START, CACHE):  # without its note nobody would know that rows are in there
                    shutil.rmtree(self.folder / made, ignore_errors=True)
                (self.folder / CONFIG).unlink(missing_ok=True)
                (self.folder / NOTE).unlink()
                raise
            if tokens is None:
                write_whole(path, json.dumps(told, indent=1, ensure_ascii=False).encode() + b"\n")

    def _variants(self) -> dict[str, int]:
        """How many rows of each variant it trains on; nothing where all are as they were written, and are to be."""
        files = self.overrides[self.trainer.train]
        paths = map(Path, [files] if isinstance(files, str) else files)
        found = of_arm.by_variant(list(paths), of_arm.variants(self.recipe, self.arm))
        return {} if found.keys() <= {"none"} else found

    def _write_rows(self) -> None:
        if of_arm.changes(self.recipe, self.arm, self.most_rows):
            for split, paths in self.files.items():
                most = self.most_rows if split == "train" else None
                of_arm.write(paths, rows_of_arm(self.folder, split), self.recipe, self.arm, most)

    def _make_start(self, locks: Locks) -> None:
        """The tiny model of `cpu_smoke`, where the run starts from no other."""
        start = self.folder / START
        if self.overrides[self.trainer.model] != str(start) or (start / "config.json").exists():
            return
        tiny = "tiny_encoder" if self.recipe.trainer == "contrastive" else "tiny"
        options = [f"--form={self.recipe.form}"] if self.recipe.form else []
        train = [str(path) for path in self.files["train"]]
        staged = start.with_name(".start.part")
        shutil.rmtree(staged, ignore_errors=True)
        self._run([f"pipelines.train.{tiny}", str(staged), *train, *options], "log-start.txt", "the start", locks)
        staged.replace(start)

    def _merge(self, target: Path, locks: Locks) -> Path:
        if self.trainer.config is None:  # it writes the model itself
            return target
        staged = target.with_name(f".{MODEL}.part")
        weights = last_weights(self.recipe.trainer, self.folder)
        if not weights.is_dir():
            raise TrainingFailed(
                "training has ended, and left no checkpoint",
                where=weights,
                hint="look whether the log beside it made any step, and train anew under another name",
            )
        told = ["--backend", "fsdp", "--local_dir", str(weights), "--target_dir", str(staged)]
        self._run(["verl.model_merger", "merge", *told], "log-merge.txt", "merging the weights", locks)
        staged.replace(target)
        return target

    def _run(self, module: Sequence[str], log: str, doing: str, locks: Locks) -> None:
        with running([str(PYTHON), "-m", *module], self._environment(), self.folder / log, locks) as process:
            process.wait()
        self._require_end(process, log, doing)

    def _asked(self, module: str, *options: str) -> bytes:
        arguments = [*options, str(self.trainer.config), *as_arguments(self.overrides)]
        return configuration.asked(module, arguments, self._environment(), self.folder / REFUSED)

    def _require_end(self, process: "subprocess.Popen[bytes]", log: str, doing: str) -> None:
        if process.returncode:
            path = self.folder / log
            why = stopping.reason(self.folder / SCORED) if doing == "training" else ""
            words = why or last_words(path.read_text(encoding="utf-8", errors="replace"))
            raise TrainingFailed(
                f"{doing} ended with code {process.returncode}:\n{words}",
                where=path,
                hint="mend what it names, and run the same command again: it goes on from the last checkpoint",
            )

    def _beside(self) -> dict[Service, dict[str, str]]:
        """The environments of the services: the judge has the keys of its models, the encoder a GPU of its own."""
        encoder = self._environment()
        if self.preset == "gpu":
            encoder["CUDA_VISIBLE_DEVICES"] = gpus(os.environ, self._gpus)[1]
        return {"judge": without(os.environ, {AUTHOR_KEY}), "encoder": encoder}

    @property
    def _gpus(self) -> int:
        return int(self.overrides.get("trainer.n_gpus_per_node", 1))

    def _environment(self) -> dict[str, str]:
        told = {
            "PYTHONPATH": str(ROOT),
            "HF_DATASETS_CACHE": str(self.folder / CACHE),  # else the rows lie in the user's home, and stay there
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "disabled",  # else a token is left in the user's home
            "TOKENIZERS_PARALLELISM": "false",
            "WANDB_MODE": "disabled",
        }
        if self.preset == "cpu_smoke":
            told |= {
                "VERL_PLATFORM": "cpu",
                "VERL_USE_EXTERNAL_MODULES": "pipelines.train.verl_cpu",
                "VERL_ENGINE_DEVICE": "cuda",  # the key under which verl looks for its FSDP engine
                "HF_HUB_OFFLINE": "1",
                "OMP_NUM_THREADS": "1",
                "RAY_worker_niceness": "0",  # 15 otherwise: beside anything else that works, they would wait for it
            }
        else:
            told["VERL_USE_EXTERNAL_MODULES"] = "pipelines.train.verl_text"
        if self.preset == "gpu" and "encoder" in self.services:
            told["CUDA_VISIBLE_DEVICES"] = gpus(os.environ, self._gpus)[0]
        return {**without(os.environ, {*ADDRESSES.values(), *keys(self.folder.parents[1])}), **told}


def keys(home: Path) -> set[str]:
    """Variables with secrets that no trainer needs, and no encoder: of the judge's models, and of authors' names."""
    known = [*profiles().values(), *profiles(load(home).llm.profiles).values()]
    return {AUTHOR_KEY, *(one.key_variable for one in known if one.key_variable)}


def without(environment: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """An environment without some variables."""
    return {name: value for name, value in environment.items() if name not in names}


def gpus(environment: Mapping[str, str], trainer: int) -> tuple[str, str]:
    """Which GPUs a trainer of so many sees, and which the encoder beside it, as CUDA_VISIBLE_DEVICES has them: the
    first that is left, or none, and then it reads on the CPU.
    """
    told = environment.get("CUDA_VISIBLE_DEVICES")
    seen = [str(number) for number in range(trainer + 1)] if told is None else [one for one in told.split(",") if one]
    return ",".join(seen[:trainer]), ",".join(seen[trainer : trainer + 1])


def rows_of_arm(folder: Path, split: str) -> Path:
    """Where the rows of an arm lie, below the folder of its run."""
    return folder / DATA / f"{split}.parquet"
