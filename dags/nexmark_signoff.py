"""Build the Airflow DAG by which a person signs a release off."""

from nexmark.config import load
from nexmark.dag.signoff import build_signoff_dag

dag = build_signoff_dag(load())
