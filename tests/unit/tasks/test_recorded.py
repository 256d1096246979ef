"""Repetitions with a flight recorder: which there are, and that they can cost nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk.exceptions import AirflowException, DownstreamTasksSkipped

from nexmark.cluster import ClusterError, LocalCluster
from nexmark.config import load
from nexmark.dag.graph import build_nightly_dag
from nexmark.dag.submit_operator import NexmarkSubmitOperator
from nexmark.flames.flame_files import flames_of
from nexmark.model import FLAMES, PROFILED, round_group
from nexmark.night import applications
from nexmark.night.deployments import Deployment, Deployments
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.night.night_runs import recorded_runs, round_runs, runs_of
from nexmark.night.run_directory import Run, TaskDirectory
from nexmark.night.submission import Repetition, written
from nexmark.night.verification import Verification
from nexmark.recording import flight_recordings
from nexmark.recording.night_records import record_night
from nexmark.store import Store, open_store
from nexmark.tasks import rounds
from tests.unit.measure.sample_builder import result as run_result
from tests.unit.measure.test_executor_work import ADDED, APP, log
from tests.unit.tasks.in_task import in_task_of

EXECUTOR, DRIVER = "spark.executor.defaultJavaOptions", "spark.driver.defaultJavaOptions"


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    return Deployment(
        program="fedc",
        build="0123456789abcdef",
        spark_version="4.3.0",
        spark_home=str(tmp_path / "spark"),
        source="pypi:4.3.0",
        jobs="fedc",
        jobs_home="/opt/jobs",
    )


@pytest.fixture
def deployments(deployment: Deployment) -> Deployments:
    return Deployments(candidate=deployment, baselines={"q5": deployment})


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deployments: Deployments) -> Night:
    """A night of pairs on q5."""
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NEXMARK_DB", raising=False)
    params = {"workload": "nightly", "cluster": "local", "queries": "q5"}
    made = make_night(load(), "spark-4.3.0", "nexmark_spark_4_3_0", "run 1", params)
    made = made.model_copy(update={"mode": "paired", "against": {"q5": made.candidate}})
    made.write()
    deployments.write(made)
    record_night(made, deployments)
    in_task_of(made, monkeypatch)
    return made


@pytest.fixture
def store(night: Night, tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path / 'home' / 'results.db'}") as opened:
        yield opened


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "said.txt"
    path.touch()
    monkeypatch.setenv("NEXMARK_PROGRESS", str(path))
    return path


@pytest.fixture
def dag(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rounds are planned in a task of the real DAG."""
    config = load()
    of_engine = build_nightly_dag(config.newest, config)
    monkeypatch.setattr(rounds, "get_current_context", lambda: {"dag": of_engine})


@pytest.mark.usefixtures("dag")
class TestRound:
    """What goes on is measured on, and what follows is skipped where nothing does."""

    def planned(
        self,
        night: Night,
        monkeypatch: pytest.MonkeyPatch,
        going: dict[str, list[str]],
        number: int = 2,
    ) -> list[Run]:
        in_task_of(night, monkeypatch)
        monkeypatch.setattr(rounds, "arms_going_on", lambda night, store, number: going)
        rounds.plan_round(number)
        return runs_of(night, round_group(number))

    def test_what_goes_on_runs_in_turns_with_the_baseline(
        self, night: Night, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plan = self.planned(night, monkeypatch, {"q5": ["candidate", "slowed"]})
        assert plan == round_runs(night, "q5", ["candidate", "slowed", "baseline"], 2)
        assert {run.group for run in plan} == {"round_2"}
        assert {run.name for run in plan if run.number == 1} == {
            "round-2-rep-1",
            "round-2-slowed-rep-1",
            "round-2-baseline-rep-1",
        }

    @pytest.mark.parametrize("number", [2, 3])
    def test_each_round_has_its_number_of_pairs(
        self, night: Night, monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        gate = night.gate.model_copy(update={"rounds": (5, 4, 7), "pursue_z": (1.0, 1.0)})
        size = night.workload.model_copy(update={"repetitions": 5})
        night = night.model_copy(update={"gate": gate, "workload": size})
        plan = self.planned(night, monkeypatch, {"q5": ["candidate"]}, number)
        assert len(plan) == 2 * gate.rounds[number - 1]

    def test_where_nothing_goes_on_this_round_and_all_later_ones_are_skipped(
        self, night: Night, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(DownstreamTasksSkipped) as skipped:
            self.planned(night, monkeypatch, {}, 3)
        tasks = set(skipped.value.tasks)
        assert {"round_3.start_samplers", "round_4.plan", "round_4.record"} <= tasks
        assert not {"round_3.plan", "round_2.record", "flames.plan", "judge"} & tasks

    def test_a_round_that_the_gate_of_the_night_does_not_have_is_skipped(
        self, night: Night, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The DAG has the rounds of a night; one with rules of its own may have fewer."""
        gate = night.gate.model_copy(update={"rounds": (5, 4), "pursue_z": (1.0,)})
        night = night.model_copy(update={"gate": gate})
        with pytest.raises(DownstreamTasksSkipped):
            self.planned(night, monkeypatch, {"q5": ["candidate"]}, 3)


@pytest.mark.usefixtures("dag")
class TestPlan:
    def planned(
        self, night: Night, monkeypatch: pytest.MonkeyPatch, changed: list[str]
    ) -> list[Run]:
        in_task_of(night, monkeypatch)
        monkeypatch.setattr(rounds, "changed_queries", lambda night, store: changed)
        rounds.plan_recordings()
        return runs_of(night, FLAMES)

    def test_what_has_changed_runs_once_more_per_arm(
        self, night: Night, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plan = self.planned(night, monkeypatch, ["q5"])
        assert [run.stage for run in plan] == [PROFILED, PROFILED]
        assert {run.name for run in plan} == {"recorded-rep-1", "recorded-baseline-rep-1"}
        assert {run.group for run in plan} == {FLAMES}

    def test_where_nothing_has_changed_nothing_is_recorded(
        self, night: Night, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(DownstreamTasksSkipped) as skipped:
            self.planned(night, monkeypatch, [])
        tasks = set(skipped.value.tasks)
        assert "flames.draw" in tasks
        assert "flames.plan" not in tasks

    def test_it_can_be_switched_off(self, night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
        gate = night.gate.model_copy(update={"flame_graphs": False})
        with pytest.raises(DownstreamTasksSkipped):
            self.planned(night.model_copy(update={"gate": gate}), monkeypatch, ["q5"])

    def test_a_jdk_without_a_recorder_is_reported_and_nothing_is_recorded(
        self, night: Night, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: Path
    ) -> None:
        (tmp_path / "jre" / "bin").mkdir(parents=True)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jre"))
        with pytest.raises(DownstreamTasksSkipped):
            self.planned(night, monkeypatch, ["q5"])
        assert "no flame graphs: this JDK has no flight recorder" in said.read_text()


class TestSubmission:
    def made(self, night: Night, deployments: Deployments, run: Run) -> Repetition:
        return applications.repetition_submission(night, deployments, run)

    def test_only_its_executors_run_with_the_recorder(
        self, night: Night, deployments: Deployments
    ) -> None:
        for run in recorded_runs(night, "q5"):
            made = self.made(night, deployments, run)
            options = made.application.confs[EXECUTOR].split(" ")
            (start,) = (x for x in options if x.startswith("-XX:StartFlightRecording="))
            assert {"settings=profile", "dumponexit=true", "maxsize=128m"} < set(start.split(","))
            assert "-XX:StartFlightRecording" not in made.application.confs.get(DRIVER, "")
            assert (made.outcome, made.application.arm) == ("ignored", run.arm)
        for run in round_runs(night, "q5", ["candidate", "baseline"], 2):
            made = self.made(night, deployments, run)
            assert EXECUTOR not in made.application.confs
            assert made.counts

    def test_options_of_the_user_stay(self, night: Night, deployments: Deployments) -> None:
        """Spark puts its default options before the extra ones; a night sets no extra ones."""
        conf = {"spark.executor.extraJavaOptions": "-XX:+UseParallelGC"}
        engine = night.engine.model_copy(update={"conf": conf})
        night = night.model_copy(update={"engine": engine})
        made = self.made(night, deployments, recorded_runs(night, "q5")[0]).application.confs
        assert made["spark.executor.extraJavaOptions"] == "-XX:+UseParallelGC"
        assert "StartFlightRecording" in made[EXECUTOR]


class TestFailing:
    """A recorded repetition that fails costs its flame graph, and nothing else."""

    @pytest.fixture(autouse=True)
    def no_links(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Links are kept in XComs, and there is no task instance here."""
        monkeypatch.setattr(NexmarkSubmitOperator, "_keep_links", lambda *_: None)
        monkeypatch.setattr("nexmark.dag.submit_operator.heal", lambda *_: None)

    def operator(self, night: Night, deployments: Deployments, run: Run) -> NexmarkSubmitOperator:
        made = applications.repetition_submission(night, deployments, run)
        return NexmarkSubmitOperator(task_id="fresh", submission=written(made))

    @pytest.fixture
    def failing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object, **more: object) -> None:
            raise AirflowException("Cannot execute: spark-submit\nrun_query.py: error: no heap")

        monkeypatch.setattr(SparkSubmitHook, "submit", fail)

    def test_its_task_does_not_fail_and_says_why(
        self, night: Night, deployments: Deployments, failing: None, said: Path
    ) -> None:
        run = recorded_runs(night, "q5")[0]
        self.operator(night, deployments, run).execute({"ti": None})  # type: ignore[typeddict-item]
        assert said.read_text() == (
            f"q5 {run.name}: no flame graphs, the verdict is not concerned: "
            "run_query.py: error: no heap\n"
        )
        assert (
            TaskDirectory(night.query_dir("q5") / run.name).failure()
            == "run_query.py: error: no heap"
        )

    def test_that_of_any_other_repetition_does(
        self, night: Night, deployments: Deployments, failing: None
    ) -> None:
        run = round_runs(night, "q5", ["candidate", "baseline"], 2)[0]
        with pytest.raises(AirflowException):
            self.operator(night, deployments, run).execute({"ti": None})  # type: ignore[typeddict-item]

    def test_a_recording_that_cannot_be_fetched_is_reported(
        self,
        night: Night,
        deployments: Deployments,
        monkeypatch: pytest.MonkeyPatch,
        said: Path,
    ) -> None:
        run = recorded_runs(night, "q5")[0]
        result = night.query_dir("q5") / run.name / "result.json"
        (result.parent / "events").mkdir(parents=True, exist_ok=True)

        def succeed(*_: object, **more: object) -> None:
            result.write_text(json.dumps(run_result(application_id=APP)))
            log(result.parent / "events", ADDED)

        def lost(*_: object) -> None:
            raise ClusterError("0 of 1 executors wrote a flight recording")

        monkeypatch.setattr(SparkSubmitHook, "submit", succeed)
        monkeypatch.setattr(LocalCluster, "fetch_recordings", lost)
        self.operator(night, deployments, run).execute({"ti": None})  # type: ignore[typeddict-item]
        assert "no flame graphs, the verdict is not concerned: 0 of 1 executors" in said.read_text()
        assert result.exists()

    def test_it_is_recorded_as_what_it_was_and_drawing_says_why_not(
        self, night: Night, store: Store, said: Path
    ) -> None:
        Verification(success=True, failures=(), evaluated=5).write(night.query_dir("q5"))
        runs = recorded_runs(night, "q5")
        night.files.group(FLAMES).write_runs(runs)
        for run in runs:
            TaskDirectory(night.query_dir("q5") / run.name).write_failure(
                "run_query.py: error: no heap"
            )
        rounds.record_later(FLAMES)
        rows = store.repetitions(night.name)
        assert {(row.stage, row.status) for row in rows} == {(PROFILED, "failed")}
        assert "repetition 1, recorded (baseline): FAILED" in said.read_text()
        measured = store.paired_night(night.name)
        assert (measured.invalid, measured.missing) == ({}, {})
        flight_recordings.draw_flames(night)
        found = flames_of(night.files.flames, "q5")
        assert found is not None
        assert found.problem is not None
        assert found.problem.endswith("run_query.py: error: no heap")
        assert "q5: no flame graphs: " in said.read_text()

    def test_a_wrong_one_makes_no_fresh_repetition_wrong(self, night: Night, store: Store) -> None:
        """And they do not outvote it either way: each is judged among its own."""
        Verification(success=True, failures=(), evaluated=5).write(night.query_dir("q5"))
        fresh = [Run(query="q5", number=1, arm=x, stage=2) for x in ("candidate", "baseline")]
        recorded = recorded_runs(night, "q5")
        night.files.group("round_2").write_runs(fresh)
        night.files.group(FLAMES).write_runs(recorded)
        for run in (*fresh, *recorded):
            directory = night.query_dir("q5") / run.name
            directory.mkdir(parents=True)
            content = {
                "schema_version": 1,
                "output_mode": "append",
                "formulation": "panes",
                "input_rows": night.workload.events,
                "output_rows": 116,
                "digest": "right" if run.stage == 2 else run.arm,
            }
            (directory / "result.json").write_text(json.dumps(content))
        rounds.record_later("round_2")
        rounds.record_later(FLAMES)
        reasons = {(row.stage, row.arm): str(row.reason) for row in store.repetitions(night.name)}
        assert "disagree" in reasons[PROFILED, "candidate"]
        assert "disagree" not in reasons[2, "candidate"]
        assert "disagree" not in reasons[2, "baseline"]


def test_nothing_is_drawn_where_nothing_was_recorded(night: Night, said: Path) -> None:
    flight_recordings.draw_flames(night)
    assert said.read_text() == ""
