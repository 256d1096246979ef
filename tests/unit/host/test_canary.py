"""The canary times what it says, tells only what the host has, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from nexmark.cluster.hosts.host import program_command, program_input
from nexmark.verdict.eligibility import Steadiness, grade, is_level
from nexmark.verdict.measured_night import Canary
from nexmark_jobs.host import canary
from nexmark_jobs.host.canary import Levels, cpu_ticks, stall_us
from tests.unit.host.programs import run
from tests.unit.verdict.gate_builder import rules

QUICK = {"cpu_rounds": 2, "memory_rounds": 0, "fsync_rounds": 2}
LEVELS = {"steal_percent", "psi_cpu", "psi_io", "psi_memory", "load_1m", "mhz", "throttled"}


@pytest.fixture
def disk() -> Path:
    """A directory that is not in memory, as pytest's may be."""
    return Path(__file__).parent


def test_what_a_host_is_asked_it_answers(disk: Path) -> None:
    asked = {"cpu_rounds": 2, "memory_rounds": 2, "fsync_rounds": 2, "directory": str(disk)}
    answer = run(canary, asked)
    metrics = answer["metrics"]
    assert {"cpu_s", "cpu_memory_s", "fsync_s", "load_1m"} <= metrics.keys()
    assert metrics.keys() - {"cpu_s", "cpu_memory_s", "fsync_s"} <= LEVELS
    assert answer["problems"] == []
    assert answer["elapsed_s"] < 20
    assert all(value >= 0 for value in metrics.values())


def test_the_gate_takes_timings_for_timings_and_levels_for_levels(disk: Path) -> None:
    metrics = canary.main({**QUICK, "directory": str(disk)})["metrics"]
    for name, value in metrics.items():
        assert is_level(name) == (not name.endswith("_s"))
        assert grade([Canary(name, (value,), (value,))], rules()).steadiness in (
            (Steadiness.STEADY, Steadiness.UNSTEADY) if is_level(name) else (Steadiness.STEADY,)
        )


def test_without_a_directory_nothing_is_written() -> None:
    answer = canary.main({"cpu_rounds": 0, "memory_rounds": 0})
    assert answer["metrics"].keys() <= LEVELS
    assert answer["problems"] == []


def test_cpu_time_is_reported_not_the_time_that_others_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look between rounds that takes long is in neither: only the work is timed."""
    calm = canary.main(QUICK)["metrics"]["cpu_s"]
    monkeypatch.setattr(Levels, "look", lambda self: time.sleep(0.3))
    assert canary.main(QUICK)["metrics"]["cpu_s"] < 0.2 + calm


def test_a_round_that_waits_has_not_worked(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed = canary.hashlib.sha256

    def waiting(data: bytes) -> Any:
        time.sleep(0.5)
        return hashed(data)

    monkeypatch.setattr(canary.hashlib, "sha256", waiting)
    assert canary.main(QUICK)["metrics"]["cpu_s"] < 0.4


def test_rounds_that_others_disturbed_are_not_the_timing() -> None:
    assert canary._timing("cpu_s", [9.0, 1.0, 9.0, 1.1, 9.0] * 4) == {"cpu_s": 1.0}
    assert canary._timing("cpu_s", [3.0]) == {"cpu_s": 3.0}
    assert canary._timing("cpu_s", []) == {}


@pytest.mark.parametrize("supported", [True, False])
def test_nothing_is_left_in_the_directory(
    supported: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not supported:  # as on NFS: the flag is not a directory that can be opened for writing
        monkeypatch.setattr(canary.os, "O_TMPFILE", 0)
    with canary._nameless(str(tmp_path)) as descriptor:
        os.write(descriptor, b"text")
        assert os.fstat(descriptor).st_nlink == 0
        assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_by_one_that_is_killed(disk: Path, tmp_path: Path) -> None:
    where = tmp_path if canary._filesystem(str(tmp_path)) not in canary._IN_MEMORY else disk
    before = set(where.iterdir())
    request = {"cpu_rounds": 0, "memory_rounds": 0, "fsync_rounds": 10**9, "directory": str(where)}
    budget = b'\\"fsync\\": 1.0'
    sent = program_input(canary, request)
    assert budget in sent
    child = subprocess.Popen(program_command(sys.executable), stdin=subprocess.PIPE)
    try:
        assert child.stdin
        child.stdin.write(sent.replace(budget, b'\\"fsync\\": 60.0'))
        child.stdin.close()
        _wait_until_it_writes(child.pid, where)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert set(where.iterdir()) == before


def _wait_until_it_writes(pid: int, where: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        opened = [os.readlink(x) for x in Path(f"/proc/{pid}/fd").iterdir() if x.is_symlink()]  # noqa: PTH115
        if any(x.startswith(str(where)) and x.endswith("(deleted)") for x in opened):
            return
        time.sleep(0.01)
    raise AssertionError("it has not begun to write")


def test_a_file_that_a_kill_left_is_taken_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canary.os, "O_TMPFILE", 0)
    (tmp_path / canary._NAME).touch()
    with canary._nameless(str(tmp_path)):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_written_costs_its_timing_only(tmp_path: Path) -> None:
    answer = canary.main({**QUICK, "directory": str(tmp_path / "none")})
    assert "cpu_s" in answer["metrics"]
    assert "fsync_s" not in answer["metrics"]
    assert answer["problems"] == [f"fsync: {tmp_path}/none: No such file or directory"]


def test_a_disk_that_is_memory_is_no_disk(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canary, "_filesystem", lambda _: "tmpfs")
    answer = canary.main({**QUICK, "directory": str(disk)})
    assert "fsync_s" not in answer["metrics"]
    assert answer["problems"] == [f"fsync: {disk} is in memory; give a directory on a disk"]


def test_the_filesystem_of_a_directory_is_known() -> None:
    assert canary._filesystem("/proc") == "proc"


def host_that_says(monkeypatch: pytest.MonkeyPatch, texts: dict[str, list[str]]) -> None:
    """Files by the start of their path, what each reading gives; others are not there."""

    def text(path: Path | str) -> str | None:
        for start, readings in texts.items():
            if str(path).startswith(start):
                return readings.pop(0) if len(readings) > 1 else readings[0]
        return None

    monkeypatch.setattr(canary, "text_of", text)


def test_levels_that_the_host_cannot_tell_are_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    host_that_says(monkeypatch, {})
    levels = Levels()
    levels.look()
    assert levels.end().keys() == {"load_1m"}


def test_levels_are_of_the_time_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    stall = "some avg10=90.00 avg60=9.00 avg300=9.00 total={}\nfull avg10=0 total=7"
    host_that_says(
        monkeypatch,
        {
            "/proc/stat": ["cpu 10 0 10 70 0 0 0 10 5 5\ncpu0 1", "cpu 60 0 10 95 0 0 0 35 5 5"],
            "/proc/pressure/cpu": [stall.format(1_000_000), stall.format(1_500_000)],
            "/proc/self/cgroup": ["0::/some.slice"],
            "/sys/fs/cgroup/some.slice/cpu.stat": ["nr_throttled 4", "nr_throttled 6"],
            "/proc/cpuinfo": ["cpu MHz\t\t: 2000.0\ncpu MHz\t\t: 3000.0"],
        },
    )
    monkeypatch.setattr(canary, "_SYS_CPU", Path("/nowhere"))
    clock = iter([100.0, 102.0])
    monkeypatch.setattr(canary.time, "monotonic", lambda: next(clock))
    levels = Levels()
    levels.look()
    found = levels.end()
    assert found.pop("load_1m") >= 0
    assert found == {
        "steal_percent": pytest.approx(25.0),
        "psi_cpu": pytest.approx(25.0),
        "mhz": 2500.0,
        "throttled": 2.0,
    }


def test_clock_rates_of_the_driver_go_before_those_of_cpuinfo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for core, khz in enumerate((1_000_000, 3_000_000)):
        place = tmp_path / f"cpu{core}" / "cpufreq" / "scaling_cur_freq"
        place.parent.mkdir(parents=True)
        place.write_text(f"{khz}\n")
    monkeypatch.setattr(canary, "_SYS_CPU", tmp_path)
    assert canary._mhz() == 2000.0


def test_cores_that_heat_held_back_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "cpu0" / "thermal_throttle" / "core_throttle_count"
    place.parent.mkdir(parents=True)
    place.write_text("7\n")
    monkeypatch.setattr(canary, "_SYS_CPU", tmp_path)
    levels = Levels()
    place.write_text("9\n")
    assert levels.end()["throttled"] == 2.0


def test_files_of_old_kernels_are_read() -> None:
    assert cpu_ticks("cpu 1 2 3 4 5 6 7") is None
    assert cpu_ticks(None) is None
    assert cpu_ticks("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1") == (8, 36)
    assert stall_us("") is None
    assert stall_us("some avg10=0.00 avg60=0.00 avg300=0.00 total=12") == 12


def test_memory_that_is_not_free_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    host_that_says(monkeypatch, {"/proc/meminfo": ["MemAvailable: 102400 kB"]})
    answer = canary.main({"cpu_rounds": 0, "memory_rounds": 1})
    assert "cpu_memory_s" not in answer["metrics"]
    assert answer["problems"] == ["memory: 100 MiB are free, 256 needed"]


def test_the_buffer_is_larger_than_the_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for index, size in enumerate(("32K", "1024K", "98304K")):
        place = tmp_path / "cpu0" / "cache" / f"index{index}" / "size"
        place.parent.mkdir(parents=True)
        place.write_text(f"{size}\n")
    monkeypatch.setattr(canary, "_SYS_CPU", tmp_path)
    assert canary._largest_cache() == 96 << 20
