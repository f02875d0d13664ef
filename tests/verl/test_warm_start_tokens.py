"""A policy is asked by the very tokens behind which its warm start was taught: verl's SFT beside verl's rollout."""

from pathlib import Path

import pytest
from train_env import BLOCK_IN_PROMPT_ALONE, script_result

from pipelines.store.releases import Releases
from pipelines.train.recipe import as_arguments, build_overrides, load_recipe

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("training")]

SCRIPT = """
import contextlib, json, sys
with contextlib.redirect_stdout(sys.stderr):
    import pyarrow.parquet as pq
    from omegaconf import OmegaConf
    from verl.trainer.sft_trainer import create_sft_dataset
    from verl.utils.tokenizer.continuous_token_wiring import create_continuous_token_builder
    from pipelines.train.compose import compose_config
    from pipelines.train.tiny import make_tokenizer

    given = json.load(sys.stdin)
    rows = {name: pq.read_table(path).to_pylist() for name, path in given["files"].items()}
    chats = [row.get("prompt") or row["messages"] for one in rows.values() for row in one]
    tokens = make_tokenizer(one["content"] for chat in chats for one in chat)
    known = []
    for warm, policy, of_warm, of_policy in given["pairs"]:
        sft = OmegaConf.create(compose_config("sft_trainer_engine", of_warm)).data
        rl = compose_config("ppo_trainer", of_policy)["data"]["apply_chat_template_kwargs"]
        # A labelled round and its dialogue are rewritten apart.
        prompts = {row["row_id"]: row["prompt"] for row in rows[policy] if row["variant"] == "none"}
        for template in (tokens.chat_template, given["template"]):
            tokens.chat_template = template
            builder = create_continuous_token_builder(tokens, hf_model_type="qwen3", chat_template_kwargs=rl)
            samples = create_sft_dataset(given["files"][warm], sft, tokens, None)
            for place, messages in enumerate(samples.messages):
                sample = samples[place]
                ids, learnt = sample["input_ids"].tolist(), sample["loss_mask"].tolist()
                before, reply = ids[:learnt.index(1)], [one for one, taught in zip(ids, learnt) if taught]
                asked = builder.build_initial_tokens(messages[:-1])
                made_from = samples.dataframe.iloc[place]["made_from"]
                prompt = prompts.get(made_from) or prompts.get(made_from.rpartition("/")[0])
                known.append({
                    "policy": policy, "turns": len(messages), "before": before, "asked": asked,
                    "prompt": prompt and builder.build_initial_tokens(prompt),
                    "learnt": tokens.decode(reply) == messages[-1]["content"] + "<|im_end|>\\n",
                })
print(json.dumps(known))
"""


def test_a_policy_is_asked_by_the_tokens_behind_which_its_warm_start_learnt_the_last_reply(training_home: Path):
    """By our template, and by one that writes the block of thoughts, as Qwen3's, in the generation prompt alone."""
    files, pairs = {}, []
    for name in ("empathy_coe", "compeer_cer"):
        policy = load_recipe(name)
        warm = load_recipe(policy.starts[0])
        for rows in (warm.rows, policy.rows):
            [path] = (Releases(training_home).folder("v1") / rows).glob("train-*.parquet")
            files[rows] = str(path)
        of_warm = build_overrides(warm, "cpu_smoke", {"data.train_files": "a"})
        of_policy = build_overrides(policy, "cpu_smoke", {"data.train_files": "a", "data.val_files": "b"})
        pairs.append([warm.rows, policy.rows, as_arguments(of_warm), as_arguments(of_policy)])
    given = {"files": files, "pairs": pairs, "template": BLOCK_IN_PROMPT_ALONE}
    known = script_result(SCRIPT, stdin=given, cwd=training_home, HF_HOME=str(training_home / "hf"))
    for policy in ("grpo_coe", "grpo_cer"):
        rows = [one for one in known if one["policy"] == policy]
        assert sum(one["prompt"] is not None for one in rows) > 10
        assert [one for one in rows if one["before"] != one["asked"] or not one["learnt"]] == []
        assert [one for one in rows if one["prompt"] not in (None, one["before"])] == []
    assert max(one["turns"] for one in known) > 5, "rounds with a history"
