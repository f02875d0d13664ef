"""Files of a test, and the import of them."""

from importing_fixtures import importing

__all__ = ["importing"]
