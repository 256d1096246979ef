"""The graph of the sign-off: that of a night, and a person at its end."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, Param
from airflow.sdk.definitions.param import ParamsDict

from nexmark.config import SIGNOFF_DAG_ID, Config
from nexmark.tasks import signoff
from nexmark.tasks.approval import SignOffOperator
from nexmark.tasks.documentation import signoff_doc
from nexmark.tasks.nightly import DEFAULTS, START_DATE, task_of, wire_night
from nexmark.tasks.notifications import careful, notifiers, notify
from nexmark.tasks.runs import run_order

_DAYS = 7
_SCALE = 5
#: A sign-off that waits for a person does not keep another one from being run.
_AT_ONCE = 10


def build_signoff_dag(config: Config) -> DAG:
    """The DAG by which a person signs a build off."""
    told = notifiers()
    with DAG(
        SIGNOFF_DAG_ID,
        dag_display_name="Nexmark: sign a release off",
        description="Measure a build against the last release, and let a person decide on it",
        doc_md=signoff_doc(),
        schedule=None,
        start_date=START_DATE,
        catchup=False,
        max_active_runs=_AT_ONCE,
        tags={"nexmark", "signoff"},
        default_args=DEFAULTS,
        fail_fast=False,
    ) as dag:
        report, stop = wire_night(
            task_of("preflight", 10)(signoff.signoff_preflight)(), run_order(config.gate)
        )
        question = task_of("question", 10, retries=1)(signoff.question)()
        approval = SignOffOperator(
            task_id="approval",
            subject="Sign off {{ params.build }} as {{ params.engine }}?",
            body="{{ ti.xcom_pull(task_ids='question') }}",
            notifiers=[careful(notifier) for notifier in told],
            execution_timeout=timedelta(minutes=5),
            response_timeout=timedelta(days=_DAYS),
        )
        evidence = task_of("evidence", 15, retries=1, trigger_rule="all_done")(signoff.evidence)()
        decision = task_of("decision", 5)(signoff.decision)()
        report >> stop
        report >> question >> approval >> evidence >> decision
    notify(dag, told)
    dag.params = ParamsDict(signoff_params(config))
    return dag


def signoff_params(config: Config) -> dict[str, Param]:
    """The params of `nexmark_signoff`; the build has no default, it must be given."""
    return {
        "engine": Param(
            next(iter(config.engines)),
            type="string",
            enum=list(config.engines),
            title="Engine",
            description="The version line, with its confs: include/conf/engines.yaml.",
        ),
        "build": Param(
            type="string",
            minLength=1,
            maxLength=4096,
            title="Build",
            description=(
                "What is to be signed off: pypi:4.3.0, tarball:PATH-OR-URL#sha512=HEX or "
                "directory:PATH."
            ),
        ),
        "against": Param(
            None,
            type=["null", "string"],
            maxLength=4096,
            title="Against",
            description=(
                "The build to compare with, the last release say; empty: the build that was "
                "accepted last for each query."
            ),
        ),
        "workload": Param(
            "nightly" if "nightly" in config.workloads else next(iter(config.workloads)),
            type="string",
            enum=list(config.workloads),
            title="Workload",
            description="What is run, with all its queries: include/conf/workloads.yaml.",
        ),
        "cluster": Param(
            next(iter(config.clusters)),
            type="string",
            enum=list(config.clusters),
            title="Cluster",
            description="Where Spark runs: include/conf/clusters.yaml.",
        ),
        "mode": Param(
            "paired",
            type="string",
            enum=["paired", "bounds"],
            title="Mode",
            description=(
                "paired: both builds are measured in this run; bounds: against the accepted run, "
                "to try things."
            ),
        ),
        "pairs": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            maximum=100,
            title="Pairs",
            description=(
                f"Pairs of each query; empty: {signoff.MORE_PAIRS} times those of a night."
            ),
        ),
        "verify_scale": Param(
            _SCALE,
            type="number",
            exclusiveMinimum=0,
            maximum=1000,
            title="Scale of the verification",
            description="Results are proven right on so many times the workload's verify events.",
        ),
        "timeout_days": Param(
            _DAYS,
            type="number",
            exclusiveMinimum=0,
            maximum=365,
            title="Days to decide",
            description="After them the run fails: nobody decided.",
        ),
    }


__all__ = ["build_signoff_dag", "signoff_params"]
