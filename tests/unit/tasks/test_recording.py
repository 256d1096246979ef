"""A repetition that is wrong, unmeasured or absent is recorded as that, never left out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nexmark.config import load
from nexmark.dag.graph import build_nightly_dag, build_on_demand_dag
from nexmark.dag.signoff import build_signoff_dag
from nexmark.night.deployments import Deployment, Deployments
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.night.night_runs import first_runs
from nexmark.night.run_directory import (
    ApplicationSpan,
    TaskDirectory,
    TurnFile,
)
from nexmark.night.verification import Verification
from nexmark.recording.night_records import record_night
from nexmark.store import Store, open_store
from nexmark.tasks import judging
from nexmark.tasks import query as recording
from tests.unit.tasks.in_task import in_task_of

DIGEST = "35735f44c13a92bf"


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    monkeypatch.delenv("NEXMARK_DB", raising=False)
    return begin("run 1", monkeypatch)


@pytest.fixture
def store(night: Night, tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path / 'results.db'}") as opened:
        yield opened


def begin(run_id: str, monkeypatch: pytest.MonkeyPatch, **params: Any) -> Night:
    asked = {"workload": "smoke", "cluster": "local", "queries": "q0", "repetitions": 3, **params}
    night = make_night(load(), "spark-4.3.0", "nexmark_spark_4_3_0", run_id, asked)
    deployment = Deployment(
        program="fedc",
        build="0123456789abcdef",
        spark_version="4.3.0",
        spark_home="/opt/spark",
        source="pypi:4.3.0",
        jobs="fedc",
        jobs_home="/opt/jobs",
    )
    night.write()
    deployments = Deployments(candidate=deployment)
    deployments.write(night)
    record_night(night, deployments)
    in_task_of(night, monkeypatch)
    return night


def produced(directory: Path, digest: str | None = DIGEST, **fields: Any) -> None:
    """A result file that has the fields for correctness only; it gives no measurement."""
    content = {
        "schema_version": 1,
        "output_mode": "append",
        "formulation": "projection",
        "input_rows": 100_000,
        "output_rows": 92_000,
        "digest": digest,
        **fields,
    }
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "result.json").write_text(json.dumps(content))


def verified(night: Night, success: bool = True) -> None:
    failures = () if success else ("row_count: 1, the reference has 2",)
    Verification(success=success, failures=failures, evaluated=5).write(night.query_dir("q0"))
    produced(night.query_dir("q0") / "verify")


def statuses(store: Store, night: Night) -> dict[int, tuple[str, str | None]]:
    rows = store.repetitions(night.name)
    return {row.number: (row.status, row.reason) for row in rows}


@pytest.mark.parametrize(("starter", "recorded"), [("ada", "ada"), ("", None)])
def test_who_started_a_night_is_recorded(
    night: Night, store: Store, starter: str, recorded: str | None
) -> None:
    started = night.model_copy(update={"started_by": starter})
    record_night(started, Deployments.read(night))
    assert store.night(night.name).started_by == recorded


def test_an_application_that_failed_is_recorded_as_failed(night: Night, store: Store) -> None:
    verified(night)
    TaskDirectory(night.query_dir("q0") / "rep-1").write_failure("run_query.py: error: out of luck")
    recording.record("q0")
    found = statuses(store, night)
    told = "the application failed: run_query.py: error: out of luck"
    assert found[1] == ("failed", told)
    untold = "the application failed: it was not started, or was killed"
    assert found[2] == found[3] == ("failed", untold)


def test_a_verification_that_did_not_run_is_the_reason(night: Night, store: Store) -> None:
    TaskDirectory(night.query_dir("q0") / "verify").write_failure(
        "run_query.py: error: no such table"
    )
    recording.record("q0")
    told = "not run, because the verification run failed: run_query.py: error: no such table"
    assert statuses(store, night)[1] == ("failed", told)


def test_a_wrong_result_is_recorded_with_what_is_wrong(night: Night, store: Store) -> None:
    verified(night, success=False)
    recording.record("q0")
    assert store.paired_night(night.name).invalid == {"q0": "row_count: 1, the reference has 2"}
    assert statuses(store, night)[1] == ("failed", "not run, because the result is wrong")


def test_a_repetition_without_samples_is_invalid_and_never_zero(night: Night, store: Store) -> None:
    verified(night)
    for number in (1, 2, 3):
        produced(night.query_dir("q0") / f"rep-{number}")
    recording.record("q0")
    status, reason = statuses(store, night)[1]
    assert status == "invalid"
    assert reason is not None
    assert "samples-" in reason


def test_a_broken_event_log_leaves_the_repetition_as_it_is(tmp_path: Path) -> None:
    """A message reports it, and the operators are missing; nothing else changes."""
    from nexmark.recording.repetitions import event_log_parts
    from nexmark.store import RepetitionRecord
    from tests.unit.store.store_builder import measurement

    result = {"batches": [{"id": 0, "phase": "data"}]}
    parts, problem = event_log_parts(tmp_path / "events", result, measurement(None))
    assert parts == []
    assert problem is not None
    assert "no event log" in problem
    record = RepetitionRecord("d/1", "q5", 1, measurement(), parts=parts, parts_problem=problem)
    assert record.status == "ok"


def test_other_rows_than_the_verified_ones_are_invalid(night: Night, store: Store) -> None:
    """Smoke verifies the very events that it times: the digest must be the same to the bit."""
    verified(night)
    for number in (1, 2, 3):
        produced(night.query_dir("q0") / f"rep-{number}", digest="ffffffffffffffff")
    recording.record("q0")
    status, reason = statuses(store, night)[2]
    assert status == "invalid"
    assert reason is not None
    assert f"the verified result has 92000 rows with digest {DIGEST}" in reason


def test_an_update_query_is_not_held_to_the_verified_digest(night: Night, store: Store) -> None:
    """What it puts out depends on the batches; its repetitions must agree all the same."""
    verified(night)
    for number, digest in ((1, "aa"), (2, "aa"), (3, "bb")):
        produced(night.query_dir("q0") / f"rep-{number}", digest=digest, output_mode="update")
    recording.record("q0")
    reasons = {number: reason or "" for number, (_, reason) in statuses(store, night).items()}
    assert "no samples" in reasons[1]
    assert "no samples" in reasons[2]
    assert "bb" in reasons[3]


def test_a_wrong_query_turns_the_night_red_with_its_reason(
    night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    verified(night, success=False)
    recording.record("q0")
    judging.judge()
    judging.report()
    with pytest.raises(AirflowFailException, match=r"1 of 1 queries .* q0 INVALID: row_count: 1"):
        judging.verdict()


def test_a_missing_query_turns_the_night_red_with_its_reason(night: Night) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    recording.record("q0")
    judging.judge()
    with pytest.raises(AirflowFailException, match=r"q0 MISSING: .*the verification run failed"):
        judging.verdict()


def test_a_query_whose_cluster_cannot_be_made_whole_says_so(night: Night, store: Store) -> None:
    """Though its verification run, which is of all queries together, was done before."""
    produced(night.query_dir("q0") / "verify")
    TaskDirectory(night.query_dir("q0")).write_failure("host nexmark03: no answer")
    recording.record("q0")
    reasons = {row.reason for row in store.repetitions(night.name)}
    assert reasons == {"not run, because it could not be prepared: host nexmark03: no answer"}


def test_a_night_that_was_never_judged_is_red(night: Night) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="q0 MISSING: not judged"):
        judging.verdict()


class TestReport:
    """The last thing a person reads: the table, the lines that matter, where the rest is."""

    @pytest.fixture
    def shown(self, night: Night, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
        verified(night, success=False)
        recording.record("q0")
        judging.judge()
        monkeypatch.setenv("NEXMARK_PROGRESS", str(tmp_path / "progress.txt"))
        return tmp_path / "progress.txt"

    def test_the_table_comes_first_then_the_lines_that_matter(
        self, night: Night, shown: Path
    ) -> None:
        told = judging.report()
        lines = shown.read_text().splitlines()
        end = max(number for number, line in enumerate(lines) if line.startswith("+--"))
        assert lines[0].startswith("Nexmark on spark-4.3.0, workload smoke")
        first = ("NIGHT FAILED: 1 invalid (q0)", "Why: q0: row_count: 1", "Next: see what is wrong")
        assert [line[: len(x)] for line, x in zip(lines[end + 1 :], first, strict=False)] == [
            *first
        ]
        page = night.directory / "report" / "evidence.html"
        assert f"evidence: {page}" in lines
        alarm = night.directory / "report" / "alarms" / "q0" / "evidence.html"
        assert f"evidence of q0: {alarm}" in lines
        assert told["evidence"] == str(page)
        assert page.exists()
        assert alarm.exists()

    def test_evidence_that_cannot_be_written_fails_nothing(self, night: Night, shown: Path) -> None:
        (night.directory / "report" / f".evidence.json-{os.getpid()}").mkdir(parents=True)
        assert judging.report()["red"] is True
        told = [x for x in shown.read_text().splitlines() if "not written" in x]
        assert len(told) == 1
        assert told[0].startswith("evidence of the night: not written: [Errno 21]")

    def test_metrics_that_cannot_be_sent_fail_nothing(
        self, shown: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def emit(report: object) -> None:
            raise RuntimeError("no such backend")

        monkeypatch.setattr(judging, "emit", emit)
        judging.report()
        assert "metrics: not sent: RuntimeError: no such backend" in shown.read_text()

    def test_a_build_on_demand_and_a_sign_off_report_as_a_night_does(self) -> None:
        config = load()
        dags = build_nightly_dag(config.newest, config), build_on_demand_dag(config)
        for dag in (*dags, build_signoff_dag(config)):
            task: Any = dag.get_task("report")
            assert task.python_callable is judging.report


class TestPositions:
    """What is stored is the order in which the repetitions really ran."""

    def ran(self, night: Night, *instances: int) -> None:
        """Run mapped instances in this order, as their claims have it; one may be tried again."""
        runs = first_runs(night, "q0")
        submissions = [{"label": f"q0 {run.name}"} for run in runs]
        path = night.query_dir("q0") / "sequence.json"
        TurnFile(path).write(submissions)
        for moment, instance in enumerate(instances):
            label = TurnFile(path).claim(instance)["label"]
            night.files.add_application(
                ApplicationSpan(label=label, start=float(moment), end=moment + 0.5)
            )

    def positions(self, store: Store, night: Night) -> list[int | None]:
        recording.record("q0")
        return [row.position for row in store.repetitions(night.name)]

    def test_without_a_retry_it_is_the_planned_order(self, night: Night, store: Store) -> None:
        self.ran(night, 2, 0, 1)  # Airflow starts instances in any order
        assert self.positions(store, night) == [1, 2, 3]

    def test_one_that_was_tried_again_has_the_place_of_its_last_try(
        self, night: Night, store: Store
    ) -> None:
        self.ran(night, 0, 1, 2, 1)
        assert self.positions(store, night) == [1, 3, 2]

    def test_one_that_never_started_has_none(self, night: Night, store: Store) -> None:
        self.ran(night, 0, 1)
        assert self.positions(store, night) == [1, 2, None]
