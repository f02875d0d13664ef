"""A small file of every form, written by us, and what it becomes."""

from copy import deepcopy
from typing import Any

from sets_with_clips import AVAMERG, MESC


def spoken(row: dict[str, Any]) -> list[tuple[str, str]]:
    return [(turn["role"], turn["text"]) for turn in row["turns"]]


def attributes(row: dict[str, Any]) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in row["attributes"]}


def test_smile(importing: Any) -> None:
    said = (("client", "我睡不着。", ""), ("counselor", "多久了？", "Question"), ("counselor", "白天呢？", "探查"))
    turns = [{"role": role, "content": text, "annotation": [{"label": label}]} for role, text, label in said]
    imported = importing("smile", {"data/7.json": turns})
    [row] = imported.kept.rows(named=True)
    assert row["dialogue_id"] == "smile:7"
    assert spoken(row) == [("seeker", "我睡不着。"), ("supporter", "多久了？\n白天呢？")]
    assert row["turns"][1]["strategies"] == ["Question"]
    assert row["turns"][1]["source_strategies"] == ["Question", "探查"]
    assert imported.unknown_strategies == {"探查": 1}


def test_cpsycoun_half_width_colon_and_line_ends(importing: Any) -> None:
    text = "来访者: 你好。\r\n\r\n心理咨询师：请讲。\r\n1. 慢慢来。\r\n（停顿）\r\n来访者：比如：我怕黑。"
    [row] = importing("cpsycoun", {"case_3.txt": text}).kept.rows(named=True)
    assert row["dialogue_id"] == "cpsycoun:3"
    [first, *others] = spoken(row)
    assert first == ("seeker", "你好。")
    assert others == [("supporter", "请讲。\n1. 慢慢来。\n（停顿）"), ("seeker", "比如：我怕黑。")]


def test_cpsycoune(importing: Any) -> None:
    texts = ["求助者：我要换工作吗？", "支持者：你怎么想？", "求助者：不知道。"]
    imported = importing("cpsycoune", {"E/Career/1.json": texts, "E/Emotion&Stress/1.json": texts})
    rows = imported.kept.rows(named=True)
    assert [row["dialogue_id"] for row in rows] == ["cpsycoune:Career/1", "cpsycoune:Emotion&Stress/1"]
    assert rows[1]["topic"] == "Emotion&Stress"
    assert spoken(rows[0])[:2] == [("seeker", "我要换工作吗？"), ("supporter", "你怎么想？")]


def test_esconv(importing: Any) -> None:
    said = (
        ("sys", {"strategy": "Question"}, "Hi. What is on your mind?"),
        ("usr", {"feedback": "3"}, "My job.\n"),
        ("usr", {"feedback": "5"}, "It may go."),
        ("sys", {"strategy": "Mirroring"}, "It may go?"),
    )
    dialogue = {
        **{"experience_type": "Previous Experience", "emotion_type": "anxiety", "problem_type": "job crisis"},
        **{"survey_score": {"seeker": {"empathy": "5"}, "supporter": {"relevance": 4}}, "supporter_question1": ""},
        "dialog": [dict(zip(("speaker", "annotation", "content"), one, strict=True)) for one in said],
    }
    imported = importing("esconv", [dialogue])
    [row] = imported.kept.rows(named=True)
    assert [turn["role"] for turn in row["turns"]] == ["supporter", "seeker", "supporter"]
    assert row["turns"][1]["feedback"] == 5
    assert (row["n_rounds"], row["emotion"], row["topic"]) == (1, "anxiety", "job crisis")
    assert attributes(row) == {
        "experience_type": "Previous Experience",
        "survey_score.seeker.empathy": "5",
        "survey_score.supporter.relevance": "4",
        "turns.1.feedback": "3|5",
    }
    assert imported.unknown_strategies == {"Mirroring": 1}
    assert imported.notes == {"joined_turns": 1, "opened_by_supporter": 1}
    assert (len(row["source_id"]), row["licence"], row["consent"]) == (12, "CC BY-NC 4.0", "given")


def test_esconv_windows(importing: Any) -> None:
    lines = [
        "1.0 0 0 hello  EOS 1.0 1 1 [Questions] Hi, how are you?",
        "0.0 0 0 hello  EOS 0.0 1 1 [Questions] Hi, how are you? EOS 0.0 0 2 bad EOS 1.0 1 3 [Other] oh [sic] EOS fan",
        "no window at all",
        "0.0 1 1 [Questions] Hi, who are you? EOS 0.0 0 4 x EOS 1.0 1 5 [Other] y",
        "0.0 1 3 [Question] changed EOS 0.0 0 4 and so EOS 1.0 1 5 [Other] yes",
        "1.0 0 1 lost beginning EOS 1.0 1 2 [Mirroring] I see",
        "",
    ]
    imported = importing("esconv_tsv", "\n".join(lines), file="w.tsv")
    one, two = imported.kept.rows(named=True)
    assert [text for _, text in spoken(one)] == ["hello", "Hi, how are you?", "bad", "oh [sic] EOS fan"]
    assert attributes(one) == {"windows": "2"}
    assert attributes(two) == {"windows": "1", "missing_utterances": "0"}
    assert imported.dropped.select("row_id", "reason").rows() == [
        ("w.tsv:3", "wrong_form"),
        ("w.tsv:4", "wrong_form"),  # its indexes leap
        ("w.tsv:5", "unplaced_window"),
    ]
    assert imported.unknown_strategies == {"Mirroring": 1}


SPOKEN = (("system", "倾听"), ("user", "我很烦"), ("assistant", "怎么了"))
MESSAGES = {"id": 4, "topic": "情绪", "messages": [{"role": role, "content": text} for role, text in SPOKEN]}
TURNS = [{"from": "human", "value": "我很烦"}, {"from": "gpt", "value": "怎么了"}]
SHAREGPT = {"id": "x_0", "system": "倾听", "conversations": TURNS}
ALPACA = {"instruction": "还在", "input": "烦", "output": "说说看", "system": "倾听", "history": [["我很烦", "怎么了"]]}
PAIRS = {"system": "倾听", "input": "我很烦", "output": "怎么了"}, {"input": "还在\n烦", "output": "说说看"}


def test_messages(importing: Any) -> None:
    sets = {"soulchat": MESSAGES, "sharegpt": SHAREGPT, "llama_factory": ALPACA, "emollm": {"conversation": PAIRS}}
    for name, record in sets.items():
        [row] = importing(name, [record]).kept.rows(named=True)
        assert spoken(row)[:2] == [("seeker", "我很烦"), ("supporter", "怎么了")], name
        more = [("seeker", "还在\n烦"), ("supporter", "说说看")]
        assert spoken(row)[2:] == (more if name in ("llama_factory", "emollm") else []), name
        assert (attributes(row)["system"], row["topic"]) == ("倾听", record.get("topic")), name


def test_a_null_is_no_field_where_a_file_has_the_keys_of_several_forms(importing: Any) -> None:
    """A table of several forms, written as JSON, has every key on every record. `conversations` comes first."""
    named = {"role": "from", "content": "value"}
    turns = [{**one, **dict.fromkeys(named.values())} for one in MESSAGES["messages"]]
    both = [{**dict.fromkeys(named), **one} for one in SHAREGPT["conversations"]]
    alpaca = dict.fromkeys(("instruction", "input", "output"))
    records = [{"messages": turns, "conversations": None, **alpaca}, {"messages": turns[:1], "conversations": both}]
    imported = importing("llama_factory", records)
    assert imported.dropped["reason"].to_list() == ["duplicate_id"], "both say the same"
    assert spoken(imported.kept.row(0, named=True)) == [("seeker", "我很烦"), ("supporter", "怎么了")]


def test_a_tool_among_the_messages_drops_the_dialogue(importing: Any) -> None:
    tool = {"messages": [*MESSAGES["messages"], {"role": "observation", "content": "x"}]}
    imported = importing("soulchat", [MESSAGES, tool])
    assert imported.dropped.select("reason", "detail").rows() == [("unknown_role", "utterance 3: `observation`")]


def test_mesc(importing: Any) -> None:
    imported = importing("mesc", MESC, file="MESC.csv")
    first, last = imported.kept.rows(named=True)
    assert first["dialogue_id"] == "mesc:0"
    assert spoken(first)[0] == ("seeker", "Well, I came back.\nAnd it hurt.\nA lot.")
    assert [turn["emotion"] for turn in first["turns"]] == ["sadness", "neutral", "fear", "neutral"]
    assert attributes(first) == {"season": "1", "episode": "2", "turns.0.emotions": "sadness|sadness|anger"}
    assert (first["modality"], first["lang"]) == ("text+video", "en")
    clip = {"uri": "in-treatment/s01e02", "kind": "video", "start_ms": 60_000, "end_ms": 61_500, "available": False}
    clip |= {"needed": None}
    assert [clip.items() <= one.items() for one in first["turns"][1]["media"]] == [True]
    assert [turn["strategies"] for turn in first["turns"]] == [[], ["Question"], [], []]
    assert imported.unknown_strategies == {"Structuring the therapy": 1}
    assert first["turns"][0]["source_strategies"] == []
    assert spoken(last) == [("seeker", "Early.\nLate.")]
    assert attributes(last)["missing_utterances"] == "1"
    dropped = imported.dropped.select("row_id", "reason", "detail").rows()
    assert dropped == [("MESC.csv:8", "missing_field", "`line 9.text` is empty")]


def test_avamerg(importing: Any) -> None:
    [row] = importing("avamerg", [AVAMERG]).kept.rows(named=True)
    assert row["dialogue_id"] == "avamerg:00042"
    assert [text for _, text in spoken(row)][1:] == ["Oh no, again?", "Third time.", "That is hard."]
    assert [turn["emotion"] for turn in row["turns"]] == ["annoyed", None, "sad", None]
    clips = [(clip["uri"], clip["kind"]) for clip in row["turns"][3]["media"]]
    assert clips == [("dia00042utt3_31.wav", "audio"), ("dia00042utt3_31.mp4", "video")]
    assert (row["situation"], row["topic"], row["modality"]) == ("I lost my keys.", "Life events", "text+video")
    assert attributes(row)["chain_of_empathy.0.emotion_cause"] == "lost keys"
    assert attributes(row)["speaker_profile.timbre"] == "high"


def test_avamerg_views_that_contradict_each_other(importing: Any) -> None:
    other, named = deepcopy(AVAMERG), deepcopy(AVAMERG)
    other["turns"][1]["dialogue_history"][1] |= {"utterance": None, "text": "Something else."}
    named |= {"conversation_id": "00043", "turns": named["turns"][:1]}
    named["turns"][0]["dialogue_history"][0]["audio_path"] = "train/audio/a.wav"
    named["turns"][0]["response"] = None
    imported = importing("avamerg", [other, named])
    assert imported.dropped["reason"].to_list() == ["contradiction"]
    [row] = imported.kept.rows(named=True)
    assert row["modality"] == "text+audio"
    assert row["turns"][0]["media"][0]["uri"] == "train/audio/a.wav"
    assert row["n_rounds"] == 0


def test_qa_csv_gathers_answers_of_equal_posts_only(importing: Any) -> None:
    text = (
        "\ufeffDepartment,Title,Ask,Answer\r\n"
        '情绪,我很累,"怎么办，\n真的累",歇歇\r\n'
        "情绪,我很累,怎么办,走走\r\n"
        '睡眠,我很累,"怎么办，\n真的累",睡觉\r\n'
        '情绪,我很累,"怎么办，\n真的累",歇歇\r\n'
        "情绪,多一列,a,b,c\r\n"
        "情绪,没有回答,怎么办,\r\n"
    )
    imported = importing("qa_csv", text, file="qa.csv")
    assert imported.encoding == "utf-8-sig"
    rows = imported.kept.rows(named=True)
    assert [[answer["text"] for answer in row["answers"]] for row in rows] == [["歇歇", "睡觉"], ["走走"], []]
    assert (rows[0]["topic"], rows[0]["subtopics"]) == ("情绪", ["睡眠"])
    assert imported.dropped.select("unit", "row_id", "reason").rows() == [
        ("record", "qa.csv:9", "bad_csv"),
        ("answer", "qa.csv:7", "duplicate_answer"),
        ("answer", "qa.csv:10", "empty_answer"),
    ]
    assert (imported.n_records, imported.n_answers) == (4, 5)


def test_psyqa_answers_stand_or_fall_alone(importing: Any) -> None:
    labels = [{"start": 0, "end": 5, "type": "Direct Guidance"}, {"start": 3, "end": 99, "type": "Information"}]
    told = [{"answer_text": "先听听看。", "labels_sequence": of} for of in (labels, None)]
    post = {"question": "要不要说？", "description": "我怕她生气", "keywords": "人际,沟通，朋友", "questionID": 9}
    post["answers"] = [*told, {"answer_text": None}, "text"]
    imported = importing("psyqa", [post, post], data_set="mine")
    [row] = imported.kept.rows(named=True)
    assert (row["post_id"], row["topic"], row["subtopics"]) == ("mine:9", "人际", ["沟通", "朋友"])
    assert (row["title"], row["description"]) == ("要不要说？", "我怕她生气")
    [answer] = row["answers"]
    assert answer["answer_id"].startswith("mine:9/")
    assert [tuple(span.values()) for span in answer["spans"]] == [("Providing Suggestions", "Direct Guidance", 0, 5)]
    assert imported.notes == {"spans_outside_text": 1}
    assert imported.dropped.select("unit", "row_id", "reason").rows() == [
        ("answer", "set.json[0].answers[2]", "wrong_type"),
        ("answer", "set.json[0].answers[3]", "wrong_type"),
        ("answer", "set.json[0].answers[1]", "duplicate_answer"),
        ("record", "set.json[1]", "duplicate_id"),
        *(("answer", f"set.json[1].answers[{i}]", "post_dropped") for i in range(4)),
    ]
    assert (imported.n_records, imported.n_answers) == (2, 8)
