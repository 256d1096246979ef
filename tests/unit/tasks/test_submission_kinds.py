"""A submission says by its type what happens around it, and is read as it was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from nexmark.config import load
from nexmark.model import FIRST_ROUND, PROFILED, Arm
from nexmark.night.applications import dump_submission, repetition_submission, verify_submission
from nexmark.night.deployments import Deployment, Deployments
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.night.run_directory import Run, RunDirectory
from nexmark.night.submission import (
    NextTurn,
    NothingToSubmit,
    QueryVerification,
    Repetition,
    SharedVerification,
    Submission,
    read_submission,
    written,
)
from nexmark.night.verification import plan_together

#: A workload of each kind of night.
WORKLOADS = ("smoke", "kafka", "latency", "recovery")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def deployments(tmp_path: Path, night: Night) -> Deployments:
    (tmp_path / "spark" / "jars").mkdir(parents=True, exist_ok=True)
    home = str(tmp_path / "spark")
    deployment = Deployment(
        build="0123456789abcdef",
        spark_version="4.3.0",
        spark_home=home,
        source="pypi:4.3.0",
        jobs="fedc",
        jobs_home="/opt/jobs/nexmark_jobs",
        program="0123",
    )
    return Deployments(candidate=deployment, baselines=dict.fromkeys(night.queries, deployment))


def planned(workload: str, **params: Any) -> Night:
    params = {"workload": workload, "cluster": "local", **params}
    night = make_night(load(), "spark-4.3.0", "nexmark_spark_4_3_0", "run 1", params)
    if night.workload.source == "kafka":
        night.directory.mkdir(parents=True, exist_ok=True)
        night.files.kafka.write_text('{"servers": "127.0.0.1:9092"}')
    return night


def made(night: Night, tmp_path: Path) -> list[Submission]:
    """Every kind of application of a night."""
    builds, query = deployments(tmp_path, night), night.queries[0]
    together = plan_together(night, builds.candidate)
    assert isinstance(together, SharedVerification)
    runs = [
        Run(query=query, number=1, arm=arm, stage=x)
        for arm in Arm
        for x in (FIRST_ROUND, 2, PROFILED)
    ]
    return [
        dump_submission(night, builds.candidate),
        verify_submission(night, builds.candidate, query),
        together,
        *(repetition_submission(night, builds, run) for run in runs),
    ]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_each_is_read_from_json_as_it_was_written(
    home: Path, tmp_path: Path, workload: str
) -> None:
    for each in made(planned(workload), tmp_path):
        again = read_submission(json.loads(json.dumps(written(each))))  # type: ignore[arg-type]
        assert (type(again), again) == (type(each), each)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_to_make_one_writes_nothing(home: Path, tmp_path: Path, workload: str) -> None:
    night = planned(workload)
    before = sorted(home.rglob("*"))
    made(night, tmp_path)
    assert sorted(home.rglob("*")) == before


def test_only_a_repetition_with_a_flight_recorder_is_ignored(home: Path, tmp_path: Path) -> None:
    night = planned("smoke")
    builds = deployments(tmp_path, night)
    outcomes = {
        stage: repetition_submission(night, builds, Run(query="q5", number=1, stage=stage)).outcome
        for stage in (FIRST_ROUND, 2, PROFILED)
    }
    assert outcomes == {
        FIRST_ROUND: "counts",
        2: "counts",
        PROFILED: "ignored",
    }


def test_a_repetition_is_named_by_its_build_and_number(home: Path, tmp_path: Path) -> None:
    """As Airflow's pages name the instance of the mapped task; the others keep their labels."""
    night = planned("smoke")
    builds = deployments(tmp_path, night)
    old = builds.candidate.model_copy(update={"spark_version": "4.2.1"})
    builds = builds.model_copy(update={"baselines": {"q5": old}})
    runs = [Run(query="q5", number=2), Run(query="q5", number=3, arm=Arm.BASELINE, stage=2)]
    assert [repetition_submission(night, builds, run).instance_name for run in runs] == [
        "q5: 4.3.0 candidate, repetition 2",
        "q5: 4.2.1 baseline, repetition 3",
    ]
    dump = dump_submission(night, builds.candidate)
    assert dump.instance_name == dump.label


def test_the_next_turn_is_the_next_submission_of_its_file(home: Path, tmp_path: Path) -> None:
    night = planned("smoke")
    builds = deployments(tmp_path, night)
    each = [repetition_submission(night, builds, Run(query="q5", number=n)) for n in (1, 2)]
    turns = RunDirectory(tmp_path).group("q5").turns
    turns.write([written(one) for one in each])
    turn = read_submission(written(NextTurn(turns=turns.path)))
    assert isinstance(turn, NextTurn)
    assert [turn.claim(instance) for instance in (1, 0, 1)] == [each[0], each[1], each[0]]


def test_one_query_is_not_verified_together_with_others(home: Path, tmp_path: Path) -> None:
    night = planned("smoke", queries="q5")
    together = plan_together(night, deployments(tmp_path, night).candidate)
    assert isinstance(together, NothingToSubmit)
    assert read_submission(written(together)) == together


@pytest.mark.parametrize(
    "change",
    [{"kind": "another"}, {"kind": None}, {"directories": []}, {"query": 5}, {"more": 1}],
    ids=str,
)
def test_what_is_no_submission_is_refused(
    home: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    night = planned("smoke")
    right = verify_submission(night, deployments(tmp_path, night).candidate, "q5")
    assert isinstance(read_submission(written(right)), QueryVerification)
    with pytest.raises(ValidationError):
        read_submission(written(right) | change)


def test_none_can_be_changed(home: Path, tmp_path: Path) -> None:
    night = planned("smoke")
    one = repetition_submission(night, deployments(tmp_path, night), Run(query="q5", number=1))
    assert isinstance(one, Repetition)
    with pytest.raises(ValidationError):
        one.outcome = "ignored"  # type: ignore[misc]
