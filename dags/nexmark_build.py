"""Build the Airflow DAG that measures any Spark build when a person triggers it."""

from nexmark.config import load
from nexmark.dag.graph import build_on_demand_dag

dag = build_on_demand_dag(load())
