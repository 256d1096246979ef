"""A repetition in which an executor did nothing is measured once more, and INVALID after that."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from nexmark.cluster import ClusterError
from nexmark.cluster.remote import RemoteCluster
from nexmark.config import load
from nexmark.dag.submit_operator import NexmarkSubmitOperator, WatchedSubmitHook
from nexmark.model import PROFILED
from nexmark.night.applications import repetition_submission
from nexmark.night.deployments import Deployment, Deployments
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.night.run_directory import GroupDirectory, Run
from nexmark.night.submission import Repetition, written
from nexmark.night.verification import Verification
from nexmark.recording import night_records
from nexmark.recording.night_records import record_night
from nexmark.recording.repetitions import repetition_records
from nexmark.sampling import second_try
from nexmark.store import Store, open_store
from tests.unit.measure.sample_builder import APP, T0, batch, header, proc, result, tick
from tests.unit.tasks.in_task import in_task_of

RUN = Run(query="q5", number=1)
ADDRESSES = {"0": "10.231.7.12", "1": "10.231.7.13"}
NOTHING = (
    "an executor on host nexmark02 ran 0 of 24 tasks (0%, 50% is its share; 0.0 of 45.6 CPU-s)"
)


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    """A night of q5 on two hosts with an executor each."""
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    monkeypatch.delenv("NEXMARK_DB", raising=False)
    params = {"workload": "nightly", "cluster": "namespaces", "queries": "q5", "repetitions": 3}
    made = make_night(load(), "spark-4.3.0", "nexmark_spark_4_3_0", "run 1", params)
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    deployment = Deployment(
        program="fedc",
        build="0123456789abcdef",
        spark_version="4.3.0",
        spark_home=str(tmp_path / "spark"),
        source="pypi:4.3.0",
        jobs="fedc",
        jobs_home="/opt/jobs",
    )
    made.write()
    deployments = Deployments(candidate=deployment)
    deployments.write(made)
    record_night(made, deployments)
    Verification(success=True, failures=()).write(made.query_dir("q5"))
    in_task_of(made, monkeypatch)
    monkeypatch.setattr(RemoteCluster, "copy_samples", copy_samples)
    monkeypatch.setattr(RemoteCluster, "_secret", lambda _: "0" * 64)
    monkeypatch.setattr(second_try, "_PAUSE_S", 0.0)
    lines(
        GroupDirectory(made.query_dir("q5")).driver_samples,
        header(host="here"),
        *(tick(s) for s in range(71)),
    )
    return made


@pytest.fixture
def store(night: Night, tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path / 'results.db'}") as opened:
        yield opened


@pytest.fixture
def submission(night: Night) -> Repetition:
    return repetition_submission(night, Deployments.read(night), RUN)


def copy_samples(cluster: RemoteCluster, query: str, directory: Path) -> None:
    """Both executors are busy from second 0 to 70, whatever tasks they have."""
    for name in ("nexmark02", "nexmark03"):
        ticks = [tick(s, (3, 2, 90 * s, 0)) for s in range(71)]
        path = directory / f"samples-{name}.jsonl"
        lines(path, header(host=name), proc(3, "executor", ppid=2), *ticks)
    ticks = [tick(s) for s in range(71)]
    lines(directory / "samples-nexmark01.jsonl", header(host="nexmark01"), *ticks)


def lines(path: Path, *records: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records))


def ran(night: Night, *, tasks: Mapping[str, int]) -> None:
    """The application of RUN has ended; `tasks` are per executor and batch, of 12 batches."""
    directory = night.query_dir("q5") / RUN.name
    added = [
        {
            "Event": "SparkListenerExecutorAdded",
            "Timestamp": T0 * 1000,
            "Executor ID": executor,
            "Executor Info": {"Host": ADDRESSES[executor], "Total Cores": 1},
        }
        for executor in tasks
    ]
    ended = [
        {
            "Event": "SparkListenerTaskEnd",
            "Stage ID": number,
            "Stage Attempt ID": 0,
            "Task Info": {
                "Executor ID": executor,
                "Launch Time": (T0 + 3 + 4 * number) * 1000,
                "Finish Time": (T0 + 5 + 4 * number) * 1000,
            },
            "Task Metrics": {"Executor Run Time": 2000, "Executor CPU Time": 1_900_000_000},
        }
        for number in range(12)
        for executor, count in tasks.items()
        for _ in range(count)
    ]
    lines(directory / "events" / APP, *added, *ended, {"Event": "SparkListenerApplicationEnd"})
    batches = [batch(n, 2 + 5 * n, 7 + 5 * n, 100_000) for n in range(12)]
    content = result(*batches, workload={"events": night.workload.events})
    content |= {"input_rows": night.workload.events, "output_mode": "update"}
    (directory / "result.json").write_text(json.dumps(content))


EVEN, FROZEN = {"0": 1, "1": 1}, {"1": 2}


class TestAgain:
    def test_it_is_measured_again_once_and_says_why(
        self, night: Night, submission: Repetition
    ) -> None:
        ran(night, tasks=FROZEN)
        assert second_try.measure_again(night, submission)
        assert night.files.application(RUN).dropped() == NOTHING
        assert not second_try.measure_again(night, submission)

    def test_even_shares_are_not_measured_again(self, night: Night, submission: Repetition) -> None:
        ran(night, tasks=EVEN)
        assert not second_try.measure_again(night, submission)
        assert night.files.application(RUN).dropped() is None

    def test_a_host_that_cannot_be_asked_is_left_to_the_record(
        self, night: Night, submission: Repetition, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise ClusterError("host nexmark02: no connection")

        monkeypatch.setattr(RemoteCluster, "copy_samples", fail)
        ran(night, tasks=FROZEN)
        assert not second_try.measure_again(night, submission)

    def test_the_operator_runs_the_application_again_in_the_same_place(
        self, night: Night, submission: Repetition, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """At once, not by Airflow's retry: the partner of the pair would come between."""
        outcomes = iter([FROZEN, EVEN])
        monkeypatch.setattr(
            WatchedSubmitHook, "submit", lambda *_, **__: ran(night, tasks=next(outcomes))
        )
        monkeypatch.setattr(NexmarkSubmitOperator, "_keep_links", lambda *_: None)
        NexmarkSubmitOperator(task_id="repetition", submission=written(submission)).execute(
            {"ti": None}
        )  # type: ignore[typeddict-item]
        assert list(outcomes) == []
        assert not second_try.measure_again(night, submission)

    def test_one_with_a_flight_recorder_is_not(self, night: Night) -> None:
        profiled = Run(query="q5", number=1, stage=PROFILED)
        made = repetition_submission(night, Deployments.read(night), profiled)
        assert not made.counts


class TestRecord:
    def recorded(self, night: Night, store: Store) -> Any:
        directory = night.query_dir("q5")
        copy_samples(night.spark_cluster, "q5", directory)  # type: ignore[arg-type]
        for name in ("nexmark01", "nexmark02", "nexmark03"):
            readings = [{"offset_s": 0.0, "uncertainty_s": 0.01}]
            (directory / f"clock-{name}.json").write_text(json.dumps({"readings": readings}))
        (made,) = repetition_records(night, [RUN], store)
        return made

    def test_a_frozen_executor_makes_it_invalid_with_host_and_share(
        self, night: Night, store: Store
    ) -> None:
        ran(night, tasks=FROZEN)
        made = self.recorded(night, store)
        assert (made.status, made.invalid) == ("invalid", NOTHING)

    def test_even_shares_are_right(self, night: Night, store: Store) -> None:
        ran(night, tasks=EVEN)
        assert self.recorded(night, store).status == "ok"

    def test_without_an_event_log_shares_say_nothing(self, night: Night, store: Store) -> None:
        """A log that cannot be read never makes a repetition invalid."""
        ran(night, tasks=FROZEN)
        (night.query_dir("q5") / RUN.name / "events" / APP).unlink()
        assert self.recorded(night, store).status == "ok"

    def test_the_line_of_one_that_was_measured_again_says_so(
        self, night: Night, store: Store, submission: Repetition
    ) -> None:
        ran(night, tasks=FROZEN)
        assert second_try.measure_again(night, submission)
        ran(night, tasks=EVEN)
        line = night_records.summary(self.recorded(night, store), night)
        assert line.startswith("repetition 1/3 (measured again): 10,000,000 events in 60.0 s")
