"""From the database to what a person reads, and to files."""

from __future__ import annotations

import csv
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from store_builder import by_bounds, measurement, night, record, repetition

from nexmark.cli.app import main
from nexmark.config import BUILD_DAG_ID
from nexmark.evidence.night_evidence import Report, make_report
from nexmark.evidence.query_evidence import query_evidence
from nexmark.model import GROWTH, PROFILED, Value
from nexmark.night.run_directory import ApplicationSpan, RunDirectory
from nexmark.report.evidence_files import write_report
from nexmark.report.rendering import standalone
from nexmark.report.table import report_text
from nexmark.store import Store, StoreError, ValidationRecord
from nexmark.verdict.bounds import judge
from tests.unit.store.night_builder import (
    OK,
    RULES,
    canary,
    paired,
    record_night,
    record_pair,
    validate,
)
from tests.unit.store.night_builder import judge as judge_paired

RUN = night().run


class Gate:
    version = 1
    metric = "cpu_s_per_mevent"

    def bound(self, query: str, workload: str) -> float:
        return 1.1


by_dag = pytest.mark.parametrize(
    ("dag", "remedy"),
    [
        (BUILD_DAG_ID, "measure q5 again: nexmark build --continue '{run}'"),
        ("nexmark_spark_4_3_0", "clear q5's tasks."),
    ],
)
"""How a query begins again that a night of a DAG could not measure."""


def judged(store: Store, number: int = 1, figure: float = 10.0, **wrong: str) -> Report:
    """Record a night of q0 and q5, judge it, report it."""
    run = record(store, night(number), figure, **wrong)
    verdicts = judge(
        night(number).queries,
        store.arms(run),
        store.baseline("spark-4.3.0", "smoke"),
        store.paired_night(run).invalid,
        Gate(),
        workload="smoke",
    )
    store.record_verdicts(run, verdicts)
    return make_report(store, run)


class TestRows:
    def test_medians_over_the_right_repetitions(self, store: Store) -> None:
        store.record_night(night(repetitions=4))
        for number, cpu_s in enumerate((30.0, 10.0, 20.0), 1):
            figures = measurement(cpu_s, cpu_s=cpu_s, wall_s=2 * cpu_s, events=1000)
            store.record_repetition(repetition(RUN, "q5", number, measurement=figures))
        wrong = measurement(1.0, cpu_s=1.0, wall_s=1.0)
        store.record_repetition(repetition(RUN, "q5", 4, measurement=wrong, invalid="digest"))
        _, row = make_report(store, RUN).rows
        assert (row.query, row.repetitions, row.result) == ("q5", 3, "WRONG")
        assert (row.cpu_s, row.wall_s, row.cores) == (20.0, 40.0, 0.5)
        assert (row.throughput_per_core, row.cpu_s_per_mevent, row.basis) == (50.0, 20.0, "steady")

    def test_what_ran_with_a_recorder_is_in_no_median(self, store: Store) -> None:
        store.record_night(night())
        store.record_repetition(repetition(RUN, "q5", measurement=measurement(10.0)))
        before = make_report(store, RUN).rows
        slow = measurement(99.0, cpu_s=99.0, wall_s=99.0)
        store.record_repetition(repetition(RUN, "q5", stage=PROFILED, measurement=slow))
        lost = repetition(RUN, "q0", stage=PROFILED, failed="no such option")
        store.record_repetition(lost)
        assert make_report(store, RUN).rows == before

    def test_one_repetition_without_steady_state_moves_all_to_the_application(
        self, store: Store
    ) -> None:
        store.record_night(night())
        for number, steady in enumerate((10.0, None), 1):
            store.record_repetition(repetition(RUN, "q5", number, measurement=measurement(steady)))
        _, row = make_report(store, RUN).rows
        assert (row.cpu_s_per_mevent, row.basis) == (20.0, "application")

    def test_the_figure_shown_is_the_one_that_was_judged(self, store: Store) -> None:
        """Though tonight has a steady state, the baseline had none."""
        run = record(store, night())
        medians = {"candidate": 20.0, "baseline": 10.0, "basis": "application"}
        verdict = by_bounds("q5", Value.OK, metric="cpu_s_per_mevent", ratio=2.0, **medians)
        store.record_verdicts(run, [verdict])
        _, row = make_report(store, run).rows
        assert row.verdict is not None
        assert (row.cpu_s_per_mevent, row.verdict.baseline, row.ratio) == (20.0, 10.0, 2.0)
        assert row.basis == "application"

    def test_the_order_is_as_asked_for(self, store: Store) -> None:
        record(store, night(queries=["q10", "q9", "q0"]))
        assert [x.query for x in make_report(store, RUN).rows] == ["q10", "q9", "q0"]

    @pytest.mark.parametrize(
        ("validated", "measured", "result"),
        [
            (True, True, "right"),
            (False, True, "WRONG"),
            (None, True, "unverified"),
            (None, False, "not run"),
        ],
    )
    def test_what_is_known_of_the_result(
        self, store: Store, validated: bool | None, measured: bool, result: str
    ) -> None:
        store.record_night(night(queries=["q5"]))
        if measured:
            store.record_repetition(repetition(RUN, "q5"))
        if validated is not None:
            store.record_validation(ValidationRecord(RUN, "q5", validated))
        assert make_report(store, RUN).rows[0].result == result

    def test_what_no_reference_proves_agrees_at_best(self, store: Store) -> None:
        store.record_night(night(queries=["busy"]))
        store.record_repetition(repetition(RUN, "busy"))
        statistics = {"proven": 0, "arms": 2}
        store.record_validation(ValidationRecord(RUN, "busy", True, statistics=statistics))
        report = make_report(store, RUN)
        assert report.rows[0].result == "agrees"
        assert "0/1 right, 1 agree" in report_text(report)
        verdicts = [by_bounds("busy", Value.NO_BASELINE, "no accepted baseline")]
        store.record_verdicts(RUN, verdicts)
        said = "no accepted baseline; 0 of 1 results are right, 1 agrees."
        assert make_report(store, RUN).lines[0] == f"NOTHING COMPARED: {said}"
        page = query_evidence(store, store.night(RUN), "busy")
        text = standalone("query.html", draw=False, page=page, charts=[], over_time=[])
        assert "Arms agree; not proven: the job has no reference." in text
        assert "The result is right" not in text

    def test_a_result_that_could_not_be_measured_is_not_wrong(self, store: Store) -> None:
        store.record_night(night(queries=["q5"]))
        store.record_validation(ValidationRecord(RUN, "q5", True))
        store.record_repetition(repetition(RUN, "q5", invalid="an executor was lost"))
        assert make_report(store, RUN).rows[0].result == "unmeasured"


class TestLines:
    def test_a_first_night_says_how_to_get_a_baseline(self, store: Store) -> None:
        report = judged(store)
        assert report.lines == (
            "NOTHING COMPARED: no accepted baseline; 2 of 2 results are right.",
            "Why: no accepted baseline.",
            "Next: to compare later nights with this one: "
            f"nexmark accept --run '{RUN}' --reason 'WHY'",
        )
        assert not report.failed

    def test_the_next_step_is_a_command_that_works(
        self, store: Store, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("NEXMARK_DB", url)
        command = judged(store).lines[-1].rpartition("nexmark ")[2]
        assert main(shlex.split(command)) == 0
        assert {row.reason for row in store.acceptances()} == {"WHY"}

    def test_a_setting_that_was_tried_is_reported_and_not_to_be_accepted(
        self, store: Store
    ) -> None:
        run = record(store, night(candidate_conf={"spark.sql.shuffle.partitions": "24"}))
        store.record_verdicts(run, [by_bounds("q0", Value.REGRESSION, "slower")])
        report = make_report(store, run)
        tried = "its candidate alone had spark.sql.shuffle.partitions=24"
        assert tried in report.heading()
        assert tried in report.lines[2]
        assert "nexmark accept" not in report_text(report)

    @pytest.mark.parametrize("tried", [{"dag_id": BUILD_DAG_ID}, {}])
    def test_a_first_night_has_a_verdict_whoever_asked_for_it(
        self, store: Store, tried: dict[str, Any]
    ) -> None:
        made = paired(queries=["q5"], teaches=False, **tried)
        judge_paired(store, record_night(store, made))
        what, _, after = make_report(store, made.run).lines[:3]
        assert what.startswith("NIGHT OK: 1 unchanged; CPU ")
        assert after == "Next: nothing to do."

    def test_an_undecided_query_is_named_with_the_range_and_what_would_decide_it(
        self, store: Store, tmp_path: Path
    ) -> None:
        files = RunDirectory(tmp_path)
        made = paired(queries=["q0", "q5"], directory=tmp_path)
        store.record_night(made)
        validate(store, made.run, made.queries)
        for query, apart in (("q0", 0.01), ("q5", 0.2)):
            for pair in (1, 2, 3):
                figure = 10 * (1 + apart * (-1) ** (pair + 1))
                record_pair(store, made.run, query, pair, candidate=figure, baseline=10)
        judge_paired(store, made.run)
        what, why, after = make_report(store, made.run).lines[:3]
        assert what.startswith("NIGHT OK: 1 undecided (q5); 1 unchanged; ")
        assert why.startswith("Why: q5: between ")
        assert " faster and " in why
        assert re.search(r" \d+ more pairs would decide 10 %", why)
        command = f"nexmark build --continue '{made.run}'"
        assert re.fullmatch(rf"Next: measure \d+ more pairs of q5: {re.escape(command)}", after)
        further = int(re.findall(r"measure (\d+) more", after)[0])
        for start in (0, 100):
            span = ApplicationSpan(label="q5 rep-1", start=start, end=start + 90, query="q5")
            files.add_application(span.model_copy(update={"timed": True}))
        after = make_report(store, made.run).lines[2]
        assert f"q5, about {3 * further} minutes: nexmark build" in after

    def test_a_suspect_is_measured_again(self, store: Store, tmp_path: Path) -> None:
        made = paired(queries=["q5"], directory=tmp_path)
        store.record_night(made)
        validate(store, made.run, made.queries)
        for pair in (1, 2, 3):
            record_pair(store, made.run, "q5", pair, candidate=25 + pair / 10, baseline=10)
        judge_paired(store, made.run)
        what, _, after = make_report(store, made.run).lines[:3]
        assert what.startswith("NIGHT FAILED: 1 suspect (q5); ")
        assert after == f"Next: measure q5 again: nexmark build --continue '{made.run}'"

    @by_dag
    def test_what_a_broken_host_made_invalid_is_measured_again(
        self, dag: str, remedy: str, store: Store, tmp_path: Path
    ) -> None:
        made = paired(queries=["q5"], directory=tmp_path, dag_id=dag)
        store.record_night(made)
        validate(store, made.run, made.queries)
        for pair in (1, 2, 3):
            record_pair(store, made.run, "q5", pair, candidate=10, baseline=10)
        readings = [canary("before", 10, group="q5"), canary("after", 20, group="q5")]
        store.record_canary(made.run, readings)
        judge_paired(store, made.run)
        what, _, after = make_report(store, made.run).lines[:3]
        assert what.startswith("NIGHT FAILED: 1 invalid (q5)")
        assert after == f"Next: fix the cause named above, then {remedy.format(run=made.run)}"

    @by_dag
    def test_what_was_not_measured_begins_again(
        self, dag: str, remedy: str, store: Store, tmp_path: Path
    ) -> None:
        made = paired(queries=["q5"], directory=tmp_path, dag_id=dag)
        store.record_night(made)
        judge_paired(store, made.run)
        what, _, after = make_report(store, made.run).lines[:3]
        assert what.startswith("NIGHT FAILED: 1 missing (q5)")
        log = "read the log of q5's failed task, put it right"
        assert after == f"Next: {log}, then {remedy.format(run=made.run)}"

    @pytest.mark.parametrize("value", [Value.SUSPECT, Value.UNDECIDED])
    def test_a_soak_goes_on_by_its_verb(self, value: Value, store: Store, tmp_path: Path) -> None:
        made = paired(queries=["q5"], directory=tmp_path, dag_id=BUILD_DAG_ID)
        store.record_night(made)
        validate(store, made.run, made.queries)
        verdict = replace(OK, night=made.run, metric=GROWTH, value=value)
        store.record_verdicts(made.run, [verdict])
        after = make_report(store, made.run).lines[2]
        assert after.endswith(f": nexmark soak --continue '{made.run}'")

    def test_a_green_night_has_nothing_to_do(self, store: Store) -> None:
        judged(store)
        store.accept(RUN, "ada", "right")
        report = judged(store, 2, 10.5)
        assert report.lines == (
            "NIGHT OK: 2 unchanged; CPU 1.050 of the baseline (geometric mean of 2).",
            f"Why: every result is right, and compared with {RUN}.",
            "Next: nothing to do.",
        )

    def test_a_regression_names_query_size_and_what_to_do(self, store: Store) -> None:
        judged(store)
        store.accept(RUN, "ada", "right")
        what, why, after = judged(store, 2, 13.0).lines
        assert what.startswith("NIGHT FAILED: 2 slower (q0, q5); CPU 1.300")
        assert (
            "q0: 10 -> 13 CPU-s per million events (steady): 1.300, above the bound of 1.1" in why
        )
        assert after.startswith("Next: compare plan and batches in runs/2/q0;")
        assert after.endswith(f"nexmark accept --run '{night(2).run}' --reason 'WHY'")

    def test_a_wrong_result_goes_before_all_else(self, store: Store) -> None:
        judged(store)
        store.accept(RUN, "ada", "right")
        what, why, after = judged(store, 2, 13.0, q5="3 rows missing").lines
        assert what.startswith("NIGHT FAILED: 1 invalid (q5); 1 slower")
        assert why.startswith("Why: q5: 3 rows missing | q0: 10 -> 13")
        assert after == "Next: see what is wrong with q5 in runs/2/data_docs/index.html."

    def test_a_missing_query_says_where_to_look(self, store: Store) -> None:
        run = record(store, night())
        store.record_verdicts(run, [by_bounds("q9", Value.MISSING, "executor lost")])
        report = make_report(store, run)
        assert report.lines[1] == "Why: q9: executor lost"
        assert "log of q9's failed task" in report.lines[2]
        assert report.failed

    def test_a_night_that_was_not_judged_is_not_green(self, store: Store) -> None:
        record(store, night())
        report = make_report(store, RUN)
        assert report.failed
        assert report.lines[0] == "NIGHT NOT JUDGED: no verdict is recorded."
        assert report.lines[-1].startswith("Next: where its run is over, see in Airflow which task")


class TestFiles:
    def test_all_of_it_is_written(self, store: Store, tmp_path: Path) -> None:
        judged(store)
        report = write_report(tmp_path / "report", store, RUN)
        assert (tmp_path / "report" / "table.txt").read_text() == report_text(report) + "\n"
        names = sorted(x.name for x in (tmp_path / "report").iterdir())
        assert names == ["repetitions.csv", "results.csv", "results.json", "table.txt"]

    def test_csv_has_raw_numbers(self, store: Store, tmp_path: Path) -> None:
        store.record_night(night())
        figures = measurement(10.123456789, cpu_s=3.0, wall_s=2.0, events=10**8)
        store.record_repetition(repetition(RUN, "q5", measurement=figures))
        write_report(tmp_path, store, RUN)
        with (tmp_path / "results.csv").open() as stream:
            empty, row = csv.DictReader(stream)
        assert (row["query"], row["events"], row["cores"]) == ("q5", "100000000", "1.5")
        assert row["cpu_s_per_mevent"] == "10.123456789"
        assert (empty["query"], empty["cpu_s"]) == ("q0", "")
        assert row["latency_ms_p50"] == ""
        assert "{" not in "".join(row.values())

    def test_csv_has_a_line_for_every_repetition(self, store: Store, tmp_path: Path) -> None:
        store.record_night(night())
        for number in (1, 2, 3):
            store.record_repetition(repetition(RUN, "q5", number))
        write_report(tmp_path, store, RUN)
        with (tmp_path / "repetitions.csv").open() as stream:
            rows = list(csv.DictReader(stream))
        assert [(x["query"], x["number"], x["status"]) for x in rows] == [
            ("q5", str(number), "ok") for number in (1, 2, 3)
        ]

    def test_json_has_everything(self, store: Store, tmp_path: Path) -> None:
        judged(store, q5="3 rows missing")
        write_report(tmp_path, store, RUN)
        content = json.loads((tmp_path / "results.json").read_text())
        assert content["failed"] is True
        assert content["night"]["started"] == "2026-11-22T04:00:00+00:00"
        assert [x["query"] for x in content["rows"]] == ["q0", "q5"]
        assert content["validations"][1]["failures"] == ["3 rows missing"]
        assert {x["value"] for x in content["verdicts"]} == {"NO BASELINE", "INVALID"}
        assert len(content["repetitions"]) == 2


class TestCommand:
    def test_it_prints_the_table_again(
        self, store: Store, url: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        report = judged(store)
        assert main(["report", "--db", url, "--run", "2026-11-21"]) == 0
        assert capsys.readouterr().out == report_text(report) + "\n"

    def test_it_writes_the_files_where_asked(self, store: Store, url: str, tmp_path: Path) -> None:
        judged(store)
        assert main(["report", "--db", url, "--run", RUN, "--out", str(tmp_path / "out")]) == 0
        assert (tmp_path / "out" / "results.json").exists()

    def test_an_unknown_run_is_one_line(
        self, store: Store, url: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        record(store, night())
        assert main(["report", "--db", url, "--run", "manual__2026-11-31"]) == 2
        captured = capsys.readouterr()
        assert (captured.out, captured.err.count("\n")) == ("", 1)
        assert RUN in captured.err

    def test_a_directory_that_cannot_be_written_is_one_line(
        self, store: Store, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        judged(store)
        (tmp_path / "file").write_text("")
        assert (
            main(["report", "--db", url, "--run", RUN, "--out", str(tmp_path / "file" / "x")]) == 2
        )
        assert capsys.readouterr().err.startswith("cannot write the report")


def test_a_report_of_an_unknown_run_is_an_error(store: Store) -> None:
    with pytest.raises(StoreError, match="no run is recorded yet"):
        make_report(store, "x")


class TestFailedRepetitions:
    """A query that is judged on the pairs that are left is green, and nobody overlooks it."""

    def test_a_green_night_names_the_query_and_why_its_repetition_failed(
        self, store: Store
    ) -> None:
        made = paired(queries=["q0", "q5"], repetitions=4)
        run = record_night(store, made)
        lost = {"failed": "the application failed: java.lang.OutOfMemoryError"}
        record_pair(store, run, "q5", 2, candidate=lost)
        judge_paired(store, run, RULES)
        what, why, after = make_report(store, run).lines[:3]
        assert what.startswith("NIGHT OK: 2 unchanged; 1 with repetitions that failed (q5); ")
        assert why.startswith("Why: q5: 3 of 4 pairs: ratio ")
        assert "missing: candidate 2 (candidate repetition 2: the application failed: java" in why
        assert after == "Next: read the log of q5's failed repetition; its verdict stands."
