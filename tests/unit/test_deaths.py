"""Why a program of Spark ended, by its log: each of `data/deaths` is what one printed that did."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nexmark.engines import files_problem
from nexmark.engines.launcher import logged_cause
from nexmark.reason import reason_of
from nexmark_jobs.cause import cause, failure_cause
from nexmark_jobs.errors import one_line

DEATHS = Path(__file__).parents[1] / "data" / "deaths"
WORKERS = DEATHS.with_name("worker_errors")
DIVISION = "ZeroDivisionError: integer division or modulo by zero"
CAUSES = {
    "driver-memory": "java.lang.OutOfMemoryError: Java heap space",
    "executor-memory": "java.lang.OutOfMemoryError: Java heap space",
    "kerberos": "java.lang.IllegalArgumentException: KrbException: Cannot locate default realm",
    "local-dir": "java.nio.file.NoSuchFileException: /proc/none",
    "main-class": "Error: Failed to load class org.example.NoSuchMain.",
    "master-address": "java.net.BindException: bind(..) failed with error(-99): Cannot assign",
    "master-memory": "Could not reserve enough space for 943718400000KB object heap",
    "memory-limit": "Could not allocate compressed class space: 1073741824 bytes",
    "missing-class": "java.lang.ClassNotFoundException: org.example.NoSuchListener",
    "missing-data-source": "[KAFKA_DATA_SOURCE_NOT_ENABLED] Failed to find data source: kafka.",
    "no-java": "/opt/spark/bin/spark-class: line 71: /usr/lib/none/bin/java: No such file",
    "no-master": "Application has been killed. Reason: All masters are unresponsive! Giving up.",
    "no-program": "/usr/bin/python: can't open file '/srv/jobs/none.py': [Errno 2] No such file",
    "open-files-256": "Error loading java.security file: too many files are open; raise the limit",
    "property-file": "Error: Invalid properties file '/srv/jobs/none.conf'.",
    "python-error": "ValueError: no column bids in the table",
    "sigkill": "it was killed by SIGKILL, as the kernel does it when the memory is used up",
    "stream": "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0",
    "stream-udf-3.5.9": f"{DIVISION} (jobs_stream_udf.py:6)",
    "stream-udf-4.3.0": f"{DIVISION} (jobs_stream_udf.py:6)",
    "udf-error": "ZeroDivisionError: integer division or modulo by zero",
    "worker-dir": "java.nio.file.NoSuchFileException: /proc/none",
    "worker-property": "java.lang.IllegalArgumentException: requirement failed: Properties file",
}


def logs() -> Iterator[str]:
    yield from sorted(path.stem for path in DEATHS.glob("*.log"))


def test_every_death_has_a_cause() -> None:
    assert list(logs()) == sorted(CAUSES)


@pytest.mark.parametrize("name", sorted(CAUSES))
def test_the_cause_of_a_death_is_found_in_its_log(name: str) -> None:
    log, code = DEATHS / f"{name}.log", -9 if name == "sigkill" else 1
    assert failure_cause(log.read_text(), code).startswith(CAUSES[name])
    assert logged_cause(log, code).startswith(CAUSES[name])


@pytest.mark.parametrize("name", sorted(CAUSES.keys() - {"property-file", "sigkill"}))
def test_a_task_that_fails_with_the_provider_s_message_says_the_same(name: str) -> None:
    lines = (DEATHS / f"{name}.log").read_text()
    error = f"Cannot execute: spark-submit x.py. Error code is: 1.\nLast output:\n{lines}"
    assert reason_of(error).startswith(CAUSES[name][:100])


@pytest.mark.parametrize("name", sorted(path.name for path in WORKERS.glob("*.txt")))
def test_a_function_that_fails_in_a_python_worker_is_named_with_its_line(name: str) -> None:
    """What a streaming query says that failed: one without rows kept, and one that keeps them."""
    causes = (WORKERS / name).read_text()
    assert one_line(causes) == f"{DIVISION} (mine.py:6)"


def test_of_errors_in_a_worker_that_led_to_another_the_last_one_is_named() -> None:
    text = """org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/srv/a.py", line 2, in f
    return known[key]
           ~~~~~^^^^^
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/b.py", line 7, in g
    raise Unknown(key)
b.Unknown: x
is not there

\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:94)
Traceback (most recent call last):
ValueError: of something else
"""
    assert one_line(text) == "b.Unknown: x (b.py:7)"
    assert one_line("a.PythonException: no traceback") == "a.PythonException: no traceback"


def test_a_signal_is_said_where_the_log_says_nothing() -> None:
    said = "Cannot execute: spark-submit x.py. Error code is: -15.\nLast output:\nx INFO y: z"
    assert reason_of(said) == "it was killed by SIGTERM"
    assert failure_cause("", 137).startswith("it was killed by SIGKILL")
    assert failure_cause("", 1) == "it ended without a word"
    assert failure_cause("starting\n\nready\n", 1) == "ready"


def test_what_a_job_says_itself_comes_first() -> None:
    log = "java.lang.OutOfMemoryError: x\nrun_query.py: error: --seed: 'x' is no integer\nbye\n"
    assert cause(log) == "run_query.py: error: --seed: 'x' is no integer"


def test_an_option_about_memory_is_no_death() -> None:
    assert cause("Cannot execute: java -XX:+ExitOnOutOfMemoryError x") is None


def test_a_line_of_ours_stays_as_it_is() -> None:
    text = "host nexmark03: /usr/bin/python: No such file or directory; install it there"
    assert reason_of(text) == text


def test_a_low_limit_of_open_files_is_a_problem_before_anything_starts() -> None:
    assert files_problem(1024) == ""
    assert files_problem(256).startswith("open files: a process may have 256 open")
    assert "ulimit -n" in files_problem(256)
