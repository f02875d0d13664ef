"""Folders of runs with what verl and our reward manager write into them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from schemas.training import Rollouts

REQUEST = {
    **{"recipe": "mindchat_ecot", "preset": "cpu_smoke", "ablation": ""},
    **{"release": {"name": "v1", "content": "c0ffee"}, "overrides": {"actor_rollout_ref.rollout.n": 8}},
}
# As the trainer composes it, in part.
COMPOSED = {"actor_rollout_ref": {"rollout": {"n": 8}}}
# As a run writes it down before it starts.
ROWS = {
    "text_only": "text only: 3 of 40 rounds (7.5%) lacked media, and are left out",
    "variants": {"none": 1_188, "P": 83},
    "lengths": [
        "prompts of train: 200, longest 1,030 tokens (50% 310, 90% 620, 99% 980); 1 over 1,024 (0.50%)",
        "prompts of validation: 20, longest 700 tokens (50% 300, 90% 610, 99% 700); 0 over 1,024 (0.00%)",
    ],
}
BY_VARIANT = "rows by variant: none 1,188, P 83"  # as it is shown


Line = dict[str, Any]


def step_line(uid: str, session: int, output: str, score: float = 0.5, prompt: str = "user\n我睡不着\n") -> Line:
    return {"input": prompt, "output": output, "gts": "", "score": score, "step": 1, "uid": f"{uid}_{session}_0"}


def scored_line(uid: str, session: int, output: str, words: str | None = None, **terms: float) -> Line:
    line = {"uid": uid, "session": session, "split": "train", "row_id": f"s:{uid}", "output": output, "words": words}
    return line | {"terms": terms}


def run_of(
    folder: Path,
    steps: dict[int, Iterable[Line]],
    scored: dict[str, Iterable[Line]] | None = None,
    metrics: dict[int, dict[str, float]] | None = None,
) -> Path:
    (folder / "rollouts").mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(REQUEST))
    (folder / "config.json").write_text(json.dumps(COMPOSED))
    (folder / "rows.json").write_text(json.dumps(ROWS))
    for step, lines in steps.items():
        (folder / "rollouts" / f"{step}.jsonl").write_text(as_jsonl(lines), encoding="utf-8")
    for process, lines in (scored or {}).items():
        (folder / "scored").mkdir(exist_ok=True)
        (folder / "scored" / f"{process}.jsonl").write_text(as_jsonl(lines), encoding="utf-8")
    if metrics:
        (folder / "metrics").mkdir()
        of_steps = [{"step": step, "data": data} for step, data in metrics.items()]
        (folder / "metrics" / "0001.jsonl").write_text(as_jsonl(of_steps))
    return folder


def as_jsonl(lines: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def row(
    step: int, place: int, uid: str = "g", output: str = "我在听。", prompt: str = "p", **terms: float
) -> dict[str, Any]:
    known = {"run_id": "r", "step": step, "output_index": place, "uid": uid, "prompt": prompt, "output": output}
    return {**known, "rewards": [{"name": name, "value": float(value)} for name, value in terms.items()]}


def table(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=Rollouts.polars_schema(), orient="row")
