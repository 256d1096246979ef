"""The same night on three hosts and here: the same results.

What else holds of a night on three hosts is in test_kafka_nights.py and test_faults_nights.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nexmark.engines import Build
from tests.cluster.nights import workload
from tests.cluster.testbed import Testbed
from tests.conftest import ENGINES
from tests.nights.files_job import JOB, write_job
from tests.nights.orders_job import write_jobs
from tests.site import TINY, Site, run_name

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

QUERIES = ("q0", "q17", JOB)
"""The job reads files of its own, with a JAR, a conf, and a reference."""


def test_the_same_dag_here_and_on_hosts_has_the_same_digests(
    site: Site, session_testbed: Testbed, tmp_path: Path, engine_build: Callable[[str], Build]
) -> None:
    write_jobs(site.conf, tmp_path, engine_build(ENGINES[0]), "secret")
    write_job(site.conf, tmp_path / "files")
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
