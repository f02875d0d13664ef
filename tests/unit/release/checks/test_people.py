"""What a release may not tell of people."""

import polars as pl
from released_rows import few_rows
from unique_rows import RISK, answer, post, sampled_round

from pipelines.release.checks.people import K, erased, k_anonymity, minors, personal_data, risks
from pipelines.settings import Cleaning, Settings
from pipelines.store.suppression import SuppressionList
from pipelines.text.pii import redact
from schemas.tables import TABLES

SPLITS = {"g1": "train"}
CALM = "我最近睡不好，总是想工作上的事情，白天也没有精神。"
DANGER = "我不想活了，想自杀。"
YOUNG = "我今年16岁，上高一，和同桌吵架了。"
REPLY = "先抱抱你，睡不好的日子真的很难熬，愿意说说最近发生了什么吗？"


def _ids(check, *told, **more):
    return [one.examples for one in check(few_rows(*told, split_of=SPLITS, **more))]


def test_risk_and_age_are_found_in_posts_and_answers():
    for check, told in (
        (risks, post(1, CALM + DANGER)),
        (risks, post(1, CALM, risk=RISK)),
        (risks, post(1, CALM, answer("s:1/a", REPLY + DANGER))),
        (minors, post(1, YOUNG)),
        (minors, post(1, CALM, answer("s:1/a", f"{YOUNG}{REPLY}"))),
    ):
        assert _ids(check, told) == [["s:1"]], told
    calm = post(1, CALM, answer("s:1/a", REPLY))
    assert _ids(risks, calm) == _ids(minors, calm) == []


def test_a_flag_of_the_tables_and_the_second_opinion_are_each_enough():
    released = few_rows(post(1, CALM), split_of=SPLITS)
    flagged = released.table("unique_posts").with_columns(under_18=pl.lit(True))
    assert _ids(minors, post(1, CALM), unique_posts=flagged, grpo_ecot=released.table("grpo_ecot")) == [["s:1"]]
    said = {"row_id": ["s:1"], "risk": [["self_harm"]]}
    assert _ids(risks, post(1, CALM), topics=pl.DataFrame(said)) == [["s:1"]]


def test_turns_of_a_seeker_are_read_together_and_a_supporter_may_ask_whether_somebody_is_in_danger():
    said = [f"seeker: {CALM}", "supporter: 你有想过自杀吗？", "seeker: 没有，就是累。"]
    assert _ids(risks, said=(sampled_round(3, 2, said, REPLY),)) == []
    said = ["seeker: 我今年16岁。", "supporter: 嗯。", "seeker: 上高一，和同桌吵架了。"]
    assert _ids(minors, said=(sampled_round(3, 2, said, REPLY),)) == [["s:3#2"]]


def test_risk_warns_where_the_settings_let_it_train():
    told = post(1, CALM + DANGER)
    (allowed,) = risks(few_rows(told, split_of=SPLITS))
    rows = few_rows(told, split_of=SPLITS).table("grpo_ecot")
    (refused,) = risks(few_rows(told, split_of=SPLITS, grpo_ecot=rows, settings=Settings()))
    assert (allowed.severity, refused.severity) == ("warn", "refuse")


WAKEFUL = "我最近睡不好，总是想工作上的事情。"


def _found(*told, settings=None):
    return list(personal_data(few_rows(*told, split_of=SPLITS, settings=settings or Settings())))


def test_a_telephone_number_is_found_in_posts_and_answers():
    for told in (post(1, WAKEFUL + "电话13912345678。"), post(1, WAKEFUL, answer("s:1/a", "想聊就打13912345678。"))):
        (found,) = _found(told)
        assert (found.count, found.examples) == (1, ["s:1"])
        assert "phone in 1 rows" in found.what
        assert "139" not in found.what


def test_names_are_looked_for_where_cleaning_looks_for_them_and_what_was_redacted_is_nothing():
    told = post(1, "我叫王小明，最近睡不好，总是想工作上的事情。")
    (found,) = _found(told)
    assert "name in 1 rows" in found.what
    assert _found(told, settings=Settings(cleaning=Cleaning(names="none"))) == []
    text = redact([WAKEFUL + "我叫王小明，电话13912345678。"]).texts[0]
    assert "[" in text
    assert _found(post(1, text)) == []


def test_an_id_that_is_a_personal_number_is_found_and_not_quoted_and_counters_and_hashes_are_none():
    for source_id in ("13912345678", "zhang.san@163.com", "11010519491231002X"):
        (found,) = _found(post(source_id, WAKEFUL))
        assert (found.severity, found.count, found.examples) == ("refuse", 1, ["s"])
        assert source_id not in found.model_dump_json()
    for source_id in ("100841602", "4a13912345678", "079257027183", "5012345678901234", "b7-139"):
        assert _found(post(source_id, WAKEFUL)) == []


def test_a_prompt_is_read_as_well_as_the_dialogue_beside_it():
    rows = few_rows(post(1, WAKEFUL), split_of=SPLITS).table("grpo_ecot").to_dicts()
    rows[0]["prompt"][-1]["content"] += "电话13912345678。"
    edited = pl.DataFrame(rows, schema=TABLES["grpo_ecot"].polars_schema())
    (found,) = personal_data(few_rows(post(1, WAKEFUL), split_of=SPLITS, grpo_ecot=edited))
    assert found.examples == ["s:1"]


POSTS = (post(1, WAKEFUL), post(12, "和室友吵架了，不想回宿舍。"), post("t:9", "最近总是很累。"))


def test_a_listed_row_is_refused_and_one_that_was_erased_and_came_back(tmp_path):
    rows = few_rows(*POSTS, split_of=SPLITS, home=tmp_path)
    assert list(erased(rows)) == []
    for line, row_id in (("s:1  # its writer asked", "s:1"), ("1", "s:1"), ("t:9", "s:t:9"), ("", "s:12")):
        (tmp_path / "takedown.txt").write_text(f"# asked for\n\n{line}\n", encoding="utf-8-sig")
        if not line:
            SuppressionList(tmp_path).add([row_id])
        (found,) = erased(rows)
        assert (found.severity, found.count, found.examples) == ("refuse", 1, [row_id])


def _few(*texts):
    told = [post(number, text) for number, text in enumerate(texts)]
    return [(one.severity, one.count) for one in k_anonymity(few_rows(*told, split_of=SPLITS))]


def test_age_place_and_job_together_identify_a_person_unless_enough_are_alike():
    for text in ("我32岁，在成都做护士，最近睡不好。", "I am a nurse from Seattle, 34 years old, and I can't sleep."):
        assert _few(text) == [("warn", 1)]
    alike = [f"我32岁，在成都做护士，第{number}次来这里。" for number in range(K)]
    assert _few(*alike) == []
    assert _few(*alike[1:]) == [("warn", K - 1)]


def test_a_class_includes_seekers_with_more_quasi_identifiers():
    alike = [f"我32岁，做护士，第{number}次来这里。" for number in range(K - 1)]
    assert _few(*alike, "我32岁，在成都做护士。") == [("warn", 1)]


def test_an_age_is_the_same_in_words_and_in_figures():
    ages = {"三十二岁": "32岁", "二十岁": "20岁", "十九岁": "19岁", "十岁": "10岁"}
    for words, figures in ages.items():
        assert _few(*[f"我{age}，做护士，最近睡不好。" for age in (words, figures, words, figures, words)]) == []


def test_a_doctor_who_is_spoken_to_is_no_job_of_the_seekers():
    for text in ("艾薇医生，我22岁，最近睡不好。", "我22岁，去医院看了医生。", "我22岁，心理测试说我焦虑。"):
        assert _few(text) == []
    assert _few("我22岁，是一名医生，最近睡不好。") == [("warn", 1)]


def test_rounds_of_one_dialogue_are_one_seeker():
    history = ["seeker: 我32岁，在成都做护士，最近睡不好。"]
    later = [*history, "supporter: 嗯。", "seeker: 真的很累。"]
    said = (sampled_round(3, 1, history, "先抱抱你。"), sampled_round(3, 2, later, "辛苦了。"))
    (found,) = k_anonymity(few_rows(post(1, "最近总是睡不好。"), said=said, split_of=SPLITS))
    assert (found.count, found.examples) == (1, ["s:3"])
    assert found.what.startswith("1 of 2 seekers tell 2 or more of age, school, job, place, and fewer than 5 of")
