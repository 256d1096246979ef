"""The verb `compat`: what it refuses before anything is started, and what Ctrl-C leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nexmark.cli.app import main
from nexmark.compatibility.plans import carried_confs, in_words, overruled
from nexmark.engines import Build
from nexmark_jobs.host.processes import owned

FROM = ("--from", "pypi:4.3.0")
OFFSETS = """v1
{"batchWatermarkMs":0,"conf":{"spark.sql.shuffle.partitions":"2",
"spark.sql.streaming.stateStore.providerClass":"a.b.RocksDBStateStoreProvider",
"spark.sql.streaming.join.stateFormatVersion":"2"}}
{"offset":1}"""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--from: none is given; give a build as pypi:4.3.0"),
        (("--from", "maven:4.3.0"), "--from: build 'maven:4.3.0': not known; write pypi:4.3.0"),
        ((*FROM, "--to", "pypi:x"), "--to: build 'pypi:x': pypi is not well-formed"),
        (("--from", "directory:/nowhere"), "there is no such directory; correct the path"),
        ((*FROM, "--query", "q55"), "--query: unknown query 'q55'; did you mean 'q5'?"),
        ((*FROM, "--formulation", "join"), "--formulation: needs a query; give it by --query"),
        (
            (*FROM, "--query", "q8", "--against", "join"),
            "--against: needs --formulation",
        ),
        (
            (*FROM, "--query", "q8", "--formulation", "joins"),
            "--formulation: q8 has no formulation 'joins'; did you mean 'join'?",
        ),
        ((*FROM, "--formulations", "no.py"), "--formulations: no.py: there is no such file"),
        ((*FROM, "--events", "9"), "'9' is not a whole number from 200 to"),
        ((*FROM, "--tps", "x"), "'x' is not a whole number from 1 to"),
        ((*FROM, "--to-conf", "a"), "'a' is not KEY=VALUE"),
        ((*FROM, "--out", "/no/where"), "'--out': /no/where exists, or its directory does not"),
        (
            (*FROM, "--corpus", "/no/where"),
            "'--corpus': /no/where exists, or its directory does not",
        ),
    ],
)
def test_bad_arguments(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compat", *arguments]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert (said.err.count("\n"), said.out) == (1, "")


def test_what_a_checkpoint_carries(tmp_path: Path) -> None:
    assert carried_confs(tmp_path) == {}
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text(OFFSETS.replace(",\n", ","))
    confs = carried_confs(tmp_path)
    assert in_words(confs, "inner join") == "RocksDB, partitions 2, join format 2"
    assert in_words(confs, "aggregation") == "RocksDB, partitions 2"
    key = "spark.sql.shuffle.partitions"
    assert overruled(confs, {key: "2", "other": "1"}, "it") == []
    assert overruled(confs, {key: "4"}, "it") == [f"it asked for {key}=4, the checkpoint has 2"]


def fake_build(home: Path) -> Path:
    """A build whose pyspark starts a process and waits for ever."""
    for name in ("bin/spark-submit", "jars/spark-core_2.13-4.3.0.jar"):
        (home / name).parent.mkdir(parents=True)
        (home / name).touch()
    package = home / "python" / "lib" / "pyspark.zip" / "pyspark"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import os, pathlib, subprocess, time\n"
        "subprocess.Popen(['sleep', '600'])\n"
        f"pathlib.Path({str(home / 'mark')!r}).write_text(os.environ['NEXMARK_OWNER'])\n"
        "time.sleep(600)\n"
    )
    return home


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_when_it_is_interrupted(number: signal.Signals, tmp_path: Path) -> None:
    home, temporary = fake_build(tmp_path / "build"), tmp_path / "tmp"
    temporary.mkdir()
    command = [sys.executable, "-m", "nexmark.cli", "compat", "--from", f"directory:{home}"]
    environment = os.environ | {"TMPDIR": str(temporary), "NEXMARK_HOME": str(tmp_path / "home")}
    process = subprocess.Popen(
        [*command, "--query", "q17"], env=environment, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 300
    while not (home / "mark").exists() or not (mark := (home / "mark").read_text()):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert len(owned(mark)) == 2
    process.send_signal(number)
    assert process.wait(60) == 130
    assert owned(mark) == []
    assert list(temporary.iterdir()) == []


@pytest.mark.spark
def test_a_corpus_keeps_what_a_query_can_go_on_from(
    tmp_path: Path, engine_build: Callable[[str], Build]
) -> None:
    corpus, build = tmp_path / "corpus", f"directory:{engine_build('spark-4.3.0').spark_home}"
    arguments = ["--from", build, "--query", "q11", "--events", "400", "--corpus", str(corpus)]
    assert main(["compat", *arguments]) == 0
    told = json.loads((corpus / "corpus.json").read_text())
    ((name, state),) = told["queries"].items()
    assert (state, told["spark"]) == ("done", "4.3.0")
    assert "spark.sql.shuffle.partitions" in carried_confs(corpus / name / "kept" / "checkpoint")
