"""What rules find is counted against labels: spans of personal data, labels of whole posts."""

import pytest

from pipelines.errors import UnknownName
from pipelines.operations.calibrate import measuring
from pipelines.operations.calibrate.gold import GoldPost
from pipelines.operations.calibrate.measuring import FALSE_ALARM, MISSED, measure
from pipelines.settings import Cleaning, Filters, Settings
from schemas.labels import CALIBRATED

PHONE, OTHER_PHONE = "13912345678", "13812345678"


def post(number: int, text: str, *spans: tuple[str, str], **more) -> GoldPost:
    return GoldPost(id=str(number), text=text, spans=[{"kind": kind, "text": words} for kind, words in spans], **more)


def counted(measured, kind):
    one = next(one for one in measured.figures if one.kind == kind)
    return one.labelled, one.found, one.right, one.missed


SPANS = (
    post(1, f"我叫王小明，最近睡不好，电话{PHONE}。", ("name", "王小明"), ("contact", PHONE)),
    post(2, f"最近总是很累，想聊就打{PHONE}。"),  # nobody labelled it
    post(3, "隔壁的糯米团说我很吵。", ("name", "糯米团")),
    post(4, f"客服电话{OTHER_PHONE}，没有人接，我很生气。", ("public", OTHER_PHONE), ("city", "客服")),
)


def test_a_span_is_right_where_it_overlaps_a_labelled_one_and_a_public_one_is_neither_right_nor_missed():
    measured = measure("personal_data", SPANS)
    assert [one.kind for one in measured.figures] == list(CALIBRATED["personal_data"])
    assert counted(measured, "contact") == (1, 3, 1, 0)
    assert counted(measured, "name") == (2, 1, 1, 1)
    assert counted(measured, "any") == (3, 4, 2, 1)
    assert {one.kind: one.wrongly_changed for one in measured.figures} == {
        **{"name": 0, "others": 0, "contact": 2, "any": 2},
    }
    assert [(one.id, one.kind, one.what, one.text) for one in measured.mistakes] == [
        ("2", "contact", FALSE_ALARM, PHONE),
        ("4", "contact", FALSE_ALARM, OTHER_PHONE),
        ("3", "name", MISSED, "糯米团"),
    ]
    assert measured.mistakes[0].before == "最近总是很累，想聊就打"


def test_a_part_of_a_span_is_enough_whatever_its_kind():
    one = post(1, f"我叫王小明，最近睡不好，电话{PHONE}。", ("others", "小明"), ("name", PHONE[:3]))
    measured = measure("personal_data", [one])
    assert counted(measured, "any") == (2, 2, 2, 0)
    assert counted(measured, "name") == (1, 1, 1, 0)
    assert measured.mistakes == []


def test_a_labelled_span_of_which_a_part_is_left_is_missed(monkeypatch):
    found = {"row": [0, 0], "start": [12, 36], "end": [18, 42], "kind": ["school", "school"], "value": ["师大", "附中"]}
    monkeypatch.setattr(measuring, "find", lambda texts, **_: measuring.pl.DataFrame(found))
    one = post(1, "我上的是师大附中，隔壁是师大附中", ("others", "师大附中"))
    assert counted(measure("personal_data", [one]), "others") == (2, 2, 2, 2)
    monkeypatch.setattr(measuring, "find", lambda texts, **_: measuring.pl.DataFrame({**found, "end": [24, 42]}))
    assert counted(measure("personal_data", [one]), "others") == (2, 2, 2, 1)


def test_the_finder_is_the_one_of_the_settings():
    assert counted(measure("personal_data", SPANS, Settings(cleaning=Cleaning(names="none"))), "name")[1] == 0


def test_readers_agree_on_whether_a_post_holds_any_of_a_kind_and_the_first_is_right():
    name = {"spans": [{"kind": "name", "text": "王小明"}]}
    part = {"spans": [{"kind": "name", "text": "小明"}]}
    nothing = {"spans": []}
    said = [(name, part), (name, nothing), (nothing, nothing), (nothing, nothing)]
    posts = [
        GoldPost(id=str(number), text="我叫王小明，最近睡不好。", readers={"A": first, "B": second})
        for number, (first, second) in enumerate(said)
    ]
    figures = next(one for one in measure("personal_data", posts).figures if one.kind == "name")
    assert (figures.labelled, figures.found, figures.right, figures.readers) == (2, 4, 2, 2)
    assert figures.kappa == pytest.approx(0.5)  # p_o 3/4, p_e 1/2


def labelled(number: int, text: str, *labels: str, **more) -> GoldPost:
    return GoldPost(id=str(number), text=text, labels=list(labels), **more)


def test_risk_is_counted_by_kind_and_any():
    posts = [
        labelled(1, "我不想活了，想自杀。", "self_harm", "under_18", "emotional"),
        labelled(2, "我不想活了，想自殺。"),
        labelled(3, "他说了一些话，我听了很怕。", "abuse"),
        labelled(4, "最近睡不好。", "under_18"),
    ]
    measured = measure("risk", posts)
    assert counted(measured, "self_harm") == (1, 2, 1, 0)
    assert counted(measured, "abuse") == (1, 0, 0, 1)
    assert counted(measured, "any") == (2, 2, 1, 1)
    assert [(one.id, one.kind, one.what) for one in measured.mistakes] == [
        ("2", "self_harm", FALSE_ALARM), ("3", "abuse", MISSED), ("2", "any", FALSE_ALARM), ("3", "any", MISSED),
    ]  # fmt: skip
    assert "self_harm" in measured.mistakes[0].detail, "the rule"
    assert next(iter(measured.figures)).wrongly_changed is None


def test_who_is_under_14_is_under_18_and_a_year_of_birth_counts_from_the_day_of_the_post():
    posts = [
        labelled(1, "我今年12岁，和同桌吵架了。", "under_14"),
        labelled(2, "我今年16岁，上高一，和同桌吵架了。", "under_18"),
        labelled(3, "我32岁了，和同事吵架了。"),
        labelled(4, "我是2010年出生的，和同桌吵架了。", "under_18", posted_at="2025-03-01"),
    ]
    measured = measure("minors", posts)
    assert counted(measured, "under_14") == (1, 1, 1, 0)
    assert counted(measured, "under_18") == (3, 3, 3, 0)


def test_emotional_posts_stay_where_nothing_drops_them_and_their_score_is_high_enough(monkeypatch):
    verdicts = [  # reason, score: the rules themselves have tests of their own
        *((None, 0.9), (None, 0.2), ("advertisement", 0.4), (None, 0.1)),
    ]
    said = [{"reason": reason, "detail": "sign", "emotional_context": score} for reason, score in verdicts]
    monkeypatch.setattr(measuring, "relevance", lambda text, title: measuring.pl.Series(said))
    posts = [
        labelled(1, "我很难过。", "emotional"),
        labelled(2, "我有点累。", "emotional"),
        labelled(3, "招聘，加我。", "recruitment"),
        labelled(4, "今天星期几？"),
    ]
    measured = measure("relevance", posts, Settings(filters=Filters(min_emotional_context=0.15)))
    assert counted(measured, "emotional") == (2, 2, 2, 0)
    assert counted(measured, "advertisement") == (0, 1, 0, 0)
    assert counted(measured, "recruitment") == (1, 0, 0, 1)
    assert counted(measured, "any") == (1, 1, 1, 0)
    assert measured.figures[-1].auc == pytest.approx(0.75)  # of four pairs .2 is below .4 in one
    strict = measure("relevance", posts, Settings(filters=Filters(min_emotional_context=0.5)))
    assert counted(strict, "emotional") == (2, 1, 1, 1)


def test_the_rules_of_relevance_themselves_are_asked():
    posts = [labelled(1, "我最近很难过，总是哭，和妈妈吵架了，我该怎么办？", "emotional"), labelled(2, "你好")]
    measured = measure("relevance", posts)
    assert measured.figures[-1].auc == 1.0
    assert [one.kind for one in measured.figures] == list(CALIBRATED["relevance"])


def test_another_stage_names_the_nearest():
    with pytest.raises(UnknownName, match="personaldata") as caught:
        measure("personaldata", SPANS)
    assert "did you mean 'personal_data'" in caught.value.hint
