"""Generic sentences: what people answer whatever was asked, counted over train answers alone."""

import polars as pl

from pipelines.settings import Training
from pipelines.trainsets.negatives import generic_sentences, sentences

COLUMNS = dict.fromkeys(("answer_id", "group_id", "split", "lang", "text"), pl.String)


def answers(*rows: tuple[str, ...]) -> pl.DataFrame:
    """Rows `(group, text)` or `(group, text, split)`; ids by their order."""
    full = [(f"a{n:02}", group, *(rest or ["train"]), "zh", text) for n, (group, text, *rest) in enumerate(rows)]
    return pl.DataFrame(full, schema=COLUMNS, orient="row")


def keys(*rows: tuple[str, ...], **settings: float) -> list[tuple[str, str]]:
    found = generic_sentences(answers(*rows), Training(**({"generic_questions": 2} | settings)))
    return found.select("split", "sentence").rows()


def test_an_answer_is_cut_into_sentences_each_once_without_those_that_say_nothing():
    for text, wanted in (
        ("先抱抱你。你要相信自己！！", ["先抱抱你。", "你要相信自己！！"]),
        ("他说：“一切都会好的。”你也这样想吗？", ["他说：“一切都会好的。”", "你也这样想吗？"]),
        ("第一行没有句号\n第二行也没有", ["第一行没有句号。", "第二行也没有。"]),
        ("嗯。好的。 加油加油；慢慢来吧", ["加油加油；", "慢慢来吧。"]),
        ("慢慢来吧。慢慢来吧！", ["慢慢来吧。"]),
        ("。。。！？", []),
        ("", []),
    ):
        assert sentences(answers(("g", text)))["text"].to_list() == wanted


def test_a_sentence_is_generic_from_so_many_questions_on():
    rows = [(f"g{n}", f"你要相信自己。{other}") for n, other in enumerate(("先去睡觉。", "别理他们。", "先去睡觉！"))]
    assert keys(*rows, generic_questions=3) == [("train", "你要相信自己")]
    assert keys(*rows, generic_questions=2) == [("train", "你要相信自己"), ("train", "先去睡觉")]
    assert keys(*rows, generic_questions=4) == []
    assert keys(("g1", "你要相信自己。"), ("g1", "你要相信自己。")) == []  # that hang together: they count once


def test_the_share_counts_where_it_asks_for_more():
    rows = [(f"g{number}", "你要相信自己。" if number < 3 else f"第{number}个回答。") for number in range(10)]
    assert keys(*rows, generic_share=0.3) == [("train", "你要相信自己")]
    assert keys(*rows, generic_share=0.31) == []


def test_what_is_frequent_is_learnt_from_train_answers_alone():
    held_out = [(f"h{number}", "时间会治愈一切。", "test") for number in range(5)]
    train = [("g1", "你要相信自己。"), ("g2", "你要相信自己。")]
    assert keys(*held_out) == []
    assert keys(*held_out, *train) == [("train", "你要相信自己")]


def test_held_out_answers_lend_their_own_words():
    """Nothing that stands in a train answer alone is written into a held-out triplet."""
    held_out = [("h1", "嗯嗯，你 要相信自己…", "test"), ("h2", "你要相信自己！", "test")]
    rows = answers(("g1", "你要相信自己。"), ("g2", "你要相信自己。"), *held_out)
    found = generic_sentences(rows, Training(generic_questions=2))
    [lent] = found.filter(split="test").select("group_id", "answer_id", "text").rows()
    assert lent == ("h2", "a03", "你要相信自己！")
    assert found.filter(split="train")["answer_id"].to_list() == ["a00"]
