"""What real event logs say of an unchanged application with two streaming queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from nexmark.measure.event_log import EventLogError, read_event_log
from nexmark.measure.log_follower import LogFollower
from nexmark.measure.result_file import parse_result
from nexmark.measure.streaming_log import StreamingLog, StreamingLogError
from tests.unit.measure.sample_builder import batch
from tests.unit.measure.sample_builder import result as built

LOGS = Path(__file__).parents[2] / "data" / "event_logs"
ENGINES = ("spark-3.5.9-two-queries", "spark-4.3.0-two-queries")
PROGRESS = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"


def followed(directory: Path) -> StreamingLog:
    log = StreamingLog()
    LogFollower(directory, log.handlers).read()
    return log


def made(engine: str, batches: int | None = None) -> dict[str, Any]:
    return followed(LOGS / engine / "events").result("orders", "default", b"key", batches)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_batches_of_both_queries_are_in_the_order_in_which_they_began(engine: str) -> None:
    """The filter is pushed down, so Spark counts only the rows that pass it."""
    result = made(engine)
    batches = result["batches"]
    assert [each["id"] for each in batches] == list(range(25))
    assert sorted(each["start"] for each in batches) == [each["start"] for each in batches]
    by_run: dict[str, list[tuple[int, str, int]]] = {each["run"]: [] for each in batches}
    for each in batches:
        by_run[each["run"]].append((each["batch"], each["phase"], each["input_rows"]))
    counts, large = sorted(by_run.values(), key=len, reverse=True)
    assert [number for number, _, _ in counts] == list(range(13))
    assert [rows for _, _, rows in counts] == [5000] * 12 + [0]
    assert counts[-1][1] == "end_of_input"
    assert {phase for _, phase, _ in counts[:-1] + large} == {"data"}
    assert sum(rows for _, _, rows in large) == 29_859
    assert result["input_rows"] == 60_000 + 29_859
    assert result["end"] == max(each["end"] for each in batches)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_result_is_one_that_every_reader_of_results_takes(engine: str) -> None:
    run = parse_result(made(engine))
    assert run.spark_version == engine.split("-")[1]
    assert run.application_id.startswith("local-")
    assert (run.stateful_operators, run.exchanges) == (1, 1)
    assert (run.state_rows_max, run.state_rows_final) == (18, 12)
    assert run.state_bytes_max > 4000
    assert run.state_commit_ms > 0
    assert run.events is None


def test_two_builds_with_the_same_plans_have_the_same_skeleton() -> None:
    old, new = (made(engine)["plan"] for engine in ENGINES)
    assert old["skeleton"] == new["skeleton"]
    assert old["skeleton_hash"] == new["skeleton_hash"]
    assert old["skeleton"].splitlines()[0] == "HashAggregate"
    assert old["skeleton"].splitlines()[-2:] == ["Filter", "  FileScan"]


@pytest.mark.parametrize("engine", ENGINES)
def test_confs_are_those_that_somebody_gave(engine: str) -> None:
    confs = made(engine)["confs"]
    assert confs["spark.sql.shuffle.partitions"] == "2"
    assert confs["spark.driver.defaultJavaOptions"] == "-XX:TieredStopAtLevel=1"
    assert "add-opens" not in json.dumps(confs)
    assert not {"spark.app.id", "spark.driver.port", "spark.submit.pyFiles"} & confs.keys()


@pytest.mark.parametrize("engine", ENGINES)
def test_it_is_told_when_it_may_be_stopped(engine: str, tmp_path: Path) -> None:
    """By the events in their order: after 12 batches of each query, and after idle triggers."""
    log, files = StreamingLog(), list((LOGS / engine).rglob("*zstd"))
    lines = zstandard.decompress(files[0].read_bytes()).splitlines()
    done: dict[str, int] = {}
    (tmp_path / "app").touch()
    follower = LogFollower(tmp_path, log.handlers)
    for number, line in enumerate(lines):
        with (tmp_path / "app").open("ab") as file:
            file.write(line + b"\n")
        follower.read()
        rows = sum(stream.rows for stream in log.streams.values())
        if log.has_batches(12):
            done.setdefault("batches", rows)
        if log.has_read_input():
            done.setdefault("input", number)
        assert log.has_batches(13) is False
    assert done["batches"] == 89_859
    after = [json.loads(line) for line in lines[done["input"] :]]
    assert not [event for event in after if event["Event"] == PROGRESS]
    idle = [json.loads(line)["Event"] for line in lines[: done["input"] + 1]][-1]
    assert idle.endswith("QueryIdleEvent")


def test_of_a_number_of_batches_no_later_ones_count() -> None:
    """A driver does not stop at once: what it has read meanwhile is of no account."""
    result = made(ENGINES[1], batches=3)
    assert sorted(each["batch"] for each in result["batches"]) == [0, 0, 1, 1, 2, 2]
    assert result["input_rows"] == 15_000 + 2460 + 2518 + 2478


@pytest.mark.parametrize(("frames", "at_once"), [(1, 1), (40, 1), (40, 7)])
def test_a_log_is_read_while_it_grows(frames: int, at_once: int, tmp_path: Path) -> None:
    """Spark ends a zstd frame with each event, cuts lines anywhere, and renames the file."""
    (source,) = (LOGS / ENGINES[0]).rglob("*zstd")
    text = zstandard.decompress(source.read_bytes())
    step = len(text) // frames + 1
    pieces = [text[at : at + step] for at in range(0, len(text), step)]
    seen: list[Any] = []
    follower = LogFollower(tmp_path, {PROGRESS: seen.append})
    follower.read()
    growing, counts = tmp_path / "app.zstd.inprogress", [0]
    for number, piece in enumerate(pieces, 1):
        with growing.open("ab") as file:
            file.write(zstandard.ZstdCompressor().compress(piece))
        if number % at_once == 0:
            follower.read()
            counts.append(len(seen))
    growing.rename(tmp_path / "app.zstd")
    follower.read()
    assert len(seen) == 25
    assert counts == sorted(counts)
    assert len(set(counts)) > min(frames // at_once, 5)


def test_a_rolling_log_is_read_file_by_file(tmp_path: Path) -> None:
    log = tmp_path / "eventlog_v2_app"
    log.mkdir()
    seen: list[Any] = []
    follower = LogFollower(tmp_path, {"X": seen.append})
    follower.read()
    for number in (1, 2, 10):
        (log / f"events_{number}_app").write_text(json.dumps({"Event": "X", "n": number}) + "\n")
        follower.read()
    (log / "events_10_app").open("a").write('{"Event": "X", "n": 11}\n{"Event"')
    follower.read()
    assert [event["n"] for event in seen] == [1, 2, 10, 11]


def test_an_application_has_one_spark_context(tmp_path: Path) -> None:
    for name in ("app-1", "app-2"):
        (tmp_path / name).touch()
    with pytest.raises(EventLogError, match="2 event logs, one expected"):
        LogFollower(tmp_path, {}).read()


def test_what_is_no_event_is_refused(tmp_path: Path) -> None:
    (tmp_path / "app-1").write_text("[1]\n")
    with pytest.raises(EventLogError, match=r"is no event: b'\[1\]'"):
        LogFollower(tmp_path, {}).read()


def test_an_application_without_streaming_queries_cannot_be_measured() -> None:
    with pytest.raises(StreamingLogError, match=r"^orders: its event log has no batch"):
        StreamingLog().result("orders", "default", b"")


@pytest.mark.parametrize("engine", ENGINES)
def test_operators_of_each_query_have_the_work_of_its_own_batches(engine: str) -> None:
    """Both queries have a batch 3: they are told apart by the ids of their runs."""
    result, events = made(engine), LOGS / engine / "events"
    by_run: dict[str, list[tuple[str, int]]] = {}
    for each in result["batches"]:
        by_run.setdefault(each["run"], []).append((each["run"], each["batch"]))
    whole = read_event_log(events, [key for keys in by_run.values() for key in keys])
    assert sorted(part.place for part in whole.operators) == list(range(13))
    names = [part.name for part in whole.operators]
    assert names.count("FileScan") == 2
    assert names.count("StateStoreSave") == 1
    scans = [part for part in whole.operators if part.name == "FileScan"]
    rows = sorted(part.metrics["number of output rows"] for part in scans)
    assert rows == [29_859, 60_000]
    assert len({part.stage for part in scans}) == 2
    alone = [read_event_log(events, keys) for keys in by_run.values()]
    cpu = [sum(stage.cpu_s for stage in log.stages.values()) for log in (whole, *alone)]
    assert cpu[0] == pytest.approx(sum(cpu[1:]))


@pytest.mark.parametrize(
    ("runs", "batches", "left_out"),
    [
        ("aaaa", 2, 2),
        ("abab", 1, 2),
        ("abaab", 2, 5),
        ("abaabb", 2, 5),
        ("ab", 0, 0),
        ("abb", 3, 3),
    ],
)
def test_the_warm_up_lasts_until_each_query_has_had_its_batches(
    runs: str, batches: int, left_out: int
) -> None:
    made = built(*({**batch(n, n, n + 1, 5), "run": run} for n, run in enumerate(runs)))
    assert parse_result(made).warm_up(batches) == left_out
