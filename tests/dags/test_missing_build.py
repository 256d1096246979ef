"""A date without a build: the night says so, is skipped as a whole, and is green."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from nexmark.airflow_home import airflow_command, airflow_environment, prepare
from nexmark.config import load, paths

ENGINE, DAG_ID = "spark-next", "nexmark_spark_next"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """That of Airflow, where an engine has a build of one date only, which is none."""
    directory = tmp_path_factory.mktemp("missing")
    conf, home = directory / "conf", directory / "home"
    shutil.copytree(paths.repository() / "include" / "conf", conf)
    template = f"{directory}/spark-{{{{ ds_nodash }}}}.tgz"
    engine = {
        "build": {"pypi": "4.3.0"},
        "snapshots": {"tarball": template, "sha512": f"{template}.sha512"},
        "workload": "smoke",
        "schedule": "0 22 * * *",
    }
    (conf / "engines.yaml").write_text(yaml.safe_dump({"engines": {ENGINE: engine}}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEXMARK_HOME", str(home))
        patch.setenv("NEXMARK_CONF", str(conf))
        made = airflow_environment(load())
        prepare(made)
    return made


@pytest.fixture(scope="module")
def night(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    home = Path(environment["NEXMARK_HOME"])
    return subprocess.run(
        airflow_command(["dags", "test", DAG_ID, "2026-11-03T22:00:00+00:00"]),
        env={**environment, "NEXMARK_PROGRESS": str(home / "progress.txt")},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def rows(
    environment: dict[str, str], night: subprocess.CompletedProcess[str]
) -> Callable[[str], list[str]]:
    def ask(query: str) -> list[str]:
        home = Path(environment["NEXMARK_HOME"])
        with contextlib.closing(sqlite3.connect(home / "airflow" / "airflow.db")) as database:
            return [row[0] for row in database.execute(query)]

    return ask


def test_a_date_without_a_build_is_told_in_one_line(
    environment: dict[str, str], night: subprocess.CompletedProcess[str]
) -> None:
    assert night.returncode == 0, night.stdout + night.stderr
    (line,) = (Path(environment["NEXMARK_HOME"]) / "progress.txt").read_text().splitlines()
    assert line.startswith("no build for 2026-11-03: ")
    assert line.endswith("spark-20261103.tgz.sha512 is not there; the night is skipped")


def test_the_night_is_green_and_every_task_of_it_skipped(
    rows: Callable[[str], list[str]],
) -> None:
    assert rows("SELECT state FROM dag_run") == ["success"]
    assert set(rows("SELECT DISTINCT state FROM task_instance")) == {"skipped"}
    assert len(rows("SELECT task_id FROM task_instance")) > 100


@pytest.mark.usefixtures("night")
def test_nothing_is_left_of_it(environment: dict[str, str]) -> None:
    home = Path(environment["NEXMARK_HOME"])
    assert {path.name for path in home.iterdir()} == {"airflow", "progress.txt"}


@pytest.mark.usefixtures("night")
@pytest.mark.parametrize("date", ["2026-11-03", "2026-11-31", "2999-01-01"])
def test_the_command_says_so_at_once(environment: dict[str, str], date: str) -> None:
    command = [sys.executable, "-m", "nexmark.run", "--engine", ENGINE, "--date", date]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    expected = {
        "2026-11-03": (0, "no build for 2026-11-03: "),
        "2026-11-31": (1, "date: '2026-11-31' is no date; write it like 2026-11-03"),
        "2999-01-01": (1, "date: 2999-01-01 is not yet there (in UTC)"),
    }
    code, says = expected[date]
    assert run.returncode == code
    assert (run.stdout + run.stderr).startswith(says)
    assert (run.stdout + run.stderr).count("\n") == 1
