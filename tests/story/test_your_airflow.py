"""An Airflow of one's own: the commands of docs/your-airflow.md, from top to bottom.

A fresh virtual environment, PostgreSQL, the package from its wheel; nothing of the clone is read.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from nexmark.config import load, paths
from tests.unit.store.postgresql import Postgresql, server

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

PAGE = paths.repository() / "docs" / "your-airflow.md"
#: Airflow 3.3.2 was released in the days before.
RELEASED = "2026-09-22"
UV = str(Path(sys.executable).with_name("uv"))
STEP_S = 1200


def blocks() -> list[str]:
    """The page's commands, a text for each of its bash blocks."""
    return re.findall(r"^```bash\n(.*?)^```", PAGE.read_text(), re.M | re.S)


@pytest.fixture(scope="module")
def database() -> Iterator[Postgresql]:
    with server() as found:
        if found is None:
            pytest.skip("PostgreSQL is not installed")
        yield found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty directory with the wheel in `dist`."""
    directory = tmp_path_factory.mktemp("own")
    build = [UV, "build", "--quiet", "--wheel", "--out-dir", str(directory / "dist")]
    subprocess.run([*build, str(paths.repository())], check=True, timeout=STEP_S)
    (wheel,) = (directory / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        assert {"nexmark/py.typed", "nexmark_jobs/py.typed"} <= set(content.namelist())
    return directory


def constraints(page: str, place: Path) -> str:
    """The official constraints, or, where they cannot be reached, what they are made of."""
    official = re.search(r"^CONSTRAINTS=(\S+)", page, re.M)
    airflow = re.search(r'"(apache-airflow\S+==[\d.]+)"', page)
    assert official
    assert airflow
    try:
        with urllib.request.urlopen(official[1], timeout=20):
            return official[1]
    except OSError:
        made = place / "constraints.txt"
        options = ["--quiet", "--no-annotate", "--exclude-newer", RELEASED, "-o", str(made)]
        command = [UV, "pip", "compile", "--python-version", "3.11", *options, "-"]
        asked = f"{airflow[1]}\napache-airflow-providers-apache-spark\napache-airflow-providers-ssh"
        subprocess.run(command, input=asked, text=True, check=True, cwd=place, timeout=STEP_S)
        return str(made)


def shell(script: str, place: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in `place`, as a person does who has no clone."""
    mine = ("AIRFLOW", "NEXMARK", "VIRTUAL_ENV", "PYTHON", "PYTEST", "SPARK")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(mine)}
    environment["COLUMNS"] = "400"  # no table is cut off
    environment["PATH"] = os.pathsep.join([str(Path(UV).parent), environment["PATH"]])
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=STEP_S,
    )


def run(script: str, place: Path) -> str:
    """Run a script that has to succeed; its output."""
    done = shell(script, place)
    assert done.returncode == 0, (script, done.stdout[-6000:], done.stderr[-6000:])
    return done.stdout


def of_mine(first: str, place: Path, database: Postgresql) -> str:
    """The first block, with places of the test's own."""
    airflow = database.url("airflow").replace("postgresql:", "postgresql+psycopg2:")
    mine = {
        "~/airflow": f"{place}/airflow",
        "postgresql+psycopg2://airflow@db.example/airflow": airflow,
        "postgresql://nexmark@db.example/nexmark": database.url("nexmark"),
        "/var/lib/nexmark": f"{place}/home",
        "/etc/nexmark": f"{place}/conf",
    }
    for name, value in mine.items():
        assert f"={name}\n" in first, name
        first = first.replace(f"={name}\n", f"='{value}'\n")
    return first


def own_ports() -> dict[str, str]:
    """The ports of the cluster `local`, and of this process: others test here too."""
    first = 20_000 + 20 * (os.getpid() % 500)
    names = ("17077", "17078", "18080", "18081")
    return {name: str(first + i) for i, name in enumerate(names)} | {"17087": str(first + 10)}


def replaced(content: str, changes: dict[str, str]) -> str:
    return re.sub("|".join(changes), lambda found: changes[found[0]], content)


def test_an_airflow_of_ones_own_by_the_page(place: Path, database: Postgresql) -> None:
    first, install, package, folders, settings, look, upgrade, uninstall = blocks()
    first = of_mine(first, place, database)
    for name in ("airflow", "nexmark"):
        database.execute(f"CREATE DATABASE {name}")
    install = re.sub(
        r"^CONSTRAINTS=.*", f"CONSTRAINTS={constraints(install, place)}", install, flags=re.M
    )
    done = shell(first + install + package + folders + "echo $SITE", place)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert done.stdout.strip().startswith(f"{place}/nexmark-airflow/"), done.stdout
    clusters = place / "conf" / "clusters.yaml"
    clusters.write_text(replaced(clusters.read_text(), own_ports()))

    active = (
        first + "source nexmark-airflow/bin/activate\nexport AIRFLOW__CORE__LOAD_EXAMPLES=False\n"
    )
    ready = active + folders.replace("cp -r", ": cp")
    steps = (
        *(replaced(settings, own_ports()), "airflow pools list; airflow plugins; airflow info"),
        *look.replace("\\\n", "").splitlines(),
    )
    said = {}
    for step in steps:
        said[step] = run(ready + step, place)
    state, errors, dags = (said[step] for step in (steps[1], steps[3], steps[4]))
    assert re.search(r"nexmark_cluster\s*\|\s*1\b", state), state
    assert re.search(r"^nexmark\s*\|", state, re.M), state
    assert "postgresql+psycopg2" in state
    assert "LocalExecutor" in state
    assert "No data found" in errors, errors
    own = ("accept", "build", "experiment", "prune", "rollout", "signoff")
    for dag in [
        *(f"nexmark_{name}" for name in own),
        *(engine.dag_id for engine in load().engines.values()),
    ]:
        assert dag in dags, dag
    results = create_engine(database.url("nexmark").replace("postgresql:", "postgresql+psycopg:"))
    with results.connect() as rows:
        found = rows.execute(text("SELECT query, status FROM repetition")).all()
    assert [tuple(row) for row in found] == [("q0", "ok")]

    after_upgrade = run(ready + upgrade, place)
    assert "nexmark_spark_4_3_0" in after_upgrade
    assert "diff -r" in after_upgrade, "the ports of the test are the only difference"
    run(ready + uninstall, place)
    left = run(active + "airflow dags list; airflow pools list; airflow connections list", place)
    assert "default_pool" in left
    assert "nexmark" not in left
    assert shell(active + "python -c 'import nexmark'", place).returncode == 1
    shutil.rmtree(place / "nexmark-airflow")  # a GB
