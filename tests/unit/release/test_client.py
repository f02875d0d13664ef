"""Names of data sets, before the client makes something of them."""

import pytest

from pipelines.errors import RequestError
from pipelines.release.publish.client import require_repo


@pytest.mark.parametrize("repo", ["me/empathy", "some-lab/CER_1.0", "a/b"])
def test_owner_and_name_are_a_repository(repo):
    require_repo(repo)


@pytest.mark.parametrize(
    "repo", ["empathy", "me/a b", "../../x", "a/b/c", "me/", "/x", "me/x--y", "me/x..y", "me/x.", "-me/x", "我/x"]
)
def test_anything_else_is_refused(repo):
    """Half a name too: the client would make a data set of it under whoever owns the token."""
    with pytest.raises(RequestError, match="cannot name a data set"):
        require_repo(repo)
