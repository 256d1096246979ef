"""Build the Airflow DAG that measures an experiment."""

from nexmark.config import load, load_experiments
from nexmark.dag.graph import build_experiment_dag

dag = build_experiment_dag(load(), load_experiments())
