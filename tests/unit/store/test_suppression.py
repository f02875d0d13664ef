"""The list of what never comes back."""

import polars as pl

from pipelines.store.suppression import SuppressionList, words_of


def test_rows_are_suppressed_for_good_and_the_list_names_nobody(tmp_path):
    rows = pl.DataFrame([{"dialogue_id": f"s:{name}", "source": "s", "source_id": name} for name in "123"])
    kept, dropped = SuppressionList(tmp_path).sift(rows, "imported_dialogues")
    assert (kept.height, dropped.height, list(tmp_path.iterdir())) == (3, 0, []), "nothing was erased: no file is made"
    SuppressionList(tmp_path).add(["s:1"])
    SuppressionList(tmp_path).add(["s:3"])
    kept, dropped = SuppressionList(tmp_path).sift(rows, "imported_dialogues")
    assert kept["dialogue_id"].to_list() == ["s:2"]
    assert dropped["reason"].to_list() == ["erased", "erased"]
    assert "s:" not in (tmp_path / "erasures" / "kept-out").read_text(encoding="ascii")
    assert all("s:" not in name for name in dropped["row_id"])
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "erasures").iterdir()}
    assert modes == {"key": 0o600, "kept-out": 0o600}, "for their owner alone"


WORDS = "那天夜里我把钥匙留在桌上就走了没有回头"


ANSWERS = pl.List(pl.Struct(dict.fromkeys(("answer_id", "author", "text"), pl.String)))


def posts(*told: tuple[str, str, str, list[str]]) -> pl.DataFrame:
    names = dict.fromkeys(("post_id", "author", "title", "description"), pl.String)
    rows = [
        (name, None, title, text, [{"answer_id": f"{name}/{n}", "text": one} for n, one in enumerate(answers)])
        for name, title, text, answers in told
    ]
    return pl.DataFrame(rows, schema=names | {"answers": ANSWERS}, orient="row")


def erase_words(home, rows: pl.DataFrame) -> None:
    listed = SuppressionList(home)
    listed.add([], filter(None, map(listed.wording, words_of(rows))))


def test_a_post_is_recognised_by_its_words_at_another_address_and_under_another_title(tmp_path):
    erase_words(tmp_path, posts(("s:1", "钥匙", WORDS, [])))
    spaced = f"{WORDS[:9]}\n {WORDS[9:]}"
    came = posts(("t:7", "另一个标题", spaced, []), ("t:8", "钥匙", WORDS + "。", []), ("t:9", "", "别的事", [WORDS]))
    kept, dropped = SuppressionList(tmp_path).sift(came, "raw_posts")
    assert kept["post_id"].to_list() == ["t:8", "t:9"]
    assert kept["answers"].list.len().to_list() == [0, 0], "nor does it come back as an answer"
    assert dropped["unit"].to_list() == ["record", "answer"]


def test_a_short_post_is_recognised_with_its_title_and_a_few_words_are_not(tmp_path):
    erase_words(tmp_path, posts(("s:1", WORDS, "怎么办", []), ("s:2", "想哭", "怎么办", [])))
    came = posts(("t:1", WORDS, "怎么办", []), ("t:2", "想哭", "怎么办", []), ("t:3", "别的", "怎么办", []))
    assert SuppressionList(tmp_path).sift(came, "raw_posts")[0]["post_id"].to_list() == ["t:2", "t:3"]


def test_a_dialogue_is_recognised_by_all_its_turns(tmp_path):
    def talk(name: str, *said: str) -> dict[str, object]:
        return {"dialogue_id": name, "turns": [{"role": "seeker", "text": one} for one in said]}

    erase_words(tmp_path, pl.DataFrame([talk("s:1", WORDS, "后来呢")]))
    came = pl.DataFrame([talk("t:1", WORDS, "后来呢"), talk("t:2", WORDS, "然后呢")])
    assert SuppressionList(tmp_path).sift(came, "imported_dialogues")[0]["dialogue_id"].to_list() == ["t:2"]


def test_white_space_is_what_python_takes_for_it():
    """The codes of earlier versions were made so."""
    text = "".join(map(chr, range(1, 0x3100)))
    assert words_of(posts(("s:1", "", text, []))).to_list() == ["".join(text.split())]


def test_codes_are_those_of_the_home(tmp_path):
    """A list that somebody else has leads to nobody, even for one who guesses ids."""
    assert SuppressionList(tmp_path / "a").code("s:1") == SuppressionList(tmp_path / "a").code("s:1")
    assert SuppressionList(tmp_path / "a").code("s:1") != SuppressionList(tmp_path / "b").code("s:1")
