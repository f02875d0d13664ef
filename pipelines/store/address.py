"""Where a table, a partition or a version lies below the root of a store, and how a user comes by it again."""

import re
import shlex
from dataclasses import dataclass
from urllib.parse import quote

from pipelines.errors import NoVersion, RequestError, UnknownName
from schemas.tables import PARTITIONED, STANDING, TABLES

VERSION = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Address:
    """A table or a partition of it; with `version`, one version. Raises UnknownName, RequestError for wrong names."""

    table: str
    partition: str | None = None
    version: str = ""

    def __post_init__(self) -> None:
        if self.table not in TABLES:
            raise UnknownName("table", self.table, TABLES)
        if self.partition is None:
            return
        if self.table not in PARTITIONED:
            raise RequestError(f"{self.table} has no partitions", where=self.partition, hint="leave the partition out")
        encoded = quote(self.partition, safe="")
        if encoded in {"", ".", ".."} or VERSION.fullmatch(self.partition) or len(encoded) > 200:
            raise RequestError(f"{self.partition!r} cannot name a partition", hint="use the name of a data set")

    @property
    def name(self) -> str:
        """`table` or `table/partition`."""
        return self.table if self.partition is None else f"{self.table}/{self.partition}"

    @property
    def folder(self) -> str:
        """The key below which its versions and its pointer lie."""
        if self.table in PARTITIONED and self.partition is None:
            raise RequestError(f"{self.table} is partitioned", hint="name the partition")
        return self.table if self.partition is None else f"{self.table}/{quote(self.partition, safe='')}"

    @property
    def pointer(self) -> str:
        """The key of the pointer to its current version."""
        return f"{self.folder}/current.json"

    @property
    def prefix(self) -> str:
        """The key below which the files of the version lie."""
        return f"{self.folder}/{self.version}"

    @property
    def manifest(self) -> str:
        """The key of the manifest of the version."""
        return f"{self.prefix}/manifest.json"

    def at(self, version: str) -> "Address":
        """The address of a version of the same table and partition."""
        return Address(self.table, self.partition, version)

    def no_version(self) -> NoVersion:
        """What is raised where nothing was written."""
        return NoVersion(f"{self.table} has no version yet", where=self.partition, hint=f"make one: {self._command()}")

    def promote_command(self) -> str:
        """The command that chooses a version."""
        where = "" if self.partition is None else f" --partition {shlex.quote(self.partition)}"
        return f"gongqing tables promote {self.table} VERSION{where}"

    def recovery_hint(self, folder: str, others: list[str]) -> str:
        """How to replace a version that cannot be used; `others` are the versions beside it."""
        there = f"there {'are' if len(others) > 1 else 'is'}: {', '.join(others)}"
        back = f"; or go back to another version: {self.promote_command()} ({there})" if others else ""
        if self.table in STANDING:
            return f"restore its folder from a backup{back}. Without either, remove {folder}: {STANDING[self.table]}"
        if self.table == "raw_posts":
            source, _, day = str(self.partition).rpartition("@")
            crawl = f"gongqing crawl {source} --from {day} --until {day}"
            return f"remove {folder}, and fetch the day again: {crawl}{back}"
        if self.table in PARTITIONED:
            return f"{'train' if self.table == 'rollouts' else 'import'} it again: {self._command()}{back}"
        return f"make it again: {self._command()} --select {self.table}{back}"

    def _command(self) -> str:
        """The command that makes the table."""
        if self.table in {"rollouts", "raw_posts"}:
            return "gongqing train RECIPE" if self.table == "rollouts" else "gongqing crawl SOURCE"
        name = "" if self.partition is None else f" --as {shlex.quote(self.partition)}"
        return f"gongqing import NAME PATH{name}" if self.table in PARTITIONED else "gongqing refresh"
