"""The tasks around the queries: neither of two nights takes the cluster from the other."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from nexmark.cluster import ClusterError, Lease, LocalCluster, Release
from nexmark.config import EmbeddedCluster, load
from nexmark.model import Arm
from nexmark.night.deployments import Deployments
from nexmark.night.night_plan import Night
from nexmark.night.run_directory import RunDirectory
from nexmark.tasks import infrastructure
from nexmark.tasks.infrastructure import heal

MINE, OTHER = Lease("nexmark", "scheduled__1"), Lease("nexmark_build", "manual__2")


def is_active(lease: Lease) -> bool:
    return True


class _Stopped(LocalCluster):
    """A cluster that is up on no build; starting it tries what another night would."""

    tried: list[str] = []  # noqa: RUF012

    def trouble_with(self, spark: Release) -> str:
        return "the master does not answer"

    def start(self, spark: Release, logs: Path, lease: Lease) -> None:
        try:
            self.claim(OTHER, is_active)
        except ClusterError as error:
            self.tried.append(str(error))


@pytest.fixture
def cluster(tmp_path: Path) -> _Stopped:
    config = load().clusters["local"]
    assert isinstance(config, EmbeddedCluster)
    return _Stopped(config, tmp_path)


@pytest.fixture
def night(cluster: _Stopped, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    class OneArm:
        arms = (Arm.CANDIDATE,)
        clusters = {Arm.CANDIDATE: cluster}  # noqa: RUF012
        files = RunDirectory(tmp_path)

    class NoBuild:
        def of(self, *_: Any) -> Any:
            release = Release("spark-0", "0", tmp_path)
            return SimpleNamespace(spark_release=release)

    monkeypatch.setattr(Deployments, "read", lambda _: NoBuild())
    monkeypatch.setattr(infrastructure, "_lease", lambda _: MINE)
    monkeypatch.setattr(infrastructure, "_is_active", is_active)
    return cast("Night", OneArm())


def test_no_other_night_gets_the_cluster_while_it_is_restarted(
    night: Night, cluster: _Stopped
) -> None:
    cluster.claim(MINE)
    heal(night, "q5")
    (said,) = cluster.tried
    assert said.startswith("cluster local: in use by nexmark run scheduled__1; wait")
    assert cluster.holder() == MINE


def test_a_night_does_not_restart_the_cluster_of_another(night: Night, cluster: _Stopped) -> None:
    """As where tasks of an old night are cleared while another one runs."""
    from airflow.sdk.exceptions import AirflowException

    cluster.claim(OTHER)
    with pytest.raises(AirflowException, match="in use by nexmark_build run manual__2"):
        heal(night, "q5")
    assert cluster.holder() == OTHER
