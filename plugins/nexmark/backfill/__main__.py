"""Nights of past dates: `python -m nexmark.backfill`, which is `make backfill`.

Creates a backfill of Airflow and waits for it. Where `make ui` runs, its scheduler does the work
and goes on with it when this is interrupted; else Airflow is started until the backfill is done.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import IO, Any

from nexmark.airflow_home import airflow_environment, close_abandoned, prepare, ui_mark
from nexmark.backfill.airflow import (
    close,
    close_all,
    command_problem,
    create,
    is_paused,
    runs,
    unpaused,
)
from nexmark.backfill.outcome import outcomes, table
from nexmark.cluster import open_cluster
from nexmark.command import Parser, ending, engine_of, parse_date, say
from nexmark.components import GRACE_S, bring_up, check_alive, check_port
from nexmark.config import BASELINE, CANDIDATE, Config, Engine, load, paths
from nexmark.engines import MissingBuild, snapshot
from nexmark.errors import NexmarkError
from nexmark.interrupts import undisturbed
from nexmark.run import clear_cluster
from nexmark.tasks.checks import make_night
from nexmark.tasks.progress import PROGRESS_VARIABLE
from nexmark.terminal import Terminal
from nexmark_jobs.host.processes import Process, end, owned

_POLL_S = 1.0
#: The scheduler runs what is asked for here and no night that is due: a DAG that is switched on
#: after a while begins with the last date that it missed.
_ONLY = {"AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False"}
_PARAMS = ("queries", "workload", "cluster")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the nights; 0 if all that have a build are green, 1 if not, 130 if interrupted."""
    return ending(_backfill, _parser().parse_args(arguments))


def _parser() -> Parser:
    parser = Parser(prog="nexmark.backfill", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--engine", default="", help="of engines.yaml, with snapshots")
    parser.add_argument("--from", default="", dest="first", help="the first date, as 2026-11-01")
    parser.add_argument("--to", default="", dest="last", help="the last date")
    parser.add_argument("--queries", default="", help="q1,q5 (default: what the workload says)")
    parser.add_argument("--workload", default="", help="of workloads.yaml (default: the engine's)")
    parser.add_argument("--cluster", default="", help="of clusters.yaml (default: the engine's)")
    parser.add_argument(
        "--reprocess",
        default="none",
        choices=("none", "failed", "completed"),
        help="dates that had a night: leave them, or run those again (default: none)",
    )
    parser.add_argument("--port", type=int, default=8080, help="of Airflow (default: 8080)")
    return parser


def _backfill(options: argparse.Namespace) -> int:
    config = load()
    engine = engine_of(config, options.engine)
    days = _days(options)
    params = {name: getattr(options, name) for name in _PARAMS if getattr(options, name)}
    _check(config, engine, days, params)
    running = bool(owned(ui_mark()))
    if not running:
        check_port(options.port, "python -m nexmark.backfill --port PORT ...")
    environment = airflow_environment(config, options.port)
    say("preparing Airflow")
    prepare(environment)
    if not running:
        close_abandoned(config)
        close_all()
    problem = command_problem(environment, ["dags", "reserialize"])
    if problem:
        raise NexmarkError(f"airflow dags reserialize: {problem}")
    if running and is_paused(engine.dag_id):
        raise NexmarkError(
            f"{engine.dag_id} is paused: switch it on in Airflow (the last night that it missed "
            "will run too), or end `make ui` and run this again"
        )
    with unpaused(environment, engine.dag_id):
        backfill = create(environment, engine.dag_id, days, params, options.reprocess)
        if running:
            _wait_for_scheduler(backfill)
        else:
            _run_here(config, environment, options.port, backfill)
    rows = outcomes(engine.dag_id, runs(backfill))
    say(table(rows))
    return 1 if any(row.failed for row in rows) else 0


def _days(options: argparse.Namespace) -> tuple[date, date]:
    for name, value in (("FROM", options.first), ("TO", options.last)):
        if not value:
            raise NexmarkError(f"backfill: {name} is not given; give {name}=2026-11-03")
    first, last = parse_date("FROM", options.first), parse_date("TO", options.last)
    if first > last:
        raise NexmarkError(f"backfill: FROM {first} is after TO {last}; exchange them")
    if first > datetime.now(UTC).date():
        raise NexmarkError(f"FROM: {first} is not yet there (in UTC); give a date that has begun")
    return first, last


def _check(
    config: Config, engine: Engine, days: tuple[date, date], params: Mapping[str, Any]
) -> None:
    """NexmarkError for what would make every night fail, or leave none."""
    if engine.snapshots is None:
        raise NexmarkError(
            f"engine {engine.name}: has no snapshots, every date would be the same build; "
            "add `snapshots` in include/conf/engines.yaml"
        )
    if engine.schedule is None:
        raise NexmarkError(
            f"engine {engine.name}: has no schedule, and Airflow backfills only the dates of one; "
            'add a schedule in include/conf/engines.yaml, as "0 22 * * *"'
        )
    make_night(config, engine.name, engine.dag_id, "", params)
    missing = _missing(engine, days)
    for day in missing:
        say(missing[day])
    if len(missing) > (days[1] - days[0]).days:
        raise NexmarkError(f"engine {engine.name}: no build from {days[0]} to {days[1]}")


def _missing(engine: Engine, days: tuple[date, date]) -> dict[date, str]:
    """The dates without a build, and what is not there."""
    assert engine.snapshots is not None
    found: dict[date, str] = {}
    for number in range((days[1] - days[0]).days + 1):
        day = days[0] + timedelta(days=number)
        try:
            snapshot(engine.snapshots, day)
        except MissingBuild as error:
            found[day] = str(error)
    return found


def _wait_for_scheduler(backfill: int) -> None:
    say("`make ui` is running: its scheduler runs the nights")
    try:
        _follow(backfill, {}, None)
    except KeyboardInterrupt:
        say("interrupted: the backfill goes on in Airflow, where it can be cancelled")
        raise


def _run_here(config: Config, environment: Mapping[str, str], port: int, backfill: int) -> None:
    logs = paths.home() / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    components: dict[str, Process] = {}
    with tempfile.NamedTemporaryFile("r", dir=logs, prefix="backfill-") as progress:
        try:
            own = {**environment, **_ONLY, PROGRESS_VARIABLE: progress.name}
            bring_up(components, own, port, logs)
            _follow(backfill, components, progress)
        except KeyboardInterrupt:
            say("interrupted: ending the backfill")
            raise
        finally:
            with undisturbed(), _unfinished(config, backfill):
                end(components.values(), grace_s=GRACE_S)


@contextmanager
def _unfinished(config: Config, backfill: int) -> Iterator[None]:
    """Afterwards, end what a night that was not finished has left."""
    unfinished = not all(run.ended for run in runs(backfill))
    yield
    close(backfill)
    if unfinished:
        for cluster in config.clusters.values():
            for arm in (CANDIDATE, BASELINE):
                opened = open_cluster(cluster.of_arm(arm), paths.home())
                if opened.state.exists():
                    clear_cluster(opened)


def _follow(backfill: int, components: Mapping[str, Process], progress: IO[str] | None) -> None:
    told: dict[date, str] = {}
    terminal = Terminal(sys.stdout)
    while True:
        check_alive(components, paths.home() / "logs")
        found = runs(backfill)
        for line in progress or ():
            terminal.show(line)
        for run in found:
            if told.get(run.day, "queued") != run.state and not run.left_out:
                terminal.show(f"{run.day}: {run.state}")
            told[run.day] = run.state
        if all(run.ended for run in found):
            return
        time.sleep(_POLL_S)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
