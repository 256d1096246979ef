"""A Spark session for the generator's tests, and rows in a form that plain Python can compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession

from nexmark_jobs import generator
from nexmark_jobs.generator import GeneratorConfig
from tests.generator.rows import millis
from tests.quick_jvm import QUICK_JVM

Generate = Callable[..., DataFrame]


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session with two cores for all tests of the generator."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("generator tests")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", QUICK_JVM)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(warehouse))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="package")
def generate(spark: SparkSession) -> Generate:
    """generate(kind, range, end=None, **options): the events of a kind as a frame, times in ms."""

    def rows(kind: str, numbers: range, end: int | None = None, **options: int) -> DataFrame:
        frame = spark.range(numbers.start, numbers.stop, numbers.step, 2).toDF("n")
        return millis(getattr(generator, f"{kind}s")(frame, GeneratorConfig(**options), end))

    return rows
