"""Recovery nights on hosts: what is killed is on a host, and its state on the shared disk."""

from __future__ import annotations

import json
import random
from contextlib import closing

import pytest
import yaml

from nexmark.cluster.hosts.host import Host
from nexmark.cluster.remote import RemoteCluster
from nexmark.model import COMMIT, INTERRUPTION, RESTORE
from nexmark.recovery.daemons import WORKER
from nexmark_jobs.host import processes
from tests.cluster.testbed import Testbed
from tests.site import Site, run_name
from tests.waiting import wait_for

HOST = "nexmark03"
SIZE = {"events": 12_000, "tps": 1_000, "rows_per_batch": 2_000}


def test_one_process_of_a_host_is_killed_and_started_again(
    testbed: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    testbed.export(monkeypatch)
    cluster = RemoteCluster(testbed.cluster, testbed.home)
    word = f"{WORKER} 601"
    machine = testbed.cluster.hosts[HOST]
    with closing(Host(HOST, machine.connection, testbed.cluster.python)) as host:

        def running() -> list[int]:
            found = host.call(processes, {"do": "owned", **asked}, timeout_s=20)
            return [each["pid"] for each in found["processes"]]

        asked = {"mark": cluster.mark, "word": word}
        sleep = "import time; time.sleep(600)"  # without a child, which would show the same words
        command = [testbed.cluster.python, "-c", sleep, *word.split()]
        request = {"do": "start", "command": command, "environment": {}, "mark": cluster.mark}
        host.call(processes, {**request, "log": f"{cluster.work}/log"}, timeout_s=20)
        try:
            (first,) = running()
            assert cluster.kill_one(word, random.Random(1), again=True)
            wait_for(lambda: first not in running(), within_s=30)
            assert len(running()) == 1
            assert cluster.kill_one(word, random.Random(1), again=False)
            wait_for(lambda: running() == [], within_s=30)
            assert not cluster.kill_one(word, random.Random(1), again=False)
        finally:
            cluster.stop()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(
    ("kill", "query"), [("worker", "q20"), ("executor", "q20"), ("driver", "q5")]
)
@pytest.mark.fault("killed by a recovery night", outcome="started again, right, measured")
def test_a_night_kills_on_hosts_and_the_table_is_right(
    kill: str, query: str, site: Site, testbed: Testbed
) -> None:
    recovery = {"kill": kill, "checkpoint": "remote", "latency_ms": 5}
    tiny = {**SIZE, "kind": "recovery", "repetitions": 1, "conf_profile": "quick"}
    workloads = {"workloads": {"tiny": tiny | {"recovery": recovery}}}
    (site.conf / "workloads.yaml").write_text(yaml.safe_dump(workloads))
    site.gate(mode="paired", rounds=[3], pursue_z=[], canary=0)
    night = site.night("--queries", query, "--cluster", "namespaces")
    assert night.returncode == 0, night.stdout + night.stderr
    with site.store() as store:
        rows = store.repetitions(run_name(night))
    assert [row.status for row in rows] == ["ok"] * 3, [row.reason for row in rows]
    for row in rows:
        assert {RESTORE, COMMIT, INTERRUPTION} <= row.figures.keys()
    files = site.home.glob(f"runs/*/*/{query}/*/recovery.json")
    told = [each["what"] for path in files for each in json.loads(path.read_text())["kills"]]
    assert told.count(kill) == 3
