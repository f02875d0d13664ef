"""What of the dialogues is lost with their sound and pictures."""

from release_rows import made
from released_rows import few_rows
from unique_rows import rounds, sampled_round, splits

from pipelines.release.checks.sources import media
from pipelines.store.release_manifest import text_only
from pipelines.store.releases import Releases
from pipelines.trainsets.prompt_sets import cer_prompts

SPLITS = {"g1": "train"}
SAID = ["seeker: 我睡不着"]


def turns(lacking: int, rest: int):
    of = [True] * lacking + [False] * rest
    return rounds(*(sampled_round(1, at, SAID, "我在听。", needs_media=clip) for at, clip in enumerate(of, 1)))


def test_rounds_that_lack_media_are_counted_with_their_share_in_a_sentence(tmp_path):
    assert list(media(few_rows(split_of=SPLITS, sampled_turns=turns(0, 4)))) == []
    (warning,) = media(few_rows(split_of=SPLITS, sampled_turns=turns(1, 7)))
    assert (warning.severity, warning.count, warning.examples) == ("warn", 1, ["s:1#1"])
    rows = cer_prompts(turns(1, 7), splits(**SPLITS))[0]
    told = made(tmp_path, "v1", {"grpo_cer": rows}, findings=[warning])
    assert text_only(told) == "text only: 1 of 8 rounds (12.5%) lacked media, and are left out"
    assert text_only(Releases(tmp_path).read("v1")) == text_only(told)
    assert text_only(told.model_copy(update={"findings": []})) == "text only: no round lacked media"
