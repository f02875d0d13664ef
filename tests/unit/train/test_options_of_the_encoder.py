"""Options of the contrastive training, and kinds of values."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import RequestError, UnknownName
from pipelines.train.kinds import finite, fits, kind
from pipelines.train.options import OPTIONS, checked


def test_what_is_not_given_has_its_default():
    found = checked({"epochs": 7, "start": "encoder"})
    assert found == {
        "start": "encoder",
        "device": "auto",
        "epochs": 7,
        "batch": 16,
        "rate": 2e-5,
        "margin": 0.2,
        "seed": 0,
        "save_every": 100,
    }


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("epochs", "many", "a whole number of 1 or more is asked for, and not 'many'"),
        ("epochs", 0, "not 0"),
        ("epochs", 1.5, "not 1.5"),
        ("epochs", None, "not None"),
        ("batch", 1, "of 2 or more"),
        ("rate", -1e-4, "a number of 1e-12 or more"),
        ("rate", "nan", "not 'nan'"),
        ("margin", 3, "from 0 to 2"),
        ("seed", True, "not True"),
        ("max_length", [64], "not \\[64\\]"),
    ],
)
def test_a_value_that_an_option_may_not_have_is_refused_by_its_name(name: str, value: object, says: str):
    with pytest.raises(RequestError, match=f"{name}: .*{says}"):
        checked({name: value})


def test_an_option_that_there_is_not_names_the_nearest():
    with pytest.raises(UnknownName, match="no option of the contrastive training 'epoch'") as error:
        checked({"epoch": 1})
    assert "did you mean 'epochs'?" in str(error.value)
    with pytest.raises(UnknownName, match="no device 'gpu'"):
        checked({"device": "gpu"})


@given(st.sampled_from(sorted(OPTIONS)), st.floats() | st.integers())
def test_a_value_that_is_read_lies_where_it_may_and_is_read_alike_from_its_text(name: str, value: float):
    option = OPTIONS[name]
    try:
        found = option.read(value)
    except ValueError:
        with pytest.raises(ValueError, match="is asked for"):
            option.read(str(value))
        return
    assert option.least <= found <= option.most
    assert math.isfinite(found)
    assert found == value == option.read(str(value))


@given(st.floats() | st.integers() | st.booleans())
def test_a_number_is_of_one_kind_written_or_not(value: float | bool):
    told = kind(value)
    assert told is not None
    assert fits(value, told)
    if not isinstance(value, bool):
        assert kind(repr(value)) == told


@given(st.integers(), st.floats())
def test_a_whole_number_is_a_number_and_not_the_other_way(whole: int, number: float):
    assert fits(whole, "a number")
    assert not fits(number, "a whole number")
    assert not fits(whole, "true or false")
    assert not fits(True, "a whole number")


@given(st.floats() | st.integers())
def test_only_what_is_finite_can_be_trained_with_written_or_not_and_in_a_list_too(value: float):
    told = isinstance(value, int) or math.isfinite(value)
    assert finite(value) == finite(repr(value)) == finite([1, value]) == told


@given(st.none() | st.booleans() | st.sampled_from(["name", "information", "nano", "", "1e-6", "/inf"]))
def test_what_is_no_number_is_none_that_is_infinite(value: object):
    assert finite(value)
