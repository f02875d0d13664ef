"""Where rows come from, what is known of licence and consent, what is lost with clips, and what no model made."""

import datetime as dt

import polars as pl
import pytest
from planted_home import planted_home
from release_rows import made
from released_rows import few_rows
from unique_rows import post, rounds, sampled_round, splits

from pipelines.ingest.registry import READERS
from pipelines.release.assemble import CHECKS, findings
from pipelines.release.checks.released import Released
from pipelines.release.checks.sources import ancestors, licences, media, not_from_a_model, sources, unjudged
from pipelines.settings import Prompts, Settings
from pipelines.store import Store
from pipelines.store.release_manifest import text_only
from pipelines.store.releases import Releases
from pipelines.trainsets.prompt_sets import cer_prompts
from schemas.labels import CONSENTS
from schemas.tables import TABLES

CALM = "我最近睡不好，总是想工作上的事情，白天也没有精神。"
SPLITS = {"g1": "train"}


def _released(**more):
    return few_rows(post(1, CALM, **more), post(2, "和室友吵架了，不想回宿舍。"), split_of=SPLITS)


BARE = (
    *("", "  ", "unknown", "Not stated", "N.A.", "No license", "Unknown licence", "not specified", "???"),
    *("NOASSERTION", "未知许可", "没有许可证", "授权不明", "未注明", READERS["sharegpt"].licence),
)


def test_a_source_without_a_licence_is_refused_by_name_and_other_texts_are_licences():
    for licence in BARE:
        (found,) = licences(_released(licence=licence))
        assert (found.check, found.severity, found.examples) == ("licence", "refuse", ["s"])
        assert sources(_released(licence=licence))[0].licence == ""
    for licence in ("MIT", "CC BY-NC 4.0", "Unlicense", "NonCommercial, on request", "许可使用"):
        assert list(licences(_released(licence=licence))) == []


def test_who_did_not_consent_is_a_warning_and_what_a_site_holds_is_a_licence():
    crawled = "unknown: all rights with the writers; raw zone only"
    for consent, count in (("not_asked", [2]), ("agreement", [2]), ("given", [])):
        findings = list(licences(_released(licence=crawled, consent=consent)))
        assert [(one.check, one.severity, one.count) for one in findings] == [("consent", "warn", n) for n in count]


def test_the_weakest_consent_is_the_sources():
    for consent in CONSENTS:
        (source,) = sources(_released(consent=consent))
        assert source.consent == consent  # the other post is invented
        assert source.rows == 2


def test_a_crawl_has_its_first_and_last_day():
    days = [dt.datetime(2025, 3, day, 12, tzinfo=dt.UTC) for day in (1, 9)]
    told = [post(number, CALM + str(number), fetched_at=day) for number, day in enumerate(days)]
    (source,) = sources(few_rows(*told, split_of=SPLITS))
    assert source.collected == "crawled 2025-03-01 – 2025-03-09"


SAID = ["seeker: 我睡不着"]


def turns(lacking: int, rest: int, read: int = 0):
    of = [(True, True)] * lacking + [(False, True)] * read + [(False, False)] * rest
    marks = [dict(zip(("needs_media", "has_media"), one, strict=True)) for one in of]
    return rounds(*(sampled_round(1, at, SAID, "我在听。", **clips) for at, clips in enumerate(marks, 1)))


def test_rounds_that_lack_media_are_counted_with_their_share_in_a_sentence(tmp_path):
    assert list(media(few_rows(split_of=SPLITS, sampled_turns=turns(0, 4)))) == []
    (warning,) = media(few_rows(split_of=SPLITS, sampled_turns=turns(1, 7)))
    assert (warning.severity, warning.count, warning.examples) == ("warn", 1, ["s:1#1"])
    rows = cer_prompts(turns(1, 7), splits(**SPLITS))[0]
    told = made(tmp_path, "v1", {"grpo_cer": rows}, findings=[warning])
    assert text_only(told) == "text only: 1 of 8 rounds (12.5%) lacked media, and are left out"
    assert text_only(Releases(tmp_path).read("v1")) == text_only(told)
    assert text_only(told.model_copy(update={"findings": []})) == "text only: no round lacked media"


def test_rounds_that_are_read_without_their_clips_are_counted_apart_from_those_that_are_left_out():
    read = {media: list(sources_media(media)) for media in ("text", "drop")}
    (text,), (drop,) = read["text"], read["drop"]
    assert text.what == (
        "text only: 1 of 8 rounds (12.5%) lacked media, and are left out; "
        "2 of 8 rounds (25.0%) are read by their text, without their clips"
    )
    assert drop.what == "text only: 3 of 8 rounds (37.5%) lacked media, and are left out"
    assert text.examples == drop.examples == ["s:1#1", "s:1#2", "s:1#3"]


def sources_media(chosen):
    settings = Settings(prompts=Prompts(media=chosen))
    return media(few_rows(split_of=SPLITS, settings=settings, sampled_turns=turns(1, 5, read=2)))


@pytest.fixture
def released(sample_home, tmp_path) -> Released:
    """The sample home, as if people had answered everything."""
    home = planted_home(sample_home, tmp_path / "home", provider="written")
    store = Store(home / "data")
    return Released(home, store, {one.name: one for table in TABLES for one in store.current(table)}, Settings())


def test_every_round_rests_on_the_filter_and_few_posts_on_topics(released, sample_store: Store):
    (found,) = not_from_a_model(released)
    rounds = sample_store.read("grpo_cer").collect()
    judged = set(sample_store.read("topics").collect()["row_id"])
    posts = [set(sample_store.read(table).collect()["row_id"]) & judged for table in ("grpo_ecot", "grpo_coe")]
    learnt = [sample_store.version(table).rows for table in ("sft_coe", "rm_triplets")]  # all of it
    assert found.count == rounds.height + sum(map(len, posts)) + sum(learnt)
    assert all(table in found.what for table in ("coe_chains", "coherent_dialogues", "emotions", "topics"))


def test_a_row_that_names_who_is_no_model_is_found_whatever_the_tables_before_it_say():
    """A triplet's negative is another question's answer: no other row of such a provider is of the question."""
    row = {"split": "train", "made_from": "s:1", "variant": "none", "kind": "other_answer"}
    providers = {"s:1/other_answer": ["openai"], "s:1/mismatched_emotion": ["openai", "written"]}
    rows = [row | {"row_id": row_id, "providers": said} for row_id, said in providers.items()]
    triplets = pl.DataFrame(rows, schema=TABLES["rm_triplets"].polars_schema())
    told = few_rows(post(1, "我最近睡不好。"), split_of={"g1": "train"}, rm_triplets=triplets)
    (found,) = not_from_a_model(told)
    assert (found.count, found.examples) == (1, ["s:1/mismatched_emotion"])
    assert "(rm_triplets): rm_triplets 1" in found.what


DOUBTED = post(1, "最近我和室友吵架了，晚上睡不着觉", doubts=["not_psychological"])
CLEAR = post(2, "我很难过，不知道怎么办才好")


def test_prompts_that_no_model_has_judged_are_counted_and_strict_refuses_them(monkeypatch):
    rows = few_rows(DOUBTED, CLEAR, split_of={"g1": "train"})
    (found,) = unjudged(rows)
    assert (found.count, found.severity, found.examples) == (1, "warn", ["s:1"])
    assert not list(unjudged(few_rows(CLEAR, split_of={"g1": "train"})))
    assert unjudged in CHECKS
    monkeypatch.setattr("pipelines.release.assemble.CHECKS", (unjudged,))
    assert [one.severity for strict in (False, True) for one in findings(rows, strict=strict)] == ["warn", "refuse"]


def test_a_table_comes_from_its_parents_and_theirs(released):
    assert ancestors(released, "grpo_cer") >= {"sampled_turns", "splits", "coherent_dialogues", "unique_dialogues"}
    assert ancestors(released, "grpo_ecot") >= {"topics", "unique_posts", "clean_posts"}
    assert "coherent_dialogues" not in ancestors(released, "grpo_ecot")
    assert ancestors(released, "imported_posts") == set()


def test_a_rewriting_rests_on_what_it_was_made_by_and_the_round_beside_it_does_not(sample_home, tmp_path):
    """Models have judged all dialogues; nobody's personas are by a model."""
    home = planted_home(sample_home, tmp_path / "home", {"disc_profiles": lambda rows: say(rows, "written")})
    store = Store(home / "data")
    released = Released(home, store, {one.name: one for table in TABLES for one in store.current(table)}, Settings())
    (found,) = not_from_a_model(released)
    rewritten = set(store.read("grpo_cer").filter(pl.col("variant") == "P").collect()["row_id"])
    assert set(found.examples) == rewritten > set()
    assert "disc_profiles" in found.what


def say(rows: list[dict], provider: str) -> None:
    for row in rows:
        row["provider"] = provider
