"""Pictures as PNG files."""

import struct

from pipelines.core.plotting import png


def draw(axes):
    axes.barh(["a", "b"], [1, 2])
    axes.set(title="Rows")


def test_a_picture_has_its_size_and_its_title():
    file, title = png(draw, (4, 2), dpi=50)
    assert title == "Rows"
    assert file.startswith(b"\x89PNG")
    assert struct.unpack(">II", file[16:24]) == (200, 100)


def test_the_same_picture_is_the_same_file_and_names_no_software():
    assert png(draw, (4, 2), dpi=50) == png(draw, (4, 2), dpi=50)
    assert b"matplotlib" not in png(draw, (4, 2), dpi=50)[0]
