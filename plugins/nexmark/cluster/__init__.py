"""Start, find and end Spark on hosts."""

from pathlib import Path

from nexmark.cluster.base import Release, SparkCluster
from nexmark.cluster.lease import ClusterError, Lease
from nexmark.cluster.local import LocalCluster
from nexmark.config import AnyCluster, EmbeddedCluster
from nexmark_jobs.host.processes import OWNER_VARIABLE, Process, identify

__all__ = [
    "OWNER_VARIABLE",
    "ClusterError",
    "Lease",
    "LocalCluster",
    "Process",
    "Release",
    "SparkCluster",
    "identify",
    "open_cluster",
]


def open_cluster(config: AnyCluster, home: Path) -> SparkCluster:
    """Return the cluster of `config`; its state on this machine is below `home`."""
    if isinstance(config, EmbeddedCluster):
        return LocalCluster(config, home)
    from nexmark.cluster.remote import RemoteCluster  # Airflow's SSH provider: slow to import

    return RemoteCluster(config, home)
