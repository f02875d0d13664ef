"""Options of the contrastive training, and kinds of values."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import RequestError, UnknownName
from pipelines.train.options import check_options
from pipelines.train.recipe import fits, is_finite, kind_of

FILES = {"start": "encoder", "train": "t.parquet", "validation": ["v.parquet"], "out": "model"}


def test_an_option_that_is_not_set_has_its_default():
    options = check_options({**FILES, "epochs": 7, "rate": "1e-4"})
    assert (options.epochs, options.rate, options.batch, options.margin, options.max_length) == (7, 1e-4, 16, 0.2, None)
    assert [str(path) for path in options.train] == ["t.parquet"]


@pytest.mark.parametrize(("name", "value", "says"), [
    ("epochs", "many", "valid integer.*and not 'many'"), ("batch", 1, "greater than or equal to 2"),
    ("epochs", 0, "greater than or equal to 1, and not 0"), ("rate", -1e-4, "greater than 0"),
    ("margin", 3, "less than or equal to 2"), ("rate", "nan", "finite number, and not 'nan'"),
    ("seed", True, "not True"),
    ("device", "gpu", "'auto', 'cpu' or 'cuda', and not 'gpu'"),
])  # fmt: skip
def test_a_wrong_value_of_an_option_is_refused_by_its_name(name: str, value: object, says: str):
    with pytest.raises(RequestError, match=f"{name}: .*{says}"):
        check_options({**FILES, name: value})


def test_an_unknown_option_names_the_nearest():
    with pytest.raises(UnknownName, match="no option of the contrastive training 'epoch'") as error:
        check_options({**FILES, "epoch": 1})
    assert "did you mean 'epochs'?" in str(error.value)


def test_the_kind_of_a_value_is_that_of_its_text():
    kinds = {"true or false": [True], "a whole number": [3, "12"], "a number": [1e-6, "1e-6", "nan"]}
    for kind, values in {**kinds, None: ["true", "", None, [1]]}.items():
        assert [kind_of(value) for value in values] == [kind] * len(values)


@given(st.integers() | st.floats() | st.booleans() | st.text(max_size=5) | st.none())
def test_a_whole_number_is_a_number_and_nothing_else_is_two_kinds(value: object):
    kinds = [kind for kind in ("true or false", "a whole number", "a number") if fits(value, kind)]
    assert kinds in ([], ["true or false"], ["a number"], ["a whole number", "a number"])


@given(st.floats() | st.integers())
def test_nan_and_infinity_are_not_finite_written_or_in_a_list(value: float):
    assert is_finite(value) == is_finite(str(value)) == is_finite([1, value]) == math.isfinite(value)
