"""Discourse and NodeBB, which answer in JSON: of wrong types, in folders, in pages."""

import copy
import json

import pytest
from saved_pages import page_named

from crawlers.pages import nodebb
from crawlers.records import PageError


def body_of(name: str):
    return json.loads(page_named(name).source())


def read(name: str, body, url: str | None = None):
    page = page_named(name)
    return page.parser(body, url or page.url, page.fetched_at)


def test_topic_is_requested_in_the_forums_own_folder():
    page = read("discourse_latest", body_of("discourse_latest"), "http://127.0.0.1:8765/discourse/c/talk/5.json")
    assert page.posts[1].url == "http://127.0.0.1:8765/discourse/t/812.json"


def test_next_page_is_the_json_of_what_readers_are_shown_and_never_elsewhere():
    body, here = body_of("discourse_latest"), "https://forum.example.org/talk/latest.json?page=2"
    for more in ("/talk/latest?page=3", "/latest?page=3", "/latest.json?page=3"):
        body["topic_list"]["more_topics_url"] = more
        assert read("discourse_latest", body, here).next_url == "https://forum.example.org/talk/latest.json?page=3"
    for elsewhere in ("https://elsewhere.example.net/latest", "//elsewhere.example.net/latest", "x", "//["):
        body["topic_list"]["more_topics_url"] = elsewhere
        with pytest.raises(PageError, match="next page"):
            read("discourse_latest", body, here)


def test_a_hidden_question_and_a_post_that_its_topic_does_not_list_are_errors():
    """The id of such a post is wrong, and the right one would be fetched as one post more."""
    for number, key, value, words in ((0, "hidden", True, "hidden"), (-1, "id", 999_999_999, "does not list")):
        body = body_of("discourse_topic")
        body["post_stream"]["posts"][number][key] = value
        with pytest.raises(PageError, match=words):
            read("discourse_topic", body)


def test_half_of_a_surrogate_pair_does_not_leave_the_parser():
    body = body_of("discourse_topic")
    body["title"] = "半\ud83d个\x00"
    body["post_stream"]["posts"][0]["cooked"] = "<p>也\udca0是</p>"
    question = read("discourse_topic", body).question
    assert (question.title + question.description).encode("utf-8")
    assert "\x00" not in question.title


JSON_PAGES = ["discourse_latest", "discourse_topic", "discourse_posts", "nodebb_category", "nodebb_topic"]


def places(value, path=()):
    """The path of every value in a JSON document."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*path, key))


@pytest.mark.parametrize("name", JSON_PAGES)
@pytest.mark.parametrize("wrong", [None, True, 0, -1, 2**70, 1.5, "x", [], {}, [None], {"id": "x"}], ids=repr)
def test_wrong_type_anywhere_is_an_error_or_harmless(name, wrong):
    original = read(name, body_of(name))
    kept = {(a.source_id, a.text) for a in getattr(original, "answers", ())}
    paths = list(places(body_of(name)))[1:]
    assert paths
    for path in paths:
        body = body_of(name)
        place = body
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = copy.deepcopy(wrong)
        try:
            record = read(name, body)
        except PageError:
            continue
        if path[-1] not in ("cooked", "content", "id", "pid"):
            assert {(a.source_id, a.text) for a in getattr(record, "answers", ())} <= kept


def test_a_post_too_deep_or_too_long_costs_itself_alone_and_the_question_the_page():
    whole = read("discourse_topic", body_of("discourse_topic"))
    for cooked, words in (("<div>" * 100_000 + "x", "to its end"), ("x" * 300_000, "more than")):
        body = body_of("discourse_topic")
        posts = body["post_stream"]["posts"]
        posts[1]["cooked"] = cooked
        page = read("discourse_topic", body)
        assert (page.n_unread, page.answers) == (
            1,
            tuple(one for one in whole.answers if one.source_id != str(posts[1]["id"])),
        )
        posts[0]["cooked"] = cooked
        with pytest.raises(PageError, match=words):
            read("discourse_topic", body)


def test_main_post_of_nodebb_is_no_answer_on_later_pages():
    page = page_named("nodebb_topic")
    later = nodebb.post_page(body_of("nodebb_topic"), page.url + "?page=2", page.fetched_at)
    assert later.question is None
    assert [answer.source_id for answer in later.answers] == ["311", "312"]


def test_an_address_that_is_not_that_of_the_page_is_an_error():
    for name, path in (
        ("discourse_topic", "t/813.json"),
        ("nodebb_topic", "api/topic/32"),
        ("discourse_latest", "about"),
    ):
        with pytest.raises(PageError):
            read(name, body_of(name), f"https://forum.example.org/{path}")
