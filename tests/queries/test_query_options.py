"""Every bad argument of run_query.py ends, before Spark starts, in one line with the remedy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nexmark_jobs.errors import UsageError
from nexmark_jobs.options import (
    BoundaryOptions,
    DatagenOptions,
    KafkaOptions,
    SinkOptions,
    parse,
)
from nexmark_jobs.run_query import main

GOOD = {"--query": "q5", "--events": "100", "--tps": "10", "--result": "RESULT"}


BROKER = {"bootstrap_servers": "localhost:9092"}


def arguments(tmp_path: Path, **changes: str | None) -> list[str]:
    """Good arguments, but for `changes` (None leaves one out; _ stands for -)."""
    given: dict[str, str | None] = dict(GOOD)
    given["--result"] = str(tmp_path / "result.json")
    given |= {f"--{name.replace('_', '-')}": value for name, value in changes.items()}
    return [word for name, value in given.items() if value is not None for word in (name, value)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query": "q24"}, "--query: unknown query 'q24'; use one of q0, q1"),
        ({"query": None}, "the following arguments are required: --query; see --help"),
        ({"colour": "red"}, "unrecognized arguments: --colour red; see --help"),
        ({"formulation": "magic"}, "--formulation: q5 has no 'magic'; use one of panes, windows"),
        ({"events": None}, "--events: missing; say how many to generate, e.g. --events 100000"),
        ({"events": "-5"}, "--events: -5 is not positive; give number of events, e.g. 100000"),
        ({"events": "1e6"}, "--events: '1e6' is not an integer; give number of events"),
        ({"tps": "0"}, "--tps: 0 is not within 1..1000000000; give a value"),
        ({"tps": "5000000000"}, "--tps: 5000000000 is not within 1..1000000000; give a value"),
        ({"events": "9" * 22}, f"--events: {'9' * 22} is more than the generator can number, 90"),
        ({"events": "9" * 5000}, f"--events: '{'9' * 40}...' is not an integer; give number"),
        ({"events": str(2**53), "tps": "1"}, f"--events: {2**53} events at tps 1 reach beyond the"),
        (
            {"events": str(2**53), "tps": "1000000000", "generator": "first_event_number=1"},
            f"--events: {2**53} events are more than the generator can number, {2**53 - 1}; lower",
        ),
        ({"tps": "9" * 22}, f"--tps: {'9' * 22} is not within 1..1000000000; give a value"),
        ({"seed": "9" * 22}, f"--seed: {'9' * 22} is not within -9223372036854775808..922337"),
        ({"seed": ""}, "--seed: '' is not an integer; e.g. 1"),
        ({"rows_per_batch": "9" * 22}, f"--rows-per-batch: {'9' * 22} is more than the gener"),
        ({"rows_per_batch": "0"}, "--rows-per-batch: 0 is not positive; give events per micro"),
        ({"seed": "x"}, "--seed: 'x' is not an integer"),
        ({"generator": "speed=3"}, "--generator: unknown option 'speed'; use one of auction_id_"),
        ({"generator": "tps=3"}, "--generator: tps has an argument of its own; use --tps"),
        ({"generator": "num_categories=x"}, "--generator: num_categories=x: 'x' is not an int"),
        ({"generator": "num_categories=0"}, "--generator: num_categories: 0 is not within"),
        ({"digest": "maybe"}, "--digest: invalid choice: 'maybe'"),
        (
            {"source": "socket"},
            "--source: unknown source 'socket'; use datagen, files:DIR, tables:",
        ),
        ({"source": "kafka:bids"}, "--bootstrap-servers: missing; give the brokers, e.g. loc"),
        (
            {"source": "kafka:"},
            "--source: unknown source 'kafka:'; use datagen, files:DIR, tables:",
        ),
        ({"source": "kafka:a b", **BROKER}, "--source: 'a b' is not a topic name; it has up to"),
        ({"source": "kafka:..", **BROKER}, "--source: '..' is not a topic name; it has up to"),
        ({**BROKER}, "--bootstrap-servers: only --source kafka:TOPIC reads from brokers"),
        ({"source": "kafka:t", "bootstrap_servers": "a"}, "--bootstrap-servers: 'a' is not HOST:P"),
        ({"source": "kafka:t", "bootstrap_servers": "a:1,"}, "--bootstrap-servers: '' is not HOST"),
        ({"source": "kafka:t", "bootstrap_servers": "a:0"}, "--bootstrap-servers: 'a:0' is not HO"),
        ({"source": "kafka:t", "bootstrap_servers": "a:70000"}, "--bootstrap-servers: 'a:70000"),
        ({"source": "kafka:t", "bootstrap_servers": "u:p@a:1"}, "--bootstrap-servers: 'u:p@a:1"),
        ({"source": "files:/nowhere"}, "--source: /nowhere is not a directory; give the one"),
        ({"sink": "console"}, "--sink: unknown sink 'console'; use noop, parquet:DIR or (q10)"),
        ({"sink": "parquet"}, "--sink: unknown sink 'parquet'; use noop, parquet:DIR"),
        ({"sink": "noop:x"}, "--sink: unknown sink 'noop:x'"),
        ({"sink": "kafka:t"}, "--bootstrap-servers: missing; give the brokers, e.g. localh"),
        ({"sink": "kafka:a b", **BROKER}, "--sink: 'a b' is not a topic name; it has up to"),
        ({"sink": "filesystem:x"}, "--sink: filesystem is the sink of q10; use noop or parquet"),
        ({"source": "boundary:x"}, "--source: unknown source 'boundary:x'; use datagen, files:DIR"),
        ({"boundary": "x"}, "--boundary: the sink noop keeps no rows; use it with --sink parq"),
        ({"result": "/nowhere/r.json"}, "--result: there is no directory /nowhere; create it"),
        ({"result": "/tmp"}, "--result: /tmp is a directory; give a file, e.g. result.json"),
    ],
)
def test_bad_argument(tmp_path: Path, changes: dict[str, str | None], message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse(arguments(tmp_path, **changes))
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_output_directory_that_is_not_empty(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    assert parse(arguments(tmp_path, sink=f"parquet:{out}")).sink.directory == out
    (out / "a").touch()
    with pytest.raises(UsageError, match=r"--sink: .*/out is not empty; give a new directory"):
        parse(arguments(tmp_path, sink=f"parquet:{out}"))
    with pytest.raises(UsageError, match=r"--sink: .*/out/a is a file; give a new directory"):
        parse(arguments(tmp_path, sink=f"parquet:{out / 'a'}"))


def test_output_directory_below_the_source(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"lies in the directory of the source; give another"):
        parse(arguments(tmp_path, source=f"files:{tmp_path}", sink=f"parquet:{tmp_path}/out"))


def test_directory_of_the_boundary_events_overlaps_the_sinks(tmp_path: Path) -> None:
    for boundary in ("out", "out/below", "."):
        given = arguments(
            tmp_path, sink=f"parquet:{tmp_path}/out", boundary=f"{tmp_path}/{boundary}"
        )
        with pytest.raises(UsageError, match=r"--boundary: .* overlap; give another"):
            parse(given)


def test_run_over_the_boundary_events_follows(tmp_path: Path) -> None:
    places = {"sink": f"parquet:{tmp_path}/out", "boundary": f"{tmp_path}/boundary"}
    options = parse(arguments(tmp_path, **places))
    assert options.boundary == tmp_path / "boundary"
    after = options.over_boundary(options.boundary)
    assert after.source == BoundaryOptions() == parse(arguments(tmp_path, source="boundary")).source
    assert after.sink == SinkOptions("parquet", tmp_path / "boundary")
    assert (after.query, after.result, after.boundary) == (options.query, None, None)


@pytest.mark.parametrize(("query", "has_one"), [("q5", True), ("q12", False)])
def test_rows_that_differ_from_run_to_run_have_no_digest(
    tmp_path: Path, query: str, has_one: bool
) -> None:
    """Else repetitions of q12, whose windows are of the clock, would be wrong in every night."""
    assert parse(arguments(tmp_path, query=query)).digest is has_one


def test_a_topic_and_its_brokers(tmp_path: Path) -> None:
    servers = "a.b-c:9092,10.0.0.1:1,[::1]:65535"
    given = arguments(tmp_path, source="kafka:a.b_c-1", bootstrap_servers=servers, events=None)
    assert parse(given).source == KafkaOptions("a.b_c-1", servers, rows_per_batch=25_000)


def test_a_topic_for_the_rows(tmp_path: Path) -> None:
    sink = parse(arguments(tmp_path, sink="kafka:rows", **BROKER)).sink
    assert (str(sink), sink.servers) == ("kafka:rows", BROKER["bootstrap_servers"])


def test_options_reach_the_generator(tmp_path: Path) -> None:
    given = arguments(tmp_path, generator="out_of_order_group_size=5", seed="7")
    source = parse([*given, "--generator", "num_channels=10000"]).source
    assert isinstance(source, DatagenOptions)
    assert (source.config.seed, source.config.tps) == (7, 10)
    assert source.described()["generator"] == {"out_of_order_group_size": 5}


def test_command_reports_in_one_line_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(tmp_path, tps="0")) == 2
    err = capsys.readouterr().err
    assert err == (
        "run_query.py: error: --tps: 0 is not within 1..1000000000; "
        "give a value within these bounds\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_script_runs_from_anywhere(tmp_path: Path) -> None:
    """As spark-submit starts it: by its path, without the package on sys.path."""
    script = Path(__file__).parents[2] / "nexmark_jobs" / "run_query.py"
    done = subprocess.run(
        [sys.executable, "-P", script, "--query", "q99", "--result", "r.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "unknown query 'q99'" in done.stderr
