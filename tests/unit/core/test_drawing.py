"""Pictures as PNG files."""

import struct

from pipelines.core.plotting import png


def draw(axes):
    axes.barh(["a", "b"], [1, 2])
    axes.set(title="Rows")


def test_the_same_picture_is_the_same_file_with_its_size_and_title_and_names_no_software():
    file, title = png(draw, (4, 2), dpi=50)
    assert title == "Rows"
    assert file.startswith(b"\x89PNG")
    assert struct.unpack(">II", file[16:24]) == (200, 100)
    assert png(draw, (4, 2), dpi=50)[0] == file
    assert b"matplotlib" not in file
