"""Airflows on two machines that share the hosts of a cluster use it one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nexmark.cluster import ClusterError, Lease
from nexmark.cluster.hosts.ssh import HostUnreachable
from nexmark.cluster.remote import RemoteCluster
from nexmark.config import SshCluster, load
from nexmark.model import Arm
from nexmark_jobs.host import leases
from nexmark_jobs.host.processes import end, start_detached

MINE, OTHER = Lease("nexmark", "scheduled__1"), Lease("nexmark_build", "manual__2")


def here(cluster: RemoteCluster, request: dict[str, Any]) -> dict[str, Any]:
    """The host of the master is this machine."""
    owner = f"{cluster.mark.rpartition('|')[0]}|"
    return leases.main({**request, "path": cluster._host_lease, "owner": owner})


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SshCluster:
    monkeypatch.setattr(RemoteCluster, "_ask_host", here)
    found = load().clusters["nexmark"]
    assert isinstance(found, SshCluster)
    return found.model_copy(update={"root": str(tmp_path / "root")})


def test_the_second_machine_is_told_who_has_the_hosts(config: SshCluster, tmp_path: Path) -> None:
    one, two = (RemoteCluster(config, tmp_path / name) for name in ("one", "two"))
    assert one.claim(MINE)
    with pytest.raises(ClusterError) as caught:
        two.claim(OTHER)
    text = str(caught.value)
    assert text.startswith("cluster nexmark: its hosts are in use by nexmark run scheduled__1 on ")
    assert text.endswith(f"remove {tmp_path / 'root' / 'lease.json'} on host nexmark01")
    assert str(one.home) in text
    assert two.holder() is None
    one.release()
    assert two.claim(OTHER)


def test_both_arms_of_a_night_have_the_hosts_until_the_last_has_ended(
    config: SshCluster, tmp_path: Path
) -> None:
    candidate = RemoteCluster(config, tmp_path / "one")
    baseline = RemoteCluster(config.of_arm(Arm.BASELINE), tmp_path / "one")
    other = RemoteCluster(config, tmp_path / "two")
    candidate.claim(MINE)
    baseline.claim(MINE)
    master = start_detached(["sleep", "68"], {}, candidate.mark, tmp_path / "log")
    try:
        baseline.release()
        with pytest.raises(ClusterError, match="its hosts are in use by nexmark run scheduled__1"):
            other.claim(OTHER)
    finally:
        end([master], grace_s=0)
    candidate.release()
    assert other.claim(OTHER)


def test_a_master_that_cannot_be_reached_refuses_a_night_and_not_the_clearing_of_the_own(
    config: SshCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = RemoteCluster(config, tmp_path / "one")
    one.claim(MINE)

    def unreachable(*_: Any) -> dict[str, Any]:
        raise HostUnreachable("host nexmark01: no connection; see that it is up")

    monkeypatch.setattr(RemoteCluster, "_ask_host", unreachable)
    assert not one.claim(MINE)
    two = RemoteCluster(config, tmp_path / "two")
    with pytest.raises(HostUnreachable):
        two.claim(OTHER)
    assert two.holder() is None
