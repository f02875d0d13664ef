"""Personas: clusters that stand until they are told to go, or until they do not fit any more."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipelines.errors import RequestError
from pipelines.rewrite.encoding import encoder_id
from pipelines.rewrite.personas import name, personas
from pipelines.settings import Rewrite
from schemas.labels import TRAITS
from schemas.personas import DiscProfiles, PersonaFits, Personas

NONE = PersonaFits.create_empty()
SETTINGS = Rewrite()
KINDS = {"bold": (0.9, 0.6, 0.1, 0.3), "warm": (0.2, 0.9, 0.6, 0.2), "careful": (0.3, 0.1, 0.6, 0.9)}


def profile(dialogue_id: str, role: str, scores: Sequence[float], **more: Any) -> dict[str, Any]:
    row = {"dialogue_id": dialogue_id, "role": role, "lang": "zh", "group_id": f"g/{dialogue_id}", "evidence": ["我要"]}
    made = {"provider": "openai", "model_asked": "a", "prompt_version": "p@1", "request_key": "key"}
    described = {"model_served": None, "description": f"说话的样子，{dialogue_id}。不多说。"}
    return row | dict(zip(TRAITS, scores, strict=True)) | made | described | more


def profiles(*rows: dict[str, Any]) -> pl.DataFrame:
    return DiscProfiles.validate(pl.DataFrame(rows, schema=DiscProfiles.polars_schema()))


def crowd(n: int = 60) -> list[dict[str, Any]]:
    """Profiles of three kinds that lie apart."""
    kinds = [list(KINDS)[number % 3] for number in range(n)]
    scores = np.array([KINDS[kind] for kind in kinds]) + np.random.default_rng((0, 1)).normal(0, 0.04, (n, 4))
    rows = zip(kinds, np.clip(scores, 0, 1).tolist(), strict=True)
    return [profile(f"s:{kind}{number}", "seeker", row) for number, (kind, row) in enumerate(rows)]


def test_profiles_are_clustered_and_clusters_named_by_what_leads_them():
    fits, found = personas(profiles(*crowd()), NONE, SETTINGS, seed=0)
    PersonaFits.validate(fits)
    Personas.validate(found)
    [fit] = fits.to_dicts()
    assert (fit["role"], fit["k"], fit["elbow"], len(fit["curve"])) == ("seeker", 3, True, 12)
    assert len(set(fit["names"])) == 3
    for kind in KINDS:
        rows = found.filter(pl.col("persona_id").str.contains(kind))
        assert rows["cluster"].n_unique() == 1
        assert rows["cluster_name"].unique().to_list() == [fit["names"][rows["cluster"][0]]]
    assert found["fitted"].all()
    assert fit["pool"] == found["persona_id"].to_list() == sorted(fit["pool"])
    bold = found.filter(pl.col("persona_id").str.contains("bold"))["cluster_name"][0]
    assert set(bold.split(", ")) >= {"high D", "low S"}


def test_vectors_are_standardised_and_distances_are_to_the_centre():
    rows = crowd()
    fits, found = personas(profiles(*rows), NONE, SETTINGS, 0)
    [fit] = fits.to_dicts()
    vectors = np.array(found["vector"].to_list())
    assert vectors.mean(axis=0) == pytest.approx([0] * 4, abs=1e-6)
    assert vectors.std(axis=0) == pytest.approx([1] * 4, abs=1e-6)
    away = np.linalg.norm(vectors - np.array(fit["centres"])[found["cluster"].to_list()], axis=1)
    assert found["distance"].to_list() == pytest.approx(away)
    assert fit["error"] == pytest.approx(np.square(away).mean())
    assert fit["curve"][fit["k"] - 1] == pytest.approx(np.square(away).sum(), rel=1e-6)
    by_id = {f"{row['dialogue_id']}/seeker": [row[trait] for trait in TRAITS] for row in rows}
    back = vectors * fit["scale"] + fit["mean"]
    assert [by_id[one] for one in found["persona_id"]] == pytest.approx(back, abs=1e-6)


def test_roles_are_clustered_apart_and_a_role_without_profiles_has_no_fit():
    seekers, supporters = crowd(), [profile(f"s:p{n}", "supporter", (0.5, 0.5, 0.5, 0.5)) for n in range(5)]
    fits, found = personas(profiles(*seekers, *supporters), NONE, SETTINGS, 0)
    assert dict(fits.select("role", "k").iter_rows()) == {"seeker": 3, "supporter": 1}
    alone, _ = personas(profiles(*seekers), NONE, SETTINGS, 0)
    assert alone.to_dicts() == fits.filter(role="seeker").to_dicts()
    supporter = fits.filter(role="supporter").to_dicts()[0]
    assert (supporter["elbow"], supporter["scale"], supporter["error"]) == (False, [1.0] * 4, 0.0)
    assert supporter["names"] == ["balanced"]
    assert found.filter(role="supporter")["cluster"].to_list() == [0] * 5
    fits, found = personas(profiles(), NONE, SETTINGS, 0)
    assert (fits.height, found.height) == (0, 0)


def test_order_of_rows_changes_nothing():
    rows = crowd()
    one, other = (personas(profiles(*order), NONE, SETTINGS, 0) for order in (rows, rows[::-1]))
    assert one[0].equals(other[0])
    assert one[1].equals(other[1])


@pytest.fixture(scope="module")
def standing() -> pl.DataFrame:
    return personas(profiles(*crowd()), NONE, SETTINGS, 0)[0]


def test_one_dialogue_more_or_less_moves_no_other(standing: pl.DataFrame):
    before = personas(profiles(*crowd()), standing, SETTINGS, 0)[1]
    later = profile("s:new", "seeker", (0.85, 0.6, 0.15, 0.3))
    fits, after = personas(profiles(*crowd(), later), standing, SETTINGS, 0)
    assert fits.equals(standing)
    assert after.filter(pl.col("persona_id") != "s:new/seeker").equals(before)
    [row] = after.filter(persona_id="s:new/seeker").to_dicts()
    assert row["fitted"] is False
    assert [row["cluster"]] == before.filter(persona_id="s:bold0/seeker")["cluster"].to_list()

    fits, after = personas(profiles(*crowd()[1:]), standing, SETTINGS, 0)
    assert fits.equals(standing)
    assert after.equals(before.filter(pl.col("persona_id") != "s:bold0/seeker"))


def new(n: int, scores: tuple[float, ...], **more: Any) -> list[dict[str, Any]]:
    return [profile(f"new:{number}", "seeker", scores, **more) for number in range(n)]


MIDDLE = (0.5, 0.45, 0.45, 0.5)  # where nobody was
REFITTED: dict[str, tuple[list[dict[str, Any]], bool]] = {
    "of a known kind": ([*crowd(), *new(30, KINDS["warm"])], False),
    "drifted": ([*crowd(), *new(30, MIDDLE)], True),
    "drawn together": ([row | dict.fromkeys(TRAITS, 0.5) for row in crowd()], True),
    # It could draw nobody but itself.
    "a language of one dialogue": ([*crowd(), *new(1, KINDS["bold"], lang="en")], False),
    "a language that nobody of the pool speaks": ([*crowd(), *new(3, KINDS["bold"], lang="en")], True),
    # New dialogues are not drawn: when they are more than those that are, a few would be drawn for all.
    "as many new ones": ([*crowd(), *(row | {"dialogue_id": f"new:{row['dialogue_id']}"} for row in crowd())], False),
    "more new ones": ([*crowd(), *(row | {"dialogue_id": f"n:{row['dialogue_id']}"} for row in crowd(61))], True),
}


def test_clusters_are_fitted_again_where_profiles_no_longer_fit(standing: pl.DataFrame):
    for case, (rows, refits) in REFITTED.items():
        fits, assigned = personas(profiles(*rows), standing, SETTINGS, 0)
        assert (not fits.equals(standing)) == refits, case
        assert assigned["fitted"].all() == refits, case
        assert fits["fitted_by"].to_list() == standing["fitted_by"].to_list(), case


def test_where_all_were_the_same_one_more_is_no_drift():
    same = [profile(f"s:{n}", "seeker", KINDS["warm"]) for n in range(30)]
    fits, _ = personas(profiles(*same), NONE, SETTINGS, 0)
    assert fits["error"].to_list() == [0.0]
    assert personas(profiles(*same, *new(1, KINDS["bold"])), fits, SETTINGS, 0)[0].equals(fits)
    assert not personas(profiles(*same, *new(20, KINDS["bold"])), fits, SETTINGS, 0)[0].equals(fits)


def test_the_limit_is_the_ratio_of_the_errors(standing: pl.DataFrame):
    [fit] = standing.to_dicts()
    new = profile("s:far", "seeker", (0.5, 0.5, 0.5, 0.5))
    found = personas(profiles(*crowd(), new), standing, Rewrite(drift=1e6), 0)[1]
    ratio = float((found["distance"] ** 2).mean()) / fit["error"]  # type: ignore[operator]
    assert ratio > 1.2
    for limit, refits in ((ratio - 0.01, True), (ratio + 0.01, False)):
        fits, _ = personas(profiles(*crowd(), new), standing, Rewrite(drift=limit), 0)
        assert (not fits.equals(standing)) == refits


def test_they_are_fitted_again_where_what_made_them_is_another_and_else_stay(standing: pl.DataFrame):
    asked = [row | {"provider": "openai", "model_asked": "qwen-plus"} for row in crowd()]
    for rows, settings, seed in (
        (crowd(), Rewrite(fit=2), 0),
        (crowd(), Rewrite(max_clusters=5), 0),
        (crowd(), SETTINGS, 1),
        (asked, SETTINGS, 0),
    ):
        fits, found = personas(profiles(*rows), standing, settings, seed)
        assert fits["fitted_by"][0] != standing["fitted_by"][0]
        assert found["fitted"].all()
        assert personas(profiles(*rows), fits, settings, seed)[0].equals(fits)
    deciding_nothing = Rewrite(variants=("D", "R", "P"), writing="x", drift=3.0)
    for rows, settings in ((crowd(), deciding_nothing), ([*crowd()[:-1], asked[-1]], SETTINGS)):
        assert personas(profiles(*rows), standing, settings, 0)[0].equals(standing)


def test_names():
    assert name((0, 0, 0, 0)) == name((0.49, -0.49, 0, 0)) == "balanced"
    assert name((0.5, 0, -0.5, 0)) == "high D, low S"
    assert name((0.6, 0.1, -1.2, 0.9)) == "low S, high C, high D"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a model's folder looks like from outside; the vectors come from `embedded`."""
    monkeypatch.setattr("pipelines.rewrite.personas.sentence_encoder", lambda _: embedded)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "modules.json").write_text("[]")
    return tmp_path / "model"


def embedded(texts: Sequence[str]) -> Any:
    """Unit vectors, a direction a kind of speaker, in eight dimensions."""
    rng = np.random.default_rng(0)
    rows = np.array([np.eye(8)[next(n for n, kind in enumerate(KINDS) if kind in text)] for text in texts])
    rows = rows + rng.normal(0, 0.02, rows.shape)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_embeddings_of_the_descriptions_are_clustered_as_they_are_and_named_by_the_scores(standing, model):
    settings = Rewrite(encoder=model, least_similarity=0.5)
    fits, found = personas(profiles(*crowd()), NONE, settings, 0)
    [fit] = fits.to_dicts()
    assert (fit["k"], fit["elbow"]) == (3, True)
    assert (fit["mean"], fit["scale"]) == ([0.0] * 8, [1.0] * 8)
    assert json.loads(fit["fitted_by"])["encoder"] == encoder_id(model)
    assert {len(vector) for vector in found["vector"]} == {8}
    by_scores, names = personas(profiles(*crowd()), standing, SETTINGS, 0)[1], ["persona_id", "cluster_name"]
    assert found.select(names).equals(by_scores.select(names))
    fits, _ = personas(profiles(*crowd()), standing, settings, 0)  # another encoder fits again
    assert len(fits["mean"][0]) == 8
    (model / "weights.bin").write_bytes(b"other")
    again, _ = personas(profiles(*crowd()), fits, settings, 0)
    assert again["fitted_by"][0] != fits["fitted_by"][0]


def test_a_folder_without_a_model_stops_the_work(tmp_path: Path):
    with pytest.raises(RequestError, match="no sentence-transformers model"):
        personas(profiles(*crowd()), NONE, Rewrite(encoder=tmp_path, least_similarity=0.5), 0)
