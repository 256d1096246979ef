"""What all tests share: no skip goes unseen, and the Spark builds under test."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from nexmark import config
from nexmark.config import paths
from nexmark.engines import Build, resolve


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where nothing may be skipped (CI), a skipped test is a failed one."""
    report = yield
    if report.skipped and os.environ.get("NEXMARK_REQUIRE_ALL_TESTS"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, which CI does not accept: {report.longrepr}"
    return report


#: Tests that share a session, a port or the test cluster: one process has all of a directory.
_TOGETHER = ("cluster", "dags", "generator", "queries")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Say which tests `pytest -n 2` may not tear apart; the engines' tests are spread singly."""
    directory, *rest = item.path.relative_to(Path(__file__).parent).parts
    if directory in _TOGETHER:
        item.add_marker(pytest.mark.xdist_group(directory))
    elif directory != "engines":
        item.add_marker(pytest.mark.xdist_group("/".join([directory, *rest])))


ENGINES = tuple(config.load().engines)
"""Names of the engines in include/conf/engines.yaml, in its order: the newest first."""


@pytest.fixture(scope="session")
def engine_build() -> Callable[[str], Build]:
    """engine_build(name): the build of an engine, fetched into the cache that `make run` uses."""

    def build(engine: str) -> Build:
        return resolve(config.load().engines[engine].build, paths.builds_dir())

    return build


def engine_environment(build: Build) -> dict[str, str]:
    """The environment in which Python imports the pyspark of `build`, and the nexmark_jobs here."""
    libraries = build.spark_home / "python" / "lib"
    archives = [libraries / "pyspark.zip", *libraries.glob("py4j-*.zip")]
    return os.environ | {
        "SPARK_HOME": str(build.spark_home),
        "PYTHONPATH": os.pathsep.join(map(str, [*archives, paths.repository()])),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
