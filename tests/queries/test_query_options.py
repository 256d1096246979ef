"""Every bad argument of run_query.py ends, before Spark starts, in one line with the remedy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nexmark_jobs.errors import UsageError
from nexmark_jobs.options import DatagenOptions, parse
from nexmark_jobs.run_query import main

GOOD = {"--query": "q5", "--events": "100", "--tps": "10", "--result": "RESULT"}


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
        ({"rows_per_batch": "0"}, "--rows-per-batch: 0 is not positive; give events per micro"),
        ({"seed": "x"}, "--seed: 'x' is not an integer"),
        ({"generator": "speed=3"}, "--generator: unknown knob 'speed'; use one of auction_id_"),
        ({"generator": "tps=3"}, "--generator: tps has an argument of its own; use --tps"),
        ({"generator": "num_categories=x"}, "--generator: num_categories=x: 'x' is not an int"),
        ({"generator": "num_categories=0"}, "--generator: num_categories: 0 is not within"),
        ({"digest": "maybe"}, "--digest: invalid choice: 'maybe'"),
        ({"source": "socket"}, "--source: unknown source 'socket'; use datagen or files:DIR"),
        ({"source": "kafka:bids"}, "--source: kafka comes with a later version; record the"),
        ({"source": "files:/nowhere"}, "--source: /nowhere is not a directory; give the one"),
        ({"sink": "console"}, "--sink: unknown sink 'console'; use noop, parquet:DIR or (q10)"),
        ({"sink": "parquet"}, "--sink: unknown sink 'parquet'; use noop, parquet:DIR"),
        ({"sink": "noop:x"}, "--sink: unknown sink 'noop:x'"),
        ({"sink": "filesystem:x"}, "--sink: filesystem is the sink of q10; use noop or parquet"),
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


def test_knobs_reach_the_generator(tmp_path: Path) -> None:
    given = arguments(tmp_path, generator="out_of_order_group_size=5", seed="7")
    source = parse([*given, "--generator", "num_channels=10000"]).source
    assert isinstance(source, DatagenOptions)
    assert (source.config.seed, source.config.tps) == (7, 10)
    assert source.knobs == {"out_of_order_group_size": 5}


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
