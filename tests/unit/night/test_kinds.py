"""A new kind of night is one class and one entry: nothing else asks which kind a night is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from nexmark.acceptance.accepted_baselines import self_test_of
from nexmark.config import Size, load
from nexmark.config.workload_models import OwnSize
from nexmark.model import GROWTH, P50, TASK_CPU, Arm
from nexmark.night import kinds
from nexmark.night.applications import repetition_submission, verify_submission
from nexmark.night.deployments import Deployments
from nexmark.night.kinds import KINDS, kind_of
from nexmark.night.kinds.bounded import Bounded
from nexmark.night.kinds.night_kind import JobProgram, Ready
from nexmark.night.machine_problems import find_problems
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.night.run_directory import ApplicationDirectory, Run
from nexmark.night.submission import Repetition
from nexmark.recording import flight_recordings
from tests.unit.night.deployed import deployed

TWICE = ("soak", "datagen")


class Twice(Bounded):
    """Runs a query twice over the same events, and counts how often it did so."""

    has_flame_graphs = False
    has_slowed_arm = False

    def problems(self, night: Night) -> list[str]:
        return ["soak: lasts longer than a night"]

    def program(self, night: Night, run: Run) -> JobProgram:
        return JobProgram(name="soak_query.py", arguments=("--query", run.query))

    def confs(self, night: Night, run: Run) -> dict[str, str]:
        return {"spark.sql.shuffle.partitions": "3"}

    def directories(self, night: Night, run: Run) -> tuple[Path, ...]:
        return (night.directory / "soaked",)

    def run(
        self, night: Night, submission: Repetition, ready: Ready, connect: Callable[[], Any]
    ) -> None:
        for _ in range(2):
            super().run(night, submission, ready, connect)

    def figures(
        self, night: Night, directory: ApplicationDirectory, size: Size, read_rate: float
    ) -> dict[str, float]:
        return {"soaked": 2.0}

    def leftovers(self, night: Night) -> tuple[Path, ...]:
        return (night.directory / "soaked",)


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    """A night of a kind that is one class, above, and one entry."""
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(KINDS, TWICE, Twice())
    config = load()
    workload = config.workloads["smoke"].model_copy(update={"kind": "soak"})
    config = config.model_copy(update={"workloads": {"soak": workload}})
    params = {"workload": "soak", "cluster": "local", "queries": "q0,q5"}
    return make_night(config, "spark-4.3.0", "nexmark_spark_4_3_0", "run 1", params)


@pytest.fixture
def deployments(tmp_path: Path) -> Deployments:
    return deployed(tmp_path, ["q5"])


def test_a_kind_is_planned_by_its_own_class(night: Night) -> None:
    assert isinstance(kind_of(night.workload), Twice)
    assert "soak: lasts longer than a night" in list(find_problems(night))
    assert list(self_test_of(night, ["q0", "q5"], 0)) == [Arm.CONTROL]
    assert not flight_recordings.can_record(night)


def test_a_kind_says_what_its_repetitions_run(night: Night, deployments: Deployments) -> None:
    made = repetition_submission(night, deployments, Run(query="q5", number=1))
    assert made.application.program == "/jobs/soak_query.py"
    assert made.application.arguments == ("--query", "q5")
    assert made.application.confs["spark.sql.shuffle.partitions"] == "3"
    assert night.directory / "soaked" in made.directories
    verified = verify_submission(night, deployments.candidate, "q5").application
    assert verified.program == "/jobs/run_query.py"
    assert verified.confs["spark.sql.shuffle.partitions"] != "3"


def test_a_kind_says_what_runs_beside_and_what_is_measured(
    night: Night, deployments: Deployments
) -> None:
    ran: list[Sequence[str]] = []

    def ready(arguments: Sequence[str], confs: Mapping[str, str]) -> Callable[[], object]:
        return lambda: ran.append(arguments)

    made = repetition_submission(night, deployments, Run(query="q5", number=1))
    kind = kind_of(night.workload)
    kind.run(night, made, ready, lambda: pytest.fail("it reads no Kafka"))
    assert ran == [("--query", "q5")] * 2
    assert kind.figures(night, made.directory, night.workload, 1.0) == {"soaked": 2.0}


def test_a_query_reads_the_events_that_its_workload_gives_to_it(
    deployments: Deployments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    config = load()
    size = OwnSize(events=300_000, rows_per_batch=100_000)
    workload = config.workloads["smoke"].model_copy(update={"sizes": {"q0": size}})
    config = config.model_copy(update={"workloads": {"smoke": workload}})
    params = {"workload": "smoke", "cluster": "local", "queries": "q0,q5"}
    made = make_night(config, "spark-4.3.0", "nexmark_spark_4_3_0", "run 1", params)

    def events(query: str, arm: str) -> str:
        arguments = kind_of(workload).program(made, Run(query=query, number=1, arm=arm)).arguments
        return arguments[arguments.index("--events") + 1]

    assert events("q0", Arm.CANDIDATE) == "300000"
    assert events("q0", Arm.SLOWED) == str(round(300_000 * (1 + made.gate.self_test)))
    assert events("q5", Arm.CANDIDATE) == "100000"
    assert (workload.size_of("q0").rows_per_batch, workload.size_of("q0").tps) == (100_000, 1_000)
    assert workload.size_of("q5").rows_per_batch == 50_000
    assert workload.verifies_the_timed_input("q5")
    assert not workload.verifies_the_timed_input("q0")


def test_the_kinds_of_the_workloads_are_known() -> None:
    config = load()
    found = {name: type(kind_of(x)).__name__ for name, x in config.workloads.items()}
    assert found["smoke"] == found["nightly"] == "Bounded"
    assert (found["kafka"], found["latency"]) == ("ReadsKafka", "Paced")
    assert (found["realtime"], found["recovery"]) == ("Paced", "Recovered")
    assert found["soak"] == "Soaked"
    by_pairs = {name for name, x in config.workloads.items() if x.kind != "bounded"}
    assert by_pairs == {
        name for name, x in config.workloads.items() if kind_of(x).is_judged_by_pairs_only
    }
    gates = {name: kind_of(x).gate(config.gate) for name, x in config.workloads.items()}
    metrics = {name: gate.metric for name, gate in gates.items()}
    assert (metrics["smoke"], metrics["kafka"]) == (TASK_CPU, TASK_CPU)
    assert (metrics["latency"], metrics["recovery"]) == (P50, config.gate.recovery_metric)
    assert (metrics["soak"], gates["soak"].rounds) == (GROWTH, config.gate.soak_rounds)


def test_no_module_tests_for_the_kind_of_a_night() -> None:
    """What differs from kind to kind is in `kinds`; `config` checks what is written."""
    package = Path(kinds.__file__).parents[2]
    tests = re.compile(r"is_paced|workload\.kind\b|workload\.source\b|workload\.recovery\b")
    rooms = ("night", "sampling", "recording", "acceptance", "tasks", "dag", "evidence", "store")
    found = {
        f"{path.relative_to(package)}: {line.strip()}"
        for pattern in ("*.py", *(f"{room}/*.py" for room in (*rooms, "report", "web")))
        for path in package.glob(pattern)
        for line in path.read_text().splitlines()
        if tests.search(line) and "kind_of(" not in line
    }
    named = {line for line in found if "is of kind" in line}
    assert found - named == set()


@pytest.mark.parametrize("name", ["bounded", "paced"])
def test_the_name_of_a_kind_stands_once(name: str) -> None:
    """It is `WorkloadKind`'s; `recovery` is a key and a room, too."""
    package = Path(kinds.__file__).parents[2]
    files = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if f'"{name}"' in path.read_text()
    }
    assert files == {"config/workload_models.py"}
