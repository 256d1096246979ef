"""The sampler on a host: what it measures of a known load there, and what comes back here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from nexmark.cluster.hosts.host import Host
from nexmark.cluster.hosts.samplers import fetch_samples, start_sampler
from nexmark.config import paths
from nexmark.measure.cpu import application_cpu
from nexmark.measure.host_samples import read_samples
from tests.cluster.testbed import Testbed

WORKER = "nexmark02"
MARK = "test_samplers|cluster"
EXECUTOR_CLASS = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
INTERVAL_S = 0.5
SECONDS = 3.0
#: Burns a number of seconds of CPU time in itself and two children, and prints the CPU time used.
BURNER = """
import os, resource, time
def burn(seconds):
    start = time.process_time()
    while time.process_time() - start < seconds:
        pass
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        burn({0} / 4)
        os._exit(0)
    os.waitpid(pid, 0)
burn({0} / 2)
used = [resource.getrusage(x) for x in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(sum(x.ru_utime + x.ru_stime for x in used))
"""


@pytest.fixture
def host(testbed: Testbed, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    connection_id = testbed.cluster.hosts[WORKER].connection
    testbed.export(monkeypatch)
    with closing(Host(WORKER, connection_id, testbed.cluster.python)) as made:
        yield made


def test_a_known_load_of_a_host_is_measured_within_2_percent(
    testbed: Testbed, host: Host, tmp_path: Path
) -> None:
    directory = f"{testbed.cluster.root}/samplers-of-a-test"
    program = f"{directory}/cpu_sampler.py"
    # A host sees nothing of this clone, should it be in a temporary directory.
    sampler = (paths.repository() / "nexmark_jobs" / "cpu_sampler.py").read_bytes()
    put = ["sh", "-c", 'mkdir "$1" && cat >"$2"', "-", directory, program]
    host.run(put, timeout_s=10, stdin=sampler)
    start_sampler(host, testbed.cluster.python, program, directory, "q0", INTERVAL_S, MARK)
    python = os.path.realpath(sys.executable)
    as_executor = ["-", EXECUTOR_CLASS, "--app-id", "app-1"]
    # As a worker does, its parent outlives it: who ends between two readings is booked by that.
    outlived = '(exec -a java "$@"); sleep 2'
    command = ["bash", "-c", outlived, "-", python, *as_executor]
    environment = ["env", f"PYTHONHOME={sys.base_prefix}"]
    program_text = BURNER.format(SECONDS).encode()
    burnt = float(host.run([*environment, *command], timeout_s=60, stdin=program_text))
    fetch_samples(host, directory, "q0", MARK, tmp_path)
    samples = read_samples(tmp_path / f"samples-{WORKER}.jsonl")
    series = application_cpu(samples, "app-1")
    assert burnt > SECONDS
    assert series.executors[-1] + series.python[-1] == pytest.approx(burnt, rel=0.02)
    assert testbed.run(WORKER, "ls", directory).stdout.split() == ["cpu_sampler.py"]
    testbed.run(WORKER, "rm", "-r", directory)
