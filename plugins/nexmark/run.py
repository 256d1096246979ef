"""One night from the command line: `python -m nexmark.run`, which is `make run`.

Runs an engine's DAG through `airflow dags test` with a private Airflow (SQLite, under
`.nexmark/airflow`), shows its progress, and ends with the DAG's exit code. Whatever ends it, no
process of the night is left.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import IO, Any

from nexmark.airflow_home import (
    airflow_command,
    airflow_environment,
    close_abandoned,
    prepare,
    ui_mark,
)
from nexmark.cluster import ClusterError, Lease, Process, SparkCluster, identify
from nexmark.command import (
    INTERRUPTED,
    ending,
    engine_of,
    night_params,
    night_parser,
    parse_date,
    say,
)
from nexmark.config import Config, SshCluster, load, paths
from nexmark.engines import MissingBuild
from nexmark.errors import NexmarkError
from nexmark.interrupts import signalled_with_parent, undisturbed
from nexmark.tasks.checks import find_problems, make_night, with_snapshot
from nexmark.tasks.night import Night
from nexmark.tasks.progress import PROGRESS_VARIABLE
from nexmark.terminal import Terminal
from nexmark_jobs.host.processes import end, owned

_POLL_S = 0.2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a night; 0 if it is green, 1 if it is red or cannot be run, 130 if interrupted."""
    parser = night_parser("nexmark.run", __doc__)
    parser.add_argument("--candidate", default="", help="a build, as pypi:4.3.0")
    parser.add_argument("--date", default="", help="of the night, as 2026-11-03 (default: today)")
    return ending(_night_of, parser.parse_args(arguments))


def _night_of(options: argparse.Namespace) -> int:
    config = load()
    engine = engine_of(config, options.engine)
    params = night_params(config, options)
    if options.candidate:
        params["candidate"] = options.candidate
    day = parse_date("date", options.date) if options.date else None
    return run_night(config, engine.dag_id, engine.name, params, day)


def run_night(
    config: Config,
    dag_id: str,
    engine: str,
    params: Mapping[str, Any],
    day: date | None = None,
) -> int:
    """Run a DAG on an engine, with `params` and the date `day` (today); exit codes as `main`.

    NexmarkError when the night cannot be begun. No build of the date is no failure.
    """
    moment = _moment(day)
    night = make_night(config, engine, dag_id, "", params)
    try:
        night = with_snapshot(night, params, moment)
    except MissingBuild as error:
        say(f"{error}; there is nothing to run")
        return 0
    problems = [*find_problems(night), *_in_use(night.spark_cluster), *_scheduler_runs()]
    if problems:
        raise NexmarkError(problems[0])
    environment = airflow_environment(config)
    say("preparing Airflow")
    prepare(environment)
    os.environ.update(environment)  # the connections to hosts that are to be cleaned are in it
    close_abandoned(config)
    try:
        return _run(night, environment, params, moment)
    finally:
        close_abandoned(config)


def _moment(day: date | None) -> datetime:
    """A moment of `day`, another one each time: Airflow has one run of a DAG at each."""
    now = datetime.now(UTC)
    moment = datetime.combine(day, now.timetz()) if day else now
    if moment > now:
        raise NexmarkError(f"date: {day} is not yet there (in UTC); give a date that has begun")
    return moment


def _in_use(cluster: SparkCluster) -> list[str]:
    """What keeps this night from using `cluster` now, or nothing."""
    other = cluster.holder()
    if other is None or other.holder is None or not other.holder.alive:
        return []
    return [
        f"cluster {cluster.config.name}: in use by {other.dag_id} run {other.run_id} "
        f"(process {other.holder.pid}); wait until it has ended, or end it"
    ]


def _scheduler_runs() -> list[str]:
    """The scheduler of `make ui` would run the tasks of this night a second time."""
    if not owned(ui_mark()):
        return []
    return ["`make ui` is running; trigger the DAG there, or end it and run this again"]


def _run(
    night: Night, environment: dict[str, str], conf: Mapping[str, Any], moment: datetime
) -> int:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    log = paths.home() / "logs" / f"run-{stamp}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    command = airflow_command(
        ["dags", "test", night.dag_id, moment.isoformat(), "-c", json.dumps(conf)]
    )
    terminal = Terminal(sys.stdout)
    with tempfile.NamedTemporaryFile("r", dir=log.parent, prefix=f"{log.stem}-") as progress:
        environment = {**environment, PROGRESS_VARIABLE: progress.name}
        with log.open("wb") as output:
            child = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=signalled_with_parent(signal.SIGKILL),  # the next night reaps the rest
            )
            process = identify(child.pid)
            try:
                _follow(child, progress, terminal)
            except KeyboardInterrupt:
                terminal.clear()
                say("interrupted: ending the night")
                return INTERRUPTED
            finally:
                with undisturbed():
                    _end(child, process, night)
        _show(progress, terminal)
        terminal.clear()
    if child.returncode != 0:
        _explain(log)
    say(f"log of the night: {log}")
    return 0 if child.returncode == 0 else 1


def _follow(child: subprocess.Popen[bytes], progress: IO[str], terminal: Terminal) -> None:
    while child.poll() is None:
        _show(progress, terminal)
        time.sleep(_POLL_S)
    _show(progress, terminal)


def _show(progress: IO[str], terminal: Terminal) -> None:
    for line in progress:
        terminal.show(line)


def _end(child: subprocess.Popen[bytes], process: Process | None, night: Night) -> None:
    """End the night's process if it still runs, and all that it left.

    It is killed at once: on SIGTERM Airflow would end the task and go on with the next one.
    """
    if process and child.poll() is None:
        end([process], grace_s=0)
        child.poll()
    for cluster in night.clusters.values():
        if cluster.state.exists():
            clear_cluster(cluster)


def clear_cluster(cluster: SparkCluster) -> None:
    """End what the night left of a cluster."""
    remote = isinstance(cluster.config, SshCluster)
    if remote and cluster.holder() is None:
        return  # stopped by the night itself
    try:
        cluster.reap(Lease("", ""), lambda _: True)
    except ClusterError as error:
        if remote:
            say(str(error))
        # else another night has the cluster; it is not ours to end


def _explain(log: Path) -> None:
    """What Airflow said last, where the night ended before it could say anything itself."""
    text = log.read_text(errors="replace")
    if "[DAG TEST]" not in text:
        lines = [line for line in text.splitlines() if line.strip()]
        print(*lines[-5:], sep="\n", file=sys.stderr)


__all__ = ["clear_cluster", "main", "run_night"]

if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
