"""Build the Airflow DAG that gives a conf or a build to queries, stage by stage."""

from airflow.sdk import get_parsing_context

from nexmark.config import ROLLOUT_DAG_ID, load
from nexmark.dag.graph import build_rollout_dag

if get_parsing_context().dag_id in (None, ROLLOUT_DAG_ID):  # a task needs only its own DAG
    dag = build_rollout_dag(load())
