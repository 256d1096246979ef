"""A soak night on hosts: its JVMs are asked over SSH, and what grows is named.

The CPU time of a batch is not: three hosts share the processors of one machine.
"""

from __future__ import annotations

import subprocess

import pytest
import yaml

from tests.cluster.testbed import Testbed
from tests.site import Site, run_name
from tests.soak.leaking_job import COUNTED, JOB, assert_names, write_leaking, write_steady

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

ROWS, BATCHES = 20, 100
WORKLOAD = {
    **{"kind": "soak", "soak": {"samples": 10}, "conf_profile": "soak", "repetitions": 1},
    **{"events": ROWS * BATCHES, "tps": 1_000, "rows_per_batch": ROWS, "warmup_batches": 40},
    "verify": {"events": ROWS * BATCHES, "tps": 1_000, "rows_per_batch": 500},
}


@pytest.fixture(scope="module")
def leaking(session_testbed: Testbed, site: Site) -> subprocess.CompletedProcess[str]:
    session_testbed.up()
    workloads = {"workloads": {"tiny": WORKLOAD}}
    (site.conf / "workloads.yaml").write_text(yaml.safe_dump(workloads))
    site.gate(mode="paired", canary=0)
    write_steady(site.conf / "jobs")
    changed = site.conf.parent / "changed"
    write_leaking(changed)
    return site.night("--candidate-job", str(changed), "--cluster", "namespaces")


def test_what_grows_on_hosts_turns_the_night_red(
    site: Site, leaking: subprocess.CompletedProcess[str]
) -> None:
    assert leaking.returncode == 1, leaking.stdout + leaking.stderr
    with site.store() as store:
        run = run_name(leaking)
        (verdict,) = (each for each in store.verdicts(run) if each.red)
        rows = store.repetitions(run)
    assert (verdict.query, verdict.value) == (JOB, "REGRESSION")
    assert_names(verdict.reason, COUNTED)
    assert [row.status for row in rows] == ["ok"] * 4
    for row in rows:
        assert row.ageing
        for sample in row.ageing:
            hosts = {jvm["name"].partition(" on ")[2] for jvm in sample["processes"]}
            assert hosts == {"", "nexmark02", "nexmark03"}  # the driver is here


def test_nothing_is_left_on_any_host(
    session_testbed: Testbed, leaking: subprocess.CompletedProcess[str]
) -> None:
    assert session_testbed.leftovers() == []
