"""The same night on three hosts and here: the same results.

What else holds of a night on three hosts is in test_kafka_nights.py and test_faults_nights.py.
"""

from __future__ import annotations

import pytest

from tests.cluster.nights import workload
from tests.cluster.testbed import Testbed
from tests.site import TINY, Site, run_name

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

QUERIES = ("q0", "q17")


def test_the_same_dag_here_and_on_hosts_has_the_same_digests(
    site: Site, session_testbed: Testbed
) -> None:
    session_testbed.up()
    workload(site, **TINY, verify=TINY)
    options = ("--queries", ",".join(QUERIES))
    nights = [site.night(*options, "--cluster", name) for name in ("namespaces", "local")]
    for night in nights:
        assert night.returncode == 0, night.stdout + night.stderr
    with site.store() as store:
        here, there = (
            {(row.query, row.digest) for row in store.repetitions(run_name(night))}
            for night in nights
        )
    assert here == there
    assert {query for query, _ in here} == set(QUERIES)
    assert session_testbed.leftovers() == []
