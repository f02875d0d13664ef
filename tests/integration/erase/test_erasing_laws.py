"""Whatever stands in a store and whatever is erased from it: what is gone is gone, and nothing else is."""

import shutil
import tempfile
from pathlib import Path
from unittest.mock import patch

from erase_home import answer, clean_post, frame, post
from every_byte import runs, strings, traces
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.operations.erase import places
from pipelines.operations.erase.erasing import erase
from pipelines.operations.erase.survey import Request
from pipelines.store.store import Store

NAMES = ["1", "2", "10", "1/2", "a#1", "b~P"]  # also such as hold the marks of parts
TEXTS = st.text(alphabet="今天夜里我又想起那条河边的路灯", min_size=1, max_size=30)
MADE_BY = {"provider": "openai", "model_asked": "r", "prompt_version": "p@1", "request_key": "k"}


@st.composite
def homes(draw):
    """Posts with answers, and what was made of some of them; some chains quote the post of another."""
    said = {name: draw(TEXTS) for name in draw(st.lists(st.sampled_from(NAMES), min_size=2, unique=True))}
    answers = {name: draw(st.lists(TEXTS, max_size=2)) for name in said}
    chains = {name: draw(TEXTS | st.sampled_from(sorted(said.values()))) for name in said if draw(st.booleans())}
    return said, answers, chains, draw(st.sampled_from(sorted(said))), draw(st.booleans())


def rows_of(store: Store) -> dict[str, list[dict]]:
    """All rows of the current tables."""
    tables = ("imported_posts", "clean_posts", "ecot_chains")
    return {table: store.read(table).collect().to_dicts() for table in tables}


@given(homes(), st.integers(1, 5))
@settings(max_examples=10)
def test_what_is_gone_is_gone_and_nothing_else(drawn, rows_at_once):
    said, answers, chains, name, alone = drawn
    folder = Path(tempfile.mkdtemp())
    try:
        store = Store(folder / "data")
        given = {one: [answer(f"s:{one}/r{n}", text) for n, text in enumerate(of)] for one, of in answers.items()}
        store.write(
            "imported_posts", frame("imported_posts", *(post(n, t, *given[n]) for n, t in said.items())), partition="s"
        )
        store.write("clean_posts", frame("clean_posts", *(clean_post(n, t, *given[n]) for n, t in said.items())))
        of_chain = MADE_BY | {"group_id": "g", "motivation": "", "strategy": "", "answer": ""}
        made = [of_chain | {"post_id": f"s:{n}", "situation": t} for n, t in chains.items()]
        store.write("ecot_chains", frame("ecot_chains", *made))
        before = rows_of(store)
        asked = f"s:{name}/r0" if alone and answers[name] else f"s:{name}"
        with patch.object(places, "ROWS_AT_ONCE", rows_at_once):
            erase(folder, Request(rows=(asked,)))
        after = rows_of(Store(folder / "data"))
        standing = [text for table in after.values() for row in table for text in strings(row)]
        gone = answers[name][:1] if asked.endswith("/r0") else [said[name], *answers[name]]
        assert traces(folder, runs(gone) - runs(standing)) == {}
        for table, rows in before.items():
            for row in rows:
                mine = row["post_id"] == f"s:{name}"
                if mine and "/r0" in asked and "answers" in row:
                    row["answers"] = [one for one in row["answers"] if one["answer_id"] != asked]
                quotes = table == "ecot_chains" and any(len(text) >= 15 for text in gone)
                assert (row in after[table]) or (mine and "/r0" not in asked) or quotes, (table, row)
            assert [row for row in rows if row in after[table]] == after[table], "in the same order, and no new ones"
    finally:
        shutil.rmtree(folder)
