"""What a run wrote, as the table `rollouts`: nothing lost, nothing twice, whatever was killed in the middle."""

from pathlib import Path

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from rollout_lines import as_jsonl, run_of, scored_line, step_line

from pipelines.store import Store
from pipelines.train.rollouts import read_rollouts, write_rollouts
from schemas.training import Rollouts


def terms(frame: pl.DataFrame) -> list[dict[str, float]]:
    return [{term["name"]: term["value"] for term in rewards} for rewards in frame["rewards"]]


def test_outputs_meet_what_was_scored_for_them_over_all_processes(tmp_path: Path):
    steps = {1: [step_line("a", 0, "甲", 0.25), step_line("b", 0, "乙", 0.75)]}
    scored = {
        "11": [scored_line("b", 0, "乙", "温暖", r_format=1.0)],
        "12": [scored_line("a", 0, "甲", "", r_format=0.5)],
    }
    result = read_rollouts(run_of(tmp_path / "run", steps, scored))
    assert terms(result.kept) == [{"r_format": 0.5, "score": 0.25}, {"r_format": 1.0, "score": 0.75}]
    assert result.kept.select("run_id", "uid", "row_id", "split", "judge").rows() == [
        ("run", "a", "s:a", "train", None),
        ("run", "b", "s:b", "train", "温暖"),
    ]
    assert result.counts == {"outputs": 2, "unscored": 0, "elsewhere": 0, "unread": 0, "not_finite": 0}


def test_what_reached_the_advantage_is_the_score_that_is_told(tmp_path: Path):
    run = run_of(tmp_path / "run", {1: [step_line("a", 0, "甲", 0.5)]}, {"1": [scored_line("a", 0, "甲", score=0.9)]})
    assert terms(read_rollouts(run).kept) == [{"score": 0.5}]


def test_equal_outputs_of_a_group_are_told_apart_by_their_session(tmp_path: Path):
    steps = {1: [step_line("a", session, "一样") for session in range(3)]}
    scored = {"1": [scored_line("a", session, "一样", term=session) for session in (2, 0, 1)]}
    assert [one["term"] for one in terms(read_rollouts(run_of(tmp_path / "run", steps, scored)).kept)] == [0, 1, 2]


def test_a_step_that_was_made_twice_counts_as_it_was_made_last(tmp_path: Path):
    """verl writes its file anew; what was scored for it before meets nothing."""
    scored = {"1": [scored_line("old", 0, "旧", term=1.0)], "2": [scored_line("new", 0, "新", term=2.0)]}
    result = read_rollouts(run_of(tmp_path / "run", {1: [step_line("new", 0, "新")]}, scored))
    assert result.kept["output"].to_list() == ["新"]
    assert result.counts["elsewhere"] == 1


def test_half_a_line_is_dropped_with_its_reason_and_the_lines_before_it_stay(tmp_path: Path):
    run = run_of(tmp_path / "run", {1: [step_line("a", 0, "甲"), step_line("a", 1, "乙")]})
    path = run / "rollouts" / "1.jsonl"
    path.write_bytes(b"not JSON\n" + path.read_bytes()[:-10])
    result = read_rollouts(run)
    assert result.kept["output"].to_list() == ["甲"]
    assert result.dropped.select("row_id", "reason").rows() == [("run/1/0", "unreadable"), ("run/1/2", "unfinished")]
    assert "乙" not in str(result.dropped.to_dicts()), "what a policy wrote is no detail of a drop"


def test_a_line_of_another_kind_is_dropped_with_what_is_wrong_in_it(tmp_path: Path):
    changes = {"output": {"output": None}, "uid, score": {"score": "0.5", "uid": 7}, "score": {"score": True}}
    line = step_line("a", 0, "甲")
    lines = [line | change for change in changes.values()] + [line | {"input": ["user"]}]
    lines += [{name: value for name, value in line.items() if name != "output"}, step_line("a", 1, "乙")]
    result = read_rollouts(run_of(tmp_path / "run", {1: lines}))
    assert result.kept["output"].to_list() == ["乙"]
    assert result.counts["outputs"] == len(lines)
    assert [(reason, detail) for *_, reason, detail in result.dropped.rows()] == [
        ("incomplete", f"missing or wrong: {wrong}") for wrong in (*changes, "input", "output")
    ]


def test_a_line_that_is_no_record_is_dropped(tmp_path: Path):
    run = run_of(tmp_path / "run", {1: [step_line("a", 0, "甲")]})
    lines = [b"[1, 2]\n", b"\n", b"[" * 100_000 + b"\n", b'"\xff"\n', b'"\\ud800"\n']
    with (run / "rollouts" / "1.jsonl").open("ab") as file:
        file.writelines(lines)
    result = read_rollouts(run)
    assert result.kept["output"].to_list() == ["甲"]
    assert result.dropped["reason"].to_list() == ["unreadable"] * len(lines)


def test_a_file_that_is_named_after_no_step_is_dropped_line_by_line(tmp_path: Path):
    run = run_of(tmp_path / "run", {1: [step_line("a", 0, "甲")]})
    names = ["notes", "01", "٣", "9" * 30]
    for name in names:
        (run / "rollouts" / f"{name}.jsonl").write_text(as_jsonl([step_line("a", 1, "乙"), step_line("a", 2, "丙")]))
    store = Store(tmp_path / "data")
    version = write_rollouts(store, run)
    assert (version.rows, version.dropped) == (1, 2 * len(names))
    rows = store.read_dropped("rollouts", partition="run").collect()
    assert set(rows["reason"]) == {"no_step"}
    assert set(rows["row_id"]) == {f"run/{name}/{place}" for name in names for place in (0, 1)}


def test_what_a_reward_wrote_otherwise_is_counted_and_a_term_that_is_no_number_left_out(tmp_path: Path):
    line = scored_line("a", 0, "甲", term=1.0)
    changes = [{"output": None}, {"terms": {"term": None}}, {"terms": None}, {"split": "mine"}]
    steps = {1: [step_line("a", 0, "甲")]}
    result = read_rollouts(run_of(tmp_path / "wrong", steps, {"1": [line | change for change in changes]}))
    assert (result.counts["unread"], result.counts["unscored"]) == (len(changes), 1)
    assert terms(result.kept) == [{"score": 0.5}]
    run = run_of(tmp_path / "half", steps, {"1": [line | {"terms": {"term": float("nan"), "other": 1.0}}]})
    with (run / "scored" / "1.jsonl").open("a") as file:
        file.write('{"uid": "a", "sess')
    result = read_rollouts(run)
    assert (result.counts["unread"], result.counts["not_finite"]) == (1, 1)
    assert terms(result.kept) == [{"other": 1.0, "score": 0.5}]


def test_line_separators_in_an_output_are_no_ends_of_lines(tmp_path: Path):
    said = "一\u2028二\x85三\x0b四\r五\n六"
    run = run_of(tmp_path / "run", {1: [step_line("a", 0, said)]}, {"1": [scored_line("a", 0, said, term=1.0)]})
    assert read_rollouts(run).kept["output"].to_list() == [said]
    assert read_rollouts(run).counts["unscored"] == 0


def test_the_table_has_a_version_a_run_which_says_what_it_was_made_of(tmp_path: Path):
    store = Store(tmp_path / "data")
    for name, output in (("one", "甲"), ("two", "乙")):
        write_rollouts(store, run_of(tmp_path / name, {1: [step_line("a", 0, output)]}))
    assert store.partitions("rollouts") == ["one", "two"]
    assert store.read("rollouts", partition="two").collect()["output"].to_list() == ["乙"]
    note = store.version("rollouts", partition="one").manifest.runs[-1].note
    assert note["release"] == {"name": "v1", "content": "c0ffee"}
    assert (note["recipe"], note["outputs"], note["unscored"]) == ("mindchat_ecot", 1, 1)


def test_a_run_that_wrote_nothing_makes_no_version(tmp_path: Path):
    assert write_rollouts(Store(tmp_path / "data"), run_of(tmp_path / "run", {})) is None


_OUTPUTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.sampled_from(["甲", "乙", ""])), max_size=12
)


@given(outputs=_OUTPUTS, lost=st.sets(st.integers(0, 11)), cut=st.integers(0, 60))
def test_every_line_is_a_row_or_a_drop_and_what_was_scored_is_used_once(
    tmp_path_factory, outputs: list[tuple[str, int, str]], lost: set[int], cut: int
):
    steps = [step_line(uid, session, output) for uid, session, output in outputs]
    kept = [scored_line(*one, place=float(place)) for place, one in enumerate(outputs) if place not in lost]
    run = run_of(tmp_path_factory.mktemp("law") / "run", {3: []}, {"1": kept})
    content = as_jsonl(steps).encode()
    (run / "rollouts" / "3.jsonl").write_bytes(content[: max(0, len(content) - cut)])
    result = read_rollouts(run)
    Rollouts.validate(result.kept)
    assert result.counts["outputs"] == result.kept.height + result.dropped.height
    used = [one["place"] for one in terms(result.kept) if "place" in one]
    assert len(used) == len(set(used)) == len(kept) - result.counts["elsewhere"]
    assert result.counts["unscored"] == result.kept.height - len(used)
