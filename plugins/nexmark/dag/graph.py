"""The graphs of the DAGs: wiring of the task functions, nothing else.

    prepare:       preflight >> reap >> deploy >> start_cluster >> dump_events >> select >> verify
    queries:       >> q14 >> q3 >> ...
    confirmation:  >> round_2 >> ... >> flames
    verdict:       >> compatibility >> judge >> report >> verdict
    end:           >> stop_cluster >> run_state

    q:  plan >> verify >> expectations >> start_samplers >> repetition (mapped) >> stop_samplers
        >> record
    round_2, ...:  plan >> start_samplers >> repetition (mapped) >> stop_samplers >> record
    flames:  the same, with a flight recorder, >> draw
    nexmark_rollout:  the night of a stage, with >> stage >> next_stage for the verdict
    nexmark_experiment:  steps >> measure (mapped: a fresh application each) >> table

`reap`, `start_cluster` and `dump_events` are setups of the teardown `stop_cluster`: if one fails,
nothing between them runs (whatever its trigger rule). `reap` claims the cluster; once it has,
`stop_cluster` runs in any case, because Airflow skips a teardown only if none of its setups
succeeded. A start that fails may leave a broker, topics, and the claim. `select` skips the queries
that are not asked for, all at once but for `record`, which keeps the order of the others. Where
`preflight` finds no build of the date, it is skipped, and with the setups all that is between them
and their teardown: a green night in which nothing ran. A query that fails does not keep the next
one from running: `plan` and `record` run when all before them is done. `record` never takes a
failure for an absence: it looks for every repetition that was planned.

`run_state` gives the DAG run its state. It fails unless `verdict` has succeeded (`decision` in a
sign-off, `stage` in a rollout). It is a teardown without a setup, so Airflow runs it also where
somebody marks a running DAG run as failed, which skips all tasks but the teardowns.

Every task that touches the cluster, or looks at its hosts, is in the pool: where nights of several
DAGs wait for one cluster, none disturbs a repetition of another.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from airflow.sdk import (
    DAG,
    BaseOperator,
    CronTriggerTimetable,
    Param,
    TaskGroup,
    XComArg,
    task,
)
from airflow.sdk.definitions.mappedoperator import OperatorPartial
from airflow.sdk.definitions.param import ParamsDict

from nexmark.config import Config, Engine, Experiment, Gate
from nexmark.config.airflow_names import POOL
from nexmark.config.models import ACCEPT_DAG_ID, BUILD_DAG_ID, EXPERIMENT_DAG_ID, ROLLOUT_DAG_ID
from nexmark.dag import dag_params
from nexmark.dag.notifying import notifiers, notify
from nexmark.dag.submit_operator import NexmarkSubmitOperator
from nexmark.model import FLAMES, round_group
from nexmark.night.night_progress import tell_failure, tell_retry
from nexmark.night.night_runs import run_order
from nexmark.tasks import experiment_steps, judging, query, rollout_steps, upgrading
from nexmark.tasks import infrastructure as clusters
from nexmark.tasks.preflight import preflight
from nexmark.tasks.query import record
from nexmark.tasks.rounds import draw_flames, plan_recordings, plan_round, record_later
from nexmark.tasks.run_state import run_state

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.bases.decorator import FParams, FReturn, Task

    #: What `>>` joins.
    Step = XComArg | BaseOperator

#: How often and how long a night waits for the cluster that another night uses.
WAIT_RETRIES, WAIT_DELAY = 72, timedelta(minutes=10)
#: How long after a date of its schedule a DAG that never ran may still begin with it.
_FIRST_RUN_LATENESS = timedelta(minutes=10)
#: The trigger rule of a task that runs when all tasks before it have ended, failed ones, too.
ALL_DONE = "all_done"


class TaskOptions(TypedDict, total=False):
    """Options of a task that differ from `DEFAULTS`, under Airflow's own names."""

    pool: str
    retries: int
    retry_delay: timedelta
    trigger_rule: str
    max_active_tis_per_dagrun: int
    map_index_template: str
    on_failure_callback: "Sequence[Callable[[Context], None]]"


class DagOptions(TypedDict, total=False):
    """Options of a DAG that differ from the others, under Airflow's own names."""

    schedule: str | None
    max_active_runs: int
    params: Mapping[str, Param]


DEFAULTS: dict[str, object] = {
    "retries": 0,
    "retry_delay": timedelta(seconds=10),
    "on_failure_callback": tell_failure,
    "on_retry_callback": tell_retry,
}
#: The name of an instance of a mapped task, which Airflow's pages show when it has ended.
_INSTANCE_NAME = "{{ application }}"


def build_nightly_dag(engine: Engine, config: Config) -> DAG:
    """Build the nightly DAG of an engine."""
    build = f"the Spark build `{engine.build}`"
    if engine.snapshots is not None:
        build = "the Spark build of its date (a date without one is skipped, and green)"
    with dag_of(
        engine.dag_id,
        f"Nexmark on {engine.name}",
        f"Nexmark queries on {engine.name}: right, measured, compared",
        "nightly",
        engine.name,
        values={"name": engine.name, "build": build},
        schedule=engine.schedule,
    ) as dag:
        _wire(engine.name, config.gate)
    notify(dag, notifiers())
    # The params come last: each task copies the params that its DAG has when the task is made,
    # which would take two thirds of the time to parse.
    dag.params = ParamsDict(dag_params.nightly_params(engine, config))
    return dag


def build_on_demand_dag(config: Config) -> DAG:
    """Build the DAG that tests any Spark build, on the engine that its params name."""
    with dag_of(
        BUILD_DAG_ID,
        "Nexmark: a Spark build on demand",
        "Nexmark queries on any Spark build: right, measured, compared with another",
        "build",
    ) as dag:
        _wire("", config.gate.for_comparison())
    notify(dag, notifiers())
    dag.params = ParamsDict(dag_params.on_demand_params(config))
    return dag


def build_accept_dag() -> DAG:
    """Build the DAG that makes a run the baseline of its engine and workload."""
    with dag_of(
        ACCEPT_DAG_ID,
        "Nexmark: accept a run as the baseline",
        "Make a night the baseline that later nights are compared with",
        "acceptance",
        params=dag_params.accept_params(),
    ) as dag:
        task_of("accept", 5)(judging.accept)()
    return dag


def dag_of(
    dag_id: str,
    name: str,
    description: str,
    document: str,
    *tags: str,
    values: Mapping[str, str] | None = None,
    **options: Unpack[DagOptions],
) -> DAG:
    """Make a DAG of this package: one run at a time, on demand unless `options` say otherwise.

    Its `doc_md` refers to documents by their path in the repository (and in the wheel,
    `nexmark/site/docs`), since Airflow may run without a network.

    Args:
        dag_id: The id of the DAG.
        name: Its name in the UI.
        description: What it does, in one line.
        document: The file in `texts`, without `.md`, that is its `doc_md`; also a tag.
        *tags: More tags, beside `nexmark` and the document.
        values: By name, what replaces `{name}` in the document.
        **options: Options of Airflow's DAG.
    """
    texts = Path(__file__).with_name("texts")
    parts = ("when_red", "graph")
    shared = {name: (texts / f"{name}.md").read_text(encoding="utf-8").strip() for name in parts}
    text = (texts / f"{document}.md").read_text(encoding="utf-8")
    for key, value in {**(values or {}), **shared}.items():
        text = text.replace(f"{{{key}}}", value)
    return DAG(
        dag_id,
        dag_display_name=name,
        description=description,
        doc_md=text,
        catchup=False,
        tags={"nexmark", document, *tags},
        default_args=DEFAULTS,
        fail_fast=False,
        schedule=_timetable(options.get("schedule")),
        max_active_runs=options.get("max_active_runs", 1),
        params=options.get("params"),
    )


def _timetable(schedule: str | None) -> CronTriggerTimetable | None:
    """Return the timetable of a cron expression in UTC; None for a DAG that runs on demand only.

    With a start date, Airflow begins a run of the last date as soon as a DAG is unpaused for the
    first time: a whole night that nobody has asked for. Without one it waits for the next date.
    """
    if schedule is None:
        return None
    return CronTriggerTimetable(schedule, timezone="UTC", run_immediately=_FIRST_RUN_LATENESS)


def _wire(engine: str, gate: Gate) -> None:
    check = partial(task_of("preflight", 10, pool=POOL)(preflight), engine)
    night = wire_night(check, gate)
    with night.judgement:
        decide = task_of("verdict", 5)(judging.verdict)()
        night.report >> decide >> night.stop
    night.give_state(decide)


@dataclass(frozen=True)
class NightGraph:
    """The end of the graph of a night, to which a DAG adds what decides.

    Attributes:
        report: The task `report`.
        stop: The teardown `stop_cluster`.
        judgement: The group of the tasks that judge and report; what decides belongs to it.
        end: The group of the last tasks.
    """

    report: XComArg
    stop: XComArg
    judgement: TaskGroup
    end: TaskGroup

    def give_state(self, deciding: XComArg) -> None:
        """Let the task `deciding` give the DAG run its state, in whatever way the night ends.

        Where it is red, `run_state` is silent: the task that failed before has told why.
        """
        with self.end:
            state = task_of("run_state", 5, retries=1, on_failure_callback=[])(run_state)
            last = state(_operator(deciding).task_id)
            [deciding, self.stop] >> last
            last.as_teardown(on_failure_fail_dagrun=True)


def wire_night(check: Callable[[], XComArg], gate: Gate) -> NightGraph:
    """Wire all tasks of a night up to `report` and `stop_cluster`.

    `check` makes the preflight. The queries run in the order of the `gate`, then its later rounds.
    The caller adds what decides, after `report`, and calls `give_state` with it.
    """
    with _part("prepare", "Check everything, and start the cluster"):
        checked = check()
        reap = task_of("reap", 10, pool=POOL, retries=WAIT_RETRIES, retry_delay=WAIT_DELAY)(
            clusters.reap
        )()
        deploy = task_of("deploy", 60, pool=POOL, retries=2)(clusters.deploy)()
        start = task_of("start_cluster", 120, pool=POOL, retries=1)(clusters.start_cluster)()
        dump = _submit("dump_events", 60, start)
        select = task_of("select", 5, retries=1)(query.select)()
        verify = _submit("verify", 120, XComArg(_operator(select), key=query.VERIFY_KEY))
        checked >> reap >> deploy >> start >> dump >> select >> verify
    last: Step = verify
    with _part("queries", "Each query in turn: is it right, and what does it cost"):
        for place, name in enumerate(run_order(gate), 1):
            last = _query(name, place, last)
    with _part("confirmation", "What is not decided is measured on"):
        last = _rounds(last, len(gate.rounds))
    with _part("judgement", "What the night has shown", label="verdict") as judgement:
        survive = task_of("compatibility", 120, pool=POOL, trigger_rule=ALL_DONE)(
            upgrading.compatibility
        )()
        judge = task_of("judge", 15, retries=1, trigger_rule=ALL_DONE)(judging.judge)()
        report = task_of("report", 15, retries=1)(judging.report)()
        last >> survive >> judge >> report
    with _part("end", "Stop the cluster, and give the run its state") as end:
        stop = task_of("stop_cluster", 10, pool=POOL, retries=1)(clusters.stop_cluster)()
        stop.as_teardown(setups=[_operator(reap), _operator(start), dump])
    return NightGraph(report, stop, judgement, end)


def _part(name: str, tooltip: str, label: str = "") -> TaskGroup:
    """Return a part of the graph, one box until a person opens it; it is in no id of its tasks.

    No group may have the id of a task, so the box `verdict` has its name by its `label`.
    """
    return TaskGroup(name, group_display_name=label, prefix_group_id=False, tooltip=tooltip)


def _query(name: str, place: int, before: "Step") -> XComArg:
    """Wire the tasks of the query that is measured at `place`; return the last of them."""
    label, tooltip = f"{place}. {name}", f"{name}, number {place} in the order of the night"
    with TaskGroup(name, group_display_name=label, tooltip=tooltip):
        plan = task_of("plan", 5, pool=POOL, trigger_rule=ALL_DONE, retries=1)(query.plan)(name)
        verify = _submit("verify", 60, XComArg(_operator(plan), key=query.VERIFY_KEY))
        expectations = task_of("expectations", 60, pool=POOL)(query.expectations)(name)
        start, stop = _samplers(name)
        repetitions = _submit_each("repetition", 120).expand_kwargs(plan)
        last = task_of("record", 15, trigger_rule=ALL_DONE, retries=2)(record)(name)
        before >> plan >> verify >> expectations >> start >> repetitions >> stop >> last
        [before, repetitions] >> last
    return last


def _rounds(before: "Step", rounds: int) -> XComArg:
    """Wire the later rounds and the flame graphs after `before`; return the last of the tasks."""
    last = before
    for number in range(2, rounds + 1):
        with TaskGroup(
            round_group(number), tooltip="What is undecided or suspected is measured on"
        ):
            plan = task_of("plan", 15, pool=POOL, retries=1, trigger_rule=ALL_DONE)(plan_round)
            last = _measure_planned(round_group(number), last, plan(number))
    with TaskGroup(FLAMES, tooltip="What has changed runs with a flight recorder"):
        recordings = task_of("plan", 15, pool=POOL, retries=1, trigger_rule=ALL_DONE)(
            plan_recordings
        )
        recorded = _measure_planned(FLAMES, last, recordings())
        drawn = task_of("draw", 30, trigger_rule=ALL_DONE)(draw_flames)()
        recorded >> drawn
    return drawn


def _measure_planned(group: str, before: "Step", plan: XComArg) -> XComArg:
    """Wire the tasks that run what `plan` returns after `before`; return the last of them."""
    start, stop = _samplers(group)
    repetitions = _submit_each("repetition", 120).expand_kwargs(plan)
    last = task_of("record", 15, retries=2, trigger_rule=ALL_DONE)(record_later)(group)
    before >> plan >> start >> repetitions >> stop >> last
    repetitions >> last
    return last


def _samplers(group: str) -> tuple[XComArg, XComArg]:
    """Return the tasks that start and stop the samplers of a query or of a later round."""
    start = task_of("start_samplers", 5, pool=POOL, retries=1)(query.start_samplers)(group)
    stop = task_of("stop_samplers", 5, pool=POOL, retries=1)(query.stop_samplers)(group)
    stop.as_teardown(setups=_operator(start))
    return start, stop


def _operator(step: XComArg) -> BaseOperator:
    """Return the operator that makes an XCom; it is not mapped."""
    (operator,) = step.leaves
    assert isinstance(operator, BaseOperator)
    return operator


def task_of(
    task_id: str, minutes: int, **options: Unpack[TaskOptions]
) -> "Callable[[Callable[FParams, FReturn]], Task[FParams, FReturn]]":
    """Return the decorator of a task that may take at most `minutes` minutes."""
    return task(task_id=task_id, execution_timeout=timedelta(minutes=minutes), **options)


def _submit(task_id: str, minutes: int, submission: XComArg) -> NexmarkSubmitOperator:
    """Return a task that submits one application, for at most `minutes` minutes."""
    return NexmarkSubmitOperator(
        task_id=task_id,
        submission=submission,
        execution_timeout=timedelta(minutes=minutes),
        pool=POOL,
        retries=1,
        durable=False,
    )


def _submit_each(task_id: str, minutes: int) -> OperatorPartial:
    """Return a task to be mapped: each instance submits an application, one at a time."""
    return NexmarkSubmitOperator.partial(
        task_id=task_id,
        execution_timeout=timedelta(minutes=minutes),
        pool=POOL,
        retries=1,
        durable=False,
        max_active_tis_per_dagrun=1,
        map_index_template=_INSTANCE_NAME,
    )


def build_rollout_dag(config: Config) -> DAG:
    """Build the DAG of a rollout: a run is the night of a stage; a green one triggers the next."""
    # Its modules would add a quarter to the time that every other DAG file takes to parse.
    from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator

    with dag_of(
        ROLLOUT_DAG_ID,
        "Nexmark: roll a conf or a build out",
        "Give a conf or a build to queries stage by stage, up to the first red one",
        "rollout",
    ) as dag:
        check = task_of("preflight", 10, pool=POOL)(rollout_steps.rollout_preflight)
        night = wire_night(check, config.gate.for_comparison())
        with night.judgement:
            stage = task_of("stage", 15)(rollout_steps.judge_stage)()
            following = TriggerDagRunOperator.partial(
                task_id="next_stage",
                trigger_dag_id=ROLLOUT_DAG_ID,
                execution_timeout=timedelta(minutes=5),
            )
            night.report >> night.stop
            night.report >> stage >> following.expand(conf=stage)
        night.give_state(stage)
    notify(dag, notifiers())
    dag.params = ParamsDict(dag_params.rollout_params(config))
    return dag


def build_experiment_dag(config: Config, experiments: dict[str, Experiment]) -> DAG:
    """Build the DAG that measures one of the experiments, which its param `name` names."""
    with dag_of(
        EXPERIMENT_DAG_ID,
        "Nexmark: an experiment",
        "Measure the arms of an experiment in turns, compare their results and their CPU time",
        "experiment",
        params=dag_params.experiment_params(config, experiments),
    ) as dag:
        steps = task_of("steps", 10, pool=POOL, retries=1)(experiment_steps.steps)()
        measure = task_of(
            "measure",
            60,
            pool=POOL,
            retries=1,
            max_active_tis_per_dagrun=1,
            map_index_template=_INSTANCE_NAME,
        )(experiment_steps.measure)
        measured = measure.expand_kwargs(steps)
        table = task_of("table", 60, pool=POOL, trigger_rule=ALL_DONE)(experiment_steps.table)()
        steps >> measured >> table
    return dag
