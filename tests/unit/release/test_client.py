"""Names of data sets, before the client makes something of them."""

import pytest

from pipelines.errors import RequestError
from pipelines.release.publish.client import require_repo


def test_owner_and_name_are_a_repository_and_nothing_else_is():
    """Half a name neither: the client would make a data set of it under whoever owns the token."""
    for repo in ("me/empathy", "some-lab/CER_1.0", "a/b"):
        require_repo(repo)
    for repo in ("empathy", "me/a b", "../../x", "a/b/c", "me/", "/x", "me/x--y", "me/x..y", "me/x.", "-me/x", "我/x"):
        with pytest.raises(RequestError, match="cannot name a data set"):
            require_repo(repo)
