"""The operator on the provider's release that is installed, with a spark-submit of our own."""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from packaging.requirements import Requirement

from nexmark.config import load
from nexmark.dag.submit_operator import NexmarkSubmitOperator
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import MOMENTARY
from nexmark.night.run_directory import Run, TaskDirectory
from nexmark.night.submission import written
from nexmark_jobs.progress_lines import ProgressReporter
from tests.foreign_variables import FOREIGN, MARK
from tests.unit.tasks.in_task import in_task_of
from tests.unit.tasks.submissions import repetition

ROOT = Path(__file__).parents[3]
LAST_WORDS = "run_query.py: error: --seed: 'x' is no integer"
_WRITES = "from nexmark_jobs.exit_code import exit_with\nexit_with({code})\n"


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NEXMARK_PROGRESS", str(tmp_path / "progress.txt"))
    connection = {"conn_type": "spark", "host": "spark://127.0.0.1", "port": 7077}
    monkeypatch.setenv("AIRFLOW_CONN_NEXMARK_LOCAL", json.dumps(connection))
    params = {"workload": "nightly", "cluster": "local", "queries": "q5", "repetitions": 5}
    made = make_night(load(), "spark-4.3.0", "nexmark_spark_4_3_0", "run 1", params)
    made.write()
    in_task_of(made, monkeypatch)
    return made


def submission(night: Night, program: str) -> dict[str, Any]:
    """An application whose spark-submit is `program`, text in Python."""
    binary = night.directory / "bin" / "spark-submit"
    binary.parent.mkdir(parents=True, exist_ok=True)
    binary.write_text(f"#!{sys.executable}\nimport os, sys, time\n{program}\n")
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
    environment = {"SPARK_HOME": "/of/the/engine", "PYTHONPATH": str(ROOT)}
    run = Run(query="q5", number=1)
    confs = {"spark.x": "1"}
    made = repetition(night, run, spark_binary=str(binary), environment=environment, confs=confs)
    return written(made)


def run(night: Night, program: str) -> NexmarkSubmitOperator:
    operator = NexmarkSubmitOperator(task_id="q", submission=submission(night, program))
    instance = SimpleNamespace(
        dag_id=night.dag_id,
        run_id="r",
        task_id="q5.repetition",
        map_index=0,
        xcom_push=lambda **_: 0,
    )
    operator.execute({"ti": instance})  # type: ignore[typeddict-item]
    return operator


def test_it_is_the_operator_of_a_release_that_the_package_allows() -> None:
    required = map(Requirement, metadata.requires("nexmark-nightly") or ())
    (provider,) = (x for x in required if x.name == "apache-airflow-providers-apache-spark")
    assert metadata.version(provider.name) in provider.specifier
    assert issubclass(NexmarkSubmitOperator, SparkSubmitOperator)
    assert set(SparkSubmitOperator.template_fields) < set(NexmarkSubmitOperator.template_fields)


def test_spark_submit_gets_what_the_night_decided(night: Night) -> None:
    run(
        night,
        "import json, pathlib\n"
        "seen = {'arguments': sys.argv[1:], 'home': os.environ['SPARK_HOME']}\n"
        "pathlib.Path(sys.argv[0] + '.json').write_text(json.dumps(seen))",
    )
    seen = json.loads((night.directory / "bin" / "spark-submit.json").read_text())
    words = " ".join(seen["arguments"])
    assert seen["home"] == "/of/the/engine"
    assert words.startswith("--master spark://127.0.0.1:7077 ")
    assert "--conf spark.x=1 " in words
    assert f"--properties-file {night.spark_cluster.state}/private/default.conf " in words
    assert "--deploy-mode client " in words
    assert "--name nexmark q5 rep-1 " in words
    assert words.endswith(" run_query.py --query q5")
    spent = night.files.time_spent()
    assert spent is not None
    assert (spent.around_s, spent.timed) == (0.0, 1)


def test_an_instance_has_its_name_for_the_pages_of_airflow(night: Night) -> None:
    """`map_index_template` of the mapped task reads it."""
    made = NexmarkSubmitOperator(task_id="q", submission=submission(night, ""))
    instance = SimpleNamespace(
        dag_id=night.dag_id, run_id="r", task_id="q", map_index=0, xcom_push=lambda **_: 0
    )
    context: dict[str, Any] = {"ti": instance}
    made.execute(context)  # type: ignore[arg-type]
    assert context["application"] == "q5: candidate, repetition 1"


def test_spark_submit_gets_no_variable_of_the_tasks_process(
    night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider adds the variables of a submission to all that the task's process has."""
    monkeypatch.setenv("LC_ALL", "C")
    for name, value in FOREIGN.items():
        monkeypatch.setenv(name, value)
    run(
        night,
        "import json, pathlib\n"
        "pathlib.Path(sys.argv[0] + '.json').write_text(json.dumps(dict(os.environ)))",
    )
    seen = json.loads((night.directory / "bin" / "spark-submit.json").read_text())
    assert [name for name, value in seen.items() if MARK in value] == []
    assert seen["LC_ALL"] == "C.UTF-8"
    assert seen["SPARK_HOME"] == "/of/the/engine"


@pytest.mark.parametrize(
    ("code", "expected"),
    [(2, AirflowFailException), (1, AirflowException), (None, AirflowException)],
)
def test_wrong_arguments_are_not_tried_again_whatever_is_printed(
    night: Night, code: int | None, expected: type[Exception]
) -> None:
    """The job's exit code decides; not the provider's sentence, nor one that looks like it."""
    ends = _WRITES.format(code=code) if code is not None else "sys.exit(1)"
    words = LAST_WORDS if code == 2 else "Error code is: 2."
    with pytest.raises(AirflowException) as raised:
        run(night, f"print({words!r}, flush=True)\n{ends}")
    assert type(raised.value) is expected
    assert TaskDirectory(night.query_dir("q5") / "rep-1").failure() == words


def test_a_cause_at_the_beginning_of_a_long_output_is_told(night: Night) -> None:
    """Spark prints its usage behind it, and the provider's message has the last lines only."""
    log = ROOT / "tests" / "data" / "deaths" / "property-file.log"
    with pytest.raises(AirflowException) as raised:
        run(night, f"print(open({str(log)!r}).read(), flush=True)\nsys.exit(1)")
    told = "Error: Invalid properties file '/srv/jobs/none.conf'."
    assert str(raised.value) == told
    assert TaskDirectory(night.query_dir("q5") / "rep-1").failure() == told


def test_an_application_that_was_killed_says_so(night: Night) -> None:
    with pytest.raises(AirflowException):
        run(night, "print('26/11/27 00:46:07 INFO Job: on', flush=True)\nos.kill(os.getpid(), 9)")
    assert "killed by SIGKILL" in TaskDirectory(night.query_dir("q5") / "rep-1").failure()


def test_an_earlier_exit_code_is_forgotten(night: Night) -> None:
    with pytest.raises(AirflowFailException):
        run(night, _WRITES.format(code=2))
    with pytest.raises(AirflowException) as raised:
        run(night, "os.kill(os.getpid(), 9)")
    assert type(raised.value) is AirflowException


def test_the_task_log_and_the_terminal_show_how_far_it_is(
    night: Night, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    batch = SimpleNamespace(
        id=0, input_rows=100, phase="data", duration_ms=1000, end=datetime(2026, 11, 21, tzinfo=UTC)
    )
    line = ProgressReporter(1000).line(batch)
    assert line is not None
    run(night, f"print('100 %s of the warnings')\nprint({line!r})")
    told = "[1/1] q5   repetition 1 of 5: 10 %, 100 events/s, 0:09 left"
    out = capsys.readouterr().out
    assert "100 %s of the warnings" in out
    assert told in out
    assert line not in out
    assert (tmp_path / "progress.txt").read_text().startswith(f"{MOMENTARY}{told}; night about ")


def test_a_task_that_is_killed_kills_the_application(night: Night) -> None:
    """As Airflow does it when the time of the task is over: `on_kill`, from another thread."""
    pid = night.directory / "pid"
    made = submission(night, f"open({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(30)")
    operator = NexmarkSubmitOperator(task_id="q", submission=made)
    operator.on_kill()  # nothing runs yet

    def kill() -> None:
        deadline = time.monotonic() + 20
        while not (pid.exists() and pid.read_text()) and time.monotonic() < deadline:
            time.sleep(0.01)
        operator.on_kill()

    killer = threading.Thread(target=kill)
    killer.start()
    instance = SimpleNamespace(
        dag_id=night.dag_id,
        run_id="r",
        task_id="q5.repetition",
        map_index=0,
        xcom_push=lambda **_: 0,
    )
    with pytest.raises(AirflowException):
        operator.execute({"ti": instance})  # type: ignore[typeddict-item]
    killer.join()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
