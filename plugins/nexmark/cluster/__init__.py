"""Starting, finding and ending Spark on hosts."""

from pathlib import Path

from nexmark.cluster.base import Release as Release
from nexmark.cluster.base import SparkCluster as SparkCluster
from nexmark.cluster.lease import ClusterError as ClusterError
from nexmark.cluster.lease import Lease as Lease
from nexmark.cluster.local import LocalCluster as LocalCluster
from nexmark.config import AnyCluster, EmbeddedCluster
from nexmark_jobs.host.processes import OWNER_VARIABLE as OWNER_VARIABLE
from nexmark_jobs.host.processes import Process as Process
from nexmark_jobs.host.processes import identify as identify


def open_cluster(config: AnyCluster, home: Path) -> SparkCluster:
    """Returns the cluster of `config`; its state on this machine is below `home`."""
    if isinstance(config, EmbeddedCluster):
        return LocalCluster(config, home)
    from nexmark.cluster.remote import RemoteCluster  # Airflow's SSH provider: slow to import

    return RemoteCluster(config, home)
