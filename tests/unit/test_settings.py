"""Settings: defaults, the file over them, the environment over both; what cannot be says so and names the key."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from pipelines import settings
from pipelines.errors import SettingsError
from pipelines.settings import Settings, load


def written(home: Path, content: str) -> Path:
    (home / "gongqing.toml").write_text(content, encoding="utf-8")
    return home


def refusal(home: Path) -> str:
    with pytest.raises(SettingsError) as caught:
        load(home)
    assert caught.value.exit_code == 2
    assert caught.value.where
    assert caught.value.hint
    return str(caught.value)


def test_without_a_file_the_defaults_hold_and_are_the_papers(tmp_path, monkeypatch):
    for variable in ("GONGQIN_SED", "SEED", "GONGQING_HOME", "GONGQING_AUTHOR_KEY", "GONGQING_ENGINE"):
        monkeypatch.setenv(variable, "anything")  # of others, or no settings
    defaults = load(tmp_path)
    assert defaults.model_dump() == Settings().model_dump()
    assert (defaults.filters.min_post_chars, defaults.filters.min_answer_chars) == (20, 100)  # M §2, E §2
    assert (defaults.sampling.n_samples, defaults.sampling.centred) == (3, False)  # C eq. 1 as printed
    assert (defaults.prompts.max_tokens, defaults.prompts.allow_risk) == (1024, False)  # M, E


def test_the_environment_goes_over_the_file_and_the_file_over_the_defaults_key_by_key(tmp_path, monkeypatch):
    written(tmp_path, "seed = 7\n[sampling]\nn_samples = 5\ncentred = true\n[splits.posts]\ntest = 500\n")
    monkeypatch.setenv("GONGQING_SAMPLING__N_SAMPLES", "2")
    monkeypatch.setenv("GONGQING_SPLITS__DIALOGUES", '{"test": 2000, "validation": 0}')
    loaded = load(tmp_path)
    assert (loaded.seed, loaded.sampling.n_samples, loaded.sampling.centred) == (7, 2, True)
    assert loaded.splits.posts.model_dump() == {"validation": 0.1, "test": 500, "sources": {}}
    assert loaded.splits.dialogues.model_dump() == {"validation": 0, "test": 2000}
    assert loaded.filters.min_answer_chars == 100
    other = tmp_path / "other"
    other.mkdir()
    assert load(written(other, "seed = 2")).seed == 2


def test_a_size_is_a_share_or_a_number(tmp_path, monkeypatch):
    written(tmp_path, "[splits.dialogues]\nvalidation = 500")  # beside a number even a share of 0.9 is possible
    for text, size in (("500", 500), ("0.9", 0.9), ("1", 1)):
        monkeypatch.setenv("GONGQING_SPLITS__DIALOGUES__TEST", text)
        test = load(tmp_path).splits.dialogues.test
        assert (test, type(test)) == (size, type(size))


def test_a_source_has_its_own_sizes_and_what_it_leaves_out_is_common(tmp_path, monkeypatch):
    written(tmp_path, "[splits.posts]\nvalidation = 0.2\n[splits.posts.sources.psyqa]\ntest = 2000")
    monkeypatch.setenv("GONGQING_SPLITS__POSTS__SOURCES__XINLI001__VALIDATION", "0.3")
    posts = load(tmp_path).splits.posts
    assert (posts.validation, posts.test) == (0.2, 0.1)
    assert posts.sources["psyqa"].model_dump() == {"validation": 0.2, "test": 2000}
    assert posts.sources["xinli001"].model_dump() == {"validation": 0.3, "test": 0.1}


@pytest.mark.parametrize(
    ("source", "key", "near"),
    [
        ("sed = 1", "'sed'", "'seed'"),
        ("[filter]\nmin_post_chars = 1", "'filter'", "'filters'"),
        ("[splits.posts]\ntests = 1", "'splits.posts.tests'", "'splits.posts.test'"),
        ("[splits.posts.sources.a]\ntset = 1", "'splits.posts.sources.a.tset'", "'splits.posts.sources.a.test'"),
        ("[splits.posts.source.a]\ntest = 1", "'splits.posts.source'", "'splits.posts.sources'"),
        ("GONGQING_SPLITS__POSTS__SOURCES__A__TSET", "'splits.posts.sources.a.tset'", "'splits.posts.sources.a.test'"),
        ("min_post_chars = 1", "'min_post_chars'", "'filters.min_post_chars'"),
        ("[annotate]\ncoe_sample = 200", "'annotate.coe_sample'", "'annotate.sizes.coe_chains'"),  # as issues call it
        ("[sampling]\nzzz = 1", "'sampling.zzz'", "'sampling"),
        ("[release]\nfloor = 1", "'release.floor'", "'release.floors'"),
        ("GONGQING_SAMPLING__N_SAMPLE", "'sampling.n_sample'", "'sampling.n_samples'"),
        ("GONGQING_SAMPLING_N_SAMPLES", "'sampling_n_samples'", "'sampling.n_samples'"),
        ("GONGQING_", "''", "'"),
    ],
)
def test_an_unknown_key_of_the_file_or_the_environment_names_the_nearest(tmp_path, monkeypatch, source, key, near):
    if source.startswith("GONGQING_"):
        monkeypatch.setenv(source, "1")
    else:
        written(tmp_path, source)
    message = refusal(tmp_path)
    assert f"there is no setting {key}" in message
    assert f"did you mean {near}" in message
    assert (source if source.startswith("GONGQING_") else "gongqing.toml") in message


def test_an_impossible_value_names_its_key(tmp_path):
    for content, key in [
        ("[filters]\nmin_han_ratio = 1.5", "filters.min_han_ratio"),
        ("[sampling]\nn_samples = 0", "sampling.n_samples"),
        ("[splits.posts]\ntest = 1.5", "splits.posts.test"),
        ("[splits.posts]\ntest = -1", "splits.posts.test"),
        ("[splits.posts.sources.psyqa]\ntest = 1.5", "splits.posts.sources.psyqa.test"),
        ("[splits.posts]\nvalidation = 0.5\n[splits.posts.sources.psyqa]\ntest = 0.5", "splits.posts.sources.psyqa"),
        ("[splits.posts.sources]\npsyqa = 2000", "splits.posts.sources.psyqa"),
        ("[splits.posts]\nsources = 2000", "splits.posts.sources"),
        ("[splits.dialogues]\ntest = 0.5\nvalidation = 0.5", "splits.dialogues"),
        ('[release]\nfloors = {"risk.any.recall" = 1.5}', "release.floors"),
        ("[release]\nfloors = 0.9", "release.floors"),
        ("owners = ['anna']", "owners"),
        ("filters = 3", "filters"),
    ]:
        assert f"the setting {key} cannot be" in refusal(written(tmp_path, content))


def test_what_belongs_together_is_set_together(tmp_path):
    for content, problem in [
        ('[rewrite]\nencoder = "bge"', "given together"),
        ('[publish]\nrepositories = ["me/one"]\npublic = ["me/one", "me/two"]', "repositories does not: me/two"),
        ('[llm]\nprovider = "rules"', "there is no provider 'rules' any more"),
    ]:
        assert problem in refusal(written(tmp_path, content))
    publish = '[publish]\nrepositories = ["me/one", "me/two"]\npublic = ["me/two"]\n'
    named = '[llm]\nprofiles = "models.toml"\n[rewrite]\nencoder = "bge"\nleast_similarity = 0.6'
    loaded = load(written(tmp_path, publish + named))
    assert (loaded.rewrite.encoder, loaded.llm.profiles) == (tmp_path / "bge", tmp_path / "models.toml")
    assert loaded.publish.public == ("me/two",)


def test_a_floor_names_a_figure_in_one_of_two_ways_and_a_wrong_name_names_the_nearest(tmp_path, monkeypatch):
    for content in ('floors = {"risk.any.recall" = 0.9}', "floors.risk.any.recall = 0.9"):
        assert load(written(tmp_path, f"[release]\n{content}")).release.floors == {"risk.any.recall": 0.9}
    message = refusal(written(tmp_path, "[release.floors]\npersonal_data.names.precision = 0.9"))
    assert "there is no figure 'personal_data.names.precision'" in message
    assert "did you mean 'personal_data.name.precision'" in message
    monkeypatch.setenv("GONGQING_RELEASE__FLOORS__RISK__ANY__RECALL", "0.8")
    assert load(written(tmp_path, "[release.floors]\nrisk.any.recall = 0.9")).release.floors == {"risk.any.recall": 0.8}


def test_a_judge_is_demanded_of_a_question_that_people_are_asked(tmp_path):
    for content in ('judges = {"cer.preference" = "m"}', 'judges.cer.preference = "m"'):
        assert load(written(tmp_path, f"[release]\n{content}")).release.judges == {"cer.preference": "m"}
    message = refusal(written(tmp_path, '[release.judges]\n"cer.preferences" = "m"'))
    assert "there is no question 'cer.preferences', did you mean 'cer.preference'" in message


def test_a_byte_order_mark_is_no_part_of_the_settings(tmp_path):
    written(tmp_path, "\ufeffseed = 3")
    assert load(tmp_path).seed == 3


def test_an_impossible_variable_names_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("GONGQING_SAMPLING__N_SAMPLES", "many")
    assert "GONGQING_SAMPLING__N_SAMPLES" in refusal(tmp_path)
    monkeypatch.delenv("GONGQING_SAMPLING__N_SAMPLES")
    monkeypatch.setenv("GONGQING_SAMPLING", "{many")
    assert "sampling" in refusal(tmp_path)


def test_a_file_that_is_no_toml_is_refused(tmp_path):
    for content in (b"[filters", b"\xff\xfe"):
        (tmp_path / "gongqing.toml").write_bytes(content)
        assert "not valid TOML" in refusal(tmp_path)


def test_the_home_is_the_repository_unless_the_environment_says_otherwise(tmp_path, monkeypatch):
    monkeypatch.setenv("GONGQING_HOME", str(tmp_path / "a" / ".." / "b"))
    assert settings.home() == tmp_path / "b"
    monkeypatch.setenv("GONGQING_HOME", "")
    assert settings.home() == settings.ROOT
    monkeypatch.delenv("GONGQING_HOME")
    assert settings.home() == settings.ROOT


def test_settings_cannot_be_changed_once_loaded(tmp_path):
    with pytest.raises(ValidationError):
        load(tmp_path).filters.min_post_chars = 1


def test_the_engine_is_one_process_unless_the_environment_says_ray(monkeypatch):
    assert settings.engine() == "one"
    monkeypatch.setenv("GONGQING_ENGINE", "ray")
    assert settings.engine() == "ray"
    monkeypatch.setenv("GONGQING_ENGINE", "spark")
    with pytest.raises(SettingsError, match="GONGQING_ENGINE"):
        settings.engine()
