"""Recovery nights on hosts: what is killed is on a host, and its state on the shared disk."""

from __future__ import annotations

import json

import pytest
import yaml

from nexmark.model import COMMIT, INTERRUPTION, RESTORE
from tests.cluster.testbed import Testbed
from tests.site import Site, run_name

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SIZE = {"events": 12_000, "tps": 1_000, "rows_per_batch": 2_000}
LONG = pytest.mark.long


@pytest.mark.parametrize(
    ("kill", "query"),
    [
        pytest.param("worker", "q20"),
        pytest.param("executor", "q20", marks=LONG),
        pytest.param("driver", "q5", marks=LONG),
    ],
)
@pytest.mark.fault("killed by a recovery night", outcome="started again, right, measured")
def test_a_night_kills_on_hosts_and_the_table_is_right(
    kill: str, query: str, site: Site, testbed: Testbed
) -> None:
    recovery = {"kill": kill, "checkpoint": "remote", "latency_ms": 5}
    tiny = {**SIZE, "kind": "recovery", "repetitions": 1, "conf_profile": "quick"}
    workloads = {"workloads": {"tiny": tiny | {"recovery": recovery}}}
    (site.conf / "workloads.yaml").write_text(yaml.safe_dump(workloads))
    site.gate(mode="paired", pairs=3)
    night = site.night("--queries", query, "--cluster", "namespaces")
    assert night.returncode == 0, night.stdout + night.stderr
    with site.store() as store:
        (row,) = store.repetitions(run_name(night))
    assert row.status == "ok", row.reason
    assert {RESTORE, COMMIT, INTERRUPTION} <= row.figures.keys()
    (told,) = site.home.glob(f"runs/*/*/{query}/*/recovery.json")
    assert [each["what"] for each in json.loads(told.read_text())["kills"]] == [kill]
