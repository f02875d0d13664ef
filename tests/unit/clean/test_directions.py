"""Stage directions of dialogues that models wrote go; what people add in brackets stays."""

import polars as pl
import pytest
from clean_rows import dialogue, dialogues

from pipelines.clean.dialogues import clean_dialogues, without_directions

GO = {
    "（微笑）没关系，慢慢说。": "没关系，慢慢说。",
    "我不知道该怎么办（低头，声音低落）。": "我不知道该怎么办。",
    "（紧张地）我……我怕考不好": "我……我怕考不好",
    "好多了。\n（一段时间后）\n上次说的方法我试了。": "好多了。\n上次说的方法我试了。",
    "（来访者画了一幅画）这是我的家。": "这是我的家。",
    "（以上对话仅供参考，实际过程可能不同。）": "",
}
STAY = [
    "我（继父那边的）姐姐一直不理我",
    "压力大的时候可以做些放松的事（如读书和写作）。",
    "他总是拿我和哥哥（和别人家的孩子也比）比较",
    "我妹妹（高中）不理我",
    "我（外地）的朋友",
    "我（从小被父亲打得流泪）不敢回家",
    "（我昨天割腕了，没人知道）",
    "我爸妈（在离婚过程中）都不管",
    "先把它写下来（1），再告诉自己（2）",
    None,
]


@pytest.mark.parametrize("turn", GO)
def test_directions_go(turn):
    assert pl.Series([turn]).to_frame("turn").select(without_directions(pl.col("turn"))).item() == GO[turn]


def test_what_people_add_stays():
    turns = pl.DataFrame({"turn": STAY}, schema={"turn": pl.String})
    assert turns.select(without_directions(pl.col("turn"))).to_series().to_list() == STAY


def test_what_a_person_wrote_stays_and_risk_is_judged_on_all_that_was_written():
    said = (
        "seeker: （低头）最近真的很难熬，谁也帮不了我。\n（昨天割腕了）",
        "supporter: （轻声）谢谢你把这些告诉我，现在你身边有人陪着吗？",
    )
    row = dialogue(1, *said)
    by_person, by_model = (
        clean_dialogues(dialogues({**row, "turns": [one | {"origin": origin} for one in row["turns"]]}))[0].row(
            0, named=True
        )
        for origin in ("human", "model")
    )
    assert [one["text"] for one in by_person["turns"]] == [one.partition(": ")[2] for one in said]
    assert [one["text"] for one in by_model["turns"]] == [
        "最近真的很难熬，谁也帮不了我。\n（昨天割腕了）",
        "谢谢你把这些告诉我，现在你身边有人陪着吗？",
    ]
    assert by_model["risk"] == by_person["risk"] != []


def test_going_twice_is_going_once():
    turns = pl.DataFrame({"turn": list(GO)})
    once = turns.select(without_directions(pl.col("turn")))
    assert once.select(without_directions(pl.col("turn"))).equals(once)
