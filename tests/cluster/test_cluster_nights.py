"""Whole nights on three hosts, through the real DAG: the same results as here, and nothing left."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.cluster.nights import workload
from tests.cluster.testbed import Testbed
from tests.site import TINY, Site, run_name

pytestmark = [pytest.mark.spark, pytest.mark.slow]

QUERIES = ("q0", "q17")


@pytest.fixture(scope="module")
def remote(site: Site, session_testbed: Testbed) -> subprocess.CompletedProcess[str]:
    session_testbed.up()
    workload(site, **TINY, verify=TINY, repetitions=2)
    return site.night("--queries", ",".join(QUERIES), "--cluster", "namespaces")


def test_a_night_on_three_hosts_is_green_and_measured_on_both_workers(
    site: Site, remote: subprocess.CompletedProcess[str]
) -> None:
    assert remote.returncode == 0, remote.stdout + remote.stderr
    with site.store() as store:
        found = store.repetitions(run_name(remote))
        assert [(row.query, row.number, row.status) for row in found] == [
            (query, number, "ok") for query in QUERIES for number in (1, 2)
        ]
        for row in found:
            series = {each.host: each for each in store.sample_series(row.id)}
            assert {"nexmark01", "nexmark02", "nexmark03"} < set(series)
            assert row.cpu_executors_s
            assert row.cpu_driver_s


def test_what_the_harness_costs_is_reported_and_small(
    remote: subprocess.CompletedProcess[str],
) -> None:
    told = re.search(r"harness: .* ([0-9.]+) s per timed repetition", remote.stdout)
    assert told, remote.stdout
    assert float(told[1]) < 30  # 15 s at rest; tests run beside other load


@pytest.mark.long
def test_the_same_dag_here_has_the_same_digests(
    site: Site, remote: subprocess.CompletedProcess[str]
) -> None:
    here = site.night("--queries", ",".join(QUERIES), "--repetitions", "1")
    assert here.returncode == 0, here.stdout + here.stderr
    with site.store() as store:
        digests = [
            {(row.query, row.digest) for row in store.repetitions(run_name(night))}
            for night in (here, remote)
        ]
    assert digests[0] == digests[1]


def test_nothing_is_left_on_any_host(
    remote: subprocess.CompletedProcess[str], session_testbed: Testbed
) -> None:
    assert session_testbed.leftovers() == []


def test_no_secret_is_in_a_log_or_an_xcom(
    site: Site, remote: subprocess.CompletedProcess[str]
) -> None:
    """`spark.authenticate.secret` is 64 hexadecimal digits; its name may be there, it may not."""
    files = [
        path
        for pattern in ("runs/**/*", "logs/*", "airflow/logs/**/*", "airflow/airflow.db")
        for path in site.home.glob(pattern)
        if path.is_file()
    ]
    assert len(files) > 20
    secret = re.compile(rb"authenticate\.secret['\"=: ]+[0-9a-f]{64}")
    assert [path for path in files if secret.search(path.read_bytes())] == []
    assert list((site.home / "clusters" / "namespaces").rglob("secret")) == []
