"""`nexmark soak`: how many batches, and what is refused before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nexmark.cli import night_runner
from nexmark.cli.app import main
from nexmark.config import BUILD_DAG_ID, load, paths
from nexmark.errors import NexmarkError
from nexmark.model import GROWTH
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.store import open_store
from tests.unit.store.store_builder import measurement, night, repetition

BUILDS = ["--build", "pypi:4.3.0", "--against", "pypi:4.2.1"]


def planned(**params: Any) -> Night:
    given = {"build": "pypi:4.3.0", "against": "pypi:4.2.1", "cluster": "local", **params}
    return make_night(load(), "spark-4.3.0", BUILD_DAG_ID, "run 1", given)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """The params of each run that the command starts."""
    runs: list[Mapping[str, Any]] = []

    def run_night(_: object, dag: str, engine: str, params: Mapping[str, Any]) -> int:
        runs.append({"dag": dag, "engine": engine, **params})
        return 0

    monkeypatch.setattr(night_runner, "run_night", run_night)
    return runs


def test_a_soak_has_the_asked_batches_for_every_query() -> None:
    night = planned(workload="soak", batches=5_000)
    assert {night.workload.size_of(query).events for query in night.queries} == {1_000_000}
    assert night.workload.pause_every("q0") == 594
    assert (night.gate.metric, night.gate.rounds) == (GROWTH, (1, 1, 1))


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"workload": "small", "batches": 5_000}, "only a soak workload takes a number of batches"),
        ({"workload": "soak", "batches": 260}, "batches: workload soak: .*too few for 9 samples"),
    ],
)
def test_batches_that_cannot_be_measured_are_refused(params: Any, problem: str) -> None:
    with pytest.raises(NexmarkError, match=problem):
        planned(**params)


def test_the_command_starts_a_build_on_demand(started: list[Mapping[str, Any]]) -> None:
    assert main(["soak", *BUILDS, "--queries", "q0,q5", "--batches", "5000"]) == 0
    (run,) = started
    assert (run["dag"], run["workload"], run["batches"]) == (BUILD_DAG_ID, "soak", 5000)
    assert (run["build"], run["against"], run["queries"]) == ("pypi:4.3.0", "pypi:4.2.1", "q0,q5")


def test_a_changed_job_is_soaked_on_the_build_of_the_engine(
    started: list[Mapping[str, Any]], tmp_path: Path
) -> None:
    assert main(["soak", "--candidate-job", str(tmp_path), "--batches", "5000"]) == 0
    (run,) = started
    assert run["candidate_job"] == str(tmp_path)
    assert run["build"].startswith("pypi:")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["--batches", "5000", "--hours", "2"], "--batches is given as well"),
        (["--hours", "2", "--queries", "q5"], "there are no results yet"),
        (["--hours", "2", "--candidate-job", "."], "name the changed jobs by --queries"),
        (["--batches", "7"], "100"),
    ],
)
def test_what_cannot_be_planned_is_said_before(
    started: list[Mapping[str, Any]],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
    given: list[str],
    problem: str,
) -> None:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    assert main(["soak", *BUILDS, *given]) != 0
    assert problem in capsys.readouterr().err
    assert started == []


@pytest.mark.parametrize(
    ("kept", "problem"), [({}, "no soak of q5 has run on cluster local"), ({"soak": "local"}, "")]
)
def test_hours_are_batches_by_the_last_soak(
    started: list[Mapping[str, Any]],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
    kept: dict[str, str],
    problem: str,
) -> None:
    """A batch takes half a second, so that two pairs have 3,600 of them in two hours."""
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    with open_store(paths.database_url()) as store:
        for workload, cluster in kept.items():
            done = night(workload=workload, cluster=cluster)
            measured = measurement(wall_s=300.0, batches=600)
            store.record_night(done)
            store.record_repetition(repetition(done.run, "q5", measurement=measured))
    code = main(["soak", *BUILDS, "--queries", "q5", "--hours", "2"])
    assert problem in capsys.readouterr().err
    expected = [] if problem else [(3600, 120.0)]
    assert [(run["batches"], run["budget_minutes"]) for run in started] == expected
    assert bool(code) is bool(problem)
