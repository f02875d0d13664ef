"""What was read for personal data is not read again, and gives the same; no text is kept."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.release import readings as module
from pipelines.release.publish.leaves import leaves
from pipelines.release.readings import Readings, _edited, _edits
from pipelines.text.pii.redaction import redact
from pipelines.text.runs import Runs

ROWS = [
    ["我叫陈晓雯，在杭州第二中学教书。", "晓雯，你说的我都听见了。", "我叫陈晓雯，在杭州第二中学教书。"],
    ["最近总是睡不着。", "多久了？"],
    ["打 13912345678 找我，或者 13987654321。", "好，13987654321 我记下了。"],
    ["", "[姓名]说他明天来。"],
]


def known_alone(rows):
    texts = [text for row in rows for text in row]
    groups = pl.Series([number for number, row in enumerate(rows) for _ in row])
    redacted = iter(redact(texts, groups, names="wide").texts)
    return [[next(redacted) for _ in row] for row in rows]


def filled(rows, redacted):
    return [row if texts is None else texts for row, texts in zip(rows, redacted, strict=True)]


def test_rows_are_as_redact_makes_them_now_and_when_they_were_read_before(tmp_path, monkeypatch):
    first = Readings(tmp_path)
    made = first.redacted(ROWS)
    assert filled(ROWS, made) == known_alone(ROWS)
    assert [texts is None for texts in made] == [False, True, False, True]
    first.save()

    def nobody(*_: object, **__: object) -> None:
        raise AssertionError("a text was read twice")

    monkeypatch.setattr(module, "find", nobody)
    monkeypatch.setattr(module, "redact", nobody)
    assert Readings(tmp_path).redacted(ROWS) == made
    with pytest.raises(AssertionError, match="read twice"):
        Readings(tmp_path).nothing_in(["这句还没有读过。"])


def test_the_file_is_for_its_owner_and_holds_no_text(tmp_path):
    readings = Readings(tmp_path)
    readings.redacted(ROWS)
    readings.save()
    (path,) = (tmp_path / "readings").iterdir()
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    kept = pl.read_parquet(path)
    stands = kept["edits"].explode().drop_nulls().struct.field("stands").unique().to_list()
    assert set(stands) >= {"[姓名]", "[电话2]"}
    assert set(kept.schema) == {"key", "edits"}
    assert not [text for row in ROWS for text in row if text and text.encode() in path.read_bytes()]


def test_a_damaged_file_or_one_of_another_finder_is_nothing(tmp_path):
    readings = Readings(tmp_path)
    made = readings.redacted(ROWS)
    readings.save()
    (path,) = (tmp_path / "readings").iterdir()
    path.write_bytes(b"PAR1")
    again = Readings(tmp_path)
    assert again.redacted(ROWS) == made
    other = path.with_name("older-0-0.parquet")
    other.write_bytes(b"")
    again.save()
    assert [one.name for one in path.parent.iterdir()] == [path.name], "what other code found is of no use"


@given(st.lists(st.text("我他x", max_size=6), min_size=1, max_size=5), st.data())
def test_edits_make_the_changed_text_again(parts, data):
    """Whatever stood where placeholders stand: names that are like what is beside them as well."""
    names = [data.draw(st.text("我他x", min_size=1, max_size=3)) for _ in parts[1:]]
    placeholders = data.draw(st.lists(st.sampled_from(["[姓名]", "[电话2]"]), min_size=len(names), max_size=len(names)))
    text = parts[0] + "".join(name + part for name, part in zip(names, parts[1:], strict=True))
    changed = parts[0] + "".join(one + part for one, part in zip(placeholders, parts[1:], strict=True))
    assert _edited(text, _edits(0, text, changed)) == changed


def test_every_string_of_a_row_is_a_leaf_once_with_what_it_is():
    row = {
        "row_id": "s:1",
        "kind": "generic",
        "messages": [{"role": "system", "content": "听"}, {"role": "user", "content": "我累"}],
        "extra_info": {"topic": None, "references": ["好", "的"], "split": "train"},
        "count": 3,
    }
    found = leaves(pl.DataFrame([row, row]), {"kind", "role", "split"}).filter(row=1)
    listed = {(text, *flags) for _, text, *flags in found.iter_rows()}
    label, ours, joined = (True, False, False), (False, True, False), (False, False, True)
    plain = (False, False, False)
    assert listed == {
        *(("s:1", *plain), ("generic", *label), ("system", True, True, False), ("听", *ours), ("user", *label)),
        *(("我累", *plain), ("好", *plain), ("的", *plain), ("好的", *joined), ("train", *label)),
    }


few = st.text(alphabet="ab\U0001f642", max_size=40)


@given(known=st.lists(few, max_size=4), texts=st.lists(few, max_size=5), least=st.integers(2, 16))
def test_many_texts_at_once_repeat_what_each_repeats_alone(known, texts, least):
    runs = Runs(((str(place), one) for place, one in enumerate(known)), least)
    assert runs.repeating(texts) == [bool(runs.find(text)) for text in texts]
