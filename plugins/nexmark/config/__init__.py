"""`include/conf` as typed, frozen objects. Imports PyYAML, pydantic and the standard library only:
every parse of a DAG file comes through here."""

from __future__ import annotations

from nexmark.config.clusters import (
    BASELINE,
    CANDIDATE,
    LOOPBACK,
    AnyCluster,
    Cluster,
    EmbeddedCluster,
    Machine,
    SshCluster,
)
from nexmark.config.errors import ConfigError, suggest
from nexmark.config.load import load, profile_path
from nexmark.config.models import (
    ACCEPT_DAG_ID,
    BUILD_DAG_ID,
    SIGNOFF_DAG_ID,
    BuildSource,
    Config,
    Engine,
    Gate,
    Mode,
    Size,
    Snapshots,
    SparkConf,
    Workload,
)
from nexmark.config.queries import KNOWN_QUERIES, STANDARD_QUERIES

__all__ = [
    "ACCEPT_DAG_ID",
    "BASELINE",
    "BUILD_DAG_ID",
    "CANDIDATE",
    "KNOWN_QUERIES",
    "LOOPBACK",
    "SIGNOFF_DAG_ID",
    "STANDARD_QUERIES",
    "AnyCluster",
    "BuildSource",
    "Cluster",
    "Config",
    "ConfigError",
    "EmbeddedCluster",
    "Engine",
    "Gate",
    "Machine",
    "Mode",
    "Size",
    "Snapshots",
    "SparkConf",
    "SshCluster",
    "Workload",
    "load",
    "profile_path",
    "suggest",
]
