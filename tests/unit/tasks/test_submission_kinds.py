"""A submission says by its type what happens around it, and is read as it was written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from nexmark.config import load, paths
from nexmark.model import FIRST_ROUND, PROFILED, Arm
from nexmark.night.applications import (
    baseline_verification,
    dump_submission,
    repetition_submission,
    verify_submission,
)
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


@pytest.fixture
def own_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration with the job `busy`, which has a conf and a JAR."""
    conf = tmp_path / "conf"
    shutil.copytree(paths.repository() / "include" / "conf", conf)
    monkeypatch.setenv("NEXMARK_CONF", str(conf))
    write_job(conf / "jobs", "3")
    return conf


def write_job(directory: Path, partitions: str) -> None:
    directory.mkdir(exist_ok=True)
    confs = f"confs: {{spark.sql.shuffle.partitions: {partitions}}}\njars: [busy.jar]\n"
    (directory / "busy.yaml").write_text(f"tables: nexmark\nsql: busy.sql\n{confs}")
    (directory / "busy.sql").write_text("SELECT 1 FROM bid")
    (directory / "busy.jar").write_bytes(b"PK")


def confs_of(submission: Submission) -> tuple[str, str | None]:
    confs = submission.application.confs
    return confs["spark.sql.shuffle.partitions"], confs.get("spark.jars")


@pytest.mark.parametrize("workload", ["smoke", "kafka"])
def test_the_confs_and_jars_of_a_job_are_only_its_own(
    home: Path, tmp_path: Path, own_conf: Path, workload: str
) -> None:
    night = planned(workload, queries="q0,q5,busy")
    builds = deployments(tmp_path, night)
    connector = confs_of(repetition_submission(night, builds, Run(query="q5", number=1)))[1]
    jar = "/opt/jobs/nexmark_jobs/own/busy/busy.jar"
    both = f"{connector},{jar}" if connector else jar
    for arm in (Arm.CANDIDATE, Arm.BASELINE):
        made = repetition_submission(night, builds, Run(query="busy", number=1, arm=arm))
        assert confs_of(made) == ("3", both)
        made = repetition_submission(night, builds, Run(query="q5", number=1, arm=arm))
        assert confs_of(made) == (str(night.cluster.shuffle_partitions), connector)
    assert confs_of(verify_submission(night, builds.candidate, "busy")) == ("3", both)
    baseline = baseline_verification(
        night.model_copy(update={"against": {"busy": night.candidate}}), builds, "busy"
    )
    assert baseline is not None
    assert confs_of(baseline) == ("3", both)
    together = plan_together(night, builds.candidate)
    assert isinstance(together, SharedVerification)
    assert list(together.queries) == ["q0", "q5"]
    assert confs_of(together)[1] == connector


@pytest.mark.parametrize("workload", ["smoke", "kafka"])
def test_the_jars_of_the_engine_stay_beside_the_others(
    home: Path, tmp_path: Path, own_conf: Path, workload: str
) -> None:
    night = planned(workload, queries="q5,busy")
    builds, runs = deployments(tmp_path, night), [Run(query=q, number=1) for q in night.queries]
    engine = night.engine.model_copy(update={"conf": {"spark.jars": "/opt/a.jar"}})
    with_jar = night.model_copy(update={"engine": engine})
    for run in runs:
        without, made = (
            confs_of(repetition_submission(each, builds, run))[1] for each in (night, with_jar)
        )
        assert made == ",".join(filter(None, ["/opt/a.jar", without]))


def test_each_version_of_a_job_has_its_own_confs(
    home: Path, tmp_path: Path, own_conf: Path
) -> None:
    write_job(tmp_path / "changed", "5")
    night = planned("compare", candidate_job=str(tmp_path / "changed"))
    builds = deployments(tmp_path, night)
    runs = [Run(query="busy", number=1, arm=arm) for arm in (Arm.CANDIDATE, Arm.BASELINE)]
    assert [confs_of(repetition_submission(night, builds, run))[0] for run in runs] == ["5", "3"]
    tested = night.model_copy(update={"candidate_conf": {"spark.sql.shuffle.partitions": "7"}})
    assert [confs_of(repetition_submission(tested, builds, run))[0] for run in runs] == ["7", "3"]


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
