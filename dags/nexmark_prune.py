"""Build the Airflow DAG that deletes old runs and files every day."""

from nexmark.config import load
from nexmark.dag.prune_dag import build_prune_dag

dag = build_prune_dag(load())
