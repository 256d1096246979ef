"""Build an Airflow DAG for each engine of include/conf/engines.yaml."""

from airflow.sdk import get_parsing_context

from nexmark.config import load
from nexmark.dag.graph import build_nightly_dag

_config = load()
_wanted = get_parsing_context().dag_id  # a task needs only its own DAG

for _engine in _config.engines.values():
    if _wanted in (None, _engine.dag_id):
        globals()[_engine.dag_id] = build_nightly_dag(_engine, _config)
