"""Build the Airflow DAG that measures any Spark build when a person triggers it."""

from airflow.sdk import get_parsing_context

from nexmark.config import BUILD_DAG_ID, load
from nexmark.dag.graph import build_on_demand_dag

if get_parsing_context().dag_id in (None, BUILD_DAG_ID):  # a task needs only its own DAG
    dag = build_on_demand_dag(load())
