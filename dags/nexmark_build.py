"""The Airflow DAG that tests any Spark build, when a person asks for it."""

from nexmark.config import load
from nexmark.dag.graph import build_on_demand_dag

dag = build_on_demand_dag(load())
