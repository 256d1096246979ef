"""Two nights by bounds in one home, with a secret in every place for one.

The home has blanks and letters of other alphabets in its path, and the person who starts the nights
has a locale without them, and variables that change a JVM, a Spark or a Python.

The first is green and is accepted; it runs applications of a person's own, too. The second has
other secrets, an engine that is slower (q5) and a query that cannot run (q13).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from nexmark.airflow_site.airflow_home import airflow_command, airflow_environment
from nexmark.config import load
from nexmark.engines import Build
from nexmark.jobs.job_template import write_new
from tests.foreign_variables import FOREIGN
from tests.nights.files_job import JOB as OWN_FILES
from tests.nights.files_job import write_job
from tests.nights.marked_secrets import MARKER, Processes, confs, watched
from tests.nights.orders_job import APPLICATIONS, write_jobs
from tests.site import ENGINE, Site, make_site, run_name

Night = subprocess.CompletedProcess[str]


@pytest.fixture(scope="package")
def site(
    tmp_path_factory: pytest.TempPathFactory, engine_build: Callable[[str], Build]
) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("nights")
    home = directory / "mein Zürich (λ & co)"
    home.mkdir(mode=0o755)
    build = engine_build(ENGINE)
    made = make_site(home, directory / "conf", build)
    made.gate(max_ratio=1.25)  # with few events, the start of the application is most of its cost
    profile = made.conf / "spark" / "quick.conf"
    profile.write_text(profile.read_text() + f"spark.my.token {MARKER.decode()}-profile\n")
    write_new("mine", made.conf)
    (made.conf / "jobs" / "shaky.yaml").write_text(
        "tables: nexmark\nsql: shaky.sql\nkey: [auction, bidder, dateTime]\n"
    )
    (made.conf / "jobs" / "shaky.sql").write_text(
        "SELECT auction, bidder, dateTime, CAST(rand() * 1000 AS INT) AS drawn FROM bid\n"
    )
    write_jobs(made.conf, tmp_path_factory.mktemp("orders"), build, MARKER.decode())
    write_job(made.conf, tmp_path_factory.mktemp("spending"))
    yield made
    made.stop()


@pytest.fixture(scope="package")
def watching() -> Processes:
    """What all processes show while the two nights run."""
    return Processes()


@contextmanager
def shell_of_a_stranger() -> Iterator[None]:
    """Set variables that must not reach a night, as the shell of who starts it may have them.

    Only while something is started: a fixture of a package lives as long as the session.
    """
    connection = {"conn_type": "ssh", "host": "x", "password": f"{MARKER.decode()}-connection"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEXMARK_AIRFLOW_TOKEN", f"{MARKER.decode()}-token")
        patch.setenv("AIRFLOW_CONN_ELSEWHERE", json.dumps(connection))
        patch.setenv("SERVICE_PASSWORD", f"{MARKER.decode()}-environment")
        patch.setenv("LC_ALL", "C")
        for name, value in FOREIGN.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="package")
def green(site: Site, watching: Processes) -> Night:
    site.engine(**confs("1"))
    with shell_of_a_stranger(), watched(site.home, watching):
        return site.night("--queries", ",".join(["q5", "mine", OWN_FILES, *APPLICATIONS]))


@pytest.fixture(scope="package")
def run(green: Night) -> str:
    """The name of the green night."""
    return run_name(green)


@pytest.fixture(scope="package")
def accepted(site: Site, run: str) -> Night:
    """The acceptance through its DAG, as a person triggers it in Airflow."""
    with shell_of_a_stranger(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEXMARK_HOME", str(site.home))
        patch.setenv("NEXMARK_CONF", str(site.conf))
        environment = airflow_environment(load())
    conf = json.dumps({"run": run, "by": "ada", "reason": "the first night"})
    command = airflow_command(["dags", "test", "nexmark_accept", "-c", conf])
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="package")
def red(site: Site, accepted: Night, watching: Processes) -> Iterator[Night]:
    """Many state partitions, for which q5 pays; no table is small enough for the broadcast of q13.

    q22 is stateless, and comes after both. A job of a person's own draws random numbers.
    """
    slower = {"spark.sql.shuffle.partitions": 24, "spark.sql.maxBroadcastTableSize": "1b"}
    site.engine(**confs("2"), **slower)
    with shell_of_a_stranger(), watched(site.home, watching):
        night = site.night("--queries", "q5,q13,q22,shaky", "--repetitions", "1")
    yield night
    site.engine()
