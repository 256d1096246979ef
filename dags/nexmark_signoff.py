"""Build the Airflow DAG by which a person signs a release off."""

from airflow.sdk import get_parsing_context

from nexmark.config import SIGNOFF_DAG_ID, load
from nexmark.dag.signoff import build_signoff_dag

if get_parsing_context().dag_id in (None, SIGNOFF_DAG_ID):  # a task needs only its own DAG
    dag = build_signoff_dag(load())
