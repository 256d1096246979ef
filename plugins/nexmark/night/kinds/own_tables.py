"""Repetitions of a job that reads files of a person's own, as fast as it can."""

from nexmark.config import Size
from nexmark.night.kinds.bounded import Bounded
from nexmark.night.night_plan import Night


class ReadsOwnTables(Bounded):
    """Repetitions that read all rows of the files, whatever the workload's size is."""

    has_slowed_arm = False

    def source_arguments(self, night: Night, query: str, size: Size) -> list[str]:
        """Return the arguments that make a query read the tables of its job."""
        return ["--source", f"tables:{night.tables_dir(query)}"]
