"""How long what a night leaves behind is kept: `include/conf/retention.yaml`, typed and frozen."""

from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import Field, model_validator

from nexmark.config import paths
from nexmark.config.document import read
from nexmark.config.fields import Model, Schedule
from nexmark.errors import KeyedError, suggest

RETENTION_FILE = "retention.yaml"
SECTION = "retention"

#: Ten sign-offs may wait for a person at the same time: fewer nights would include one of them.
Nights: TypeAlias = Annotated[int, Field(ge=10, le=100_000)]

#: Builds that stay on a host where `builds` is left out: its disk is no archive.
_ON_HOSTS = 4


class Retention(Model):
    """How many nights, builds and rows stay; what is left out is kept for ever.

    Attributes:
        schedule: when the DAG `nexmark_prune` runs; None: only on demand.
        event_log_nights: the nights of each DAG whose event logs stay.
        run_nights: the nights of each DAG whose run directories and logs stay.
        raw_row_nights: the nights of each DAG whose raw rows stay in the results database.
        builds: how many Spark builds and copies of the jobs stay, the last used ones.
    """

    schedule: Schedule | None = None
    event_log_nights: Nights | None = None
    run_nights: Nights | None = None
    raw_row_nights: Nights | None = None
    builds: Annotated[int, Field(ge=2, le=100)] | None = None

    @property
    def host_builds(self) -> int:
        """How many builds, and how many copies of the jobs, stay on each host of a cluster."""
        return self.builds or _ON_HOSTS

    @model_validator(mode="after")
    def _in_order(self) -> "Retention":
        """Refuse a run directory that outlives its rows: `nexmark record` would read it again."""
        runs, rows, logs = self.run_nights, self.raw_row_nights, self.event_log_nights
        if rows is not None and (runs is None or runs > rows):
            kept = "for ever" if runs is None else f"for {runs} nights"
            problem = f"is {rows}, but run directories are kept {kept}"
            raise KeyedError(
                ("raw_row_nights",), f"{problem}; raise it, or set run_nights to {rows} or less"
            )
        if logs is not None and runs is not None and logs > runs:
            problem = f"is {logs}, but event logs go with their run directory after {runs}"
            raise KeyedError(("event_log_nights",), f"{problem}; lower it, or raise run_nights")
        return self


def load_retention(directory: Path | None = None) -> Retention:
    """Read and check `retention.yaml`; where there is no such file, everything is kept.

    Raises ConfigError for the first mistake; its text is `file:line: key: problem; remedy`.
    """
    path = (directory or paths.conf_dir()) / RETENTION_FILE
    if not path.exists():
        return Retention()
    document = read(path)
    for name in document.data:
        if name != SECTION:
            problem = f"unknown key {name!r}; {suggest(name, [SECTION])}"
            raise document.error((name,), problem)
    entries = document.data.get(SECTION)
    if not isinstance(entries, dict):
        problem = f"expected keys and values, got {entries!r}; see the comments"
        raise document.error((SECTION,), problem)
    return document.validated((SECTION,), Retention, entries)
