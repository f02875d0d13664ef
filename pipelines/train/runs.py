"""The folder of a run, and what can be read in it.

::

    <home>/training/<name>/run.json        what was asked for: recipe, preset, ablation, release, its content, every
                                           setting; the releases that its model has learnt of
                           config.json     the whole configuration, as the trainer composed it
                           rows.json       how long the rows are, of which variants, and what of them is lost with
                                           sound and pictures
                           data/           rows that were chosen or changed; else the release's own are read
                           start/          of `cpu_smoke`: the tiny model that it starts from
                           metrics/        a file a start of the run, a line a step (verl's file logger)
                           checkpoints/    the trainer's own; the same command goes on from the last one
                           rollouts/       every step's prompts, outputs and rewards, by verl
                           scored/         the terms of every reward and the judge's words, by our reward manager
                           tensorboard/    log-0001.txt …
                           report.html     the page of the run
                           model/          at the end: a Hugging Face folder
"""

import json
from pathlib import Path
from typing import Any

from pipelines.core.home import Home

# In the folder of a run.
LOCK, NOTE, ROWS, METRICS, ROLLOUTS, MODEL = ".lock", "run.json", "rows.json", "metrics", "rollouts", "model"
SCORED, DATA, START, PAGE = "scored", "data", "start", "report.html"
CACHE = "cache"  # the rows once more, as `datasets` keeps them (HF_DATASETS_CACHE), while verl is at work
CHECKPOINTS, TENSORBOARD = "checkpoints", "tensorboard"
CONFIG = "config.json"
REFUSED = "log-refused.txt"  # the rest of what verl printed of a configuration that is refused

Metrics = dict[str, float]


def list_runs(home: Path) -> list[Path]:
    """The folders of the runs of a home, by name."""
    return sorted(note.parent for note in Home(home).training.glob(f"*/{NOTE}"))


def read_note(run: Path) -> dict[str, Any]:
    """What was asked for."""
    note: dict[str, Any] = json.loads((run / NOTE).read_bytes())
    if "arm" in note:  # its name before 0.1.0
        note["ablation"] = note.pop("arm")
    return note


def read_config(run: Path) -> dict[str, Any]:
    """The whole configuration that it trained with, as its trainer composed it; empty before that."""
    path = run / CONFIG
    config: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {}
    return config


def learnt_releases(run: Path) -> list[str]:
    """The releases that its model has learnt of: its own, and those of the models that it started from or asked."""
    note = read_note(run)
    releases: list[str] = note.get("learnt_of") or [note["release"]["name"]]
    return releases


def describe_rows(run: Path) -> list[str]:
    """Its rows, a line each: what is lost with sound and pictures, how many are of each variant, how many chains nobody
    has reviewed, and how long they are in tokens; nothing before they were counted.
    """
    path = run / ROWS
    if not path.exists():
        return []
    rows = json.loads(path.read_bytes())
    variants = ", ".join(f"{name} {number:,}" for name, number in rows.get("variants", {}).items())
    lines = [rows["text_only"], *([f"rows by variant: {variants}"] if variants else [])]
    if unreviewed := rows.get("unreviewed"):
        lines.append(f"unreviewed chains: {unreviewed:,} (E's were all reviewed by professionals)")
    return [*lines, *rows["lengths"]]


def read_metrics(run: Path) -> dict[int, Metrics]:
    """The metrics of every step; of one that was made twice, after a break, the later."""
    metrics: dict[int, Metrics] = {}
    for path in sorted((run / METRICS).glob("*.jsonl")):
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):  # a process that was killed may leave half a line
                step, data = parse_step(line)
                metrics[step] = metrics.get(step, {}) | data
    return metrics


def parse_step(line: bytes) -> tuple[int, Metrics]:
    """A line of a file of metrics."""
    record = json.loads(line)
    return int(record["step"]), record["data"]


def list_checkpoints(run: Path) -> list[tuple[int, Path]]:
    """The checkpoints, by step: verl's own folders."""
    folders = (run / CHECKPOINTS).glob("global_step_*")
    return sorted((int(path.name.rpartition("_")[2]), path) for path in folders)


def next_metrics(run: Path) -> Path:
    """The file for the metrics of the next start."""
    number = 1 + max((int(path.stem) for path in (run / METRICS).glob("*.jsonl")), default=0)
    return run / METRICS / f"{number:04}.jsonl"
