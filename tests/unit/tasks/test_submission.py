"""What SparkSubmit is given: the engine's own Spark, the night's own confs, no stranger's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from nexmark.config import BuildSource, load, profile_path
from nexmark.engines import prerequisites
from nexmark.model import Arm
from nexmark.night import applications
from nexmark.night.deployments import Deployment, Deployments
from nexmark.night.machine_problems import find_problems
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.night.night_runs import first_runs, round_runs
from nexmark.night.run_directory import Run, prepare
from nexmark.night.submission import Repetition, read_submission, written
from nexmark.reason import reason_of


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    params = {"workload": "nightly", "cluster": "local", "queries": "q0,q5,q10"}
    night = make_night(load(), "spark-4.3.0", "nexmark_spark_4_3_0", "run 1", params)
    engine = night.engine.model_copy(update={"conf": {"spark.sql.shuffle.partitions": "400"}})
    workload = night.workload.model_copy(update={"generator": {"num_active_people": 50}})
    return night.model_copy(update={"engine": engine, "workload": workload})


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "a.jar").write_bytes(b"a")
    return Deployment(
        program="fedc",
        build="0123456789abcdef",
        spark_version="4.3.0",
        spark_home=str(tmp_path / "spark"),
        source="pypi:4.3.0",
        jobs="fedc",
        jobs_home="/opt/jobs/nexmark_jobs",
    )


@pytest.fixture
def pairs(night: Night, deployment: Deployment) -> tuple[Night, Deployments]:
    """A night of pairs on q0 and q5; the gate is tested by q5."""
    source = night.candidate
    changes = {
        "mode": "paired",
        "against": {"q0": source, "q5": source},
        "self_test": {Arm.CONTROL: "q5", Arm.SLOWED: "q5"},
    }
    accepted = deployment.model_copy(update={"build": "fedcba9876543210"})
    return night.model_copy(update=changes), Deployments(
        candidate=deployment, baselines={"q0": accepted, "q5": accepted}
    )


def repetition(night: Night, deployment: Deployment, query: str, number: int) -> Repetition:
    run = Run(query=query, number=number)
    return applications.repetition_submission(night, Deployments(candidate=deployment), run)


def option(arguments: Sequence[str], name: str) -> str:
    return arguments[arguments.index(name) + 1]


def test_a_repetition_runs_the_timed_size_with_its_event_log(
    night: Night, deployment: Deployment
) -> None:
    made = repetition(night, deployment, "q5", 2)
    arguments = made.application.arguments
    assert made.application.program == "/opt/jobs/nexmark_jobs/run_query.py"
    assert option(arguments, "--events") == "10000000"
    assert option(arguments, "--sink") == "noop"
    assert option(arguments, "--generator") == "num_active_people=50"
    assert option(arguments, "--result") == str(night.query_dir("q5") / "rep-2" / "result.json")
    assert made.application.confs["spark.eventLog.compression.codec"] == "zstd"
    assert (
        made.application.confs["spark.eventLog.dir"]
        == f"file://{night.query_dir('q5')}/rep-2/events"
    )
    assert read_submission(json.loads(json.dumps(written(made)))) == made  # it passes through XCom


def test_the_verification_runs_the_verify_size_and_keeps_the_result(
    night: Night, deployment: Deployment
) -> None:
    made = applications.verify_submission(night, deployment, "q5")
    assert option(made.application.arguments, "--events") == "500000"
    assert option(made.application.arguments, "--sink").startswith("parquet:/")
    assert "spark.eventLog.enabled" not in made.application.confs
    q10 = applications.verify_submission(night, deployment, "q10")
    assert option(q10.application.arguments, "--sink").startswith("filesystem:/")


def test_the_verification_reads_the_boundary_events_as_well(
    night: Night, deployment: Deployment
) -> None:
    made = applications.verify_submission(night, deployment, "q5")
    place = Path(option(made.application.arguments, "--boundary"))
    assert place == night.boundary_dir("q5")
    assert place.parent in made.directories  # emptied before every try
    assert "--boundary" not in repetition(night, deployment, "q5", 1).application.arguments


def test_the_reference_reads_the_events_of_the_verification(
    night: Night, deployment: Deployment
) -> None:
    made = applications.dump_submission(night, deployment)
    verify = applications.verify_submission(night, deployment, "q0")
    for name in ("--events", "--tps", "--seed", "--generator"):
        assert option(made.application.arguments, name) == option(
            verify.application.arguments, name
        )
    assert option(made.application.arguments, "--out") == str(night.events_dir)


def test_spark_is_the_engines_own(night: Night, deployment: Deployment) -> None:
    made = applications.verify_submission(night, deployment, "q0")
    assert made.application.spark_binary == f"{deployment.spark_home}/bin/spark-submit"
    assert made.application.environment["SPARK_HOME"] == deployment.spark_home
    assert made.application.environment["PYTHONPATH"] == ""
    local = night.spark_cluster.state / "scratch" / "local"
    assert made.application.environment["SPARK_SUBMIT_OPTS"] == f"-Djava.io.tmpdir={local}"
    assert made.application.environment["NEXMARK_OWNER"] == night.spark_cluster.mark
    assert made.application.confs["spark.nexmark.build"] == "0123456789abcdef"
    assert made.application.connection == "nexmark_local"


def test_drivers_and_workers_run_on_the_python_that_every_build_supports(
    night: Night, deployment: Deployment
) -> None:
    older = deployment.model_copy(update={"python": "/usr/bin/python3.12"})
    environment = repetition(night, older, "q0", 1).application.environment
    assert environment["PYSPARK_DRIVER_PYTHON"] == "/usr/bin/python3.12"
    assert environment["PYSPARK_PYTHON"] == "/usr/bin/python3.12"


def test_preflight_says_which_python_is_missing(
    night: Night, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prerequisites, "HERE", (3, 13, 5))
    monkeypatch.setenv("PATH", str(tmp_path))
    oldest = night.model_copy(update={"candidate": BuildSource(pypi="3.5.9")})
    problems = list(find_problems(oldest))
    assert any("Spark 3.5.9 runs jobs up to Python 3.12" in problem for problem in problems)
    assert not any("runs jobs" in problem for problem in find_problems(night))


def test_a_home_with_blanks_is_one_path_for_spark(
    night: Night, deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "my Zürich"
    monkeypatch.setenv("NEXMARK_HOME", str(home))
    made = applications.verify_submission(night, deployment, "q0")
    local = home / "clusters" / "local" / "scratch" / "local"
    assert made.application.environment["SPARK_SUBMIT_OPTS"] == f'"-Djava.io.tmpdir={local}"'
    options = made.application.confs["spark.driver.defaultJavaOptions"]
    assert options.endswith(f' "-XX:ArchiveClassesAtExit={made.renames[0][0]}"')
    assert f'"-XX:ArchiveClassesAtExit={home}/archives/' in options
    place = made.application.confs["spark.sql.streaming.checkpointLocation"]
    assert place.startswith(f"file://{home}/clusters/")  # Spark decodes no %20 in it


def test_an_engines_confs_go_on_top_of_the_profile_and_never_over_the_benchmarks(
    night: Night, deployment: Deployment
) -> None:
    made = applications.verify_submission(night, deployment, "q0")
    assert made.application.confs["spark.sql.shuffle.partitions"] == "400"
    assert made.application.confs["spark.executor.memory"] == night.cluster.executor_memory
    profile = profile_path(made.application.profile)
    confs = night.spark_cluster.properties_file(profile).read_text()  # with the night's secret
    assert confs.startswith(profile_path("default").read_text())
    assert "spark.authenticate.secret" in confs.removeprefix(profile_path("default").read_text())


def test_no_two_applications_share_a_checkpoint(night: Night, deployment: Deployment) -> None:
    made = [
        applications.verify_submission(night, deployment, "q0"),
        repetition(night, deployment, "q0", 1),
        repetition(night, deployment, "q0", 2),
        repetition(night, deployment, "q5", 1),
    ]
    roots = {each.application.confs["spark.sql.streaming.checkpointLocation"] for each in made}
    assert len(roots) == 4


def test_a_retry_starts_in_an_empty_directory(tmp_path: Path) -> None:
    work = tmp_path / "q0" / "rep-1"
    (work / "output").mkdir(parents=True)
    (work / "result.json").write_text("half")
    prepare([work, work / "events"])
    assert [p.name for p in work.iterdir()] == ["events"]
    prepare([work])
    assert list(work.iterdir()) == []


def test_the_first_verification_makes_the_class_archive_and_all_drivers_use_it(
    night: Night, deployment: Deployment
) -> None:
    driver, executor = "spark.driver.defaultJavaOptions", "spark.executor.defaultJavaOptions"
    first = applications.verify_submission(night, deployment, "q0")
    ((unfinished, archive),) = first.renames
    assert f"-XX:ArchiveClassesAtExit={unfinished}" in first.application.confs[driver]
    assert driver not in repetition(night, deployment, "q0", 1).application.confs
    archive.parent.mkdir(parents=True)
    archive.touch()
    timed = repetition(night, deployment, "q0", 1).application.confs
    assert timed[driver] == f"-XX:SharedArchiveFile={archive}"
    assert executor not in timed  # nothing touches the JVM that is measured
    quick = {"workload": night.workload.model_copy(update={"conf_profile": "quick"})}
    timed = repetition(night.model_copy(update=quick), deployment, "q0", 1).application.confs
    assert timed[executor] == f"-XX:SharedArchiveFile={archive}"
    dump = applications.dump_submission(night, deployment).application.confs
    assert f"-XX:SharedArchiveFile={archive}" in dump[driver]
    (Path(deployment.spark_home) / "jars" / "b.jar").write_bytes(b"b")
    other = applications.verify_submission(night, deployment, "q0")
    assert other.renames != first.renames


def test_the_class_archive_is_used_by_both_arms_or_by_none(
    pairs: tuple[Night, Deployments], tmp_path: Path
) -> None:
    """Or the driver of one of them would start seconds before the other's."""
    night, deployments = pairs
    elsewhere = deployments.candidate.model_copy(update={"spark_home": str(tmp_path / "other")})
    deployments = Deployments(candidate=deployments.candidate, baselines={"q5": elsewhere})
    driver = "spark.driver.defaultJavaOptions"

    def used() -> list[bool]:
        runs = (Run(query="q5", arm=arm, number=1) for arm in (Arm.CANDIDATE, Arm.BASELINE))
        made = (applications.repetition_submission(night, deployments, run) for run in runs)
        return [driver in each.application.confs for each in made]

    assert used() == [False, False]
    for deployment in (deployments.candidate, deployments.baselines["q5"]):
        assert used() == [False, False]
        made = applications.verify_submission(night, deployment, "q5").renames
        made[0][1].parent.mkdir(parents=True, exist_ok=True)
        made[0][1].touch()
    assert used() == [True, True]


def test_the_reason_of_a_failure_is_the_jobs_own_line() -> None:
    text = "Cannot execute: spark-submit ...\nrun_query.py: error: no such table\nINFO stopping\n"
    assert reason_of(text) == "run_query.py: error: no such table"
    assert reason_of("a\nb\n") == "b"
    assert reason_of("") == "no reason was given"


def test_each_arm_runs_its_own_build_on_its_own_cluster(pairs: tuple[Night, Deployments]) -> None:
    night, deployments = pairs
    candidate, baseline = (
        applications.repetition_submission(night, deployments, Run(query="q0", number=1, arm=arm))
        for arm in ("candidate", "baseline")
    )
    assert candidate.application.confs["spark.nexmark.build"] == "0123456789abcdef"
    assert baseline.application.confs["spark.nexmark.build"] == "fedcba9876543210"
    assert candidate.application.connection == "nexmark_local"
    assert baseline.application.connection == "nexmark_local_baseline"
    assert (
        candidate.application.environment["NEXMARK_OWNER"]
        != baseline.application.environment["NEXMARK_OWNER"]
    )
    assert candidate.directories != baseline.directories


def test_arms_take_turns_and_the_seed_says_which_is_first(
    pairs: tuple[Night, Deployments],
) -> None:
    night, _ = pairs
    order = [(run.number, run.arm) for run in first_runs(night, "q0")]
    assert len(order) == 2 * night.workload.repetitions
    assert order == [(run.number, run.arm) for run in first_runs(night, "q0")]
    arms = [arm for _, arm in order]
    for place in range(0, len(arms) - 3, 4):
        assert set(arms[place : place + 2]) == {"candidate", "baseline"}
        assert arms[place : place + 2] == arms[place + 3 : place + 1 : -1]
    firsts = {
        first_runs(night.model_copy(update={"seed": seed}), "q0")[0].arm for seed in range(20)
    }
    assert firsts == {"candidate", "baseline"}


def test_the_gate_is_tested_by_further_arms_of_a_query(pairs: tuple[Night, Deployments]) -> None:
    night, deployments = pairs
    arms = [run.arm for run in first_runs(night, "q5")]
    assert {arm: arms.count(arm) for arm in set(arms)} == dict.fromkeys(
        ("candidate", "baseline", Arm.CONTROL, Arm.SLOWED), night.workload.repetitions
    )
    slowed = applications.repetition_submission(
        night, deployments, Run(query="q5", number=1, arm=Arm.SLOWED)
    )
    assert option(slowed.application.arguments, "--events") == "12000000"  # a fifth more
    assert option(slowed.application.arguments, "--rows-per-batch") == "1200000"
    assert slowed.application.confs["spark.nexmark.build"] == "fedcba9876543210"


def test_pairs_of_a_later_round_are_others_than_the_first(pairs: tuple[Night, Deployments]) -> None:
    night, _ = pairs
    size = night.workload.model_copy(update={"repetitions": 3})
    gate = night.gate.model_copy(update={"rounds": (3, 4, 8), "pursue_z": (1.0, 1.0)})
    night = night.model_copy(update={"gate": gate, "workload": size})
    first, second, third = (
        first_runs(night, "q0"),
        *(round_runs(night, "q0", ["candidate", "baseline"], number) for number in (2, 3)),
    )
    assert [len(runs) for runs in (first, second, third)] == [6, 8, 16]
    assert [{run.stage for run in runs} for runs in (first, second, third)] == [{1}, {2}, {3}]
    assert len({run.name for run in (*first, *second, *third)}) == 6 + 8 + 16


def test_later_rounds_grow_with_the_first(pairs: tuple[Night, Deployments]) -> None:
    night, _ = pairs
    size = night.workload.model_copy(update={"repetitions": 6})
    gate = night.gate.model_copy(update={"rounds": (3, 4), "pursue_z": (1.0,)})
    night = night.model_copy(update={"gate": gate, "workload": size})
    assert len(round_runs(night, "q0", ["candidate", "baseline"], 2)) == 2 * 8
