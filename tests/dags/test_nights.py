"""Whole nights through real Airflow and real Spark: green, accepted, slowed, missing, refused.

They share a home, since they are one story: a night is accepted, and the next is compared with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from nexmark.airflow_home import airflow_command, airflow_environment, prepare
from nexmark.config import load, paths
from nexmark.engines import Build
from nexmark_jobs.host.processes import owned, owner_mark
from tests.site import DAG_ID, ENGINE, TINY, Site, make_site, run_name
from tests.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, engine_build: Callable[[str], Build]
) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("nights")
    made = make_site(directory / "home", directory / "conf", engine_build(ENGINE))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def green(site: Site) -> subprocess.CompletedProcess[str]:
    return site.night("--queries", "q0,q5")


@pytest.fixture(scope="module")
def run(green: subprocess.CompletedProcess[str]) -> str:
    return run_name(green)


@pytest.fixture(scope="module")
def accepted(site: Site, run: str) -> subprocess.CompletedProcess[str]:
    """The acceptance through its DAG, as a person triggers it in Airflow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEXMARK_HOME", str(site.home))
        patch.setenv("NEXMARK_CONF", str(site.conf))
        environment = airflow_environment(load())
    conf = json.dumps({"run": run, "by": "ada", "reason": "the first night"})
    command = airflow_command(["dags", "test", "nexmark_accept", "-c", conf])
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


def test_a_night_ends_green_with_table_report_and_rows(
    site: Site, green: subprocess.CompletedProcess[str], run: str
) -> None:
    assert green.returncode == 0, green.stdout + green.stderr
    table = [line for line in green.stdout.splitlines() if line.startswith("| ")]
    assert [line.split("|")[1].strip() for line in table] == ["Query", "q0", "q5", "Total"]
    assert all("right" in line for line in table[1:])
    assert "no baseline" in green.stdout or "no accepted baseline" in green.stdout
    directory = site.home / "runs" / DAG_ID / paths.safe_name(run.partition("/")[2])
    assert str(directory) in green.stdout
    for name in ("table.txt", "results.csv", "results.json"):
        assert (directory / "report" / name).is_file()
    assert (directory / "data_docs" / "index.html").is_file()
    for query in ("q0", "q5"):
        assert list((directory / query / "rep-2" / "events").rglob("*zstd*"))
    with site.store() as store:
        rows = store.repetitions(run)
        assert [(row.query, row.number, row.status) for row in rows] == [
            ("q0", 1, "ok"),
            ("q0", 2, "ok"),
            ("q5", 1, "ok"),
            ("q5", 2, "ok"),
        ]
        assert {row.events for row in rows} == {TINY["events"]}
        assert all(row.cpu_executors_s > 0 and row.cpu_driver_s > 0 for row in rows)
        assert len({row.digest for row in rows if row.query == "q5"}) == 1
        assert all(store.sample_series(row.id) for row in rows)


def test_a_night_leaves_nothing_running_and_no_scratch_space(
    site: Site, green: subprocess.CompletedProcess[str]
) -> None:
    assert site.leftovers() == []
    assert not (site.home / "clusters" / "local" / "scratch").exists()
    runs = site.home / "runs" / DAG_ID
    assert list(runs.glob("*/events")) == []
    assert list(runs.glob("*/*/verify/output")) == []  # right, and to be had again


def test_a_person_accepts_a_run_by_the_dag(
    site: Site, accepted: subprocess.CompletedProcess[str], run: str
) -> None:
    assert accepted.returncode == 0, accepted.stdout
    with site.store() as store:
        rows = store.acceptances(ENGINE, "tiny", "local")
        assert {(row.query, row.night_id, row.who, row.reason) for row in rows} == {
            ("q0", run, "ada", "the first night"),
            ("q5", run, "ada", "the first night"),
        }


@pytest.mark.usefixtures("accepted")
def test_a_slowed_engine_turns_the_night_red_and_names_the_query(site: Site) -> None:
    """Many state partitions: q5 holds state and suffers."""
    site.engine(**{"spark.sql.shuffle.partitions": 24})
    try:
        night = site.night("--queries", "q5", "--repetitions", "1")
    finally:
        site.engine()
    assert night.returncode == 1, night.stdout + night.stderr
    (verdict,) = [line for line in night.stdout.splitlines() if line.startswith("verdict: ")]
    assert "1 of 1 queries fail the night: q5 REGRESSION" in verdict
    assert site.leftovers() == []


def test_a_query_that_fails_is_missing_and_does_not_stop_the_next(site: Site) -> None:
    site.engine(**{"spark.sql.streaming.stateStore.providerClass": "no.such.Provider"})
    try:
        night = site.night("--queries", "q5,q21", "--repetitions", "1")
    finally:
        site.engine()
    assert night.returncode == 1
    (verdict,) = [line for line in night.stdout.splitlines() if line.startswith("verdict: ")]
    assert "1 of 2 queries fail the night: q5 MISSING" in verdict
    assert "no.such.Provider" in night.stdout
    assert re.search(r"\| q21 .*right.*CALIBRATING", night.stdout)
    assert site.leftovers() == []


def test_a_wrong_candidate_stops_in_preflight_with_one_line(site: Site) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEXMARK_HOME", str(site.home))
        patch.setenv("NEXMARK_CONF", str(site.conf))
        environment = airflow_environment(load())
        prepare(environment)
    progress = site.home / "progress.txt"
    environment["NEXMARK_PROGRESS"] = str(progress)
    command = airflow_command(["dags", "test", DAG_ID, "-c", '{"candidate": "spark-4.4"}'])
    night = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert night.returncode == 1
    assert progress.read_text().splitlines() == [
        "preflight: failed: build 'spark-4.4': not known; write pypi:4.3.0, "
        "tarball:PATH-OR-URL#sha512=HEX or directory:PATH"
    ]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--engine", "spark-4.3"], "engine: unknown engine 'spark-4.3'; did you mean"),
        (["--queries", "q0,q77"], "queries: unknown query 'q77'; did you mean 'q7'?"),
        (["--workload", "tinny"], "workload: unknown workload 'tinny'; did you mean 'tiny'?"),
        (["--candidate", "latest"], "build 'latest': not known; write pypi:"),
        (["--candidate", "directory:/none"], "/none does not exist; correct the path"),
        (["--repetitions", "0"], "repetitions: 0 is not in 1 to 100; correct it"),
    ],
)
def test_the_command_refuses_at_once_and_in_one_line(
    site: Site, options: list[str], says: str
) -> None:
    started = time.monotonic()
    night = site.night(*options)
    assert time.monotonic() - started < 20
    assert night.returncode == 1
    assert night.stdout == ""
    assert night.stderr.count("\n") == 1
    assert says in night.stderr


def test_ctrl_c_ends_everything_and_a_second_night_has_to_wait(site: Site) -> None:
    night = subprocess.Popen(
        site.command("--queries", "q0", "--repetitions", "30"),  # longer than the second one needs
        env=site.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert night.stdout is not None
    for line in night.stdout:
        if line.startswith("cluster local is up"):
            break
    # master, worker and the driver of dump_events
    wait_for(lambda: len(site.leftovers()) >= 3, within_s=60)
    second = site.night("--queries", "q0")
    assert second.returncode == 1
    assert f"cluster local: in use by {DAG_ID} run " in second.stderr
    night.send_signal(signal.SIGINT)
    rest = night.stdout.read()
    assert night.wait(timeout=60) == 130
    assert "interrupted: ending the night" in rest
    assert site.leftovers() == []
    with contextlib.closing(sqlite3.connect(site.home / "airflow" / "airflow.db")) as database:
        states = {state for (state,) in database.execute("SELECT state FROM dag_run")}
    assert "running" not in states  # a scheduler would wait for it for ever


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_benchmark_that_is_ended_ends_the_master_that_it_just_starts(
    site: Site, number: signal.Signals, code: int
) -> None:
    """It runs nights as processes: killed with it, these could not end what they had started."""
    benchmark = subprocess.Popen(
        [
            *(sys.executable, "-m", "nexmark.detection", "--fresh", "--cause", "sort"),
            *("--workload", "tiny", "--pairs", "3", "--nights", "3"),
        ],
        env=site.environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    nights = replace(site, home=site.home / "detection" / "home")
    mark = owner_mark(nights.home, "local-baseline")
    try:
        wait_for(lambda: bool(owned(mark)) or benchmark.poll() is not None, within_s=180)
        os.killpg(benchmark.pid, number)  # as a terminal does
        said = benchmark.communicate(timeout=60)[0]
        assert benchmark.returncode == code, said
        if number == signal.SIGINT:
            assert "interrupted: the same command goes on where it was" in said
        else:
            wait_for(lambda: not nights.leftovers(), within_s=60)
        assert nights.leftovers() == []
    finally:
        nights.stop()
