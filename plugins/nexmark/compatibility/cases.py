"""The cases of a check: two builds, queries with a formulation for each build, an input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nexmark.engines import Build

_BATCHES = 4
_CYCLE = 50
"""The generator is cheapest where a batch is a multiple of this."""


@dataclass(frozen=True)
class Side:
    """A Spark build, and the confs of Spark SQL that its runs have."""

    build: Build
    confs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A query; its formulation on the first side, and the one on the second side."""

    query: str
    first: str
    second: str

    def __str__(self) -> str:
        """Return the query, and the formulations where they differ."""
        changed = f" {self.first} -> {self.second}" if self.first != self.second else ""
        return f"{self.query}{changed}"


def cases_of(
    queries: Iterable[str],
    builds: tuple[Build, Build],
    formulation: str | None = None,
    against: str | None = None,
) -> list[Case]:
    """Each query with the formulation asked for, or the best one that both builds can run."""
    from nexmark_jobs.queries import QUERIES

    cases = []
    for name in queries:
        older = min(builds, key=release)
        first = builds[0].version if against else older.version
        one = QUERIES[name].formulation(first, formulation).name
        other = QUERIES[name].formulation(builds[1].version, against).name if against else one
        cases.append(Case(name, one, other))
    return cases


def release(build: Build) -> tuple[int, ...]:
    """The first two numbers of its Spark version."""
    return tuple(int(part) for part in build.version.split(".")[:2])


@dataclass(frozen=True)
class Input:
    """The generated events, in four batches; the first half are two of them.

    `formulations` is a file with formulations that the repository does not have.
    """

    events: int = 20_000
    tps: int = 200
    seed: int = 1
    formulations: Path | None = None

    @property
    def generator_arguments(self) -> list[str]:
        """The arguments of the jobs that say which events these are."""
        return [
            *("--events", str(self.events)),
            *("--tps", str(self.tps)),
            *("--seed", str(self.seed)),
        ]

    @property
    def run_arguments(self) -> list[str]:
        """The same, and how they are cut into batches."""
        rows = -(-self.events // _BATCHES)
        rows = -(-rows // _CYCLE) * _CYCLE
        return [*self.generator_arguments, "--rows-per-batch", str(rows)]

    @property
    def last_batch_of_first_half(self) -> int:
        """The number of the batch after which the first build stops."""
        return _BATCHES // 2 - 1
