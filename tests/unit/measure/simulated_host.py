"""A host whose processes fork, burn CPU, end and are waited for, while the real sampler reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

import pytest

from nexmark.measure.host_samples import HostSamples, parse_samples
from nexmark_jobs import cpu_sampler
from nexmark_jobs.cpu_sampler import ProcessTable, Program, Stat

INIT, WORKER, EXECUTOR, LAST_PID = 1, 2, 3, 80
APP = "app-20261121040000-0000"
HEADER = {
    "kind": "header",
    "format": 1,
    "host": "nexmark02",
    "clk_tck": 100,
    "cpus": 1000,
    "boot_id": "b",
    "interval_s": 1.0,
    "scope": "host",
    "mono": 0.0,
    "boot": -1e9,  # so late that every process started when it was first read
}


class Process:
    def __init__(self, pid: int, starttime: int, ppid: int, cmd: str) -> None:
        self.pid = pid
        self.starttime = starttime
        self.ppid = ppid
        self.cmd = cmd
        self.own = 0
        self.waited = 0
        self.zombie = False


class SimulatedHost:
    """Does ``disorder`` random things before every file of /proc that the sampler reads.

    ``orphans``: processes may end while their children live on. ``burnt`` is the truth: all CPU
    ticks used by the executor's tree. Pids are used again, in turn, as a kernel does.
    """

    def __init__(self, random: Random, *, disorder: int, orphans: bool = False) -> None:
        self.random = random
        self.disorder = disorder
        self.orphans = orphans
        self.burnt = 0
        self.clock = 100
        self.next_pid = LAST_PID
        self.processes: dict[int, Process] = {}
        self._spawn(0, "init", INIT)
        self._spawn(INIT, "worker", WORKER)
        self._spawn(WORKER, "executor", EXECUTOR)
        self.lines: list[str] = [json.dumps({**HEADER, "wall": 0.0, "mono": 0.0}) + "\n"]
        self.table = ProcessTable()
        self.ticks = 0

    def _spawn(self, ppid: int, cmd: str, pid: int | None = None) -> Process:
        while pid is None or (ppid and pid in self.processes):
            self.next_pid = self.next_pid + 1 if self.next_pid < LAST_PID else 4
            pid = self.next_pid
        self.clock += 1
        self.processes[pid] = Process(pid, self.clock, ppid, cmd)
        return self.processes[pid]

    def tree(self) -> list[Process]:
        """The living of the executor's tree; orphans that went to init included."""
        return [x for x in self.processes.values() if x.pid >= EXECUTOR and not x.zombie]

    def burn(self, process: Process, ticks: int) -> None:
        process.own += ticks
        self.burnt += ticks

    def fork(self, parent: Process) -> Process:
        return self._spawn(parent.pid, "python3" if self.random.random() < 0.5 else parent.cmd)

    def end(self, process: Process) -> None:
        process.zombie = True
        for child in [x for x in self.processes.values() if x.ppid == process.pid]:
            child.ppid = INIT
            if child.zombie:
                self.wait_for(child)

    def wait_for(self, zombie: Process) -> None:
        parent = self.processes[zombie.ppid]
        parent.waited += zombie.own + zombie.waited
        del self.processes[zombie.pid]

    def step(self) -> None:
        """Let one random thing happen."""
        living = self.tree()
        zombies = [x for x in self.processes.values() if x.zombie and x.pid != EXECUTOR]
        choice = self.random.random()
        if choice < 0.4 and living:
            self.burn(self.random.choice(living), self.random.choice([1, 3, 20, 300]))
        elif choice < 0.6 and living and len(self.processes) < 16:
            self.fork(self.random.choice(living))
        elif choice < 0.8:
            parents = {x.ppid for x in self.processes.values()}
            ending = [x for x in living if x.pid != EXECUTOR]
            ending = [x for x in ending if self.orphans or x.pid not in parents]
            if ending:
                self.end(self.random.choice(ending))
        elif zombies:
            self.wait_for(self.random.choice(zombies))

    def finish(self) -> None:
        """End the whole tree, the youngest first, everybody waited for by its parent."""
        while len(self.processes) > 2:
            parents = {x.ppid for x in self.processes.values()}
            leaf = next(x for x in self.processes.values() if x.pid not in parents)
            self.end(leaf)
            self.wait_for(leaf)

    def sample(self) -> None:
        self.ticks += 1
        for line in self.table.tick():
            if line["kind"] == "tick":
                line.update(wall=float(self.ticks), mono=float(self.ticks))
            self.lines.append(json.dumps(line) + "\n")

    def samples(self) -> HostSamples:
        return parse_samples(self.lines, "simulated")

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Put this host in the place of /proc."""

        def disturbed(read: Callable[[int], object]) -> Callable[[int], object]:
            def reader(pid: int) -> object:
                for _ in range(self.disorder):
                    self.step()
                return read(pid)

            return reader

        patch.setattr(cpu_sampler, "list_pids", lambda: set(self.processes))
        patch.setattr(cpu_sampler, "read_stat", disturbed(self._read_stat))
        patch.setattr(cpu_sampler, "read_program", disturbed(self._read_program))

    def _read_stat(self, pid: int) -> Stat | None:
        x = self.processes.get(pid)
        return x and Stat(pid, x.ppid, x.starttime, x.own, 0, x.waited, 0)

    def _read_program(self, pid: int) -> Program:
        x = self.processes.get(pid)
        cmd = "" if x is None or x.zombie else x.cmd
        roles = {WORKER: "worker_daemon", EXECUTOR: "executor"}
        role = roles.get(pid) if cmd else None
        return Program(role, APP if role == "executor" else None, None, cmd)
