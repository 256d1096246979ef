"""Recovery by the command that a person uses: kills, a right table, costs, nothing left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nexmark.config import paths
from nexmark.kafka.jars import jars
from nexmark.recovery.mini_hdfs import JARS
from nexmark_jobs.host.processes import marked
from tests.class_archive import share_builds
from tests.waiting import wait_for

MOMENTS = ("start", "restore", "batch", "upload", "commit")
REMOTE = ("--checkpoint", "remote", "--latency-ms", "5", "--mb-per-s", "50")
INPUT = ("--events", "6000", "--tps", "100", "--rows-per-batch", "1000")


def start(home: Path, *options: str) -> subprocess.Popen[str]:
    share_builds(home)
    (home / "kafka").symlink_to(paths.home() / "kafka")
    command = [str(Path(sys.executable).with_name("nexmark")), "recovery", *options]
    environment = os.environ | {"NEXMARK_HOME": str(home), "TMPDIR": str(home)}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)


def assert_nothing_left(home: Path) -> None:
    assert [process.command for process in marked(f"{home}|")] == []
    left = {path.name for path in home.iterdir()}
    own = {"builds", "kafka", "no-spark-conf", "remote-fs"}
    assert left <= own, "temporary files, or what RocksDB left behind"


@pytest.mark.spark
@pytest.mark.slow
def test_a_killed_query_is_right_and_its_costs_are_told(tmp_path: Path) -> None:
    home, out = tmp_path / "home", tmp_path / "out"
    process = start(home, "--query", "q18", "--kills", "1", "--out", str(out), *INPUT)
    stdout, stderr = process.communicate(timeout=900)
    assert process.returncode == 0, stderr
    told = json.loads(stdout)
    assert told["right"] is True
    assert told["rows"] > 0
    assert [kill["what"] for kill in told["kills"]] == ["driver"]
    assert all(kill["moment"] in MOMENTS for kill in told["kills"])
    assert {line["batch"] for line in told["commit"]} >= {0, 5}
    assert told["checkpoint_bytes"] > 0
    assert "kill 1 of 1: in the" in stderr
    assert (out / "checkpoint").is_dir()
    assert_nothing_left(home)


@pytest.mark.spark
@pytest.mark.long
def test_an_executor_is_lost_with_the_state_on_remote_storage(tmp_path: Path) -> None:
    home, out = tmp_path / "home", tmp_path / "out"
    given = ("--query", "q20", "--kills", "1", "--kill", "executor", *REMOTE)
    process = start(home, *given, "--out", str(out), *INPUT)
    stdout, stderr = process.communicate(timeout=900)
    assert process.returncode == 0, stderr
    told = json.loads(stdout)
    assert told["right"] is True
    assert [kill["what"] for kill in told["kills"]] == ["executor"]
    assert told["checkpoint"]["kind"] == "remote"
    assert not list((out / "checkpoint").rglob("*.crc")), (
        "the checkpoint was not written by the stand-in"
    )
    assert_nothing_left(home)


@pytest.mark.spark
@pytest.mark.slow
def test_ctrl_c_leaves_no_process(tmp_path: Path) -> None:
    home, out = tmp_path / "home", tmp_path / "out"
    process = start(home, "--query", "q18", "--kills", "0", "--out", str(out), *INPUT)
    wait_for(lambda: marked(f"{home}|"), within_s=120)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert_nothing_left(home)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("engine", ["spark-4.3.0", "spark-3.5.9"])
@pytest.mark.parametrize(
    "state", [("rocksdb",), ("rocksdb", "--changelog"), ("hdfs",)], ids=" ".join
)
@pytest.mark.parametrize("query", ["q4", "q5", "q9", "q11", "q16", "q18", "q20"])
def test_a_query_that_is_killed_five_times_is_right(
    tmp_path: Path, query: str, state: tuple[str, ...], engine: str
) -> None:
    home = tmp_path / "home"
    given = ("--query", query, "--engine", engine, "--state", *state, "--kills", "5")
    process = start(home, *given, "--out", str(tmp_path / "out"), *INPUT)
    stdout, stderr = process.communicate(timeout=1800)
    assert process.returncode == 0, stderr
    assert json.loads(stdout)["right"] is True
    assert_nothing_left(home)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("engine", ["spark-4.3.0", "spark-3.5.9"])
@pytest.mark.parametrize("state", [("rocksdb",), ("rocksdb", "--changelog"), ("hdfs",)])
@pytest.mark.parametrize("kill", ["executor", "worker", "both"])
def test_a_query_that_loses_executors_is_right(
    tmp_path: Path, kill: str, state: tuple[str, ...], engine: str
) -> None:
    home = tmp_path / "home"
    given = ("--query", "q20", "--engine", engine, "--state", *state, "--kill", kill, "--kills")
    process = start(home, *given, "5", *REMOTE, "--out", str(tmp_path / "out"), *INPUT)
    stdout, stderr = process.communicate(timeout=1800)
    assert process.returncode == 0, stderr
    assert json.loads(stdout)["right"] is True
    assert_nothing_left(home)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("engine", ["spark-4.3.0", "spark-3.5.9"])
@pytest.mark.parametrize("state", [("rocksdb",), ("rocksdb", "--changelog"), ("hdfs",)])
def test_a_query_with_its_checkpoint_in_hdfs_is_right(
    engine: str, state: tuple[str, ...], tmp_path: Path
) -> None:
    home, out = tmp_path / "home", tmp_path / "out"
    jars(JARS, print)  # the home of the run has a link to them
    options = ("--engine", engine, "--state", *state, "--checkpoint", "hdfs", "--kills", "3")
    process = start(home, "--query", "q20", *options, "--out", str(out), *INPUT)
    stdout, stderr = process.communicate(timeout=900)
    assert process.returncode == 0, stderr
    told = json.loads(stdout)
    assert (told["right"], told["checkpoint"]) == (True, {"kind": "hdfs"})
    assert len(told["kills"]) == 3
    assert any(kill["moment"] != "start" for kill in told["kills"]), "its files were seen"
    assert told["checkpoint_bytes"] > 0
    assert_nothing_left(home)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("engine", ["spark-4.3.0", "spark-3.5.9"])
@pytest.mark.parametrize("fault", ["outage:10", "slow:10", "errors:1"])
def test_a_query_whose_remote_storage_fails_is_right(
    tmp_path: Path, fault: str, engine: str
) -> None:
    home = tmp_path / "home"
    given = ("--query", "q20", "--engine", engine, "--kills", "1", "--remote-fault", fault)
    process = start(home, *given, *REMOTE, "--out", str(tmp_path / "out"), *INPUT)
    stdout, stderr = process.communicate(timeout=1800)
    assert process.returncode == 0, stderr
    told = json.loads(stdout)
    assert told["right"] is True
    assert told["checkpoint"]["fault"] == fault
    assert "the fault of the storage begins" in stderr
    assert_nothing_left(home)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--query", "q99"), "--query: unknown query 'q99'; "),
        (("--query", "q12"), "--query: the result of q12 differs from run to run; give another"),
        (("--query", "q4", "--kills", "-1"), "'-1' is not a whole number from 0 to 100"),
        (("--query", "q4", "--state", "hdfs", "--changelog"), "--changelog: only RocksDB has it"),
        (
            ("--query", "q4", "--mb-per-s", "5"),
            "--mb-per-s: is of remote storage; add --checkpoint",
        ),
        (
            ("--query", "q4", "--checkpoint", "remote", "--remote-fault", "fire"),
            "--remote-fault: 'fire' is not a fault; write outage:SECONDS",
        ),
        (("--query", "q4", "--engine", "spark-9"), "engine: unknown engine 'spark-9'; "),
    ],
)
def test_a_wrong_option_is_one_line(tmp_path: Path, options: tuple[str, ...], says: str) -> None:
    process = start(tmp_path / "home", *options, "--out", str(tmp_path / "out"))
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 2
    assert says in stderr
    assert stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("keep")
    process = start(tmp_path / "home", "--query", "q4", "--out", str(tmp_path))
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "is not an empty directory; name a new one" in stderr
    assert (tmp_path / "theirs").read_text() == "keep"
