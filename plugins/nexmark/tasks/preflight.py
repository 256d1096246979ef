"""Everything that can be known to fail is found before anything costs time."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow.sdk import BaseHook, exceptions, get_current_context

from nexmark.acceptance.accepted_baselines import with_baselines
from nexmark.config import Cluster, SshCluster, load
from nexmark.config.airflow_names import connection_variable
from nexmark.engines import MissingBuild
from nexmark.errors import NexmarkError
from nexmark.home import make_home
from nexmark.model import Mode, grouped
from nexmark.night.machine_problems import find_problems, java_of, python_of, remarks
from nexmark.night.make_night import make_night, with_snapshot
from nexmark.night.night_budget import budget_line, deadline_of, few_pairs_line
from nexmark.night.night_kafka import kafka_problem
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import say
from nexmark.night.shared_cluster import answers_line
from nexmark.people import process_user
from nexmark.recording.night_records import results
from nexmark.secrets import load_key, shown_confs
from nexmark.tasks import DAG_TEST_USER, failing, given_params
from nexmark.tasks.executors import executor_problem
from nexmark.tasks.run_state import no_night

if TYPE_CHECKING:
    from airflow.sdk.types import DagRunProtocol


def preflight(engine: str = "") -> None:
    """Decide what the night does and check that it can; writes the Night.

    `engine` is the engine of the DAG; if empty, the DAG run has a param for it.
    Fails without a retry, with one line for each problem. A missing build of the date is not a
    problem: the whole night is skipped.
    """
    params = given_params(get_current_context())
    prepare_night(engine or params["engine"], params)


def prepare_night(engine: str, params: Mapping[str, object]) -> None:
    """Do what `preflight` does, for an engine and the params of a nightly DAG from any source."""
    run = get_current_context()["dag_run"]
    make_home()
    try:
        results().close()  # StoreError for a database that cannot be opened
        config = load()
        night = make_night(config, engine, run.dag_id, run.run_id, params)
        night = with_snapshot(night, params, run.logical_date)
        night = with_baselines(night)
        deadline = deadline_of(night.gate, datetime.now(UTC))
        night = night.model_copy(update={"deadline": deadline, "started_by": starter_of(run)})
        clusters = [night.cluster.of_arm(arm) for arm in night.arms]
        problems = [*filter(None, map(connection_problem, clusters)), *find_problems(night)]
        if run.triggering_user_name != DAG_TEST_USER:  # `DAG.test()` runs all tasks itself
            problems += filter(None, [executor_problem()])
        if isinstance(night.cluster, SshCluster):
            problems += night.spark_cluster.problems(say, java_of(night), python_of(night))
            problems += filter(None, [kafka_problem(night)])
    except MissingBuild as error:
        say(f"{error}; the night is skipped")
        raise no_night(str(error)) from None
    except NexmarkError as error:
        problems = [str(error)]
    if problems:
        raise exceptions.AirflowFailException(" | ".join(problems))
    load_key()  # jobs read it, too
    with failing(NexmarkError, exceptions.AirflowFailException):
        night.write()
    for line in (*_described(night), *remarks(night, config)):
        say(line)
    if line := answers_line(night, config, datetime.now(UTC)):
        say(line)


def _described(night: Night) -> Iterator[str]:
    """Yield what a night is going to measure, line by line."""
    place = f"{night.engine.name} on cluster {night.cluster.name}: workload {night.workload.name}"
    runs = f"{len(night.queries)} queries, {night.workload.repetitions} timed repetitions each"
    yield f"{place}, {runs}, build {night.candidate}"
    trial = "a trial, which cannot be accepted as a baseline"
    if night.candidate_conf:
        yield f"the candidate alone has {shown_confs(night.candidate_conf)}: {trial}"
    if night.candidate_jobs:
        names = ", ".join(night.candidate_jobs)
        yield f"the candidate alone runs {names} of {night.candidate_job}: {trial}"
    if not night.teaches:
        yield "a person chose what is compared: the gate learns nothing from this night"
    if night.mode == Mode.PAIRED and (line := budget_line(night, datetime.now(UTC))):
        yield line
    if line := few_pairs_line(night):
        yield line
    for source, queries in _compared(night).items():
        yield f"compared in pairs with {source}: {', '.join(queries)}"


def starter_of(run: "DagRunProtocol") -> str:
    """Return the user who started a DAG run; the kind of the run (`scheduled`) if no user did.

    Without a scheduler (`airflow dags test`) there is no Airflow user: then it is the user of the
    process.
    """
    if run.triggering_user_name == DAG_TEST_USER:
        return process_user()
    return run.triggering_user_name or run.run_type.value


def _compared(night: Night) -> dict[str, list[str]]:
    compared = [
        query for query in night.queries if query in night.against or night.mode == Mode.PAIRED
    ]
    nothing = "nothing, for there is no accepted build"
    return grouped(compared, lambda query: str(night.against.get(query, nothing)))


def connection_problem(cluster: Cluster) -> str:
    """Return the problem of SparkSubmit's Airflow connection, or ''.

    Without the connection the provider would submit to YARN, without a word.
    """
    name = cluster.spark_connection
    variable, value = connection_variable(cluster)
    remedy = f"set {variable}='{value}'"
    try:
        connection = BaseHook.get_connection(name)
    except exceptions.AirflowNotFoundException:
        return f"connection {name}: there is none; {remedy}"
    address = f"{connection.host or ''}:{connection.port or ''}"
    if connection.conn_type != "spark" or address != cluster.master_url:
        planned = f"the master of cluster {cluster.name} will be at {cluster.master_url}"
        return f"connection {name}: is {connection.conn_type} {address}, but {planned}; {remedy}"
    mode = connection.extra_dejson.get("deploy-mode", "client")
    if mode != "client":
        return f"connection {name}: deploy-mode is {mode}, the driver must run here; {remedy}"
    if "keytab" in connection.extra_dejson:
        problem = "has a keytab, which the provider would write into /tmp for all to read"
        return f"connection {name}: {problem}; Spark's own cluster needs none; {remedy}"
    return ""
