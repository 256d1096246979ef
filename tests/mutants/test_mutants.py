"""No near miss of a query passes a night's verification.

The mutants run over the boundary events, which every verification run reads, and their rows go
through the checks of a night: over fixed tables, where a formulation means the same, and (make
test-long) as streams, as a night runs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nexmark.expectations.tables import Events, open_events
from nexmark_jobs import boundary
from nexmark_jobs.errors import JobError
from nexmark_jobs.options import parse
from nexmark_jobs.queries import QUERIES, Query, Streams
from nexmark_jobs.run_query import run
from nexmark_jobs.sources.event_files import events_of_kind, json_schema
from nexmark_jobs.sources.recorded_events import KINDS
from tests.expectations.checked import failed
from tests.mutants.mutants import MUTANTS, Mutant
from tests.quick_jvm import QUICK_JVM

pytestmark = pytest.mark.spark

FEWEST = 3
"""Every formulation has at least this number of mutants."""

FORMULATIONS = [(q.name, f.name) for q in QUERIES.values() for f in q.formulations]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session for queries over a few hundred rows."""
    session = (
        SparkSession.builder.master("local[1]")
        .appName("mutants")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", QUICK_JVM)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")  # mutants may fail
    yield session
    session.stop()


@dataclass(frozen=True)
class Table:
    """The boundary events as fixed tables."""

    spark: SparkSession
    directory: Path

    def of_kind(self, kind: str) -> DataFrame:
        return self._entities[kind]

    @cached_property
    def _entities(self) -> dict[str, DataFrame]:
        lines = self.spark.read.schema(json_schema()).json(f"file:{self.directory}").coalesce(1)
        return {kind: events_of_kind(lines, kind, numbered=True).cache() for kind in KINDS}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("boundary")
    boundary.write(directory)
    return directory


@pytest.fixture(scope="module")
def table(spark: SparkSession, recorded: Path) -> Table:
    return Table(spark, recorded)


@pytest.fixture(scope="module")
def events(recorded: Path) -> Iterator[Events]:
    with open_events(recorded) as opened:
        yield opened


def over_tables(table: Table, query: Query, formulation: str | None, out: Path) -> None:
    built = query.formulation(table.spark.version, formulation).build(Streams(table.spark, table))
    built.withColumns(
        {name: F.col(name) for name in query.columns}  # nullable or not, as a stream's are
    ).write.parquet(f"file:{out}")


def over_streams(spark: SparkSession, query: Query, formulation: str | None, out: Path) -> None:
    """As the verification run of a night does it."""
    options = parse(
        [
            *("--query", query.name, "--source", "boundary", "--sink", f"parquet:{out}"),
            *("--result", str(out.with_suffix(".json"))),
        ]
    )
    run(spark, replace(options, query=query, formulation=formulation), quiet=True)


@pytest.mark.parametrize(("query", "formulation"), FORMULATIONS)
def test_every_formulation_is_right(
    table: Table, events: Events, tmp_path: Path, query: str, formulation: str
) -> None:
    over_tables(table, QUERIES[query], formulation, tmp_path / "out")
    assert failed(events, query, tmp_path / "out") == set()
    assert events.connection.execute("SELECT count(*) FROM reference").fetchall() != [(0,)]


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_mutant_is_caught(table: Table, events: Events, tmp_path: Path, mutant: Mutant) -> None:
    with failing(mutant):
        over_tables(table, mutant.mutated(), mutant.formulation, tmp_path / "out")
        assert_caught(events, mutant, tmp_path / "out")


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_mutant_is_caught_by_a_verification_run(
    spark: SparkSession, events: Events, tmp_path: Path, mutant: Mutant
) -> None:
    with failing(mutant):
        over_streams(spark, mutant.mutated(), mutant.formulation, tmp_path / "out")
        assert_caught(events, mutant, tmp_path / "out")


def failing(mutant: Mutant) -> AbstractContextManager[object]:
    """The context in which a mutant runs that fails; of any other, an empty one."""
    if mutant.fails is None:
        return nullcontext()
    return pytest.raises((PySparkException, JobError), match=mutant.fails)


def assert_caught(events: Events, mutant: Mutant, out: Path) -> None:
    found = failed(events, mutant.query, out)
    print(f"{mutant}: caught by {', '.join(sorted(found)) or 'nothing'}")
    assert found, "nothing was found wrong"
    assert "schema" not in found, "a mutant has the right columns"


def test_every_formulation_has_mutants() -> None:
    for query, formulation in FORMULATIONS:
        of_it = [m for m in MUTANTS if m.query == query and m.formulation == formulation]
        if QUERIES[query].formulations[0].name == formulation:
            of_it += [m for m in MUTANTS if m.query == query and m.formulation is None]
        least = FEWEST if len(QUERIES[query].formulations) == 1 else 2
        assert len(of_it) >= least, f"{query} {formulation} has only {len(of_it)}"
