"""A workload may say how a query is computed; else each build computes it as well as it can."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from nexmark.config import Workload, load
from nexmark.config.load import with_sizes
from nexmark.config.own_jobs import read_job
from nexmark.jobs.job_template import write_new
from nexmark.model import Arm
from nexmark.night.applications import repetition_submission, verify_submission
from nexmark.night.machine_problems import find_problems
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.night.run_directory import Run
from nexmark_jobs.queries import QUERIES
from tests.unit.night.deployed import deployed

SIZE = {"events": 120_000, "tps": 1_000, "rows_per_batch": 20_000}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))


def night(against: str = "pypi:4.2.1", **formulations: str) -> Night:
    config = load()
    workload = config.workloads["compare-engine"]
    chosen = workload.model_copy(update={"formulations": {**workload.formulations, **formulations}})
    config = config.model_copy(update={"workloads": {**config.workloads, workload.name: chosen}})
    params = {"workload": workload.name, "cluster": "local", "against": against}
    return make_night(config, "spark-4.3.0", "nexmark_spark_4_3_0", "run 1", params)


def refusals(planned: Night) -> list[str]:
    return [problem for problem in find_problems(planned) if "formulations." in problem]


@pytest.mark.parametrize("arm", [Arm.CANDIDATE, Arm.BASELINE])
def test_both_builds_compute_a_query_as_the_workload_says(tmp_path: Path, arm: Arm) -> None:
    planned = night()
    deployments = deployed(tmp_path, ["q7"])
    run = Run(query="q7", arm=arm, number=1)
    verified = verify_submission(planned, deployments.candidate, "q7").application
    for application in (repetition_submission(planned, deployments, run).application, verified):
        at = application.arguments.index("--formulation")
        assert application.arguments[at + 1] == "join"


def test_every_release_runs_the_formulations_of_the_engine_alone() -> None:
    assert refusals(night("pypi:3.5.9")) == []
    differing = [name for name, each in QUERIES.items() if each.formulations[0].min_spark > (3, 5)]
    assert list(load().workloads["compare-engine"].formulations) == differing


def test_a_formulation_that_a_build_cannot_run_is_refused_before_anything_starts() -> None:
    planned = night(q7="max_by_k")
    problem = "q7 has no 'max_by_k' on Spark 4.2.1; use one of join"
    assert refusals(planned) == [f"workload compare-engine: formulations.q7: {problem}"]
    unknown = refusals(night(q7="joined"))
    assert unknown[0].endswith("has no 'joined' on Spark 4.3.0; use one of max_by_k, join")
    assert len(unknown) == 2


def test_a_job_of_a_persons_own_has_no_other_formulation(tmp_path: Path) -> None:
    write_new("busy_auctions", tmp_path)
    job = read_job(tmp_path / "jobs" / "busy_auctions.yaml")
    planned = night(busy_auctions="join")
    named = planned.model_copy(update={"queries": (job.name,), "jobs": {job.name: job}})
    (problem,) = refusals(named)
    assert problem.endswith(
        "formulations.busy_auctions: a job of your own is computed in one way; remove it"
    )


def test_formulations_belong_to_kinds_that_run_a_query_to_its_end() -> None:
    given = {"kind": "paced", "rate": 1_000, "seconds": 10, "warm_up": 5, "source": "kafka"}
    more = {"partitions": 2, "trigger": "micro-batch", "verify": SIZE, "queries": ("q0",)}
    with pytest.raises(ValidationError, match="formulations belongs to kind: bounded or soak"):
        Workload.model_validate(
            {"name": "mine", "formulations": {"q7": "join"}, **with_sizes({**given, **more})}
        )
