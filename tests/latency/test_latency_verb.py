"""Latency by the command that a person uses: a broker, paced events, percentiles, nothing left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nexmark_jobs.host.processes import marked
from tests.class_archive import share_builds
from tests.kafka.conftest import share_jars

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def start(home: Path, *options: str) -> subprocess.Popen[str]:
    share_jars(home)
    share_builds(home)
    (home / "tmp").mkdir()
    command = [str(Path(sys.executable).with_name("nexmark")), "latency", *options]
    environment = os.environ | {"NEXMARK_HOME": str(home), "TMPDIR": str(home / "tmp")}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)


def assert_nothing_left(home: Path) -> None:
    assert [process.command for process in marked(f"{home}|")] == []
    assert not list((home / "kafka" / "latency").glob("broker-*"))
    assert not list((home / "tmp").iterdir())


def test_every_event_has_a_latency_and_nothing_is_left(tmp_path: Path) -> None:
    """Other work on the machine may make the run INVALID; that no event is missing is tested."""
    home, out = tmp_path / "home", tmp_path / "latency.json"
    options = ("--query", "q17", "--rate", "100", "--seconds", "5", "--warm-up", "1")
    done = start(home, *options, "--out", str(out))
    stdout, stderr = done.communicate(timeout=900)
    (run,) = json.loads(out.read_text())["runs"]
    assert 400 < run["events"] <= 500
    assert run["percentiles"] == sorted(run["percentiles"])
    assert run["longest"] >= run["percentiles"][0] > 0
    assert "no output row" not in run["invalid"]
    assert done.returncode == int(bool(run["invalid"])), stderr
    assert "q17    micro-batch  100" in stdout
    assert_nothing_left(home)


@pytest.mark.long
def test_nothing_is_left_when_it_is_interrupted(tmp_path: Path) -> None:
    home = tmp_path / "home"
    process = start(home, "--query", "q0", "--rate", "100", "--seconds", "60")
    assert process.stdout is not None
    for line in process.stdout:
        if "per second" in line:
            break
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 130
    assert_nothing_left(home)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            ("--query", "q5"),
            "--query: 'q5' is not known; take q0, q1, q2, q10, q13, q14, q17, q21,",
        ),
        (("--rate", "2000-500"), "--rate: '2000-500' goes down; write it as 500-16000"),
        (
            ("--engine", "spark-3.5.9", "--trigger", "both"),
            "q0 cannot run in Real-Time Mode on Spark 3.5.9: this Spark has none; it needs",
        ),
        (("--trigger", "hourly"), "--trigger: 'hourly' is not known; take micro-batch, real-time"),
        (("--rate", "0"), "'0' is not a whole number from 1 to 1000000"),
    ],
)
def test_a_wrong_option_is_one_line(tmp_path: Path, options: tuple[str, ...], says: str) -> None:
    done = start(tmp_path / "home", *options)
    _, stderr = done.communicate(timeout=60)
    assert done.returncode == 2
    assert says in stderr
    assert stderr.count("\n") == 1
