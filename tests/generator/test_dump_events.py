"""Dumped files have the contract's format, all events in order, and appear whole or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from nexmark_jobs import dump_events
from nexmark_jobs.dump_events import DumpOptions, dump, parse
from nexmark_jobs.errors import UsageError
from nexmark_jobs.generator import GeneratorConfig
from tests.generator.plain_generator import PlainGenerator

OPTIONS = {"seed": 4, "tps": 700, "out_of_order_group_size": 8}
KINDS = ("person", "auction", "bid")


def read_json(directory: Path) -> list[dict[str, Any]]:
    files = sorted(directory.iterdir())
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def text_of(milliseconds: int) -> str:
    time = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"{time:%Y-%m-%d %H:%M:%S}.{milliseconds % 1000:03d}"


def expected_object(plain: PlainGenerator, n: int) -> dict[str, Any]:
    event = plain.event(n)
    assert event is not None
    kind, row = event
    entity = {
        field: text_of(value) if field in ("dateTime", "expires") else value
        for field, value in row.items()
        if field != "n"
    }
    nothing: dict[str, Any] = dict.fromkeys(KINDS)
    return {"n": n, "event_type": KINDS.index(kind)} | nothing | {kind: entity}


@pytest.fixture(scope="module")
def json_dump(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1050 events in files of 400."""
    out = tmp_path_factory.mktemp("dump") / "events"
    dump(spark, DumpOptions(1050, GeneratorConfig(**OPTIONS), out, "json", 400))
    return out


def test_json_has_the_contract_format_in_event_order(json_dump: Path) -> None:
    plain = PlainGenerator(**OPTIONS)
    objects = read_json(json_dump)
    assert objects == [expected_object(plain, n) for n in range(1050)]
    assert [list(o) for o in objects] == [["n", "event_type", *KINDS]] * 1050


def test_files_are_ordered_by_name_and_by_modification_time(json_dump: Path) -> None:
    files = sorted(json_dump.iterdir())
    assert [path.name for path in files] == [f"events-0000{i}.json" for i in range(3)]
    assert [len(path.read_text().splitlines()) for path in files] == [400, 400, 250]
    times = [path.stat().st_mtime for path in files]
    assert times == sorted(set(times))


def test_same_arguments_write_the_same_bytes(
    spark: SparkSession, json_dump: Path, tmp_path: Path
) -> None:
    dump(spark, DumpOptions(1050, GeneratorConfig(**OPTIONS), tmp_path / "again", "json", 400))
    for path in json_dump.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()


def test_parquet_holds_the_same_events(
    spark: SparkSession, json_dump: Path, tmp_path: Path
) -> None:
    dump(spark, DumpOptions(1050, GeneratorConfig(**OPTIONS), tmp_path / "p", "parquet", 400))
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    files = f"read_parquet('{tmp_path}/p/*.parquet')"
    rows = connection.execute(
        f"SELECT n, event_type, bid.auction, bid.extra, epoch_ms(auction.expires), person.name "
        f"FROM {files}"
    ).fetchall()
    plain = PlainGenerator(**OPTIONS)
    expected = []
    for n in range(1050):
        kind, row = plain.event(n) or ("", {})
        bid, auction, person = (row if kind == k else {} for k in ("bid", "auction", "person"))
        numbers = (n, KINDS.index(kind), bid.get("auction"))
        expected.append((*numbers, bid.get("extra"), auction.get("expires"), person.get("name")))
    assert rows == expected


def test_a_failed_dump_leaves_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(directory: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(dump_events, "put_in_order", fail)
    with pytest.raises(OSError, match="disk full"):
        dump(spark, DumpOptions(60, GeneratorConfig(), tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


def test_an_empty_directory_is_accepted(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    options = parse(["--events", "60", "--out", str(tmp_path / "out")])
    dump(spark, options)
    assert len(read_json(tmp_path / "out")) == 60


BAD_ARGUMENTS = {
    "events that have no numbers": (["--events", "9" * 22], "--events: 9999"),
    "events beyond the year 4000": (["--events", str(2**53), "--tps", "1"], "the year 4000"),
    "a file of too many": (["--events", "9", "--events-per-file", "9" * 22], "--events-per-file"),
    "--events missing": ([], "--events"),
    "negative events": (["--events", "-1"], "--events"),
    "no events": (["--events", "0"], "--events"),
    "events no number": (["--events", "many"], "--events"),
    "tps 0": (["--events", "1", "--tps", "0"], "--tps"),
    "no event per file": (["--events", "1", "--events-per-file", "0"], "--events-per-file"),
    "seed too big": (["--events", "1", "--seed", str(2**63)], "--seed"),
    "format": (["--events", "1", "--format", "avro"], "--format"),
    "unknown option": (["--events", "1", "--generator", "colour=1"], "colour"),
    "option no number": (["--events", "1", "--generator", "num_channels=x"], "num_channels=x"),
    "option without value": (["--events", "1", "--generator", "num_channels"], "num_channels"),
    "option out of range": (["--events", "1", "--generator", "num_channels=0"], "num_channels"),
    "option with an argument": (["--events", "1", "--generator", "tps=5"], "--tps"),
    "unknown argument": (["--events", "1", "--colour", "red"], "--colour"),
    "too long": (["--events", str(10**15), "--tps", "1"], "--events"),
    "url": (["--events", "1", "--out", "hdfs://host/dir"], "--out"),
}


@pytest.mark.parametrize("case", BAD_ARGUMENTS)
def test_bad_arguments_are_named_in_one_line(tmp_path: Path, case: str) -> None:
    arguments, named = BAD_ARGUMENTS[case]
    if "--out" not in arguments:
        arguments = [*arguments, "--out", str(tmp_path / "out")]
    with pytest.raises(UsageError) as raised:
        parse(arguments)
    assert named in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    for out in (tmp_path, tmp_path / "mine.txt", tmp_path / "no" / "such"):
        with pytest.raises(UsageError, match="--out"):
            parse(["--events", "1", "--out", str(out)])


def run_alone(*arguments: str) -> subprocess.CompletedProcess[str]:
    script = Path(dump_events.__file__)
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        cwd="/",
        check=False,
    )


def test_bad_arguments_end_the_command_before_spark_starts(tmp_path: Path) -> None:
    done = run_alone("--events", "5", "--tps", "0", "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("dump_events.py: error: --tps: 0 ")
    assert list(tmp_path.iterdir()) == []


def test_the_command_runs_without_spark_submit(tmp_path: Path) -> None:
    done = run_alone("--events", "120", "--seed", "3", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    plain = PlainGenerator(seed=3, tps=1000)
    assert read_json(tmp_path / "out") == [expected_object(plain, n) for n in range(120)]
