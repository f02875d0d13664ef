"""Lengths in tokens of the model that is trained: what verl's filter would leave is what we counted before."""

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from train_env import script_result

from pipelines.errors import RequestError
from pipelines.train.lengths import MOST, Count, check_counts, summarise

pytestmark = [pytest.mark.xdist_group("training"), pytest.mark.timeout(300)]

ROWS = 240

# --- counts

LENGTHS = st.dictionaries(st.text("abc", min_size=1, max_size=4), st.integers(0, 40), max_size=30)


@given(LENGTHS, st.integers(0, 40))
def test_a_row_is_over_where_it_is_longer_than_the_limit(lengths: dict[str, int], limit: int):
    found = summarise("train", "prompt", lengths, limit)
    over = {row for row, n in lengths.items() if n > limit}
    assert (found.rows, found.over) == (len(lengths), len(over))
    assert found.share == pytest.approx(len(over) / max(1, len(lengths)))
    assert set(found.examples) <= over
    assert len(found.examples) == min(10, len(over))


def of(over: int, rows: int, what: str = "prompt") -> Count:
    return summarise("train", what, {f"r{i}": 2000 if i < over else 9 for i in range(rows)}, 1024)


@given(st.integers(1, 400).flatmap(lambda rows: st.tuples(st.integers(0, rows), st.just(rows))))
def test_a_launch_is_refused_above_one_percent_and_not_at_it(case: tuple[int, int]):
    over, rows = case
    if 100 * over > rows:
        with pytest.raises(RequestError):
            check_counts([of(over, rows)])
    else:
        assert check_counts([of(over, rows)]) == [str(of(over, rows))]
    assert MOST == 0.01


def test_a_refusal_says_what_is_too_long_where_and_what_to_do_and_what_may_start_is_shown():
    with pytest.raises(RequestError) as caught:
        check_counts([of(0, 50), of(3, 50, "sample"), of(50, 50, "target")])
    assert "3 of 50 samples of train are longer than 1,024 tokens (6.0%; at most 1% may be)" in caught.value.what
    assert "50 of 50 targets" in caught.value.what
    assert "prompts" not in caught.value.what
    assert str(caught.value.where).startswith("r0, r1")
    assert "(data.max_length: " in caught.value.hint
    assert "(+data.max_response_length: " in caught.value.hint
    [line] = check_counts([of(1, 200)])
    assert line == "prompts of train: 200, longest 2,000 tokens (50% 9, 90% 9, 99% 9); 1 over 1,024 (0.50%)"


# --- verl counts the same

WORDS = ("我最近总是睡不着，心里很乱。", "朋友不再理我了。", "I could not sleep 😀", "压力很大，不知道怎么办。")


def prompt(i: int) -> list[dict[str, str]]:
    """Of very different lengths, a few over any limit on purpose; dialogues among them."""
    system = {"role": "system", "content": "你是一位温和的倾听者。回答写在 <answer> 与 </answer> 之间。"}
    turns = [
        {"role": ("user", "assistant")[n % 2], "content": WORDS[(i + n) % 4] * (1 + i % 7)}
        for n in range(1 + i % 3 * 2)
    ]
    turns[-1]["content"] *= 60 if i % 40 == 39 else 1
    return [system, *turns]


def sample(i: int) -> list[dict[str, str]]:
    answer = "".join(f"<{tag}>{WORDS[i % 4]}</{tag}>" for tag in ("situation", "answer")) * (1 + i % 5)
    return [*prompt(i), {"role": "assistant", "content": answer}]


SCRIPT = """
import contextlib, json, sys
with contextlib.redirect_stdout(sys.stderr):
    from omegaconf import OmegaConf
    from verl.trainer.ppo.utils import create_rl_dataset
    from verl.utils import hf_tokenizer
    from pipelines.train.lengths import count_tokens
    from pipelines.train.tiny import make_tokenizer
    from pipelines.train.verl_sft import ChatDataset
    rows, samples, folder = sys.argv[1:]
    make_tokenizer(json.load(sys.stdin)).save_pretrained(folder)
    tokens = hf_tokenizer(folder)

    def grpo(limit, **template):
        return {
            "actor_rollout_ref": {"model": {"path": folder}},
            "data": {"train_files": [rows], "val_files": [], "max_prompt_length": limit, "prompt_key": "prompt",
                     "apply_chat_template_kwargs": template, "filter_overlong_prompts": True,
                     "filter_overlong_prompts_workers": None},
        }

    def sft(limit, **more):
        return {
            "model": {"path": folder},
            "data": {"train_files": samples, "val_files": None, "max_length": limit, "messages_key": "messages",
                     "pad_mode": "no_padding", "truncation": "error", "ignore_input_ids_mismatch": True,
                     "max_response_length": 60, **more},
        }

    filtered = []
    for template in ({}, {"enable_thinking": False}):
        [whole] = count_tokens(grpo(10**6, **template))
        for limit in (1, *whole.quantiles, whole.quantiles[0] - 1, whole.longest - 1, whole.longest):
            config = grpo(limit, **template)
            left = len(create_rl_dataset([rows], OmegaConf.create(config["data"]), tokens, None))
            filtered.append([count_tokens(config)[0]._asdict(), left])

    taught = []
    for more in ({"apply_chat_template_kwargs": {"enable_thinking": False}, "enable_thinking_default": False},
                 {"enable_thinking_default": True}):
        [whole, _] = count_tokens(sft(10**6, **more))
        for limit in (whole.quantiles[0], whole.longest - 1):
            config = sft(limit, **more)
            for order in ({}, {"seed": 1}):
                dataset = ChatDataset([samples], tokens, OmegaConf.create({**config["data"], **order}))
                left = [len(dataset[place]["input_ids"]) for place in range(len(dataset))]
                taught.append([[one._asdict() for one in count_tokens(config)], limit, left])

    own = []  # a target as the policy would have to write it
    for turns in json.loads(open(folder + "/answers.json").read()):
        own.append(max(len(tokens.encode(turn + "<|im_end|>\\n", add_special_tokens=False)) for turn in turns))
print(json.dumps({"filtered": filtered, "taught": taught, "own": sum(n > 60 for n in own), "longest": max(own)}))
"""


@pytest.fixture(scope="module")
def verl(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What verl and we count in the same files."""
    folder = tmp_path_factory.mktemp("lengths")
    for name, column, chat in (("prompts", "prompt", prompt), ("samples", "messages", sample)):
        table = pa.table({"row_id": [f"s:{i}" for i in range(ROWS)], column: [chat(i) for i in range(ROWS)]})
        pq.write_table(table, folder / f"{name}.parquet")
    (folder / "tokens").mkdir()
    answers = [[turn["content"] for turn in sample(i) if turn["role"] == "assistant"] for i in range(ROWS)]
    (folder / "tokens" / "answers.json").write_text(json.dumps(answers))
    files = (folder / "prompts.parquet", folder / "samples.parquet", folder / "tokens")
    texts = [*WORDS, prompt(0)[0]["content"], "system\n", "user\n", "assistant\n", "<think>\n\n</think>\n\n"]
    result: dict[str, Any] = script_result(SCRIPT, *files, stdin=texts, cwd=folder, HF_HOME=str(folder / "hf"))
    return result


def test_verls_filter_leaves_what_we_count_as_not_over(verl: dict[str, Any]):
    found = [(counted["rows"] - counted["over"], left) for counted, left in verl["filtered"]]
    assert all(ours == theirs for ours, theirs in found), found
    assert {left for _, left in found} > {0, ROWS}, "limits that leave nothing, everything, and some"
    longest = {counted["longest"] for counted, _ in verl["filtered"]}
    assert len(longest) == 2, "with thinking off an empty block of thoughts stands at the end of every prompt"


def test_an_sft_run_leaves_out_exactly_the_samples_that_we_count_as_over(verl: dict[str, Any]):
    """verl's own data set would end it at the first, and might come to that after hours."""
    for (samples, _), limit, left in verl["taught"]:
        assert (samples["what"], samples["over"]) == ("sample", ROWS - len(left))
        assert max(left) <= limit
    assert max(samples["over"] for (samples, _), _, _ in verl["taught"]) > 1


def test_a_target_is_what_the_policy_would_have_to_write(verl: dict[str, Any]):
    """The longest of its turns with the turn's end, without what the template writes in front of it."""
    assert verl["taught"]
    for (_, targets), _, _ in verl["taught"]:
        assert (targets["what"], targets["limit"], targets["longest"]) == ("target", 60, verl["longest"])
        assert 0 < targets["over"] == verl["own"] < ROWS
