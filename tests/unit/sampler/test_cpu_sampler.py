"""The sampler on a live host: what it follows, when it ends, how it fails, what it costs."""

from __future__ import annotations

import ast
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.sampler import measure_cost
from nexmark.measure.cpu import application_cpu
from nexmark.measure.host_samples import read_samples
from nexmark_jobs import cpu_sampler
from nexmark_jobs.cpu_sampler import identify
from nexmark_jobs.host.processes import OWNER_VARIABLE, owner_mark

SAMPLER = Path(cpu_sampler.__file__)
EXECUTOR_CLASS = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
LAUNCHER = b"org.apache.spark.launcher.Main"
DRIVER = b"org.apache.spark.deploy.SparkSubmit"


class Sampler:
    """A sampler process with its files."""

    def __init__(self, directory: Path, *arguments: str, **popen: Any) -> None:
        self.out = directory / "samples.jsonl"
        self.pid_file = directory / "sampler.pid"
        command = [sys.executable, str(SAMPLER), "--out", str(self.out)]
        command += ["--pid-file", str(self.pid_file), "--max-seconds", "30", *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **popen)

    def ready(self) -> Sampler:
        deadline = time.monotonic() + 20
        while not self.pid_file.exists():
            assert self.process.poll() is None, self.process.communicate()[1]
            assert time.monotonic() < deadline, "the sampler did not get ready"
            time.sleep(0.02)
        return self

    def wait(self) -> tuple[int, str]:
        errors = self.process.communicate(timeout=20)[1]
        return self.process.returncode, errors

    def stop(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.read_text().splitlines()]


Start = Callable[..., Sampler]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Sampler] = []

    def starter(*arguments: str, directory: Path = tmp_path, **popen: Any) -> Sampler:
        started.append(Sampler(directory, *arguments, **popen))
        return started[-1]

    yield starter
    for sampler in started:
        sampler.process.kill()
        sampler.process.communicate()


class TestLife:
    def test_the_pid_file_says_that_samples_flow_and_goes_at_the_end(self, start: Start) -> None:
        sampler = start().ready()
        assert sampler.pid_file.read_text() == f"{sampler.process.pid}\n"
        kinds = [x["kind"] for x in sampler.lines()]
        assert (kinds[0], kinds[-1], kinds.count("tick")) == ("header", "tick", 1)
        assert sampler.stop() == (0, "")
        assert not sampler.pid_file.exists()

    def test_a_stop_takes_a_last_reading_and_tells_what_sampling_cost(self, start: Start) -> None:
        sampler = start("--interval", "20").ready()
        sampler.stop()
        *_, tick, end = sampler.lines()
        assert tick["kind"] == "tick"
        assert (end["kind"], end["reason"], end["ticks"]) == ("end", "signal", 2)
        assert 0 < end["self_cpu_s"] < 2

    def test_it_ends_by_itself(self, start: Start) -> None:
        sampler = start("--interval", "0.1", "--max-seconds", "0.55")
        assert sampler.wait() == (0, "")
        assert sampler.lines()[-1]["reason"] == "max-seconds"
        assert not sampler.pid_file.exists()

    def test_it_outlives_the_terminal_that_started_it(self, start: Start) -> None:
        sampler = start().ready()
        sampler.process.send_signal(signal.SIGHUP)
        time.sleep(0.1)
        assert sampler.process.poll() is None

    def test_it_goes_on_after_it_stood_still(self, start: Start) -> None:
        sampler = start("--interval", "0.1").ready()
        sampler.process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        sampler.process.send_signal(signal.SIGCONT)
        time.sleep(0.5)
        assert sampler.process.poll() is None
        assert sampler.stop() == (0, "")
        assert sampler.lines()[-1]["skipped"] >= 3

    def test_readings_do_not_drift(self, start: Start) -> None:
        sampler = start("--interval", "0.1", "--max-seconds", "1.5")
        sampler.wait()
        header, *lines, end = sampler.lines()
        ticks = [x["mono"] - header["mono"] for x in lines if x["kind"] == "tick"]
        assert len(ticks) + end["skipped"] in (16, 17)
        # A busy machine wakes it late now and then; a drift would make every late reading late.
        assert min(abs(x - round(x, 1)) for x in ticks[-8:]) < 0.02


class TestOneAtATime:
    def test_a_second_sampler_with_the_pid_file_refuses(self, start: Start) -> None:
        first = start().ready()
        code, errors = start().wait()
        assert code == 1
        assert f"a sampler (pid {first.process.pid}) holds {first.pid_file}" in errors
        assert first.stop() == (0, "")
        assert first.lines()[-1]["kind"] == "end"

    def test_of_many_started_at_once_one_samples(self, start: Start) -> None:
        samplers = [start("--max-seconds", "2") for _ in range(4)]
        assert sorted(sampler.wait()[0] for sampler in samplers) == [0, 1, 1, 1]

    def test_a_relative_pid_file_is_the_same_file(self, start: Start, tmp_path: Path) -> None:
        start().ready()
        code, _ = start("--pid-file", "sampler.pid", cwd=tmp_path).wait()
        assert code == 1

    @pytest.mark.parametrize(
        "text", ["999999999\n", "", "x", f"{os.getpid()}\n"], ids=["dead", "empty", "word", "other"]
    )
    def test_a_pid_file_left_behind_is_taken_over(
        self, start: Start, tmp_path: Path, text: str
    ) -> None:
        (tmp_path / "sampler.pid").write_text(text)
        sampler = start("--max-seconds", "0.3", "--interval", "0.1")
        assert sampler.wait() == (0, "")

    def test_a_retry_replaces_the_samples(self, start: Start, tmp_path: Path) -> None:
        (tmp_path / "samples.jsonl").write_text("old\n")
        start("--max-seconds", "0.3").wait()
        assert read_samples(tmp_path / "samples.jsonl").ticks


class TestFailures:
    """One line on stderr, exit code not 0, no pid file left."""

    def check(self, sampler: Sampler, message: str, code: int = 1) -> None:
        returned, errors = sampler.wait()
        assert returned == code
        assert errors.count("\n") == 1
        assert message in errors
        assert not sampler.pid_file.exists()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--interval", "0"], "argument --interval: invalid positive value: '0'"),
            (["--interval", "soon"], "argument --interval"),
            (["--max-seconds", "-1"], "argument --max-seconds"),
            (["--max-seconds", "inf"], "argument --max-seconds"),
            (["--root-pid", "x"], "argument --root-pid"),
            (["--colour"], "unrecognized arguments: --colour"),
        ],
    )
    def test_a_wrong_argument(self, start: Start, arguments: list[str], message: str) -> None:
        self.check(start(*arguments), message, code=2)

    def test_a_missing_directory(self, start: Start, tmp_path: Path) -> None:
        self.check(start(directory=tmp_path / "gone"), "No such file or directory")

    def test_a_directory_that_vanishes_meanwhile(self, start: Start, tmp_path: Path) -> None:
        (tmp_path / "run").mkdir()
        sampler = start("--interval", "0.1", directory=tmp_path / "run").ready()
        shutil.rmtree(tmp_path / "run")
        self.check(sampler, "No such file or directory")

    def test_samples_replaced_by_someone_else(self, start: Start) -> None:
        sampler = start("--interval", "0.1").ready()
        other = sampler.out.with_name("other")
        other.write_text("")
        other.rename(sampler.out)
        self.check(sampler, "samples.jsonl was replaced by another file")

    def test_a_full_disk(self, start: Start) -> None:
        """A limit on the file size fails the same write; the lines before are whole."""

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

        sampler = start("--interval", "0.02", preexec_fn=limit)
        self.check(sampler, "free disk space")
        assert read_samples(sampler.out).ticks


class TestIdentity:
    @pytest.mark.parametrize(
        ("arguments", "role", "cmd"),
        [
            ([b"/jdk/bin/java", b"-cp", b"/a:/b", EXECUTOR_CLASS.encode()], "executor", None),
            ([b"java", b"-Xmx1g", DRIVER, b"--master", b"m"], "driver", "java SparkSubmit"),
            ([b"java", b"org.apache.spark.deploy.worker.Worker"], "worker_daemon", "java Worker"),
            ([b"java", b"org.apache.spark.deploy.master.Master"], "master_daemon", "java Master"),
            ([b"java", b"-cp", b"x", LAUNCHER, DRIVER], None, "java Main"),
            ([b"bash", b"/spark/bin/spark-class", DRIVER], None, "bash"),
            ([b"grep", b"org.apache.spark.deploy.SparkSubmit"], None, "grep"),
            ([b"/usr/bin/python3.11", b"-m", b"pyspark.daemon"], None, "python3.11"),
            ([b"java", b"-jar", b"other.jar"], None, "java"),
            ([b""], None, ""),
        ],
    )
    def test_roles(self, arguments: list[bytes], role: str | None, cmd: str | None) -> None:
        program = identify(arguments)
        assert program.role == role
        assert cmd is None or program.cmd == cmd

    def test_an_executor_tells_its_application(self) -> None:
        program = identify([b"java", EXECUTOR_CLASS.encode(), b"--app-id", b"app-1", b"--x", b"y"])
        assert (program.app_id, program.label) == ("app-1", None)

    @pytest.mark.parametrize("option", [[b"--result", b"r.json"], [b"--result=r.json"]])
    def test_a_driver_tells_its_result_file(self, option: list[bytes]) -> None:
        assert identify([b"java", DRIVER, b"run_query.py", *option]).label == "r.json"

    def test_an_application_of_a_person_is_known_by_a_conf(self) -> None:
        """It may have an argument `--result` of its own."""
        conf = [b"--conf", b"spark.nexmark.label=/runs/r.json"]
        arguments = [b"java", DRIVER, *conf, b"orders.py", b"--result", b"own.json"]
        assert identify(arguments).label == "/runs/r.json"

    def test_other_arguments_stay_secret(self) -> None:
        program = identify([b"java", DRIVER, b"--conf", b"spark.authenticate.secret=s3cret"])
        assert "s3cret" not in str(program)


BURNER = """
import os, resource, subprocess, sys, time

def burn(seconds):
    start = time.process_time()
    while time.process_time() - start < seconds:
        pass

def child(seconds):
    pid = os.fork()
    if pid == 0:
        burn(seconds)
        os._exit(0)
    return pid

burn(0.5)
subprocess.run([sys.argv[-1], "-c", "sum(range(9_000_000))"], check=True)
for seconds in (0.03, 0.03, 0.3, 0.02, 0.25):   # some between two readings, some over several
    os.waitpid(child(seconds), 0)
both = [child(0.3), child(0.3)]
for pid in both:
    os.waitpid(pid, 0)
burn(0.3)                                        # ends between two readings
used = [resource.getrusage(x) for x in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(sum(x.ru_utime + x.ru_stime for x in used))
"""


class TestKnownLoad:
    @pytest.mark.parametrize("interval", ["0.1", "0.5"])
    def test_a_known_cpu_budget_is_measured_within_2_percent(
        self, start: Start, tmp_path: Path, interval: str
    ) -> None:
        """A tree that looks like an executor, with children that come and go."""
        script = tmp_path / "burner.py"
        script.write_text(BURNER)
        sampler = start("--interval", interval).ready()
        command = ["java", str(script), EXECUTOR_CLASS, "--app-id", "app-1", sys.executable]
        burner = subprocess.run(
            command,
            executable=os.path.realpath(sys.executable),
            env={"PYTHONHOME": sys.base_prefix, "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=True,
        )
        time.sleep(2.5 * float(interval))
        sampler.stop()
        series = application_cpu(read_samples(sampler.out), "app-1")
        used = float(burner.stdout)
        assert used > 2
        assert series.executors[-1] + series.python[-1] == pytest.approx(used, rel=0.02)

    def test_an_executor_of_another_home_or_cluster_does_not_count(self, start: Start) -> None:
        """Another master on this host can give an application the same id."""
        command = ["java", "-c", "input()", EXECUTOR_CLASS, "--app-id", "app-1"]
        ours, theirs = (owner_mark(Path(home), "local") for home in ("/a", "/b"))
        baseline = owner_mark(Path("/a"), "local-baseline")
        beside = owner_mark(Path("/a"), "local-two")  # of another night of this home
        owners = [{OWNER_VARIABLE: x} for x in (baseline, theirs)] + [{}, {OWNER_VARIABLE: beside}]
        executors = [
            subprocess.Popen(
                command,
                executable=os.path.realpath(sys.executable),
                env={"PYTHONHOME": sys.base_prefix, **owner},
                stdin=subprocess.PIPE,
            )
            for owner in owners
        ]
        sampler = start(env={**os.environ, OWNER_VARIABLE: ours}).ready()
        sampler.stop()
        for executor in executors:
            executor.communicate(b"\n")
        procs = [x["pid"] for x in sampler.lines() if x.get("role") == "executor"]
        assert sorted(procs) == sorted([executors[0].pid, executors[2].pid])

    def test_a_process_given_by_pid_is_followed_with_its_children(self, start: Start) -> None:
        command = [sys.executable, "-c", "import subprocess; subprocess.run(['sleep', '9'])"]
        with subprocess.Popen(command) as tree:
            sampler = start("--root-pid", str(tree.pid), "--interval", "0.1").ready()
            time.sleep(0.5)
            sampler.stop()
            subprocess.run(["kill", *self.children(tree.pid)], check=True)
        procs = {x["pid"]: x for x in sampler.lines() if x["kind"] == "proc"}
        (child,) = [x for x in procs.values() if x["ppid"] == tree.pid]
        assert (procs[tree.pid]["role"], child["role"], child["root"]) == (
            "root",
            "child",
            tree.pid,
        )
        assert procs[os.getpid()]["role"] == "parent"

    def children(self, pid: int) -> list[str]:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_a_reading_every_second_costs_less_than_half_a_percent_of_a_core() -> None:
    """With a few hundred processes; what a reading costs, start-up taken out."""
    short, long = (measure_cost(250, seconds, 0.05) for seconds in (0.2, 3.0))
    cpu_s_per_reading = (long.cpu_s - short.cpu_s) / (long.ticks - short.ticks)
    assert cpu_s_per_reading < 0.005


def test_it_runs_on_python_3_8() -> None:
    """Hosts have whatever Python they have."""
    ast.parse(SAMPLER.read_text(), feature_version=(3, 8))
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(SAMPLER.read_text()))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= sys.stdlib_module_names
