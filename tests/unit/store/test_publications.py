"""What was uploaded is noted, for whoever must take it away."""

from pipelines.store.publications import FILE, UNKNOWN, note_publication, publications


def test_an_upload_is_noted_once(tmp_path):
    assert publications(tmp_path) == []
    for commit in ("a" * 40, "b" * 40, "a" * 40):
        note_publication(tmp_path, "me/x", "v1", commit)
    assert [(one.repo, one.tag, one.commit[0]) for one in publications(tmp_path)] == [
        ("me/x", "v1", "a"),
        ("me/x", "v1", "b"),
    ]


def test_what_was_begun_counts_until_its_end_is_noted(tmp_path):
    """Killed after the commit, an upload would else be told to no erasure."""
    for _ in range(2):
        note_publication(tmp_path, "me/x", "v1", UNKNOWN)
    assert [(one.repo, one.tag, one.commit) for one in publications(tmp_path)] == [("me/x", "v1", UNKNOWN)]
    note_publication(tmp_path, "me/x", "v1", "a" * 40)
    assert [one.commit[0] for one in publications(tmp_path)] == ["a"]
    assert len((tmp_path / "releases" / FILE).read_bytes().splitlines()) == 2


def test_a_line_that_was_cut_off_is_ignored_and_written_again(tmp_path):
    note_publication(tmp_path, "me/x", "v1", "a" * 40)
    path = tmp_path / "releases" / FILE
    path.write_bytes(path.read_bytes() + path.read_bytes()[:20])
    assert len(publications(tmp_path)) == 1
    note_publication(tmp_path, "me/x", "v2", "b" * 40)
    assert [one.tag for one in publications(tmp_path)] == ["v1", "v2"]
