"""One test cluster for all tests here, and the matrix of the faults that they inject.

A test of a fault is marked with it and with what it asserts,
`@pytest.mark.fault("disk full", outcome="that host fails")`, or tells what came of it with
`record_property("outcome", ...)`. After each of them nothing may be left on any host. Where
NEXMARK_FAULT_MATRIX is set (`make test-cluster`), a table of all is printed in the end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

import testbed as namespaces
from nexmark import config
from nexmark.config import SshCluster
from nexmark.engines import Build
from testbed import system
from tests.cluster.nights import workload
from tests.cluster.testbed import Testbed
from tests.site import ENGINE, Site, make_site

SHORTEST_S = 0.2
_COLUMNS = ("fault", "outcome", "leftovers", "seconds")
_rows: dict[str, dict[str, str]] = {}


@pytest.fixture(scope="session")
def namespaces_cluster() -> SshCluster:
    """The cluster `namespaces` of clusters.yaml; skips where there cannot be one."""
    problems = system.problems()
    if problems:
        pytest.skip("; ".join(problems))
    cluster = config.load().clusters["namespaces"]
    assert isinstance(cluster, SshCluster)
    return cluster


@pytest.fixture(scope="session")
def session_testbed(
    namespaces_cluster: SshCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Testbed]:
    """The cluster under a home of its own; an error if there is one up already."""
    testbed = Testbed(namespaces_cluster, tmp_path_factory.mktemp("home"))
    try:
        testbed.up()
        yield testbed
    finally:
        namespaces.down(testbed.cluster, testbed.home)


@pytest.fixture
def testbed(session_testbed: Testbed) -> Testbed:
    """The cluster with all its hosts up, whatever the test before did to them."""
    session_testbed.up()
    return session_testbed


@pytest.fixture(scope="module")
def site(
    session_testbed: Testbed,
    tmp_path_factory: pytest.TempPathFactory,
    engine_build: Callable[[str], Build],
) -> Site:
    """The site that the nights of a file share; `nights.workload` adds its workload."""
    session_testbed.up()
    conf = tmp_path_factory.mktemp("site") / "conf"
    build = engine_build(ENGINE)
    made = make_site(session_testbed.home, conf, build, shares=False, interpreted=True)
    workload(made)
    return made


@pytest.fixture(autouse=True)
def nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """After a fault nothing of a night is on any host, when all else of the test has ended."""
    if not request.node.get_closest_marker("fault"):
        yield
        return
    testbed: Testbed = request.getfixturevalue("session_testbed")
    yield
    left = testbed.leftovers()
    request.node.user_properties.append(("leftovers", len(left)))
    assert left == []


def pytest_itemcollected(item: pytest.Item) -> None:
    """Every report of a test of a fault says which it is."""
    marker = item.get_closest_marker("fault")
    if marker:
        item.user_properties += [("fault", marker.args[0]), *marker.kwargs.items()]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep what the matrix tells of the test."""
    told = {name: str(value) for name, value in report.user_properties}
    if "fault" not in told:
        return
    row = _rows.setdefault(report.nodeid, {"seconds": "-"})
    if report.when == "call" and report.duration >= SHORTEST_S:  # else it looks at a night before
        row["seconds"] = f"{report.duration:.1f}"
    row |= told
    if report.failed:
        row["outcome"] = "THE TEST FAILED"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the matrix."""
    if not (_rows and os.environ.get("NEXMARK_FAULT_MATRIX")):
        return
    table = [_COLUMNS, *(tuple(r.get(c, "-") for c in _COLUMNS) for r in _rows.values())]
    widths = [max(len(row[i]) for row in table) for i in range(len(_COLUMNS))]
    terminalreporter.section("faults")
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        terminalreporter.line("| " + " | ".join(cells) + " |")
