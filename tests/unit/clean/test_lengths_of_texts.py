"""What is too long to be one person's is dropped before any rule reads it."""

import time

import polars as pl
import pytest
from clean_rows import dialogue, dialogues, post, posts

from pipelines.clean import clean_dialogues, clean_posts
from pipelines.settings import Filters
from pipelines.store.reconciliation import reconcile, require_balance

SAD = "我最近总是失眠，心里很难受，不知道该怎么办才好，希望有人能帮帮我，谢谢大家。"
ANSWER = "先抱抱你。能把这些说出来已经很不容易了，试着每天给自己留一点安静的时间，慢慢来。" * 4


def drops(dropped: pl.DataFrame) -> dict[tuple[str, str], tuple[str, str]]:
    return {(unit, row): (reason, detail) for _, unit, row, reason, detail in dropped.iter_rows()}


def long(chars: int) -> str:
    return (SAD * (chars // len(SAD) + 1))[:chars]


def test_title_body_and_labels_of_a_post_count_together():
    whole = [
        {"description": long(20_000 - 2)},
        {"description": long(20_000 - 1)},
        {"description": SAD, "title": long(20_000)},
        {"description": SAD, "topic": long(20_000)},  # labels are cleaned as well
        {"description": SAD, "subtopics": ["甲", long(20_000)]},
    ]
    frame = posts(*(post(n, **{"title": "难受", **more}) for n, more in enumerate(whole)), post(5, "", SAD, ANSWER))
    kept, dropped = clean_posts(frame)
    assert kept["post_id"].to_list() == ["s:0", "s:5"]
    for reason, detail in drops(dropped).values():
        assert (reason, detail.endswith("characters, of at most 20000"), SAD[:8] in detail) == ("too_long", True, False)
    require_balance("clean_posts", [reconcile(unit, [frame], kept, dropped) for unit in ("post", "answer")])


def test_an_answer_too_long_costs_itself_and_a_post_too_long_its_answers():
    frame = posts(post(1, "", SAD, long(20_001), ANSWER), post(2, "", long(30_000), ANSWER, ANSWER + "加油。"))
    kept, dropped = clean_posts(frame)
    assert [[answer["answer_id"] for answer in row] for row in kept["answers"]] == [["s:1/1"]]
    assert drops(dropped) == {
        ("answer", "s:1/0"): ("too_long", "20001 characters, of at most 20000"),
        ("post", "s:2"): ("too_long", "30000 characters, of at most 20000"),
        ("answer", "s:2/0"): ("post_dropped", "s:2"),
        ("answer", "s:2/1"): ("post_dropped", "s:2"),
    }
    require_balance("clean_posts", [reconcile(unit, [frame], kept, dropped) for unit in ("post", "answer")])


def test_the_bounds_are_settings():
    frame = posts(post(1, "", SAD, ANSWER))
    assert clean_posts(frame, Filters(max_post_chars=len(SAD), min_answer_chars=0))[0]["answers"].list.len()[0] == 0
    assert clean_posts(frame, Filters(max_post_chars=len(SAD) - 1))[0].is_empty()
    talk = dialogues(dialogue(1, f"seeker: {SAD}", f"supporter: {ANSWER}"))
    assert clean_dialogues(talk, Filters(max_dialogue_chars=len(SAD) + len(ANSWER)))[0].height == 1
    assert clean_dialogues(talk, Filters(max_dialogue_chars=len(SAD) + len(ANSWER) - 1))[0].is_empty()


def test_a_dialogue_falls_by_a_turn_or_by_all_its_texts():
    cases = [
        ([long(20_001)], {}, "a turn of 20001 characters, of at most 20000"),
        ([SAD], {"situation": long(20_001)}, "a turn of 20001 characters, of at most 20000"),
        ([long(19_000)] * 11, {}, None),
        ([SAD], {"topic": long(200_000)}, None),
        ([SAD], {"attributes": [{"name": "notes", "value": long(200_000)}]}, None),
        ([SAD], {}, ""),
    ]
    rows = [
        dialogue(n, *(turn for one in seeker for turn in (f"seeker: {one}", f"supporter: {ANSWER}")), **more)
        for n, (seeker, more, _) in enumerate(cases)
    ]
    frame = dialogues(*rows)
    kept, dropped = clean_dialogues(frame)
    assert kept["dialogue_id"].to_list() == ["s:5"]
    assert dropped["reason"].to_list() == ["too_long"] * 5
    for figures, (*_, detail) in zip(dropped["detail"], cases[:5], strict=True):
        assert figures == detail if detail else figures.endswith("of at most 200000")
    require_balance("clean_dialogues", [reconcile("dialogue", [frame], kept, dropped)])


@pytest.mark.drill("data")
def test_a_post_of_fifty_million_characters_costs_next_to_nothing():
    """Beside thirty that are read: no rule sees it."""
    few = [post(i, "", SAD + str(i)) for i in range(30)]
    clean_posts(posts(*few))  # lexicons are read once
    begun = time.process_time()
    clean_posts(posts(*few))
    plain = time.process_time() - begun
    huge = posts(*few, post(99, "", long(50_000_000)))
    begun = time.process_time()
    kept, dropped = clean_posts(huge)
    assert time.process_time() - begun < plain + 2.0
    assert drops(dropped) == {("post", "s:99"): ("too_long", "50000000 characters, of at most 20000")}
    assert kept.height == 30
