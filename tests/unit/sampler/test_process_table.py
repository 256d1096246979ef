"""Which processes the table follows, told on a small made-up host."""

from __future__ import annotations

import pytest

from nexmark_jobs import cpu_sampler
from nexmark_jobs.cpu_sampler import ProcessTable, Stat, identify

EXECUTOR = "java org.apache.spark.executor.CoarseGrainedExecutorBackend --app-id app-1"
WORKER = "java org.apache.spark.deploy.worker.Worker"
DRIVER = "java org.apache.spark.deploy.SparkSubmit run_query.py --result r.json"


class Host:
    """Processes as pid -> (ppid, command line); CPU plays no part here."""

    def __init__(self, patch: pytest.MonkeyPatch, processes: dict[int, tuple[int, str]]) -> None:
        self.processes = processes
        self.table = ProcessTable([90])
        self.looked: list[int] = []
        self.age_s = 0.0
        patch.setattr(cpu_sampler, "list_pids", lambda: set(self.processes))
        patch.setattr(cpu_sampler, "read_stat", self.read_stat)
        patch.setattr(cpu_sampler, "read_program", self.read_program)
        patch.setattr("time.clock_gettime", lambda _: self.age_s + 1e6)

    def read_stat(self, pid: int) -> Stat | None:
        if pid not in self.processes:
            return None
        start = int(1e6 * cpu_sampler.CLK_TCK)
        return Stat(pid, self.processes[pid][0], start, 0, 0, 0, 0)

    def read_program(self, pid: int) -> cpu_sampler.Program:
        self.looked.append(pid)
        return identify([x.encode() for x in self.processes[pid][1].split(" ")])

    def tick(self) -> tuple[dict[int, str], list[int]]:
        """(pid -> role of this tick's news, followed pids in reading order)."""
        *news, tick = self.table.tick()
        return {x["pid"]: x["role"] for x in news}, [stat.pid for stat in tick["procs"]]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(monkeypatch, {1: (0, "init"), 2: (1, WORKER), 5: (1, "sshd"), 6: (5, "sleep 9")})


def test_only_spark_is_followed(host: Host) -> None:
    assert host.tick() == ({2: "worker_daemon"}, [2])


def test_an_executor_is_followed_with_all_its_descendants(host: Host) -> None:
    host.processes.update({20: (2, EXECUTOR), 21: (20, "python3"), 22: (21, "python3")})
    news, followed = host.tick()
    assert news == {2: "worker_daemon", 20: "executor", 21: "child", 22: "child"}
    assert followed == [2, 20, 21, 22]


def test_parents_are_read_before_children_whatever_their_pids(host: Host) -> None:
    host.processes.update({40: (2, EXECUTOR), 30: (40, "python3"), 10: (30, "python3")})
    assert host.tick()[1] == [2, 40, 30, 10]


def test_a_driver_brings_its_parent_but_not_its_brothers(host: Host) -> None:
    host.processes.update({50: (1, "airflow"), 51: (50, DRIVER), 52: (50, "sleep 1")})
    news, followed = host.tick()
    assert news == {2: "worker_daemon", 51: "driver", 50: "parent"}
    assert set(followed) == {2, 50, 51}


def test_a_pid_asked_for_is_followed_whatever_it_runs(host: Host) -> None:
    host.processes.update({90: (5, "stress"), 91: (90, "stress")})
    assert host.tick()[0] == {2: "worker_daemon", 90: "root", 91: "child", 5: "parent"}


def test_a_launcher_is_recognised_once_it_has_become_the_program(host: Host) -> None:
    host.processes[20] = (2, "bash spark-class")
    assert host.tick()[1] == [2]
    host.processes[20] = (2, EXECUTOR)
    assert host.tick() == ({20: "executor"}, [2, 20])


def test_a_fork_that_still_looks_like_its_parent_is_no_second_root(host: Host) -> None:
    host.processes.update({20: (2, EXECUTOR), 21: (20, EXECUTOR), 22: (2, WORKER)})
    assert host.tick()[0] == {2: "worker_daemon", 20: "executor", 21: "child"}
    host.processes.update({21: (20, "python3"), 22: (2, EXECUTOR.replace("1", "2"))})
    assert host.tick()[0] == {21: "child", 22: "executor"}


def test_a_root_recognised_late_brings_the_children_it_already_has(host: Host) -> None:
    host.processes.update({20: (2, "bash"), 21: (20, "python3")})
    host.tick()
    host.tick()
    host.tick()
    host.processes[20] = (2, EXECUTOR)
    host.tick()
    assert host.tick() == ({20: "executor", 21: "child"}, [2, 20, 21])


def test_an_orphan_stays_with_its_tree(host: Host) -> None:
    host.processes.update({20: (2, EXECUTOR), 21: (20, "python3")})
    host.tick()
    del host.processes[20]
    host.processes[21] = (1, "python3")
    assert set(host.tick()[1]) == {2, 21}


def test_a_young_process_is_looked_at_again_at_growing_distances(host: Host) -> None:
    host.looked.clear()
    looked = []
    for number in range(70):
        host.tick()
        looked += [number] * host.looked.count(6)
        host.looked.clear()
    assert looked == [0, 1, 2, 4, 8, 16, 32, 64]


def test_an_old_process_is_looked_at_once(host: Host) -> None:
    host.age_s = 61.0
    for _ in range(9):
        host.tick()
    assert host.looked.count(6) == 1


def test_a_pid_used_again_is_looked_at_again(host: Host) -> None:
    host.age_s = 61.0
    host.tick()
    del host.processes[6]
    host.tick()
    host.processes[6] = (2, EXECUTOR)
    assert host.tick()[0] == {6: "executor"}


def test_the_sampler_does_not_follow_itself(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getpid", lambda: 21)
    host.processes.update({20: (2, EXECUTOR), 21: (20, "python3")})
    assert host.tick()[1] == [2, 20]


def test_a_pid_that_became_a_stranger_while_it_was_looked_at_is_no_child(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read ahead of a parent that is not followed, it would be counted twice when that ends."""
    host.processes.update({20: (2, EXECUTOR), 21: (20, "python3")})

    def read_program(pid: int) -> cpu_sampler.Program:
        if pid == 21:
            host.processes[21] = (5, "stranger")
        return host.read_program(pid)

    monkeypatch.setattr(cpu_sampler, "read_program", read_program)
    assert host.tick()[1] == [2, 20]
    assert host.tick()[1] == [2, 20]
