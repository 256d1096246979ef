"""A real master replaces executors before a query and behind it: they are none of the query's."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nexmark.config import paths
from nexmark.engines import Build
from nexmark.engines.launcher import Launcher, log_of, logged_cause
from nexmark.measure.cpu import application_cpu
from nexmark.measure.host_samples import read_samples
from nexmark.measure.measurement import measure_series
from nexmark.measure.result_file import parse_result
from nexmark.measure.shares import host_executors, read_executor_work
from nexmark.recovery.daemons import standalone
from nexmark_jobs import cpu_sampler
from nexmark_jobs.host.processes import OWNER_VARIABLE, end, owned, owner_mark, start_detached
from tests.conftest import ENGINES
from tests.quick_jvm import QUICK_JVM
from tests.waiting import wait_for

#: The driver: it loses its executor before the query, and again when all results are there.
DRIVER = """
import os, sys, time
sys.path[0] = {repository!r}
from pyspark.sql import SparkSession
from nexmark_jobs.host.processes import kill, with_word
from nexmark_jobs.options import parse
from nexmark_jobs.run_query import complete

def wait_for(ready):
    deadline = time.monotonic() + 60
    while not (found := ready()):
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)
    return found

with SparkSession.builder.getOrCreate() as spark:
    context = spark.sparkContext
    def executors():
        return set(with_word(os.environ["NEXMARK_OWNER"], "--app-id " + context.applicationId))
    def replaced():
        (first,) = wait_for(executors)
        kill(first, again=False)
        return wait_for(lambda: executors() - {{first}})
    def registered(executor):
        return context._jsc.sc().getExecutorIds().mkString(",") == executor
    wait_for(lambda: registered("0"))
    replaced()
    wait_for(lambda: registered("1"))
    complete(spark, parse(sys.argv[1:]), quiet=True)
    replaced()
    time.sleep(1)
"""


@pytest.mark.spark
@pytest.mark.extended
def test_replacements_before_the_first_batch_and_after_the_end_do_not_count(
    tmp_path: Path, engine_build: Callable[[str], Build]
) -> None:
    mark = {OWNER_VARIABLE: owner_mark(tmp_path, "local")}
    driver, events, result = (tmp_path / x for x in ("driver.py", "events", "result.json"))
    driver.write_text(DRIVER.format(repository=str(paths.repository())))
    events.mkdir()
    confs = {
        **{"spark.cores.max": "1", "spark.executor.cores": "1", "spark.executor.memory": "512m"},
        **{"spark.sql.shuffle.partitions": "1", "spark.eventLog.enabled": "true"},
        "spark.eventLog.dir": events.as_uri(),
    }
    out, pid_file = tmp_path / "samples.jsonl", tmp_path / "sampler.pid"
    sampler = [sys.executable, "-I", str(cpu_sampler.__file__), "--interval", "0.2"]
    sampler += ["--out", str(out), "--pid-file", str(pid_file), "--max-seconds", "600"]
    given = "--query q0 --source datagen --events 20000 --tps 1000 --seed 1 --sink noop"
    build = engine_build(ENGINES[0])
    with standalone(build, tmp_path, mark) as (master, local):
        sampling = start_detached(
            sampler, os.environ, mark[OWNER_VARIABLE], tmp_path / "sampler.log"
        )
        try:
            wait_for(pid_file.exists, within_s=30)
            launcher = Launcher(build, confs, tmp_path, mark, master, local, QUICK_JVM)
            arguments = [*given.split(), "--rows-per-batch", "5000", "--result", str(result)]
            with launcher.started(arguments, result, job=str(driver)) as process:
                process.wait(timeout=600)
            assert process.returncode == 0, logged_cause(log_of(result))
        finally:
            end([sampling], grace_s=10)
    assert owned(mark[OWNER_VARIABLE]) == []
    run, samples = parse_result(json.loads(result.read_text())), read_samples(out)
    assert application_cpu(samples, run.application_id).executor_count == 3
    series = application_cpu(samples, run.application_id, str(result), period=run.work)
    measured = measure_series(run, [series], warmup_batches=1, min_intervals=10, executors=1)
    assert measured.cpu_s > 0
    assert (series.executor_count, series.executors_gone_before) == (1, 1)
    assert len(host_executors(samples, run.application_id, run.work).executors) == 1
    (worked,) = read_executor_work(events, run.application_id, run.work)
    assert worked.executor == "1"
    assert worked.tasks
