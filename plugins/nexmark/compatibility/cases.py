"""The cases of a check: two builds, the queries, and the input."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from nexmark.config import Job
from nexmark.engines import Build
from nexmark_jobs.feature_release import feature_release

SQL = "spark.sql."
"""With this begin the confs that matter to a running query."""
_BATCHES = 4
#: Persons, auctions and bids come in cycles of 50: batches of whole cycles are generated fastest.
_CYCLE = 50


@dataclass(frozen=True)
class Side:
    """One side of a comparison.

    Attributes:
        build: a Spark build.
        confs: the Spark SQL confs of its runs; all confs of an application.
        job: the job of a person's own that is checked in place of queries.
    """

    build: Build
    confs: Mapping[str, str] = field(default_factory=dict)
    job: Job | None = None

    def with_job(self, job: Job) -> "Side":
        """Return the side with a job; of a conf that both have, the side's value counts.

        Of a query, only confs of Spark SQL matter; an application has all of its own.
        """
        if job.application is not None:
            return replace(self, confs={**job.application.confs, **self.confs}, job=job)
        of_queries = {key: value for key, value in job.confs.items() if key.startswith(SQL)}
        return replace(self, confs={**of_queries, **self.confs}, job=job)

    def same_program(self, other: "Side") -> bool:
        """Tell whether both sides run the same build, with the same job if there is one."""
        formulations = [side.job and side.job.formulation for side in (self, other)]
        return self.build.id == other.build.id and formulations[0] == formulations[1]


@dataclass(frozen=True)
class Case:
    """A query with its formulation on the first side and its formulation on the second side."""

    query: str
    first: str
    second: str

    def __str__(self) -> str:
        """Return the query, with both formulations where they differ."""
        changed = f" {self.first} -> {self.second}" if self.first != self.second else ""
        return f"{self.query}{changed}"


def cases_of(
    queries: Iterable[str],
    builds: tuple[Build, Build],
    formulation: str | None = None,
    against: str | None = None,
) -> list[Case]:
    """Return a case for each query.

    Args:
        queries: names of queries.
        builds: the builds of the first and of the second side.
        formulation: the formulation on both sides; by default the newest that both builds can run.
        against: the formulation on the second side, if it is not the same.
    """
    from nexmark_jobs.experiments import query_named

    cases = []
    for name in queries:
        older = min(builds, key=lambda build: feature_release(build.version))
        first = builds[0].version if against else older.version
        one = query_named(name).formulation(first, formulation).name
        other = query_named(name).formulation(builds[1].version, against).name if against else one
        cases.append(Case(name, one, other))
    return cases


def case_of_job(job: Job, changed: Job) -> Case:
    """Return the case of a job of a person's own, and of its version on the second side."""
    return Case(job.name, job.formulation, changed.formulation)


@dataclass(frozen=True)
class Input:
    """The generated events of a check, in four batches; the first run stops after two of them.

    `formulations` is a Python file with formulations of the user.
    """

    batches: ClassVar[int] = _BATCHES
    last_batch_of_first_run: ClassVar[int] = _BATCHES // 2 - 1

    events: int = 20_000
    tps: int = 200
    seed: int = 1
    formulations: Path | None = None

    @property
    def generator_arguments(self) -> list[str]:
        """The arguments of a job that say which events to generate."""
        numbers = {"--events": self.events, "--tps": self.tps, "--seed": self.seed}
        return [word for name, number in numbers.items() for word in (name, str(number))]

    @property
    def run_arguments(self) -> list[str]:
        """The `generator_arguments`, and the size of a batch."""
        rows = -(-self.events // (_BATCHES * _CYCLE)) * _CYCLE
        return [*self.generator_arguments, "--rows-per-batch", str(rows)]
