"""What is cut out of answers: formulas repeated all over the corpus, and claims of a credential. A cut is an edit."""

from pipelines.clean.credentials import without_credentials
from pipelines.clean.signatures import signatures, without_signatures

__all__ = ["signatures", "without_credentials", "without_signatures"]
