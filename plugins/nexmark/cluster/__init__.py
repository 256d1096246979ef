"""Starting, finding and ending Spark on hosts."""

from __future__ import annotations

from nexmark.cluster.lease import Lease
from nexmark.cluster.local import ClusterError, LocalCluster
from nexmark.cluster.processes import OWNER_VARIABLE, Process, identify

__all__ = ["OWNER_VARIABLE", "ClusterError", "Lease", "LocalCluster", "Process", "identify"]
