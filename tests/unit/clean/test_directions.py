"""Stage directions of dialogues that models wrote go; what people add in brackets stays."""

import polars as pl
import pytest

from pipelines.clean.directions import without_directions

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
    "先把它写下来（1），再告诉自己（2）",
    None,
]


@pytest.mark.parametrize("turn", GO)
def test_directions_go(turn):
    assert pl.Series([turn]).to_frame("turn").select(without_directions(pl.col("turn"))).item() == GO[turn]


def test_what_people_add_stays():
    turns = pl.DataFrame({"turn": STAY}, schema={"turn": pl.String})
    assert turns.select(without_directions(pl.col("turn"))).to_series().to_list() == STAY


def test_going_twice_is_going_once():
    turns = pl.DataFrame({"turn": list(GO)})
    once = turns.select(without_directions(pl.col("turn")))
    assert once.select(without_directions(pl.col("turn"))).equals(once)
