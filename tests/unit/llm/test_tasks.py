"""Questions of many rows are made when they are read, and are the same whenever that is."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pipelines.llm.prompts import Prompt
from pipelines.llm.questions import Question
from pipelines.llm.tasks import Plan, Questions, sampled

ASKED = Prompt("p", "1", "说")


def questions(n: int, made: list[str]) -> Questions:
    def question(row: dict[str, str]) -> Question[str]:
        made.append(row["row_id"])
        return Question("t", row["row_id"], ASKED, {"text": row["text"]}, str, "m")

    rows = [{"row_id": f"s:{number}", "text": f"第{number}篇"} for number in range(n)]
    return Questions(pl.DataFrame(rows, schema={"row_id": pl.String, "text": pl.String}), question)


@given(st.integers(0, 9), st.data())
def test_they_are_a_sequence_of_which_each_is_made_when_it_is_read(n, data):
    made: list[str] = []
    some = questions(n, made)
    ids = [f"s:{number}" for number in range(n)]
    assert (len(some), made) == (n, [])
    assert [one.row_id for one in some] == made == ids
    made.clear()
    start, stop = sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n))))
    part = some[start:stop]
    places = data.draw(st.lists(st.integers(0, n - 1), max_size=4)) if n else []
    assert made == []
    assert [one.row_id for one in part] == made == ids[start:stop]
    assert [one.row_id for one in some.at(places)] == [some[place].row_id for place in places]


@given(st.integers(0, 9), st.integers(1, 9))
def test_a_draw_of_them_is_that_of_a_list(n, size):
    some = questions(n, [])
    plans = (Plan(of, pl.DataFrame(), lambda _: (pl.DataFrame(), pl.DataFrame())) for of in (some, list(some)))
    lazy, listed = (sampled(plan, size, 3).questions for plan in plans)
    assert isinstance(lazy, Questions)
    assert [one.row_id for one in lazy] == [one.row_id for one in listed]
