"""One night from the command line, for `nexmark run` and all that measures by nights.

Runs an engine's DAG through `airflow dags test` with a private Airflow (below
`.nexmark/airflow`), shows its progress, and returns the exit code of the night. Whatever ends it,
no process of the night is left: after kill -9 its reaper ends them (`nexmark.reaper`).
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

from nexmark.airflow_site.airflow_home import airflow_command, airflow_environment, prepare, ui_mark
from nexmark.cluster import ClusterError, Lease, Process, SparkCluster, identify
from nexmark.config import Config, SshCluster, paths
from nexmark.dag.notifying import notifiers
from nexmark.engines import MissingBuild
from nexmark.errors import NexmarkError
from nexmark.home import full_disk, make_home
from nexmark.interrupts import signalled_with_parent, undisturbed
from nexmark.night.machine_problems import find_problems
from nexmark.night.make_night import make_night, with_snapshot
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import PROGRESS_VARIABLE
from nexmark.reaper import reaper_of_command, wait_for_reapers
from nexmark.terminal import COULD_NOT_RUN, FOUND_RED, INTERRUPTED, Terminal, show_line
from nexmark_jobs.cause import failure_cause
from nexmark_jobs.host.processes import end, owned

_POLL_S = 0.2
_NEWEST = 20  # nights among which a command looks for its own


def run_night(
    config: Config, dag_id: str, engine: str, params: Mapping[str, Any], day: date | None = None
) -> int:
    """Run a night and show its progress.

    Args:
        config: The configuration.
        dag_id: The DAG of the night.
        engine: The name of the engine that the DAG runs.
        params: The params of the DAG run.
        day: The date of the night (UTC); today by default.

    Returns:
        0 if the night is green, 1 if it is red, 2 if it measured nothing or did not end as it
        should, 130 if it was interrupted. 0 as well where the engine has no build of the date.

    Raises:
        NexmarkError: The night cannot be begun.
    """
    moment = _moment(day)
    night = make_night(config, engine, dag_id, "", params)
    try:
        night = with_snapshot(night, params, moment)
    except MissingBuild as error:
        show_line(f"{error}; there is nothing to run")
        return 0
    wait_for_reapers(show_line)
    problems = list(find_problems(night))
    cluster, lease = night.spark_cluster.config.name, night.spark_cluster.holder()
    if lease and lease.holder and lease.holder.alive:
        problems.append(f"cluster {cluster}: in use by {lease}; wait until it has ended, or end it")
    if owned(ui_mark()):  # its scheduler would run the tasks of this night a second time
        remedy = "trigger the DAG there, or end it and run this again"
        problems.append(f"`nexmark ui` is running; {remedy}")
    if problems:
        raise NexmarkError(problems[0])
    environment = airflow_environment(config)
    os.environ.update(environment)  # the connections to hosts that are to be cleaned are in it
    notifiers()  # ConfigError where one of notifications.yaml cannot be made
    make_home()
    mine, prompt = Lease(dag_id, "", identify(os.getpid())), night.spark_cluster.at_the_prompt
    prompt.claim(mine, lambda _: False)  # NexmarkError where another command has it
    try:
        with reaper_of_command(environment):
            show_line("preparing Airflow")
            prepare(environment)
            return _run(night, environment, params, moment)
    finally:
        prompt.release()


def _moment(day: date | None) -> datetime:
    """Return a moment of `day` (UTC), a new one at each call.

    Airflow has at most one run of a DAG at each moment.
    """
    now = datetime.now(UTC)
    moment = datetime.combine(day, now.timetz()) if day else now
    if moment > now:
        raise NexmarkError(f"date: {day} is in the future (UTC); give today or an earlier date")
    return moment


def _run(
    night: Night, environment: dict[str, str], conf: Mapping[str, Any], moment: datetime
) -> int:
    """Run a night as a child process, show its progress, and end all that it started.

    Args:
        night: The night.
        environment: The environment variables of the private Airflow.
        conf: The params of the DAG run.
        moment: The logical date of the DAG run.

    Returns:
        The exit code, as `run_night`.
    """
    begun = datetime.now(UTC)
    log = paths.home() / "logs" / f"run-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    arguments = ["dags", "test", night.dag_id, moment.isoformat(), "-c", json.dumps(conf)]
    terminal = Terminal(sys.stdout)
    with tempfile.NamedTemporaryFile("r", prefix="nexmark-", encoding="utf-8") as progress:
        environment = {**environment, PROGRESS_VARIABLE: progress.name}
        with log.open("wb") as output:
            child = subprocess.Popen(
                airflow_command(arguments),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=signalled_with_parent(signal.SIGKILL),  # the reaper ends the rest
            )
            process = identify(child.pid)
            try:
                while child.poll() is None:
                    terminal.show_all(progress)
                    time.sleep(_POLL_S)
            except KeyboardInterrupt:
                terminal.clear()
                show_line("interrupted: ending the night")
                return INTERRUPTED
            finally:
                with undisturbed():
                    _end(child, process, night)
        terminal.show_all(progress)
        terminal.clear()
    if child.returncode != 0:
        text = log.read_text(errors="replace")
        if "[DAG TEST]" not in text:  # Airflow ended before the night's own message
            print(failure_cause(text, child.returncode), file=sys.stderr)
        if problem := full_disk(paths.home()):
            print(problem, file=sys.stderr)
    show_line(f"log of the night: {log}")
    return 0 if child.returncode == 0 else exit_code(night, begun)


def exit_code(night: Night, begun: datetime) -> int:
    """Return the exit code of a night that failed: whether it is red, or could not be run.

    `night` has no name yet, Airflow gave it one: it is the recorded night of this DAG that its
    cluster has had since `begun`.
    """
    from nexmark.store import open_store

    try:
        with open_store(paths.database_url(), create=False) as store:
            for row in store.nights(_NEWEST):
                here = (row.dag_id, row.cluster) == (night.dag_id, night.cluster.name)
                if here and row.started >= begun and store.found_red(row.id):
                    return FOUND_RED
    except NexmarkError as error:
        show_line(f"not known whether the night is red: {error}")
    return COULD_NOT_RUN


def newest_run(dag_id: str, begun: datetime) -> str:
    """Return the name of the newest run of a DAG that was recorded since `begun`; "" for none."""
    from nexmark.store import open_store

    try:
        with open_store(paths.database_url(), create=False) as store:
            rows = store.nights(_NEWEST)
    except NexmarkError:  # the run has not come so far that there is one
        return ""
    return next((row.id for row in rows if row.dag_id == dag_id and row.started >= begun), "")


def _end(child: subprocess.Popen[bytes], process: Process | None, night: Night) -> None:
    """End the process of a night if it still runs, and the clusters that the night left.

    The process is killed at once: on SIGTERM Airflow would end the task and start the next one.
    """
    if process and child.poll() is None:
        end([process], grace_s=0)
        child.poll()
    for cluster in night.clusters.values():
        if cluster.state.exists():
            clear_cluster(cluster)


def clear_cluster(cluster: SparkCluster) -> None:
    """End the processes of a cluster that a night of this command has left."""
    remote = isinstance(cluster.config, SshCluster)
    try:
        holder = cluster.holder()
        if holder is None and remote:
            return  # stopped by the night itself
        me = identify(os.getpid())
        lease = holder if holder is not None and holder.command == me else Lease("", "")
        try:
            cluster.claim(replace(lease, holder=me, command=me))
        except OSError as error:  # on a full disk, too, the processes are ended
            show_line(f"cluster {cluster.config.name}: stopped without its lease: {error}")
        cluster.stop()
    except ClusterError as error:
        if remote:
            show_line(str(error))
        # else another night has the cluster; it is not ours to end
