"""`include/conf` as typed, frozen objects. Imports PyYAML, pydantic and the standard library only:
every parse of a DAG file comes through here."""

from __future__ import annotations

from nexmark.config.clusters import (
    LOOPBACK,
    AnyCluster,
    Cluster,
    EmbeddedCluster,
    Machine,
    SshCluster,
)
from nexmark.config.errors import ConfigError, suggest
from nexmark.config.load import load, profile_path
from nexmark.config.models import BuildSource, Config, Engine, Gate, Size, Workload
from nexmark.config.queries import KNOWN_QUERIES, STANDARD_QUERIES

__all__ = [
    "KNOWN_QUERIES",
    "LOOPBACK",
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
    "Size",
    "SshCluster",
    "Workload",
    "load",
    "profile_path",
    "suggest",
]
