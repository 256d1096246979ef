"""A backfill runs a night for each date by Airflow's scheduler, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from nexmark.airflow_site.airflow_home import airflow_environment, ui_mark
from nexmark.config import load, paths
from nexmark_jobs.host.processes import owned
from tests.prepared_airflow import share_prepared_airflow

ENGINE, DAG_ID = "spark-next", "nexmark_spark_next"
DATES = ("--from", "2026-11-01", "--to", "2026-11-02")
#: By Airflow's own models: another start of its API server would take as long as the backfill.
STATE = """
import json
import sys

from airflow.models import DagModel, DagRun
from airflow.models.backfill import Backfill
from airflow.utils.session import create_session
from sqlalchemy import select

dag_id = sys.argv[1]
with create_session() as session:
    runs = session.scalars(select(DagRun).filter_by(dag_id=dag_id).order_by(DagRun.logical_date))
    moments = [(run.logical_date.strftime("%Y-%m-%dT%H:%M"), run.state) for run in runs]
    made = session.scalars(select(Backfill).filter_by(dag_id=dag_id))
    completed = [one.completed_at is not None for one in made]
    paused = session.get(DagModel, dag_id).is_paused
print(json.dumps({"runs": moments, "backfills_are_completed": completed, "is_paused": paused}))
"""
Site = dict[str, str]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The environment of a home where one date of three has a tarball, which is not its checksum's.

    So its night fails before it needs Spark.
    """
    directory = tmp_path_factory.mktemp("backfill")
    conf = directory / "conf"
    shutil.copytree(paths.repository() / "include" / "conf", conf)
    template = f"{directory}/spark-{{{{ ds }}}}.tgz"
    with tarfile.open(directory / "spark-2026-11-02.tgz", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("not-what-was-published"))
    (directory / "spark-2026-11-02.tgz.sha512").write_text("0" * 128)
    snapshots = {"tarball": template, "sha512": f"{template}.sha512"}
    engine = {"build": {"pypi": "4.3.0"}, "snapshots": snapshots, "workload": "smoke"}
    engines = {
        ENGINE: {**engine, "schedule": "0 22 * * *"},
        "spark-unscheduled": engine,
        "spark-release": {"build": {"pypi": "4.3.0"}, "schedule": "0 22 * * *"},
    }
    (conf / "engines.yaml").write_text(yaml.safe_dump({"engines": engines}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEXMARK_HOME", str(directory / "home"))
        patch.setenv("NEXMARK_CONF", str(conf))
        return dict(os.environ)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def backfill(site: Site, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nexmark.cli", "backfill", "--port", str(free_port()), *options],
        env=site,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--engine", ENGINE], "--from is not given; give --from 2026-11-03"),
        (["--from", "2026-11-1", "--to", "x"], "--from: '2026-11-1' is not a date; write it like"),
        (["--from", "2026-11-05", "--to", "2026-11-04"], "2026-11-05 is after --to 2026-11-04"),
        (["--from", "2999-01-01", "--to", "2999-01-02"], "--from: 2999-01-01 is in the future"),
        (["--engine", "spark-nxt", *DATES], "engine: unknown engine 'spark-nxt'; did you mean"),
        (
            ["--engine", "spark-release", *DATES],
            "spark-release: has no snapshots, every",
        ),
        (
            ["--engine", "spark-unscheduled", *DATES],
            "has no schedule, and Airflow",
        ),
        (["--engine", ENGINE, "--queries", "q77", *DATES], "unknown query 'q77'"),
    ],
)
def test_what_cannot_be_backfilled_is_one_line_at_once(
    site: Site, options: list[str], says: str
) -> None:
    run = backfill(site, *options)
    assert run.returncode == 2
    assert run.stdout == ""
    assert says in run.stderr
    assert run.stderr.count("\n") == 1


def test_a_range_without_any_build_says_so_for_each_date_and_starts_nothing(site: Site) -> None:
    run = backfill(site, "--engine", ENGINE, "--from", "2026-11-03", "--to", "2026-11-04")
    assert run.returncode == 2
    first, second = run.stdout.splitlines()
    assert first.startswith("no build for 2026-11-03: ")
    assert second.startswith("no build for 2026-11-04: ")
    assert run.stderr == f"engine {ENGINE}: no build from 2026-11-03 to 2026-11-04\n"
    assert not (Path(site["NEXMARK_HOME"]) / "airflow").exists()


@pytest.mark.slow
@pytest.mark.extended
def test_every_date_has_its_night_and_one_without_a_build_is_no_failure(site: Site) -> None:
    home = Path(site["NEXMARK_HOME"])
    share_prepared_airflow(home)
    run = backfill(site, "--engine", ENGINE, "--from", "2026-11-01", "--to", "2026-11-03")
    assert run.returncode == 2, run.stdout + run.stderr
    assert run.stderr == ""
    assert [line.split("  ")[0] for line in run.stdout.splitlines()[-4:]] == [
        "date",
        "2026-11-01",
        "2026-11-02",
        "2026-11-03",
    ]
    table = [line.split(maxsplit=2) for line in run.stdout.splitlines()[-3:]]
    assert table == [
        ["2026-11-01", "-", "no build"],
        ["2026-11-02", "-", "failed, before a build was there"],
        ["2026-11-03", "-", "no build"],
    ]
    assert "SHA-512 is " in run.stdout  # the night's own words
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEXMARK_HOME", str(home))
        patch.setenv("NEXMARK_CONF", site["NEXMARK_CONF"])
        assert owned(ui_mark()) == []
        environment = airflow_environment(load())
    state = subprocess.run(
        [sys.executable, "-c", STATE, DAG_ID],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(state.stdout.splitlines()[-1]) == {
        "runs": [
            ["2026-11-01T22:00", "success"],
            ["2026-11-02T22:00", "failed"],
            ["2026-11-03T22:00", "success"],
        ],
        "backfills_are_completed": [True],
        "is_paused": True,
    }
