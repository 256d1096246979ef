"""No JVM of ours gets a variable of whoever starts it: every way of starting one, to its end.

The programs of the JDK and of Spark are scripts here, which write down their environment.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nexmark.cluster import Lease, Release, identify, open_cluster
from nexmark.compatibility.application import Application, CheckpointRun
from nexmark.config import load
from nexmark.engines import Build, prerequisites
from nexmark.engines.launcher import Launcher
from nexmark.errors import NexmarkError
from nexmark.experiments.local_applications import LocalApplications
from nexmark.flames.jfr import read_recording
from nexmark.kafka import broker, jars
from nexmark.labs import kafka_tools
from nexmark.recovery import mini_hdfs, remote_storage
from nexmark.recovery.daemons import standalone
from nexmark_jobs.host import facts, processes
from nexmark_jobs.host.processes import INHERITED, OWNER_VARIABLE, owned
from tests.foreign_variables import FOREIGN, MARK
from tests.unit.cluster.test_local import free_ports
from tests.waiting import wait_for

MARKED = {OWNER_VARIABLE: "test of foreign variables"}


class Machine:
    """A JDK and a Spark of scripts."""

    def __init__(self, place: Path) -> None:
        self.place, self.seen = place, place / "seen"
        self.seen.mkdir()
        self.java_home, spark = place / "jdk", place / "spark"
        says = 'echo "openjdk version \\"17.0.1\\"" >&2'
        for program in ("jdk/bin/java", "jdk/bin/javac", "jdk/bin/jfr"):
            self._script(place / program, says)
        for program in ("spark/bin/spark-submit", "spark/bin/spark-class"):
            self._script(place / program, "exit 3")
        (spark / "jars").mkdir()
        for jar in ("spark-core_2.13-4.3.0.jar", "hadoop-client-api-3.5.0.jar"):
            (spark / "jars" / jar).touch()
        self.build = Build("0123456789abcdef", "4.3.0", spark, "pypi:4.3.0")

    def _script(self, path: Path, says: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        seen = f'"{self.seen}/.$$" && /bin/mv "{self.seen}/.$$" "{self.seen}/$$"'
        path.write_text(f"#!/bin/bash\n/usr/bin/env -0 > {seen}\n{says}\n")
        path.chmod(0o755)

    def environments(self) -> list[dict[str, str]]:
        """What each program had, without what the shell that runs the scripts adds."""
        whole = (path for path in self.seen.iterdir() if not path.name.startswith("."))
        read = (path.read_bytes().decode().split("\0")[:-1] for path in whole)
        own = {"PWD", "SHLVL", "_", "OLDPWD"}
        found = ([each.split("=", 1) for each in lines] for lines in read)
        return [{name: x for name, x in each if name not in own} for each in found]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("JAVA_HOME", str(made.java_home))
    monkeypatch.setenv("LC_ALL", "C")
    for name, value in FOREIGN.items():
        monkeypatch.setenv(name, value)
    return made


def daemons_of_a_night(machine: Machine) -> None:
    names = ("master_port", "master_ui_port", "worker_port", "worker_ui_port")
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    config = load().clusters["local"].model_copy(update={**ports, "start_timeout_s": 5})
    release = Release("spark-0", "0", machine.build.spark_home)
    lease = Lease("dag", "run", identify(os.getpid()))
    open_cluster(config, machine.place / "home").start(release, machine.place / "logs", lease)


def application_by_a_verb(machine: Machine) -> None:
    launcher = Launcher(machine.build, {}, machine.place, MARKED)
    with launcher.started([], machine.place / "result.json") as process:
        process.wait(10)


def application_of_an_experiment(machine: Machine) -> None:
    work = machine.place / "work"
    work.mkdir()
    LocalApplications(work).run(
        machine.build, "run_query.py", [], confs={}, memory="1g", name="arm", sampled=False
    )


def application_of_two_builds(machine: Machine) -> None:
    Application(machine.build, [CheckpointRun("q1", [], {})], machine.place / "work").run(
        lambda _: None
    )


def daemons_of_a_recovery(machine: Machine) -> None:
    with standalone(machine.build, machine.place, MARKED):
        wait_for(lambda: not owned(MARKED[OWNER_VARIABLE]))  # they end by themselves


def compiler_of_remote_storage(machine: Machine) -> None:
    remote_storage.compiled(machine.build, machine.place / "classes")


def hdfs(machine: Machine) -> None:
    with mini_hdfs.mini_hdfs(machine.place, MARKED, lambda _: None):
        pass


def kafka_broker(machine: Machine) -> None:
    brokers = broker.LocalBrokers(machine.place / "kafka", MARKED[OWNER_VARIABLE])
    brokers.up(1, free_ports(1)[0], lambda _: None)


def kafka_tool(machine: Machine) -> None:
    made = kafka_tools.Tools("127.0.0.1:1", {}, lambda _: None)
    with made.producer("topic", 1, 1, "all") as figures:
        figures()


def ivy(machine: Machine) -> None:
    jars.jars("connector-4.2.0", lambda _: None)


def flight_recordings(machine: Machine) -> None:
    list(read_recording(machine.place / "x.jfr"))


def version_of_java(machine: Machine) -> None:
    assert prerequisites.java_version()


def facts_of_a_host(machine: Machine) -> None:
    facts.main({"java_home": str(machine.java_home), "busy_window_s": 0})


def process_on_a_host(machine: Machine) -> None:
    program, log = str(machine.build.spark_home / "bin" / "spark-class"), machine.place / "log"
    request = {"command": [program], "environment": {}, "mark": "x", "log": str(log)}
    started = processes.main({"do": "start", **request})
    process = processes.Process(started["pid"], started["start_ticks"])
    wait_for(lambda: not process.alive)  # it ends by itself, once it has written what it sees


STARTERS: tuple[Callable[[Machine], None], ...] = (
    *(daemons_of_a_night, application_by_a_verb, application_of_an_experiment),
    *(application_of_two_builds, daemons_of_a_recovery, compiler_of_remote_storage, hdfs),
    *(kafka_broker, kafka_tool, ivy, flight_recordings, version_of_java, facts_of_a_host),
    process_on_a_host,
)


@pytest.mark.parametrize("start", STARTERS, ids=lambda start: start.__name__)
def test_nothing_of_the_callers_reaches(
    start: Callable[[Machine], None], machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    if start in (hdfs, kafka_broker, kafka_tool):  # the jars are another test's
        for module in (mini_hdfs, broker, kafka_tools):
            monkeypatch.setattr(module, "jars", lambda *_: [])
    with contextlib.suppress(NexmarkError):  # these programs do nothing
        start(machine)
    found = machine.environments()
    assert found
    for environment in found:
        assert [name for name, value in environment.items() if MARK in value] == []
        assert environment["LC_ALL"] == "C.UTF-8"


def test_only_what_finds_programs_files_and_tickets_is_let_in() -> None:
    assert set(processes.plain_environment()) <= {*INHERITED, "LC_ALL"}
    assert not {"SERVICE_PASSWORD", "LD_PRELOAD", "LANG"} & set(INHERITED)
