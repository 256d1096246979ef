"""What all tests share: no skip goes unseen, and the Spark builds under test."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Sequence

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from nexmark import config
from nexmark.config import paths
from nexmark.engines import Build, resolve
from tests.quick_jvm import QUICK_JVM

#: Of Spark that a test starts by Python. One JVM serves all sessions of a process, the first of
#: which starts it: so its environment is the same whatever tests come first.
os.environ.setdefault(
    "PYSPARK_SUBMIT_ARGS", f'--conf "spark.driver.defaultJavaOptions={QUICK_JVM}" pyspark-shell'
)
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # its workers need our packages
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


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


#: Tests that share a Spark session, the test cluster or an Airflow: one process has all of a
#: directory.
_TOGETHER = ("cluster", "compat", "generator", "kafka", "nights", "queries", "story")


class _ByRoom(LoadScopeScheduling):
    """What `pytest -n 3` does not tear apart: a directory of these, else a file.

    The tests of the engines, minutes each, are spread one by one, and the nights in pairs of the
    kinds of jobs by their kind.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        directory = file.split("/")[1]
        if directory == "engines":
            return nodeid
        if file == "tests/dags/test_changed_jobs.py":
            return nodeid.partition("[")[2]
        return directory if directory in _TOGETHER else file


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest directories come first: at the end the other processes would wait for them."""
    items.sort(key=lambda item: not item.nodeid.startswith(("tests/cluster/", "tests/story/")))


def pytest_collection_finish() -> None:
    """Let the garbage collector leave alone what all tests share, which stays to the end.

    It would look through thousands of tests and every imported module each time: a tenth of the
    processor time of tests/unit.
    """
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the files that take most of the time: the time of CI is a budget."""
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.partition("::")[0]] += report.duration
    dearest = [(file, taken) for file, taken in seconds.most_common(40) if taken >= 20]
    if dearest:
        terminalreporter.section("seconds of each file, of 20 and more")
    for file, taken in dearest:
        terminalreporter.write_line(f"{taken:7.0f}  {file}")


@pytest.hookimpl(optionalhook=True)  # `-p no:xdist` is a way to run them, too
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _ByRoom:
    return _ByRoom(config, log)


ENGINES = tuple(config.load().engines)
"""Names of the engines in include/conf/engines.yaml, in its order: the newest first."""


def engines(*often: str, of: Sequence[str] = ENGINES) -> pytest.MarkDecorator:
    """A test for each engine `of` those; all but `often` are long."""
    marks = {engine: [] if engine in often else [pytest.mark.long] for engine in of}
    return pytest.mark.parametrize(
        "engine", [pytest.param(engine, marks=own) for engine, own in marks.items()]
    )


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
