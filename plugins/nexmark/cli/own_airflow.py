"""Start a private Airflow with these DAGs on 127.0.0.1, for `nexmark ui` and `nexmark backfill`.

Each component runs in a process group of its own. All are ended on Ctrl-C or SIGTERM, and when one
of them ends; after kill -9 their reaper ends them (`nexmark.reaper`).

A backfill is created in Airflow and waited for. Where `nexmark ui` runs, its scheduler does the
work and goes on with it when this is interrupted; else Airflow is started until it is done.
"""

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import IO, Any

from nexmark.airflow_site import airflow_home, backfills
from nexmark.airflow_site.airflow_home import API_SERVER, Components
from nexmark.airflow_site.api import AirflowApi
from nexmark.cli.night_runner import clear_cluster
from nexmark.cluster import open_cluster
from nexmark.config import Config, Engine, load, paths
from nexmark.dag.notifying import notifiers
from nexmark.engines import MissingBuild, snapshot
from nexmark.errors import NexmarkError
from nexmark.interrupts import undisturbed
from nexmark.night.make_night import make_night
from nexmark.night.night_progress import PROGRESS_VARIABLE
from nexmark.reaper import reaper_of_command
from nexmark.terminal import COULD_NOT_RUN, FOUND_RED, Terminal, columns, show_line
from nexmark.web.entry import PREFIX
from nexmark_jobs.host.processes import owned

_POLL_S = 0.5
#: With this setting the scheduler runs only the nights of this backfill, and no night that is due:
#: otherwise a DAG that is switched on after a while begins with the last date that it missed.
_ONLY = {"AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False"}

Creator = Callable[[AirflowApi], backfills.Backfill]


def serve(port: int, example: bool = False) -> int:
    """Run `nexmark ui` until it is interrupted, then return 0.

    Args:
        port: The port of Airflow.
        example: Whether it shows the example nights, in their own home; no DAG runs there.

    Raises:
        NexmarkError: A component of Airflow ended by itself.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # also where it was started in the background
        signal.signal(number, signal.default_int_handler)
    try:
        airflow_home.check_port(port, "nexmark ui --port PORT")
        if example:
            from nexmark.example.example_home import enter_example_home

            enter_example_home(show_line)
        config = load()
        environment = airflow_home.airflow_environment(config, port)
        airflow = Components(environment, port, paths.home() / "logs")
        with reaper_of_command(environment), closing(airflow) as components:
            show_line("preparing Airflow")
            airflow_home.prepare(environment)
            components.bring_up(API_SERVER)
            if not example:
                backfills.close_abandoned(config, airflow_home.own_airflow(port))
                components.bring_up()
            passwords = json.loads((airflow_home.airflow_home() / "passwords.json").read_text())
            for user, password in passwords.items():
                print(f"Airflow is at http://127.0.0.1:{port} (user {user}, password {password})")
            print(f"the nights: http://127.0.0.1:{port}{PREFIX}/ (or the tab Nexmark there)")
            show_line("Ctrl-C ends it")
            while True:
                components.check_alive()
                time.sleep(_POLL_S)
    except KeyboardInterrupt:
        return 0


def run_backfill(
    name: str | None, days: tuple[date, date], params: Mapping[str, Any], reprocess: str, port: int
) -> int:
    """Run the nights of past days of an engine.

    Args:
        name: The name of the engine; None for the newest one.
        days: The first and the last day.
        params: The params of the nights.
        reprocess: Which days run again of those that have had a night: none, failed or completed.
        port: The port of the private Airflow.

    Returns:
        0 if all nights that have a build are green; 1 if one is red; else 2, one could not be run.
    """
    config = load()
    engine = config.engine(name)
    _check(config, engine, days, params)
    running = bool(owned(airflow_home.ui_mark()))
    if not running:
        airflow_home.check_port(port, "nexmark backfill --port PORT ...")
    environment = airflow_home.airflow_environment(config, port)
    os.environ.update(environment)
    notifiers()  # ConfigError where one of notifications.yaml cannot be made
    show_line("preparing Airflow")
    airflow_home.prepare(environment)
    remedy = "correct what it names, and run this again"
    airflow_home.run_airflow(["dags", "reserialize"], environment, remedy)
    create_it = partial(
        backfills.create, dag_id=engine.dag_id, days=days, conf=params, reprocess=reprocess
    )
    if running:
        runs = _run_there(airflow_home.own_airflow(port), engine.dag_id, create_it)
    else:
        runs = _run_here(config, environment, port, engine.dag_id, create_it)
    rows = backfills.outcomes(engine.dag_id, runs)
    texts = [(row.day.isoformat(), *row[1:4]) for row in rows]
    show_line(columns(("date", "build", "state", "verdicts"), texts))
    if any(row.found_red for row in rows):
        return FOUND_RED
    return COULD_NOT_RUN if any(row.failed for row in rows) else 0


def _check(
    config: Config, engine: Engine, days: tuple[date, date], params: Mapping[str, Any]
) -> None:
    """Raise NexmarkError if every night of a backfill would fail, or there would be none.

    Args:
        config: The configuration.
        engine: The engine.
        days: The first and the last day.
        params: The params of the nights.
    """
    first, last = days
    if first > last:
        raise NexmarkError(f"backfill: --from {first} is after --to {last}; exchange them")
    if first > datetime.now(UTC).date():
        raise NexmarkError(f"--from: {first} is in the future (UTC); give today or an earlier date")
    if engine.snapshots is None:
        problem = "has no snapshots, every date would be the same build"
        remedy = "add `snapshots` in include/conf/engines.yaml"
        raise NexmarkError(f"engine {engine.name}: {problem}; {remedy}")
    if engine.schedule is None:
        problem = "has no schedule, and Airflow backfills only the dates of one"
        remedy = 'add a schedule in include/conf/engines.yaml, as "0 22 * * *"'
        raise NexmarkError(f"engine {engine.name}: {problem}; {remedy}")
    make_night(config, engine.name, engine.dag_id, "", params)
    missing, count = 0, (last - first).days + 1
    for number in range(count):
        try:
            snapshot(engine.snapshots, first + timedelta(days=number))
        except MissingBuild as error:
            missing += 1
            show_line(str(error))
    if missing == count:
        raise NexmarkError(f"engine {engine.name}: no build from {first} to {last}")


def _run_there(api: AirflowApi, dag_id: str, create_it: Creator) -> list[backfills.DagRun]:
    """Let the scheduler of `nexmark ui` run a backfill; return its runs when all have ended."""
    if backfills.is_paused(api, dag_id):
        raise NexmarkError(
            f"{dag_id} is paused: switch it on in Airflow (the last night that it missed "
            "will run too), or end `nexmark ui` and run this again"
        )
    backfill = create_it(api)
    show_line("`nexmark ui` is running: its scheduler runs the nights")
    try:
        return _follow(api, backfill)
    except KeyboardInterrupt:
        show_line("interrupted: the backfill goes on in Airflow, where it can be cancelled")
        raise


def _run_here(
    config: Config, environment: dict[str, str], port: int, dag_id: str, create_it: Creator
) -> list[backfills.DagRun]:
    """Start Airflow for a backfill; return the backfill's runs when all have ended.

    The API server starts before the scheduler and ends after it: runs that an earlier backfill or
    this one leaves unfinished are ended while no scheduler works on them.

    Args:
        config: The configuration.
        environment: The environment variables of the private Airflow.
        port: The port of the private Airflow.
        dag_id: The DAG of the nights.
        create_it: Creates the backfill.
    """
    logs = paths.home() / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    with reaper_of_command(environment), closing(Components(environment, port, logs)) as components:
        components.bring_up(API_SERVER)
        api = airflow_home.own_airflow(port)
        backfills.close_abandoned(config, api)
        backfills.close_all(api, [engine.dag_id for engine in config.engines.values()])
        with backfills.unpaused(api, dag_id):
            backfill = create_it(api)
            try:
                with tempfile.NamedTemporaryFile("r", dir=logs, prefix="backfill-") as progress:
                    components.environment |= {**_ONLY, PROGRESS_VARIABLE: progress.name}
                    components.bring_up()
                    return _follow(api, backfill, components, progress)
            except KeyboardInterrupt:
                show_line("interrupted: ending the backfill")
                raise
            finally:
                with undisturbed():
                    components.close(API_SERVER)
                    _end(config, api, backfill)


def _end(config: Config, api: AirflowApi, backfill: backfills.Backfill) -> None:
    """End a backfill while no scheduler runs, and the clusters that an unfinished night left."""
    unfinished = True
    try:
        unfinished = not all(run.ended for run in backfills.runs(api, backfill))
        backfills.close(api, backfill.id, backfill.dag_id)
    finally:
        clusters = [open_cluster(each, paths.home()) for each in config.all_clusters]
        for cluster in clusters if unfinished else ():
            if cluster.state.exists():
                clear_cluster(cluster)


def _follow(
    api: AirflowApi,
    backfill: backfills.Backfill,
    components: Components | None = None,
    progress: IO[str] | None = None,
) -> list[backfills.DagRun]:
    """Show the state of each run of a backfill until all have ended; return the runs.

    Args:
        api: The API of the Airflow that runs it.
        backfill: The backfill.
        components: The components of Airflow that this command started; None if it started none.
        progress: The file to which the nights write their progress; None if they write none.
    """
    shown: dict[date, str] = {}  # the state of each run that was shown last
    terminal = Terminal(sys.stdout)
    while True:
        if components:
            components.check_alive()
        runs = backfills.runs(api, backfill)
        terminal.show_all(progress or ())
        for run in runs:
            if shown.get(run.day, "queued") != run.state and not run.left_out:
                terminal.show(f"{run.day}: {run.state}")
            shown[run.day] = run.state
        if all(run.ended for run in runs):
            return runs
        time.sleep(2 * _POLL_S)
