"""Flight recordings of executors come from the hosts of all workers, and none is left there."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexmark.cluster import open_cluster
from nexmark.cluster.remote import RemoteCluster
from tests.cluster.testbed import Testbed

WORKERS = ("nexmark02", "nexmark03")


def test_recordings_come_from_every_worker(
    testbed: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    testbed.export(monkeypatch)
    cluster = open_cluster(testbed.cluster, tmp_path / "home")
    assert isinstance(cluster, RemoteCluster)
    for executor, worker in enumerate(WORKERS):
        directory = f"{cluster.work}/worker/app-1/{executor}"
        write = f"mkdir -p {directory} && echo {worker} > {directory}/recording.jfr"
        testbed.run(worker, "sh", "-c", write)
    try:
        cluster.fetch_recordings("app-1", "01", tmp_path / "recordings")
        left = [testbed.run(x, "find", cluster.work, "-name", "*.jfr").stdout for x in WORKERS]
    finally:
        for worker in WORKERS:
            testbed.run(worker, "rm", "-r", cluster.work)
    found = {path.parent.name: path for path in (tmp_path / "recordings").rglob("*.jfr")}
    assert {x: path.read_text().strip() for x, path in found.items()} == {x: x for x in WORKERS}
    assert [path.name for path in map(found.__getitem__, WORKERS)] == ["0.jfr", "1.jfr"]
    assert left == ["", ""]
