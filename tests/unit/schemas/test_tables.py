"""Every table: what it holds, by what key, in which Arrow types; and the names that others may rely on (DESIGN §4)."""

from collections.abc import Iterator

import dataframely as dy
import polars as pl
import pyarrow as pa
import pytest

from schemas.table import Dropped, LlmMade, Table, one_of, to_arrow
from schemas.tables import TABLES

EVERY = {**TABLES, "dropped": Dropped}
each_table = pytest.mark.parametrize("table", EVERY.values(), ids=EVERY.keys())

_POST = (
    "post_id source source_id url title description topic subtopics author posted_at posted_at_precision fetched_at "
    "licence consent answers layout"
)
_CLEAN = "text n_chars han_ratio script pii risk"
_DIALOGUE = "dialogue_id source lang topic situation turns modality n_rounds licence lineage"
_PROVENANCE = "provider model_asked model_served prompt_version request_key temperature"
_VERL = "data_source prompt ability reward_model extra_info split variant"
_MESSAGES = "messages split variant"

# DESIGN §4: columns that others may rely on; more may be added, none renamed.
DESIGNED = {
    "raw_posts": _POST,
    "imported_posts": _POST,
    "clean_posts": f"{_POST} {_CLEAN}",
    "unique_posts": f"{_POST} {_CLEAN} cluster_id cluster_size group_id",
    "imported_dialogues": _DIALOGUE,
    "clean_dialogues": _DIALOGUE,
    "unique_dialogues": f"{_DIALOGUE} group_id",
    "coherent_dialogues": f"{_DIALOGUE} group_id {_PROVENANCE}",
    "splits": "group_id split given_at",
    "topics": f"topic subtopic {_PROVENANCE}",
    "emotions": f"emotion {_PROVENANCE}",
    "sampled_turns": "dialogue_id round history reference needs_media",
    "ecot_chains": f"post_id situation motivation strategy answer {_PROVENANCE}",
    "coe_chains": f"post_id answer_id L1 L2 L3 L4 answer reasoning {_PROVENANCE}",
    "cer_candidates": f"dialogue_id round response {_PROVENANCE}",
    "review_tasks": "task_id kind item_id annotator role order shown item batch made",
    "cer_votes": "dialogue_id round candidate annotator role labelled step1 step2 step3 preference seconds at",
    "coe_reviews": "post_id answer_id annotator labelled verdict L1 L2 L3 L4 comment seconds at",
    "rankings": "item_id kind annotator labelled models places seconds at",
    "agreements": "kind question annotator measure value low high n_items n_raters",
    "judge_tests": "kind question model people epsilon omega rho n_people n_items kappa kappa_of_people",
    "cer_labels": "labelled step1 step2 step3 preference annotators consensus",
    "disc_profiles": f"role D I S C {_PROVENANCE}",
    "personas": "role cluster",
    "persona_fits": "role k elbow curve centres",
    "rewrite_drafts": f"row_id variant source lines {_PROVENANCE}",
    "rewrite_judgements": f"row_id variant same_meaning {_PROVENANCE}",
    "rewritten_dialogues": f"source_dialogue_id persona_id turns {_PROVENANCE}",
    "rewritten_rounds": f"source_dialogue_id round history response step1 preference {_PROVENANCE}",
    "sampled_rewrites": "dialogue_id source_dialogue_id variant round history reference needs_media",
    **dict.fromkeys(("grpo_ecot", "grpo_coe", "grpo_cer"), _VERL),
    **dict.fromkeys(("sft_coe", "sft_cer", "rm_process", "rm_outcome", "rm_unified"), _MESSAGES),
    "rm_triplets": "query positive negative kind split variant",
    "calibrations": "stage kind gold posts labelled found right missed precision recall kappa readers code",
    "rollouts": "step prompt output rewards judge",
    "model_answers": "row_id model output answer references",
    "evaluations": "metric value mode model",
    "dropped": "row_id stage reason detail",
}
NESTED = {
    ("imported_posts", "answers"): "answer_id author author_role text posted_at likes recommended",
    ("clean_posts", "answers"): "answer_id author author_role text posted_at likes recommended",
    ("imported_dialogues", "turns"): "role text strategies emotion origin media",
    ("imported_dialogues", "turns.media"): "uri kind sha256 start_ms end_ms licence available",
    ("grpo_cer", "prompt"): "role content",
    ("grpo_cer", "reward_model"): "style ground_truth",
    ("grpo_cer", "extra_info"): "split index variant",
    ("sft_cer", "messages"): "role content",
}


def test_every_table_has_the_columns_that_others_rely_on():
    assert set(EVERY) == set(DESIGNED)
    misses = {name: set(columns.split()) - set(EVERY[name].column_names()) for name, columns in DESIGNED.items()}
    for (name, path), fields in NESTED.items():
        inner: pa.DataType = pa.struct(list(EVERY[name].arrow_schema()))
        for step in path.split("."):
            inner = inner.field(step).type
            inner = inner.value_type if pa.types.is_list(inner) else inner
        misses[f"{name}.{path}"] = set(fields.split()) - {field.name for field in inner}
    assert {name: missing for name, missing in misses.items() if missing} == {}


@each_table
def test_the_table_describes_itself_and_has_a_key_that_is_never_null(table: type[Table]):
    assert (table.__doc__ or "").strip()
    assert table.__doc__ != Table.__doc__
    assert [name for name, words in table.describe().items() if not words.strip()] == []
    assert table.key()
    assert all(not table.columns()[name].nullable for name in table.key())


def test_what_people_wrote_is_private_until_personal_data_are_removed_and_what_leads_to_it_stays_so():
    private = {name: set(table.private_columns()) for name, table in TABLES.items()}
    assert private["imported_posts"] == {"url", "title", "description", "topic", "subtopics", "answers"}
    assert private["imported_dialogues"] == {"topic", "situation", "emotion", "turns", "attributes"}
    assert private["clean_posts"] == private["unique_posts"] == {"url", "topic", "subtopics"}
    assert private["clean_dialogues"] == private["unique_dialogues"] == {"topic", "emotion", "attributes"}
    assert private["sampled_turns"] == {"topic", "emotion"}
    assert private["grpo_coe"] == {"extra_info"}
    assert private["splits"] == set()


def test_rows_that_a_model_made_name_their_provider():
    made = {name for name, table in TABLES.items() if issubclass(table, LlmMade)}
    assert made == {name for name, columns in DESIGNED.items() if _PROVENANCE in columns}


# --- Arrow


def kinds(kind: pa.DataType) -> Iterator[pa.DataType]:
    yield kind
    for index in range(kind.num_fields):
        yield from kinds(kind.field(index).type)


@each_table
def test_arrow_fields_have_descriptions_and_the_plain_types_that_verl_reads_together(table: type[Table]):
    refused = ("large_", "_view", "dictionary")
    types = {str(kind) for field in table.arrow_schema() for kind in kinds(field.type)}
    assert [kind for kind in types if any(word in kind.replace(" ", "") for word in refused)] == []
    assert {field.name: field.metadata[b"description"].decode() for field in table.arrow_schema()} == table.describe()


# --- rows


@each_table
def test_a_sample_is_valid_and_survives_arrow_and_back(table: type[Table]):
    rows = 2 if table is TABLES["persona_fits"] else 20  # one a role
    sample = table.sample(rows, generator=dy.random.Generator(7))
    assert table.is_valid(sample)
    arrow = to_arrow(sample, table)
    assert arrow.schema.equals(table.arrow_schema(), check_metadata=True)
    assert table.cast(pl.DataFrame(pl.from_arrow(arrow))).equals(sample)
    assert not table.is_valid(pl.concat([sample[:1], sample[:1]]))  # a key twice
    empty = table.create_empty()
    assert table.is_valid(empty)
    assert empty.schema == table.polars_schema()


def test_a_row_of_another_id_closed_set_or_reason_is_refused():
    class Closed(Table):
        """One column."""

        column = one_of(("a", "a.c"), primary_key=True, description="a or a.c")

    for name, column in (("imported_posts", "post_id"), ("imported_dialogues", "dialogue_id")):
        row = TABLES[name].sample(1, generator=dy.random.Generator(7))
        assert not TABLES[name].is_valid(row.with_columns(pl.lit("elsewhere:1").alias(column)))
    assert Closed.is_valid(pl.DataFrame({"column": ["a", "a.c"]}))
    for value in ("b", "ab", "a\n", "", "A", "a.c ", "abc"):
        assert not Closed.is_valid(pl.DataFrame({"column": [value]})), value
    for reason in ("too_short", "", "Too short", "too short", "1st", "太短"):
        row = pl.DataFrame([("s", "post", "1", reason, None)], schema=Dropped.polars_schema(), orient="row")
        assert Dropped.is_valid(row) == (reason == "too_short"), reason
