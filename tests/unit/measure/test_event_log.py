"""A real event log, cut down: what is read of it, and what is said of one that is broken."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import zstandard

from nexmark.measure.event_log import EventLog, EventLogError, read_event_log
from nexmark.measure.executed_plan import Part, nodes_of

LOGS = Path(__file__).parents[2] / "data" / "event_logs"
OURS = LOGS / "spark-4.3.0-q5"
BATCHES = [0, 1, 2, 3]


def read(place: Path = OURS, batches: list[int] | None = None) -> EventLog:
    return read_event_log(place / "events", BATCHES if batches is None else batches)


def named(log: EventLog, name: str) -> list[Part]:
    return [x for x in log.operators if x.name == name]


def rewritten(tmp_path: Path, change: object) -> Path:
    """A log as a plain file, each line as `change` makes it."""
    (source,) = OURS.rglob("events_1*")
    lines = zstandard.decompress(source.read_bytes()).splitlines(keepends=True)
    assert callable(change)
    place = tmp_path / "events"
    place.mkdir()
    (place / "app-1").write_bytes(b"".join(change(lines)))
    return tmp_path


class TestOperators:
    @pytest.mark.parametrize("engine", ["spark-4.3.0-q5", "spark-3.5.9-q5"])
    def test_operators_are_those_of_the_plan_without_wrappers(self, engine: str) -> None:
        log = read(LOGS / engine)
        names = [x.name for x in log.operators]
        assert names.count("StateStoreSave") == names.count("StateStoreRestore") == 3
        assert [x for x in names if x.startswith("Exchange")] == [
            "Exchange (window)",
            "Exchange (window, auction)",
            "Exchange (window, auction)",
        ]
        assert not {"InputAdapter", "WholeStageCodegen"} & set(names)
        assert names[-1] == "MicroBatchScan"

    @pytest.mark.parametrize("engine", ["spark-4.3.0-q5", "spark-3.5.9-q5"])
    def test_metrics_are_summed_over_tasks_and_batches(self, engine: str) -> None:
        """The same 20,000 events: what goes through the operators is the same on every engine."""
        log = read(LOGS / engine)
        saves = named(log, "StateStoreSave")
        assert [x.metrics["number of updated state rows"] for x in saves] == [14, 7424, 1965]
        assert named(log, "Filter")[-1].metrics["number of output rows"] == 18_446
        assert all(0.01 < x.metrics["time to commit changes [s]"] < 10 for x in saves)

    def test_a_level_is_its_highest_and_not_the_sum_of_batches(self) -> None:
        by_batch = [named(read(batches=[x]), "StateStoreSave")[1] for x in BATCHES]
        levels = [x.metrics.get("number of total state rows", 0) for x in by_batch]
        whole = named(read(), "StateStoreSave")[1].metrics["number of total state rows"]
        assert whole == max(levels) < sum(levels)

    def test_only_batches_that_count_are_in_it(self) -> None:
        updated = [
            named(read(batches=x), "StateStoreSave")[2].metrics["number of updated state rows"]
            for x in ([0], [1], [0, 1])
        ]
        assert updated[0] + updated[1] == updated[2]

    def test_an_exchange_belongs_to_the_stage_that_writes_it(self) -> None:
        log = read()
        assert log.operators[-1].stage == 1
        assert [x.stage for x in log.operators if x.name.startswith("Exchange")] == [3, 2, 1]


class TestStages:
    def test_every_task_is_in_a_stage_of_the_plan(self) -> None:
        log = read()
        assert {number: x.tasks for number, x in log.stages.items()} == dict.fromkeys(
            (1, 2, 3, 4), 2 * len(BATCHES)
        )

    def test_cpu_time_is_that_of_the_tasks_in_seconds(self) -> None:
        for stage in read().stages.values():
            assert 0.05 < stage.cpu_s < stage.run_s < 10
            assert 0 < stage.deserialise_cpu_s < 2

    def test_a_fifth_more_events_are_a_fifth_more_rows_in_as_many_tasks(self) -> None:
        scans = [read(LOGS / x).operators[-1] for x in ("spark-4.3.0-q5-slowed", OURS.name)]
        more, rows = (x.metrics["number of output rows"] for x in scans)
        assert more == pytest.approx(1.2 * rows, rel=0.001)
        tasks = [x.tasks for x in read(LOGS / "spark-4.3.0-q5-slowed").stages.values()]
        assert tasks == [8, 8, 8, 8]


class TestBroken:
    def test_no_log(self, tmp_path: Path) -> None:
        with pytest.raises(EventLogError, match="no event log: No such file"):
            read_event_log(tmp_path / "events", BATCHES)

    def test_an_empty_directory(self, tmp_path: Path) -> None:
        with pytest.raises(EventLogError, match="0 event logs, one expected"):
            read_event_log(tmp_path, BATCHES)

    def test_the_log_of_another_application(self) -> None:
        with pytest.raises(EventLogError, match="0 event logs of app-1, one expected"):
            read_event_log(OURS / "events", BATCHES, "app-1")

    @pytest.mark.parametrize("kept", [0.1, 0.5, 0.9, 0.999])
    def test_a_file_that_was_cut_off(self, kept: float, tmp_path: Path) -> None:
        shutil.copytree(OURS, tmp_path / "copy")
        (path,) = (tmp_path / "copy").rglob("events_1*")
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * kept)])
        with pytest.raises(EventLogError, match=r"cut off|ends before|no whole zstd"):
            read(tmp_path / "copy")

    def test_a_file_that_is_no_zstd(self, tmp_path: Path) -> None:
        shutil.copytree(OURS, tmp_path / "copy")
        (path,) = (tmp_path / "copy").rglob("events_1*")
        path.write_bytes(b"<html>not here</html>")
        with pytest.raises(EventLogError, match="is no whole zstd file"):
            read(tmp_path / "copy")

    def test_a_rolling_file_that_is_missing(self, tmp_path: Path) -> None:
        shutil.copytree(OURS, tmp_path / "copy")
        (path,) = (tmp_path / "copy").rglob("events_1*")
        path.rename(path.with_name(path.name.replace("events_1", "events_2")))
        with pytest.raises(EventLogError, match=r"files of the event log are missing; found \[2\]"):
            read(tmp_path / "copy")

    def test_an_application_that_was_killed(self, tmp_path: Path) -> None:
        place = rewritten(tmp_path, lambda lines: lines[:-1])
        with pytest.raises(EventLogError, match="ends before the application did"):
            read(place)

    def test_a_batch_that_is_not_in_it(self) -> None:
        with pytest.raises(EventLogError, match="no batch 7 in the event log"):
            read(batches=[1, 7])

    def test_events_of_another_form(self, tmp_path: Path) -> None:
        def other(lines: list[bytes]) -> list[bytes]:
            return [line.replace(b'"Task Info"', b'"Task"') for line in lines]

        with pytest.raises(EventLogError, match=r"not as Spark 3\.5 to 4\.3 writes it: KeyError"):
            read(rewritten(tmp_path, other))

    def test_a_number_that_is_none(self, tmp_path: Path) -> None:
        def other(lines: list[bytes]) -> list[bytes]:
            return [line.replace(b'"Update":"', b'"Update":"x') for line in lines]

        with pytest.raises(EventLogError, match=r"not as Spark 3\.5 to 4\.3 writes it: ValueError"):
            read(rewritten(tmp_path, other))

    def test_a_plan_that_spark_did_not_log(self, tmp_path: Path) -> None:
        """Its listeners may drop events when they cannot keep up."""

        def other(lines: list[bytes]) -> list[bytes]:
            lost = (b'"executionId":2,', b'"executionId":3,')
            return [line for line in lines if not any(x in line for x in lost)]

        with pytest.raises(EventLogError, match="no plan of execution 3 in the event log"):
            read(rewritten(tmp_path, other))

    def test_another_codec(self, tmp_path: Path) -> None:
        (tmp_path / "app-1.lz4").write_bytes(b"")
        with pytest.raises(EventLogError, match=r"compression\.codec=zstd"):
            read_event_log(tmp_path, BATCHES)

    def test_a_plain_log_is_read_as_well(self, tmp_path: Path) -> None:
        assert read(rewritten(tmp_path, lambda lines: lines)) == read()


def test_a_batch_with_another_plan_is_laid_over_the_last_one(tmp_path: Path) -> None:
    """As when a source has nothing new: the scan of one batch is another operator."""

    def other(lines: list[bytes]) -> list[bytes]:
        made = []
        for line in lines:
            event = json.loads(line)
            first = event.get("executionId") in (0, 1) and "sparkPlanInfo" in event
            made.append(line.replace(b"MicroBatchScan", b"LocalTableScan") if first else line)
        return made

    log = read(rewritten(tmp_path, other))
    assert log.operators[-1].name == "MicroBatchScan"
    assert log.operators[-1].metrics["number of output rows"] < 36_800
    assert named(log, "StateStoreSave") == named(read(), "StateStoreSave")
    assert log.stages == read().stages


def info(name: str, *children: dict[str, object], text: str = "") -> dict[str, object]:
    return {
        "nodeName": name,
        "simpleString": text or name,
        "children": list(children),
        "metrics": [],
    }


def test_a_join_has_a_stage_for_each_side_and_one_for_itself() -> None:
    """Spark wraps what it generates code for, and what adaptive execution has finished."""
    keys = "Exchange hashpartitioning(seller#1L, 2), REQUIRED_BY_STATEFUL_OPERATOR, [plan_id=9]"
    side = info("Exchange", info("WholeStageCodegen (1)", info("Scan")), text=keys)
    static = info("BroadcastQueryStage", info("BroadcastExchange", info("LocalTableScan")))
    join = info("StreamingSymmetricHashJoin", side, info("InputAdapter", side))
    plan = info("AdaptiveSparkPlan", info("BroadcastHashJoin", join, static))
    found = [(x.name, x.depth, x.stage, x.codegen) for x in nodes_of(plan)]
    assert found == [
        ("BroadcastHashJoin", 0, 4, None),
        ("StreamingSymmetricHashJoin", 1, 4, None),
        ("Exchange (seller)", 2, 3, None),
        ("Scan", 3, 3, 1),
        ("Exchange (seller)", 2, 2, None),
        ("Scan", 3, 2, 1),
        ("BroadcastExchange", 1, 1, None),
        ("LocalTableScan", 2, 1, None),
    ]
