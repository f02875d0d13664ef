"""verl reads prompt sets of real data whole: every row that a release holds of a split, and none that it does not."""

import csv
import json
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pyarrow.parquet as pq
import pytest
from real_sets import REAL_SETS
from release_rows import made
from train_env import require_train_env, script_result
from unique_rows import answer, post, posts, splits

from pipelines.errors import RequestError
from pipelines.ingest.importing import read
from pipelines.settings import Prompts
from pipelines.split.turns import sample_turns
from pipelines.store.release_manifest import Release
from pipelines.store.releases import Releases
from pipelines.train.launch import rewritten_rows
from pipelines.train.prepare import prepare
from pipelines.train.recipe import as_arguments, load_recipe, recipe_names
from pipelines.train.rows import write_rows
from pipelines.train.runs import MODEL, NOTE
from pipelines.train.tiny import make_tokenizer
from pipelines.trainsets.prompt_sets import cer_prompts, coe_prompts, ecot_prompts

pytestmark = [pytest.mark.xdist_group("training"), pytest.mark.timeout(600)]

GRPO = [name for name in recipe_names() if load_recipe(name).trainer == "grpo"]
LEAST = 1_000  # rows of each set
MAX_TOKENS = {"grpo_ecot": 1024, "grpo_coe": 1024, "grpo_cer": 2048}  # of a prompt: M's and E's; C's are ours

Rows = list[dict[str, Any]]


class Made(NamedTuple):
    """A release of real rows, and what was dropped before."""

    home: Path
    release: Release
    tokens: Path
    dropped: dict[str, pl.DataFrame]


def _post(at: int, title: str, text: str, *answers: str) -> dict[str, Any]:
    written = [answer(f"s:{at}/{n}", one) for n, one in enumerate(answers)]
    return post(at, f"{title}\n{text}".strip(), *written, group_id=f"p{at}")


def questions(shared: Path) -> tuple[Rows, Rows]:
    """Posts of people in distress; questions with answers. Not cleaned: what is read here is their form."""
    at = count()
    psyqa = read("psyqa", shared / REAL_SETS["psyqa"]).kept.iter_rows(named=True)
    asked = [
        _post(next(at), row["title"], row["description"], *(one["text"] for one in row["answers"])) for row in psyqa
    ]
    lines = (shared / "near_dup" / "smile_first_turns.jsonl").read_text(encoding="utf-8").splitlines()
    openings = [_post(next(at), "", json.loads(line)["text"]) for line in lines]
    with (shared / "zh_qa" / "medical_qa_gb18030.csv").open(encoding="gb18030", newline="") as file:
        doctors = [_post(next(at), row["title"], row["ask"], row["answer"]) for row in csv.DictReader(file)]
    return [*asked, *openings], [*asked, *doctors]


def sampled(shared: Path) -> pl.DataFrame:
    """Rounds of dialogues in Chinese and English."""
    found = [read(name, shared / REAL_SETS[name]).kept for name in ("smile", "cpsycoun", "esconv")]
    known = {"risk": pl.lit([], dtype=posts().schema["risk"]), "under_18": False}
    dialogues = pl.concat(found).filter(pl.col("n_rounds") > 0)
    return sample_turns(dialogues.with_columns(**known, group_id="d" + pl.col("dialogue_id")))[0]


@pytest.fixture(scope="module")
def real(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The three sets of real data, their lengths told by a tokenizer made of them, written as a release is."""
    require_train_env()
    home = tmp_path_factory.mktemp("prompt-sets") / "home"
    posted, asked = questions(shared)
    turns = sampled(shared)
    said = [row["text"] for row in (*posted, *asked)] + [turn["text"] for row in turns["history"] for turn in row]
    tokens = home / "tokens"
    template = ["system\n", "user\n", "assistant\n", "<think>\n\n</think>\n\n"]
    make_tokenizer([*said[::20], *template]).save_pretrained(tokens)
    groups = [*(row["group_id"] for row in (*posted, *asked)), *turns["group_id"]]
    of = splits(**{group: ("train", "train", "validation", "test")[at % 4] for at, group in enumerate(set(groups))})
    settings = Prompts(tokenizer=tokens, max_tokens=MAX_TOKENS["grpo_ecot"], max_tokens_cer=MAX_TOKENS["grpo_cer"])
    sets = {
        "grpo_ecot": ecot_prompts(posts(*posted), of, settings),
        "grpo_coe": coe_prompts(posts(*asked), of, settings),
        "grpo_cer": cer_prompts(turns, of, settings),
    }
    release = made(home, "v1", {name: kept for name, (kept, _) in sets.items()})
    return Made(home, release, tokens, {name: dropped for name, (_, dropped) in sets.items()})


READ = """
import contextlib, json, sys
with contextlib.redirect_stdout(sys.stderr):
    from pathlib import Path
    from omegaconf import OmegaConf
    from verl.trainer.ppo.utils import create_rl_dataset
    from verl.utils import hf_tokenizer
    from pipelines.train.compose import compose_config
    from pipelines.errors import RequestError
    from pipelines.train.lengths import count_tokens
    found = {}
    try:
        model = {"model": {"path": str(Path.cwd())}}
        count_tokens({"actor_rollout_ref": model, "data": {"train_files": "none.parquet"}})
    except RequestError as error:
        found["refused"] = str(error)
    for name, arguments in json.loads(sys.stdin.read()).items():
        told = compose_config("ppo_trainer", arguments)
        Path(f"{name}.json").write_text(json.dumps(told))
        config = OmegaConf.create(told)
        tokens = hf_tokenizer(config.actor_rollout_ref.model.path)
        read = {}
        for split, files in (("train", config.data.train_files), ("validation", config.data.val_files)):
            rows = create_rl_dataset(files, config.data, tokens, None, is_train=split == "train")
            last = rows[len(rows) - 1]
            last.pop("dummy_tensor")
            read[split] = {"ids": rows.dataframe["row_id"], "last": last}
        found[name] = {"read": read, "counts": [one._asdict() for one in count_tokens(told)]}
print(json.dumps(found, default=list))
"""


@pytest.fixture(scope="module")
def verl(real: Made) -> dict[str, Any]:
    """What verl's data set reads of each recipe's set, by the recipe's own configuration for GPUs."""
    model = {"actor_rollout_ref.model.path": str(real.tokens)}
    for other in ("empathy_sft", "empathy_encoder"):  # what E's policy starts from, and asks: not read here
        run = real.home / "training" / f"{other}-gpu-v1"
        (run / MODEL).mkdir(parents=True)
        (run / NOTE).write_text(json.dumps({"recipe": other, "release": {"name": "v1"}}))
    judged = {name: "openai" if "judge" in load_recipe(name).services else None for name in GRPO}
    arguments = {}
    for name in GRPO:
        named = {"release": "v1", "name": name, "provider": judged[name], "settings": model}
        run = prepare(real.home, load_recipe(name), "gpu", **named)
        for split, paths in run.files.items():  # where variants are chosen
            write_rows(paths, rewritten_rows(run.folder, split), run.recipe, run.ablation)
        arguments[name] = as_arguments(run.overrides)
    result: dict[str, Any] = script_result(READ, stdin=arguments, cwd=real.home, HF_HOME=str(real.home / "hf"))
    return result


def written(real: Made, config: str, split: str) -> Rows:
    folder = Releases(real.home).folder("v1")
    paths = [folder / shard.path for shard in real.release.configs[config] if shard.split == split]
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


@pytest.mark.parametrize("name", GRPO)
def test_verl_reads_every_row_of_train_and_validation_as_it_was_written_and_none_of_test(
    real: Made, verl: dict[str, Any], name: str
):
    config = load_recipe(name).rows
    assert real.release.rows(config) >= LEAST
    assert real.release.rows(config, "test") > 0
    assert verl[name]["read"].keys() == {"train", "validation"}
    for split, told in verl[name]["read"].items():
        rows = written(real, config, split)
        assert told["ids"] == [row["row_id"] for row in rows]
        assert len(rows) == real.release.rows(config, split) > 0
        last = rows[-1]
        for key in ("extra_info", "reward_model", "data_source"):
            assert told["last"][key] == last[key]
        assert told["last"]["raw_prompt"] == last["prompt"]
        assert (told["last"]["index"], last["extra_info"]["split"]) == (last["extra_info"]["index"], split)


def test_what_is_too_long_was_counted_by_us_before(real: Made, verl: dict[str, Any]):
    """By the model's tokenizer: of what is released nothing is over, and what is not is named."""
    overlong = pl.concat(real.dropped.values(), how="diagonal").filter(reason="overlong_prompt")
    assert overlong.height, "the real data have prompts that are too long"
    for name in GRPO:
        config = load_recipe(name).rows
        for told in verl[name]["counts"]:
            assert (told["over"], told["limit"]) == (0, MAX_TOKENS[config])
            assert told["rows"] == real.release.rows(config, told["split"])


@pytest.mark.parametrize("name", GRPO)
def test_our_lengths_are_those_that_the_release_notes_of_every_prompt(real: Made, verl: dict[str, Any], name: str):
    assert verl[name]["counts"]
    for told in verl[name]["counts"]:
        noted = max(row["extra_info"]["prompt_length"] for row in written(real, load_recipe(name).rows, told["split"]))
        assert told["longest"] == noted


def test_a_run_counts_the_same_and_is_refused_whose_prompts_are_too_long_for_its_model(
    real: Made, verl: dict[str, Any]
):
    settings = {"actor_rollout_ref.model.path": str(real.tokens), "data.max_prompt_length": 300}
    named = {"release": "v1", "name": "long", "provider": "none", "settings": settings}
    run = prepare(real.home, load_recipe("mindchat_ecot"), "gpu", **named)
    with pytest.raises(RequestError, match="prompts of train are longer than 300 tokens") as error:
        run.train(lambda step, metrics: pytest.fail("it trains"))
    for told in verl["mindchat_ecot"]["counts"]:
        assert f" of {told['rows']:,} prompts of {told['split']} are longer than 300 tokens" in error.value.what
        assert f"the longest has {told['longest']:,}" in error.value.what


def test_a_folder_without_a_tokenizer_is_refused(real: Made, verl: dict[str, Any]):
    assert "the tokenizer cannot be loaded" in verl["refused"]
    assert f"where: {real.home}" in verl["refused"]
    assert "hint: name the model's folder" in verl["refused"]
