"""What ties two rows together: an equal text, title, body, opening, long answer or long turn, or one author."""

import polars as pl
import pytest
from sample_rows import dialogue, dialogues, post, posts

from pipelines.dedup.links import LONG, TELLING, dialogue_links, post_links

STORY = "最近我和室友吵架了，晚上睡不着觉，不知道怎么办才好"
TITLE = "和室友吵架了怎么办才好呢？"
SHORT = "好累怎么办"


def linked(one: dict, other: dict) -> bool:
    """Whether two rows, posts or dialogues, share a link."""

    def links(row: dict) -> set[str]:
        frame = post_links(posts(row)) if "post_id" in row else dialogue_links(dialogues(row))
        [(row_id, found)] = frame.iter_rows()
        assert row_id in row.values()
        assert found
        assert len(set(found)) == len(found)
        return set(found)

    return not links(one).isdisjoint(links(other))


ASKED = post(1, STORY, title=TITLE, author="u_1")


@pytest.mark.parametrize(
    ("other", "tied"),
    [
        (post(2, STORY, title=TITLE), True),
        (post(2, "最近我和室友 吵架了,\n晚上睡不着觉，不知道怎么办才好", title="别的标题，完全不同的问题"), True),
        (post(2, "这是另一件事，说来话长，请听我慢慢说", title=TITLE), True),
        (post(2, "这是另一件事，说来话长，请听我慢慢说", author="u_1"), True),
        (post(2, "这是另一件事，说来话长，请听我慢慢说", author="u_2"), False),
        (post(2, STORY + "。"), False),  # for near-duplicates
        (post(2, f"{TITLE}\n{STORY}"), True),  # the whole text, all of it in the body
        (post(2, TITLE), True),
    ],
    ids=["all", "body", "title", "author", "neither", "a little more", "another layout", "title as body"],
)
def test_posts(other: dict, tied: bool):
    assert linked(ASKED, other) is tied


def test_unknown_authors_are_not_one_author():
    assert not linked(post(1, STORY), post(2, "这是另一件事，说来话长，请听我慢慢说"))


def test_a_short_title_or_body_says_too_little():
    assert not linked(post(1, STORY, title=SHORT), post(2, "这是另一件事，说来话长，请听我慢慢说", title=SHORT))
    assert not linked(post(1, SHORT, title=TITLE), post(2, SHORT, title="这是另一件事，说来话长"))


@pytest.mark.parametrize(("length", "tied"), [(TELLING - 1, False), (TELLING, True)])
def test_how_long_a_title_must_be(length: int, tied: bool):
    titles = "今" * length
    assert linked(post(1, STORY, title=titles), post(2, "这是另一件事，说来话长", title=f" {titles}\u200b ")) is tied


@pytest.mark.parametrize(
    ("said", "tied"),
    [
        ((f"seeker: {TITLE}\n{STORY}", "supporter: 嗯"), True),
        ((f"seeker: {STORY}", "supporter: 嗯"), True),
        ((f"seeker: {TITLE}", "supporter: 嗯"), True),
        (("seeker: 你好", "supporter: 你好", f"seeker: {STORY}", "supporter: 嗯"), True),  # a greeting is no opening
        (("supporter: 你好，想聊些什么？", f"seeker: {STORY}", "supporter: 嗯"), True),
        ((f"supporter: {STORY}", "seeker: 是的，就是这样，一直都是这样", "supporter: 嗯"), False),
        (("seeker: 我想和您聊聊我的室友", "supporter: 嗯", f"seeker: {STORY}", "supporter: 嗯"), False),
        ((f"seeker: {STORY}还有……", "supporter: 嗯"), False),  # for near-duplicates
    ],
    ids=["whole", "body", "title", "after a greeting", "after the supporter", "by the supporter", "later", "longer"],
)
def test_a_dialogue_made_from_a_post(said: tuple[str, ...], tied: bool):
    assert linked(ASKED, dialogue(2, *said)) is tied


@pytest.mark.parametrize(("length", "tied"), [(LONG - 1, False), (LONG, True)])
def test_an_answer_that_is_given_twice_or_quoted_whole_ties_when_it_is_long(length: int, tied: bool):
    quoted = ("你已经很努力了，请不要责怪自己，先好好睡一觉" * 5)[:length]
    asked, other = post(1, STORY, "短", quoted), "这是另一件事，说来话长，请听我慢慢说"
    assert linked(asked, post(2, other, "嗯", f" {quoted}\n")) is tied
    assert linked(asked, post(2, quoted, title="有人这样回答我，大家怎么看")) is tied
    assert linked(asked, dialogue(2, f"seeker: {other}", f"supporter: {quoted}")) is tied
    assert linked(asked, dialogue(2, f"seeker: {other}", "supporter: 嗯", f"seeker: {quoted}", "supporter: 嗯")) is tied
    assert (
        linked(
            dialogue(1, "seeker: 我想和您聊聊我的室友", f"supporter: {quoted}"),
            dialogue(2, f"seeker: {other}", f"supporter: {quoted}"),
        )
        is tied
    )


def test_dialogues_with_one_opening_are_tied_whatever_follows():
    assert linked(
        dialogue(1, f"seeker: {STORY}", "supporter: 嗯"),
        dialogue(
            2,
            "seeker: 你好",
            "supporter: 在",
            "seeker: 最近我和室友吵架了,晚上睡不着觉,不知道怎么办才好",
            "supporter: 说说看",
        ),
    )


def test_where_the_seeker_never_says_much_all_of_it_is_the_opening():
    one = dialogue(1, "seeker: 你好", "supporter: 在", "seeker: 好累", "supporter: 嗯")
    assert linked(one, dialogue(2, "seeker: 你好", "supporter: 说吧", "seeker: 好 累", "supporter: 嗯"))
    assert not linked(one, dialogue(3, "seeker: 你好", "supporter: 在", "seeker: 好烦", "supporter: 嗯"))


def test_no_link_is_readable():
    frames = [post_links(posts(ASKED)), dialogue_links(dialogues(dialogue(1, f"seeker: {STORY}", "supporter: 嗯")))]
    links = pl.concat(frames).explode("links")["links"].to_list()
    assert [link for link in links if link != "a:u_1" and not link.removeprefix("t:").isalnum()] == []
    assert not any("吵架" in link for link in links)


def test_no_rows_have_no_links():
    for frame in (post_links(posts()), dialogue_links(dialogues())):
        assert frame.schema == {"row_id": pl.String, "links": pl.List(pl.String)}
        assert frame.is_empty()
