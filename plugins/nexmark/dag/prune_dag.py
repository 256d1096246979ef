"""The DAG that deletes what is old: a DAG of its own, and no task of a night.

A task of the night would run once per engine, while the night of the next engine measures; a prune
that fails would make a green night red, and a night that is skipped would delete nothing. As a DAG
it runs once a day, at a time without a night. If a night runs nevertheless, its one task waits for
the one slot of the pool, as every task that touches the cluster does: no repetition runs while
files are deleted, and the next one begins when they are gone. What that night needs stays.
"""

from airflow.sdk import DAG
from airflow.sdk.definitions.param import Param

from nexmark.config import PRUNE_DAG_ID, Config
from nexmark.config.airflow_names import POOL
from nexmark.dag.dag_params import field
from nexmark.dag.graph import dag_of, task_of
from nexmark.dag.notifying import notifiers, notify
from nexmark.tasks.prune_step import prune

_MINUTES = 60


def build_prune_dag(config: Config) -> DAG:
    """Build the DAG that deletes what `retention.yaml` does not keep."""
    with dag_of(
        PRUNE_DAG_ID,
        "Nexmark: delete what is old",
        "Delete runs, event logs, raw rows and builds that nobody needs any more",
        "prune",
        params=_params(),
        schedule=config.retention.schedule,
    ) as dag:
        task_of("prune", _MINUTES, pool=POOL, retries=1)(prune)()
    notify(dag, notifiers())
    return dag


def _params() -> dict[str, Param]:
    text = "Print what would go, and delete nothing."
    return {"dry_run": field("Dry run", text, default=False, type="boolean")}
