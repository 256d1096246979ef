"""A small event log, written by hand: every figure of every task is where it belongs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from nexmark.measure.event_log import (
    EventLog,
    EventLogError,
    StageTotals,
    read_event_log,
    read_events,
)

SQL = "org.apache.spark.sql.execution.ui.SparkListener"
Event = dict[str, Any]


def node(name: str, *children: Event, **metrics: tuple[int, str]) -> Event:
    """An operator of a plan; ``metrics``: name (with _ for spaces) -> accumulator and type."""
    return {
        "nodeName": name,
        "simpleString": name,
        "children": list(children),
        "metrics": [
            {"name": key.replace("_", " "), "accumulatorId": number, "metricType": kind}
            for key, (number, kind) in metrics.items()
        ],
    }


#: The upper stage aggregates what the lower one wrote; accumulators by tens of the operator.
PLAN = node(
    "Sink",
    node(
        "WholeStageCodegen (2)",
        node(
            "Save",
            node(
                "Exchange",
                node("WholeStageCodegen (1)", node("Scan", number_of_output_rows=(40, "sum"))),
                shuffle_write_time=(30, "nsTiming"),
                data_size=(31, "size"),
            ),
            time_to_update=(20, "timing"),
            number_of_total_state_rows=(21, "sum"),
        ),
    ),
    number_of_output_rows=(10, "sum"),
)


def plan(execution: int, batch: int | None, info: Event = PLAN, kind: str = "") -> Event:
    return {
        "Event": f"{SQL}{kind or 'SQLExecutionStart'}",
        "executionId": execution,
        "description": None if batch is None else f"id = x\nrunId = y\nbatch = {batch}",
        "sparkPlanInfo": info,
    }


def job(execution: int, batch: int, *stages: tuple[int, str], properties: bool = True) -> Event:
    """Stages (id, code generation of its operators) of a batch."""
    own = {"streaming.sql.batchId": str(batch), "spark.sql.execution.id": str(execution)}
    infos = [
        {"Stage ID": number, "RDD Info": [{"Scope": f'{{"name":"{scope}"}}'}, {}]}
        for number, scope in stages
    ]
    return {
        "Event": "SparkListenerJobStart",
        "Stage Infos": infos,
        "Properties": own if properties else None,
    }


def task(stage: int, cpu_s: float, run_s: float = 0.0, **updates: int) -> Event:
    """A task that ended; ``updates``: accumulator (with _ before it) -> what it adds."""
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": stage,
        "Task Info": {
            "Accumulables": [
                *(
                    {"ID": int(key[1:]), "Update": str(value), "Metadata": "sql"}
                    for key, value in updates.items()
                ),
                {"ID": 40, "Update": "1000"},  # no SQL metric
                {"ID": 40, "Metadata": "sql"},  # nothing added
            ]
        },
        "Task Metrics": {
            "Executor CPU Time": int(cpu_s * 1e9),
            "Executor Deserialize CPU Time": 2_000_000,
            "Executor Run Time": int(run_s * 1e3),
            "JVM GC Time": 30,
            "Shuffle Read Metrics": {"Fetch Wait Time": 5},
        },
    }


END: Event = {"Event": "SparkListenerApplicationEnd"}
LOWER, UPPER = "WholeStageCodegen (1)", "WholeStageCodegen (2)"


def batch(number: int, execution: int, rows: int, state: int, cpu_s: float = 1.0) -> list[Event]:
    """A batch of two stages: two tasks scan and write, one reads, updates and puts out."""
    lower, upper = 10 * number + 1, 10 * number + 2
    return [
        plan(execution, number),
        job(execution, number, (lower, LOWER), (upper, UPPER)),
        task(lower, cpu_s, 2.0, _40=rows, _30=500_000_000, _31=7),
        task(lower, cpu_s, 2.0, _40=rows, _31=0),
        task(upper, 0.5, 1.5, _20=250, _21=state, _10=3),
    ]


def read(tmp_path: Path, events: list[Event], *batches: int) -> EventLog:
    lines = "".join(json.dumps(x, separators=(",", ":")) + "\n" for x in events)
    (tmp_path / "app-1").write_text(lines)
    return read_event_log(tmp_path, batches)


def figures(log: EventLog) -> dict[str, dict[str, float]]:
    return {x.name: dict(x.metrics) for x in log.operators}


def test_every_figure_of_a_task_is_summed_in_its_unit(tmp_path: Path) -> None:
    log = read(tmp_path, [*batch(0, 1, 100, 9), *batch(1, 2, 50, 8), END], 0, 1)
    assert {number: vars(x) for number, x in log.stages.items()} == {
        1: pytest.approx(vars(StageTotals(4, 4.0, 0.008, 8.0, 0.12, 0.02))),
        2: pytest.approx(vars(StageTotals(2, 1.0, 0.004, 3.0, 0.06, 0.01))),
    }


def test_metrics_are_summed_over_tasks_and_batches_and_levels_are_the_highest(
    tmp_path: Path,
) -> None:
    log = read(tmp_path, [*batch(0, 1, 100, 9), *batch(1, 2, 50, 8), END], 0, 1)
    assert figures(log) == {
        "Sink": {"number of output rows": 6},
        "Save": {"time to update [s]": 0.5, "number of total state rows": 9},
        "Exchange": {"shuffle write time [s]": 1.0, "data size [bytes]": 14},
        "Scan": {"number of output rows": 300},
    }
    assert [(x.name, x.stage, x.parent) for x in log.operators] == [
        ("Sink", 2, None),
        ("Save", 2, 0),
        ("Exchange", 1, 1),
        ("Scan", 1, 2),
    ]


def test_only_the_batches_that_count_are_read(tmp_path: Path) -> None:
    log = read(tmp_path, [*batch(0, 1, 100, 9), *batch(1, 2, 50, 8), END], 1)
    assert figures(log)["Scan"] == {"number of output rows": 100}
    assert log.stages[1].tasks == 2


def test_what_the_driver_adds_to_a_batch_counts_too(tmp_path: Path) -> None:
    def added(execution: int, *updates: tuple[int, int]) -> Event:
        return {
            "Event": f"{SQL}DriverAccumUpdates",
            "executionId": execution,
            "accumUpdates": [list(x) for x in updates],
        }

    more = [added(1, (40, 5), (10, 1)), added(1, (40, 7)), added(99, (40, 1000))]
    log = read(tmp_path, [*batch(0, 1, 100, 9), *more, END], 0)
    assert figures(log)["Scan"] == {"number of output rows": 212}
    assert figures(log)["Sink"] == {"number of output rows": 4}


def test_a_plan_that_is_changed_while_it_runs_is_the_last_one(tmp_path: Path) -> None:
    """Adaptive execution says so."""
    changed = json.loads(json.dumps(PLAN).replace('"Sink"', '"OtherSink"'))
    update = plan(1, None, changed, "SQLAdaptiveExecutionUpdate")
    first, *rest = batch(0, 1, 100, 9)
    assert "OtherSink" in figures(read(tmp_path, [first, update, *rest, END], 0))


def test_the_plan_that_used_most_cpu_time_is_taken_and_the_others_are_laid_on_it(
    tmp_path: Path,
) -> None:
    changed = json.loads(json.dumps(PLAN).replace('"Scan"', '"OtherScan"'))
    other = [plan(9, 0, changed), *batch(0, 9, 100, 9, cpu_s=0.1)[1:]]
    log = read(tmp_path, [*other, *batch(1, 2, 50, 8, cpu_s=3.0), END], 0, 1)
    assert figures(log)["Scan"] == {"number of output rows": 100}
    assert figures(log)["Sink"] == {"number of output rows": 6}
    assert (log.stages[1].tasks, log.stages[None].tasks) == (2, 2)  # a scan of its own
    more = [plan(9, 0, changed), *batch(0, 9, 100, 9, cpu_s=4.0)[1:]]
    log = read(tmp_path, [*more, *batch(1, 2, 50, 8, cpu_s=3.0), END], 0, 1)
    assert figures(log)["OtherScan"] == {"number of output rows": 200}


def test_tasks_without_any_trace_of_the_plan_are_of_no_known_stage(tmp_path: Path) -> None:
    odd = [plan(1, 0), job(1, 0, (1, "RDD")), task(1, 1.0, 2.0), *batch(1, 2, 50, 8), END]
    log = read(tmp_path, odd, 0, 1)
    assert log.stages[None].tasks == 1
    assert log.stages[None].cpu_s == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("scope", "updates", "stage"),
    [
        (UPPER, {}, 2),
        (LOWER, {}, 1),
        ("RDD", {"_20": 1}, 2),
        ("RDD", {"_40": 1}, 1),
        ("RDD", {"_30": 1}, None),  # an exchange is read by one stage and written by another
        (LOWER, {"_20": 1, "_10": 1}, 1),  # generated code tells more than metrics
        ("RDD", {"_20": 1, "_40": 1}, 2),
        ("RDD", {"_10": 1, "_20": 1, "_40": 1}, 2),
    ],
)
def test_a_stage_is_where_its_generated_code_or_its_metrics_are(
    tmp_path: Path, scope: str, updates: dict[str, int], stage: int | None
) -> None:
    events = [plan(1, 0), job(1, 0, (1, scope)), task(1, 1.0, **updates), END]
    assert set(read(tmp_path, events, 0).stages) == {stage}


def test_a_stage_is_where_most_of_its_metrics_are(tmp_path: Path) -> None:
    lower = node("Filter", node("Scan", rows=(40, "sum")), rows=(41, "sum"))
    upper = node("Save", node("Exchange", lower), rows=(20, "sum"))
    events = [
        plan(1, 0, upper),
        job(1, 0, (1, "RDD"), (2, "RDD")),
        task(1, 1.0, _20=1, _40=1, _41=1),
        task(2, 1.0, _20=1, _40=1),
        END,
    ]
    assert {number: x.tasks for number, x in read(tmp_path, events, 0).stages.items()} == {
        1: 1,
        2: 1,
    }


def test_operators_of_its_own_do_not_hide_the_stage_of_a_plan(tmp_path: Path) -> None:
    changed = json.loads(json.dumps(PLAN).replace('"Sink"', '"OtherSink"'))
    own = [plan(9, 0, changed), *batch(0, 9, 100, 9, cpu_s=0.1)[1:]]
    log = read(tmp_path, [*own, *batch(1, 2, 50, 8, cpu_s=3.0), END], 0, 1)
    assert {number: x.tasks for number, x in log.stages.items()} == {1: 4, 2: 2}


def test_a_task_that_never_told_its_metrics_is_a_task(tmp_path: Path) -> None:
    lost: Event = {"Event": "SparkListenerTaskEnd", "Stage ID": 1, "Task Info": {}}
    for metrics in (None, {}, {"Shuffle Read Metrics": {}}):
        events = [plan(1, 0), job(1, 0, (1, LOWER)), {**lost, "Task Metrics": metrics}, END]
        assert read(tmp_path, events, 0).stages == {1: StageTotals(tasks=1)}


def test_the_units_of_spark_are_exact() -> None:
    """CPU time is in nanoseconds, all other time in milliseconds."""
    found = StageTotals()
    found.add({"Executor CPU Time": 10**9, "Executor Run Time": 1000, "JVM GC Time": 2000})
    assert found == StageTotals(tasks=1, cpu_s=1.0, run_s=1.0, gc_s=2.0)


def test_jobs_and_tasks_of_nobody_are_passed_over(tmp_path: Path) -> None:
    alone = (
        {"streaming.sql.batchId": "0"},
        {"spark.sql.execution.id": "1"},
        {"spark.job.description": "x"},
    )
    unknown = [{**job(1, 0, (77, LOWER)), "Properties": x} for x in alone]
    bare = {**job(1, 0), "Stage Infos": [{"Stage ID": 66}]}
    others = [
        *unknown,
        bare,
        job(1, 0, (77, LOWER), properties=False),
        task(77, 5.0, _40=1),
        task(99, 5.0, _40=1),
        job(3, 8, (88, LOWER)),
        task(88, 5.0, _40=1),
    ]
    usual = batch(0, 1, 100, 9)
    log = read(tmp_path, [*usual, *others, END], 0)
    assert log == read(tmp_path, [*usual, END], 0)


def test_a_stage_that_two_jobs_name_is_of_the_first(tmp_path: Path) -> None:
    """A later job lists the stages that it may skip."""
    usual = batch(0, 1, 100, 9)
    again = [plan(2, 1), job(2, 1, (1, UPPER), (5, UPPER)), task(1, 1.0), task(5, 1.0, _10=1), END]
    log = read(tmp_path, [*usual, *again], 0, 1)
    assert (log.stages[1].tasks, log.stages[2].tasks) == (3, 2)


@pytest.mark.parametrize(
    ("events", "batches", "said"),
    [
        ([plan(1, 0), job(1, 0, (1, LOWER)), END], [0], "no tasks in the event log"),
        (batch(0, 1, 1, 1), [0], "ends before the application did"),
        ([*batch(0, 1, 1, 1), END], [0, 3, 2], "no batch 2, 3 in the event log"),
        ([*batch(0, 1, 1, 1)[1:], END], [0], "no plan of execution 1 in the event log"),
    ],
)
def test_a_log_without_what_was_asked_for_says_what_is_not_in_it(
    tmp_path: Path, events: list[Event], batches: list[int], said: str
) -> None:
    with pytest.raises(EventLogError, match=said):
        read(tmp_path, events, *batches)


class TestFiles:
    def names(self, directory: Path, application: str | None = None) -> list[str]:
        """The events that are read."""
        found: list[str] = []
        read_events(directory, application, {b"A": lambda event: found.append(event["of"])})
        return found

    def test_rolling_files_are_read_in_the_order_of_their_numbers(self, tmp_path: Path) -> None:
        log = tmp_path / "eventlog_v2_app-1"
        log.mkdir()
        for number in (10, *range(1, 10)):
            name = f"events_{number}_app-1"
            (log / name).write_text(f'{{"Event":"A","of":"{number}"}}\n{{"Event":"B"}}\n')
        (log / "appstatus_app-1").write_text("")
        assert self.names(tmp_path) == [str(number) for number in range(1, 11)]

    def test_the_log_of_one_application_of_several_is_read(self, tmp_path: Path) -> None:
        for name in ("app-1", "app-2.inprogress", "eventlog_v2_app-3", ".hidden"):
            if name.startswith("eventlog"):
                (tmp_path / name).mkdir()
            path = tmp_path / name
            (path / "events_1_app-3" if path.is_dir() else path).write_text(
                f'{{"Event":"A","of":"{name}"}}\n'
            )
        assert self.names(tmp_path, "app-1") == ["app-1"]
        assert self.names(tmp_path, "app-2") == ["app-2.inprogress"]
        assert self.names(tmp_path, "app-3") == ["eventlog_v2_app-3"]
        with pytest.raises(EventLogError, match="3 event logs, one expected"):
            self.names(tmp_path)

    def test_an_empty_log_has_no_files(self, tmp_path: Path) -> None:
        (tmp_path / "eventlog_v2_app-1").mkdir()
        with pytest.raises(EventLogError, match=r"are missing; found \[\]"):
            self.names(tmp_path)

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("<html>", "is no event: b'<html>"),
            ("<" * 41, "is no event: b'<{40}'$"),
            ('{"Event":"A","of"', "cut off in mid-line"),
        ],
    )
    def test_a_line_that_is_no_event_is_refused(self, tmp_path: Path, line: str, said: str) -> None:
        (tmp_path / "app-1").write_text(line)
        with pytest.raises(EventLogError, match=said):
            self.names(tmp_path)

    @pytest.mark.parametrize(
        ("name", "frames"),
        [
            ("app-1", 0),
            ("app-1.inprogress", 0),
            ("app-1.zstd", 1),
            ("app-1.zstd", 2),
            ("app-1.zstd.inprogress", 2),
        ],
    )
    def test_a_log_is_plain_or_zstd_in_one_or_more_frames(
        self, tmp_path: Path, name: str, frames: int
    ) -> None:
        lines = [b'{"Event":"A","of":"1"}\n', b'{"Event":"A","of":"2"}\n']
        packed = {
            0: b"".join(lines),
            1: zstandard.compress(b"".join(lines)),
            2: b"".join(map(zstandard.compress, lines)),
        }
        (tmp_path / name).write_bytes(packed[frames])
        assert self.names(tmp_path) == self.names(tmp_path, "app-1") == ["1", "2"]

    @pytest.mark.parametrize("codec", ["lz4", "lzf", "snappy"])
    def test_other_codecs_are_refused(self, tmp_path: Path, codec: str) -> None:
        (tmp_path / f"app-1.{codec}.inprogress").write_bytes(b"")
        with pytest.raises(EventLogError, match=r"set spark\.eventLog\.compression\.codec=zstd"):
            self.names(tmp_path)

    def test_a_file_that_cannot_be_read_says_why(self, tmp_path: Path) -> None:
        (tmp_path / "eventlog_v2_app-1" / "events_1_app-1").mkdir(parents=True)
        with pytest.raises(EventLogError, match=r"cannot be read: Is a directory$"):
            self.names(tmp_path)

    def test_a_missing_file_in_the_middle_is_named_by_those_that_are_there(
        self, tmp_path: Path
    ) -> None:
        log = tmp_path / "eventlog_v2_app-1"
        log.mkdir()
        for number in (1, 3):
            (log / f"events_{number}_app-1").write_text("")
        with pytest.raises(EventLogError, match=r"are missing; found \[1, 3\]$"):
            self.names(tmp_path)
