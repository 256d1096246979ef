"""The graph of `nexmark_experiment`: every arm in its turn, each a task, and the table.

steps >> measure (mapped: a fresh application for each arm of each pair) >> table
"""

from __future__ import annotations

from airflow.sdk import DAG

from nexmark.airflow_site.airflow_home import POOL
from nexmark.config import EXPERIMENT_DAG_ID, Config, Experiment
from nexmark.dag.dag_params import experiment_params
from nexmark.dag.documentation import experiment_doc
from nexmark.dag.graph import dag_of, task_of
from nexmark.tasks import experiment_steps


def build_experiment_dag(config: Config, experiments: dict[str, Experiment]) -> DAG:
    """The DAG that measures one of `experiments`."""
    with dag_of(
        EXPERIMENT_DAG_ID,
        "Nexmark: an experiment",
        "Measure the arms of an experiment in turns, compare their results and their CPU time",
        experiment_doc(),
        "experiment",
        params=experiment_params(config, experiments),
    ) as dag:
        steps = task_of("steps", 10, pool=POOL, retries=1)(experiment_steps.steps)()
        measured = task_of(
            "measure",
            60,
            pool=POOL,
            retries=1,
            max_active_tis_per_dagrun=1,
            map_index_template="{{ application }}",
        )(experiment_steps.measure).expand_kwargs(steps)
        table = task_of("table", 60, pool=POOL, trigger_rule="all_done")(experiment_steps.table)()
        steps >> measured >> table
    return dag
