"""One test cluster for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nexmark import config
from nexmark.cluster import namespaces
from nexmark.cluster.namespaces import system
from nexmark.config import SshCluster
from tests.cluster.testbed import Testbed


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
