"""A site is a TOML file; what it says is checked before anything is fetched."""

from pathlib import Path

import pytest

from crawlers.errors import RequestRefused
from crawlers.pages import discourse, discuz, douban_group, nodebb, xinli001
from crawlers.sites import FOLDER, find_site, read_site, sites
from crawlers.spiders import SiteLoader
from crawlers.spiders.base import list_paths

GOOD = """
name = "here"
title = "Here"
engine = "discuz"
base_url = "https://bbs.example.org"
boards = [{ id = "2", topic = "情绪" }]
licence = "CC0-1.0 (invented)"
consent = "invented"
robots = { known = true }
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "here.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_site_of_the_repository_states_its_terms():
    assert {"xinli001"} < set(sites()) == {path.stem for path in FOLDER.glob("*.toml")}
    for site in sites().values():
        assert site.licence
        assert site.consent == ("invented" if site.name == "replica" else "not_asked")
        assert site.politeness.delay >= 1
        assert SiteLoader().load(site.name).site is find_site(site.name)


def test_a_wrong_key_or_value_is_refused_and_named(tmp_path):
    for wrong, message in {
        "licens = 'x'": "did you mean 'licence'?",
        "politeness = { dealy = 3 }": "did you mean 'delay'?",
        "politeness = { delay = 0.1 }": "politeness.delay",
        "charset = 'gbkk'": "no encoding",
        "topics = { 'a' = '情结' }": "topics.a: '情结' is not known; known: 人际",
        "overrides = { titel = 'h1' }": "'titel' is not known; did you mean 'title'?",
    }.items():
        with pytest.raises(RequestRefused) as refused:
            read_site(written(tmp_path, GOOD + wrong))
        assert message in str(refused.value)


def test_selectors_of_the_engine_can_be_overridden_and_json_has_none(tmp_path):
    other = GOOD + "overrides = { title = 'h1' }"
    assert read_site(written(tmp_path, other)).overrides == {"title": "h1"}
    with pytest.raises(RequestRefused, match="'title' is not known"):
        read_site(written(tmp_path, other.replace('"discuz"', '"discourse"')))


def test_terms_and_engine_can_not_be_left_out(tmp_path):
    for key in ("licence", "consent", "robots", "engine"):
        lines = [line for line in GOOD.splitlines() if not line.startswith(key)]
        with pytest.raises(RequestRefused, match=key):
            read_site(written(tmp_path, "\n".join(lines)))


def test_a_file_that_is_no_toml_is_refused(tmp_path):
    with pytest.raises(RequestRefused, match="can not be read"):
        read_site(written(tmp_path, "name = "))
    with pytest.raises(RequestRefused, match="can not be read"):
        find_site(str(tmp_path / "nowhere.toml"))


PATHS = {
    discourse: ["/c/2.json", "/c/about/36.json"],
    nodebb: ["/api/category/2", "/api/category/about/36"],
    discuz: ["/forum.php?mod=forumdisplay&fid=2&page=1", "/forum.php?mod=forumdisplay&fid=about/36&page=1"],
    douban_group: ["/group/2/discussion?start=0", "/group/about/36/discussion?start=0"],
    xinli001: [xinli001.LATEST],  # it has no boards
}


def test_each_board_has_a_list_and_without_boards_there_must_be_one_of_all_posts(tmp_path):
    for engine, paths in PATHS.items():
        text = GOOD.replace('"discuz"', f'"{engine.__name__.rpartition(".")[2]}"')
        boards = text.replace(', topic = "情绪" }', ' }, { id = "about/36" }')
        assert [path for _, path in list_paths(read_site(written(tmp_path, boards)), engine)] == paths
        site = read_site(written(tmp_path, "\n".join(line for line in text.splitlines() if "boards" not in line)))
        if engine.LATEST is not None:
            assert list_paths(site, engine) == [(None, engine.LATEST)]
        else:
            with pytest.raises(RequestRefused, match="names no board"):
                list_paths(site, engine)
