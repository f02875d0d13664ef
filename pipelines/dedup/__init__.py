"""Duplicates: detected and merged; nothing that they hold is lost."""

from pipelines.dedup.duplicates import find_duplicates as find_duplicates
from pipelines.dedup.duplicates import find_duplicates_in as find_duplicates_in
from pipelines.dedup.minhash import signatures as signatures
