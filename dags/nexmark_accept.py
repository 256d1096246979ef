"""Build the Airflow DAG by which a person makes a run the baseline."""

from nexmark.dag.graph import build_accept_dag

dag = build_accept_dag()
