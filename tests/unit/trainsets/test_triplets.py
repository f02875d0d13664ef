"""E's triplets: a question, its positive, and three kinds of negatives that nobody of its group or of risk wrote."""

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl
from accounted import accounted
from hypothesis import given, settings
from hypothesis import strategies as st
from unique_rows import RISK, answer, post, posts, splits

from pipelines.llm.tasks import rows as framed
from pipelines.settings import Training
from pipelines.split.eligible import draw_reference
from pipelines.text.nearness import cosine, wording
from pipelines.trainsets.triplets import triplets
from schemas.annotations import Emotions, Topics
from schemas.labels import NEGATIVES, SENTIMENT_OF

PROVENANCE = {"provider": "openai", "model_asked": "m", "prompt_version": "p", "request_key": "k"}
FEELINGS = (("joy", 2), ("sadness", 4), ("confusion", 3))
GENERIC = ("你要相信自己。", "一切都会好的。", "时间会治愈一切。", "慢慢来别着急。", "祝你早日走出来。")
SETTINGS = Training(generic_questions=2, generic_sentences=2)


def question(number: int, *more: dict[str, Any], **columns: Any) -> dict[str, Any]:
    """A post of a group of its own, with one answer that says its own things and two generic ones in two others."""
    own = answer(f"s:{number}/0", f"第{number}个回答，讲的是他自己的事。")
    generic = answer(f"s:{number}/g", GENERIC[number % 5] + GENERIC[(number + 1) % 5])
    row = post(number, f"第{number}个问题", own, *more, group_id=f"g{number}", **columns)
    return row if more else row | {"answers": [own, generic]}


def emotions(frame: pl.DataFrame, given: Mapping[str, tuple[str, int | None]] | None = None) -> pl.DataFrame:
    """What is felt, by row: by default in each post by its number; of answers nothing is known."""
    felt = given or {one: FEELINGS[int(one[2:]) % 3] for one in frame["post_id"]}
    told = {"why": "", **PROVENANCE}
    made = [told | {"row_id": one, "emotion": word, "intensity": how} for one, (word, how) in felt.items()]
    return framed(Emotions, [row | {"unit": "answer" if "/" in row["row_id"] else "post"} for row in made])


def made(rows: Iterable[dict[str, Any]], split_of: Any = None, **more: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    frame = posts(*rows)
    table = splits(**(dict.fromkeys(frame["group_id"], "train") | (split_of or {})))
    more = {"topics": Topics.create_empty(), "emotions": emotions(frame), "settings": SETTINGS} | more
    return accounted("rm_triplets", ("post",), [frame], triplets(frame, table, **more))


def reasons(dropped: pl.DataFrame) -> list[tuple[str, str, str]]:
    return dropped.select("unit", "row_id", "reason").rows()


def answers_of(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {one["answer_id"]: one | {"group": row["group_id"]} for row in rows for one in row["answers"]}


MANY = [question(number) for number in range(30)]
HELD_OUT = {f"g{number}": "test" if number % 2 else "validation" for number in range(20, 30)}


def test_every_question_has_a_negative_of_each_kind_and_the_reference_of_the_prompt_set():
    kept, dropped = made(MANY)
    assert dropped.is_empty()
    assert kept["row_id"].to_list() == [f"s:{number}/{kind}" for number in range(30) for kind in NEGATIVES]
    assert set(kept["variant"]) == {"none"}
    for row in kept.iter_rows(named=True):
        assert row["made_from"] == row["row_id"].split("/")[0]
        reference = draw_reference(row["made_from"], MANY[int(row["made_from"][2:])]["answers"])
        assert (row["positive"], row["positive_id"]) == reference[:2]


def test_the_positive_is_a_professionals_where_one_answered_and_says_so():
    for roles in (("member", "professional"), ("member", "unknown")):
        own = [answer(f"s:0/{place}", f"{place}的回答", role) for place, role in enumerate(roles)]
        kept, _ = made([question(0) | {"answers": own}, *MANY[1:]])
        row = kept.filter(made_from="s:0").row(0, named=True)
        assert row["positive_role"] == roles[int(row["positive_id"][-1])]
        assert row["positive_role"] == "professional" or "professional" not in roles


def test_negatives_are_whole_answers_or_generic_sentences_of_other_groups():
    kept, _ = made(MANY)
    written = answers_of(MANY)
    assert set(kept["kind"]) == set(NEGATIVES)
    for row in kept.iter_rows(named=True):
        sources = [written[one] for one in row["negative_ids"]]
        assert all(one["group"] != row["group_id"] for one in sources)
        if row["kind"] == "generic":
            assert len(sources) == 2
            parts = [one for one in GENERIC if one in row["negative"]]
            assert sorted(row["negative"]) == sorted("".join(parts))
            assert not any(part in own["text"] for part in parts for own in MANY[int(row["made_from"][2:])]["answers"])
        else:
            assert [one["text"] for one in sources] == [row["negative"]]


def test_what_judged_a_mismatch_is_named():
    kept, _ = made(MANY)
    assert kept.filter(kind="mismatched_emotion")["providers"].to_list() == [["openai"]] * 30
    assert kept.filter(pl.col("kind") != "mismatched_emotion")["providers"].list.len().max() == 0


WORDS = ("joy", "anxiety", "fear", "confusion")
felt = st.tuples(st.sampled_from(WORDS), st.sampled_from([1, 3, 4, None]))


def differ(one: tuple[str, int | None], other: tuple[str, int | None]) -> bool:
    """By the definition: the label and the intensity; where an intensity is not known, the label and its sentiment."""
    if None in (one[1], other[1]):
        return SENTIMENT_OF[one[0]] != SENTIMENT_OF[other[0]]
    return one[0] != other[0] and one[1] != other[1]


@settings(max_examples=100)
@given(st.data())
def test_a_mismatched_answer_is_to_somebody_of_the_same_else_the_nearest_topic_who_feels_something_else(data):
    """Never with the same sentiment at the same intensity. Whether there is one is counted over all answers."""
    n = data.draw(st.integers(2, 9))
    topics = data.draw(st.lists(st.sampled_from(["行为", "家庭", "别的", None]), min_size=n, max_size=n))
    texts = data.draw(
        st.lists(st.sampled_from(["我睡不着", "我睡不着觉", "妈妈说我", "妈妈不说话", "考试"]), min_size=n, max_size=n)
    )
    rows = [question(k) | {"topic": topics[k], "text": texts[k]} for k in range(n)]
    feelings = {f"s:{k}": data.draw(felt) for k in range(n)}
    answer_of = {
        one: (word, 2)
        for one, word in data.draw(
            st.dictionaries(st.sampled_from([f"s:{k}/0" for k in range(n)]), st.sampled_from(WORDS))
        ).items()
    }
    frame = posts(*rows)
    kept, dropped = made(rows, emotions=emotions(frame, feelings | answer_of))
    drawn = {row["made_from"]: row for row in kept.filter(kind="mismatched_emotion").to_dicts()}
    missing = {
        row_id.split("/")[0] for _, row_id, reason in reasons(dropped) if reason in ("no_mismatch", "no_negative")
    }
    assert drawn.keys() | missing == feelings.keys()
    for k in range(n):
        own = feelings[f"s:{k}"]
        fitting = [
            (j, one["answer_id"])
            for j in range(n)
            for one in rows[j]["answers"]
            if j != k and differ(own, feelings[f"s:{j}"]) and answer_of.get(one["answer_id"], ("", 2))[0] != own[0]
        ]
        same = [one for one in fitting if topics[k] is not None and topics[one[0]] == topics[k]]
        row = drawn.get(f"s:{k}")
        if row is None:
            assert not fitting
            continue
        [answer_id] = row["negative_ids"]
        j = int(answer_id[2:].split("/")[0])
        assert (j, answer_id) in (same or fitting)
        other = feelings[f"s:{j}"]
        assert own[0] != other[0]
        assert (SENTIMENT_OF[own[0]], own[1]) != (SENTIMENT_OF[other[0]], other[1])
        assert row["same_topic"] == (None if None in (topics[k], topics[j]) else topics[k] == topics[j])
        if not same:
            near = {place: cosine(wording(texts[k]), wording(texts[place])) for place, _ in fitting}
            assert near[j] == max(near.values())


def test_a_topic_that_was_judged_is_a_topic():
    rows = [question(k, topic=topic) for k, topic in enumerate((None, "家庭", "职业"))]
    feelings = {"s:0": ("joy", 1), "s:1": ("fear", 3), "s:2": ("anger", 4)}
    said = {"relevant": True, "risk": [], "why": "", **PROVENANCE, "row_id": "s:0", "subtopic": None}
    for topic, answered in (("家庭", "s:1"), ("职业", "s:2")):
        judged = framed(Topics, [said | {"topic": topic}])
        kept, _ = made(rows, topics=judged, emotions=emotions(posts(*rows), feelings))
        row = kept.filter(made_from="s:0", kind="mismatched_emotion").row(0, named=True)
        assert (row["negative_ids"][0].split("/")[0], row["same_topic"]) == (answered, True)


def test_held_out_triplets_are_made_of_held_out_answers():
    kept, _ = made(MANY, split_of=HELD_OUT)
    split_of = dict.fromkeys((f"g{number}" for number in range(30)), "train") | HELD_OUT
    written = answers_of(MANY)
    assert set(kept["split"]) == {"train", "validation", "test"}
    for row in kept.iter_rows(named=True):
        assert row["split"] == split_of[row["group_id"]]
        assert {split_of[written[one]["group"]] for one in row["negative_ids"]} == {row["split"]}


def test_questions_of_one_group_lend_each_other_nothing():
    kept, dropped = made([question(number) | {"group_id": "g1"} for number in range(5)])
    assert kept.is_empty()
    assert reasons(dropped) == [("post", f"s:{number}", "no_negative") for number in range(5)]
    assert dropped["detail"][0] == "no_mismatch, few_generic, no_other_answer"


def test_an_answer_that_is_nearly_one_of_its_own_is_no_negative():
    copy = answer("s:1/0", "第0个回答，讲的是他自己的事啊。") | {"cluster_id": "s:0/0"}
    rows = [question(0), question(1) | {"answers": [copy]}]
    kept, _ = made(rows)
    assert kept.filter(made_from="s:0").is_empty()


# --- what is dropped


def test_what_may_not_teach_is_neither_asked_nor_drawn():
    for columns, reason in (
        ({"under_18": True}, "under_18"),
        ({"risk": RISK}, "risk"),
        ({"origin": "model"}, "no_human_answer"),
        ({"answers": []}, "no_human_answer"),
        ({"answers": [answer("s:0/0", "我也十五岁。") | {"under_18": True}]}, "no_human_answer"),
        ({"answers": [answer("s:0/0", "我也想死。") | {"risk": RISK}]}, "no_human_answer"),
    ):
        kept, dropped = made([question(0) | columns, *MANY[1:]])
        assert reasons(dropped) == [("post", "s:0", reason)]
        assert not any(one.startswith("s:0/") for row in kept["negative_ids"] for one in row)


def test_a_second_opinion_of_risk_or_relevance_is_heeded():
    said = {"subtopic": None, "topic": "人际", "relevant": True, "risk": [], "why": "", **PROVENANCE}
    judged = [said | {"row_id": "s:0", "risk": ["self_harm"]}]
    judged.append(said | {"row_id": "s:1", "relevant": False, "topic": None})
    _, dropped = made(MANY, topics=framed(Topics, judged))
    assert reasons(dropped) == [("post", "s:0", "risk"), ("post", "s:1", "not_relevant")]


def test_answers_of_models_teach_where_that_is_said():
    rows = [row | {"origin": "model"} for row in MANY]
    assert made(rows)[0].is_empty()
    assert made(rows, human_only=False)[0].height == 90


def test_without_emotions_there_is_no_mismatch_and_the_rest_stays():
    kept, dropped = made(MANY, emotions=Emotions.create_empty())
    assert set(kept["kind"]) == {"generic", "other_answer"}
    assert reasons(dropped) == [("triplet", f"s:{number}/mismatched_emotion", "no_emotion") for number in range(30)]


def test_too_few_generic_sentences_make_no_answer():
    _, dropped = made(MANY, settings=Training(generic_questions=2, generic_sentences=4))
    assert {(unit, reason) for unit, _, reason in reasons(dropped)} == {("triplet", "few_generic")}
    assert dropped.height == 30


# --- laws


def test_the_draws_follow_from_seed_and_ids_alone():
    first, again = made(MANY)[0], made(MANY[::-1])[0]
    assert first.sort("row_id").equals(again.sort("row_id"))
    assert not first.equals(made(MANY, seed=1)[0])


@settings(max_examples=20)
@given(st.sets(st.integers(0, 29), min_size=12, max_size=28), st.integers(0, 29))
def test_a_new_question_moves_only_the_draws_that_meet_its_answers(numbers: set[int], new: int):
    """What is generic aside: that is counted anew."""
    of = [made([MANY[one] for one in sorted(some)])[0].to_dicts() for some in (numbers, numbers | {new})]
    before, after = ({row["row_id"]: row for row in rows if row["kind"] != "generic"} for rows in of)
    moved = [row_id for row_id in before.keys() & after.keys() if before[row_id] != after[row_id]]
    assert all(one.startswith(f"s:{new}/") for row_id in moved for one in after[row_id]["negative_ids"])
