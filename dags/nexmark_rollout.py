"""Build the Airflow DAG that gives a conf or a build to queries, stage by stage."""

from nexmark.config import load
from nexmark.dag.graph import build_rollout_dag

dag = build_rollout_dag(load())
