"""`include/conf` as typed, frozen objects. Imports PyYAML, pydantic, the standard library, and
croniter where there is a schedule: every parse of a DAG file comes through here."""

from nexmark.config.clusters import AnyCluster, Cluster, EmbeddedCluster, SshCluster
from nexmark.config.experiment_models import Experiment
from nexmark.config.fields import KNOWN_QUERIES, SparkConf, known_queries
from nexmark.config.gate_rules import Gate
from nexmark.config.load import load, load_experiments, load_repository, profile_path
from nexmark.config.models import (
    ACCEPT_DAG_ID,
    BUILD_DAG_ID,
    EXPERIMENT_DAG_ID,
    OTHER_DAGS,
    PRUNE_DAG_ID,
    ROLLOUT_DAG_ID,
    SIGNOFF_DAG_ID,
    BuildSource,
    Config,
    Engine,
    Repository,
    Snapshots,
    pick,
)
from nexmark.config.own_jobs import Job, load_jobs, own_job
from nexmark.config.retention_rules import Retention, load_retention
from nexmark.config.workload_models import Size, Span, Workload
from nexmark.errors import ConfigError, suggest

__all__ = [
    "ACCEPT_DAG_ID",
    "BUILD_DAG_ID",
    "EXPERIMENT_DAG_ID",
    "KNOWN_QUERIES",
    "OTHER_DAGS",
    "PRUNE_DAG_ID",
    "ROLLOUT_DAG_ID",
    "SIGNOFF_DAG_ID",
    "AnyCluster",
    "BuildSource",
    "Cluster",
    "Config",
    "ConfigError",
    "EmbeddedCluster",
    "Engine",
    "Experiment",
    "Gate",
    "Job",
    "Repository",
    "Retention",
    "Size",
    "Snapshots",
    "Span",
    "SparkConf",
    "SshCluster",
    "Workload",
    "known_queries",
    "load",
    "load_experiments",
    "load_jobs",
    "load_repository",
    "load_retention",
    "own_job",
    "pick",
    "profile_path",
    "suggest",
]
