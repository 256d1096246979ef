"""CPU time per Spark application from /proc samples, and which of its executors count.

The executors that lived while the query ran count. An executor that was lost before the first batch
does not count, nor does one that started after the end: executors exit at the end of their
application, often before the driver has unregistered, and the master then starts others.

A process reports its own CPU time (``utime + stime``) and its waited-for time (``cutime +
cstime``): of the children it has waited for, with all that these had waited for. The CPU time of a
tree is the sum of two things. The first is what the samples show for its processes. The second is
the growth of a parent's waited-for time, less the time already counted for the children that ended:
this is the time of a known child after its last reading, and the whole life of a child that no
reading has seen. Nothing is lost, and nothing is counted twice:

- The sampler reads parents before children. The time of a child that is missing from a tick appears
  in its parent's waited-for time in that tick or in the next one, never earlier. We look for it in
  these two ticks only.
- A child may end together with its own children, or leave them to init. If the growth of the
  parent's waited-for time is large enough for all of them, we assume that it contains them all.
- A process whose parent did not wait for it counts with its last reading.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from nexmark.measure.cpu_series import CpuSeries
from nexmark.measure.host_samples import (
    HostSamples,
    MeasurementError,
    ProcessKey,
    Reading,
    SampledProgram,
    Tick,
)
from nexmark.model import grouped

TREE_ROLES = frozenset({"executor", "driver", "root"})
Period = tuple[float, float]
ALWAYS = (-math.inf, math.inf)


@dataclass
class TreeCpu:
    """The CPU time of a process tree: cumulative clock ticks, by sampler tick.

    ``python`` is the time of its Python workers, ``main`` the time of all other processes.
    ``first`` and ``last`` are the numbers of the sampler ticks in which its root was seen.
    """

    program: SampledProgram
    root: ProcessKey
    first: int
    last: int
    main: list[int]
    python: list[int]


@dataclass(frozen=True)
class Executors:
    """The executors of an application that lived in a period, and how many were gone before it."""

    trees: tuple[TreeCpu, ...]
    starts: tuple[float, ...]
    ends: tuple[float, ...]
    gone_before: int


def executors_of(
    samples: HostSamples, trees: Iterable[TreeCpu], app_id: str, period: Period
) -> Executors:
    """Return the executors of an application on a host that lived in a period.

    Args:
        samples: The samples of the host.
        trees: The CPU of the process trees in these samples.
        app_id: The id of the Spark application.
        period: Start and end on the clock of ``HostSamples.times``, as all times of the answer.

    Returns:
        The executors. Its ``ends`` has, for each executor that ended, the time of the first
        reading without it.
    """
    times = (*samples.times(), math.inf)
    started = [
        (tree, samples.started(tree.root, tree.first))
        for tree in trees
        if tree.program.role == "executor" and tree.program.app_id == app_id
    ]
    begun = [(tree, start) for tree, start in started if start < period[1]]
    lived = [(tree, start) for tree, start in begun if times[tree.last + 1] > period[0]]
    ends = (times[tree.last + 1] for tree, _ in lived)
    return Executors(
        trees=tuple(tree for tree, _ in lived),
        starts=tuple(start for _, start in lived),
        ends=tuple(end for end in ends if end < math.inf),
        gone_before=len(begun) - len(lived),
    )


def application_cpu(
    samples: HostSamples, app_id: str, label: str | None = None, *, period: Period = ALWAYS
) -> CpuSeries:
    """Return the CPU of an application on one host: zeros if no executor of it was there.

    Args:
        samples: The samples of the host.
        app_id: The id of the Spark application, by which its executors are recognised.
        label: The ``--result`` argument of its driver, by which the driver is recognised; None for
            a host where the driver does not run.
        period: Only executors that lived in it count (``RunResult.work``).
    """
    trees = tree_cpu(samples)
    executors = executors_of(samples, trees, app_id, period)
    drivers = [
        tree
        for tree in trees
        if label and (tree.program.role, tree.program.label) == ("driver", label)
    ]
    whole = samples.scope == "host" and all(len(tick.host_cpu) >= 8 for tick in samples.ticks)
    first = samples.ticks[0].host_cpu
    ticks = len(samples.ticks)

    def seconds(series: Iterable[Sequence[int]]) -> tuple[float, ...]:
        rows = list(series)
        return tuple(sum(row[i] for row in rows) / samples.clk_tck for i in range(ticks))

    def machine(total: Callable[[tuple[int, ...]], int]) -> tuple[float, ...] | None:
        if not whole:
            return None
        return seconds([[total(tick.host_cpu) - total(first) for tick in samples.ticks]])

    spent, elapsed = samples.sampler_cpu_s, samples.elapsed_s
    return CpuSeries(
        host=samples.host,
        interval_s=samples.interval_s,
        times=samples.times(),
        executors=seconds(tree.main for tree in executors.trees),
        python=seconds(tree.python for tree in executors.trees),
        driver=seconds(each for tree in drivers for each in (tree.main, tree.python))
        if drivers
        else None,
        busy=machine(_busy_ticks),
        steal=machine(_stolen_ticks),
        executor_count=len(executors.trees),
        executor_starts=executors.starts,
        executor_ends=executors.ends,
        executors_gone_before=executors.gone_before,
        sampler_cores=spent / elapsed if spent is not None and elapsed else None,
    )


def _busy_ticks(host_cpu: tuple[int, ...]) -> int:
    """Return the ticks in which the machine worked, of the figures of the `cpu` line of /proc/stat.

    These are user, nice and system time, and the time of interrupts and of soft interrupts.
    """
    user, nice, system, _idle, _iowait, irq, softirq, *_ = host_cpu
    return user + nice + system + irq + softirq


def _stolen_ticks(host_cpu: tuple[int, ...]) -> int:
    """Return the ticks that the hypervisor took, of the figures of the `cpu` line of /proc/stat."""
    return host_cpu[7]


def tree_cpu(samples: HostSamples) -> list[TreeCpu]:
    """Return the CPU of every executor, driver and root process tree in the samples."""
    ledger = _Ledger(samples)
    for number, tick in enumerate(samples.ticks):
        ledger.add(number, tick)
    return list(ledger.trees.values())


@dataclass
class _Ended:
    """A process that is gone since the sampler tick with the number ``tick``.

    ``counted`` are the clock ticks already counted for it, ``below`` those already counted for the
    children that ended together with it.
    """

    key: ProcessKey
    tick: int
    counted: int
    below: int = 0


@dataclass
class _Account:
    """Balances a parent's waited-for time with the time already counted for its ended children.

    ``balance`` is the waited-for time that is not counted yet, in clock ticks. It is below zero
    while the time of ended children has not yet appeared in the waited-for time. ``ended`` are the
    children that ended in this sampler tick, and earlier ones as long as the balance is below zero.
    """

    balance: int = 0
    ended: list[_Ended] = field(default_factory=list)

    def settle(self, growth: int, ended: list[_Ended], number: int) -> tuple[int, _Ended | None]:
        """Add the growth of the waited-for time, and the children that are gone in this tick.

        Args:
            growth: By how many clock ticks the waited-for time grew since the last sampler tick.
            ended: The children that are gone in this sampler tick.
            number: The number of this sampler tick.

        Returns:
            The clock ticks to count now, and the child that they are counted for: of all that
            ended, the one that used most CPU time.
        """
        self.balance += growth
        if self.balance < 0:
            # The parent did not wait for the earlier children: they keep their counted time. If
            # there was only one, the parent may have waited for it while init got its children.
            alone = self.balance + self.ended[0].below if len(self.ended) == 1 else 0
            self.balance = max(alone, 0)
        self.ended += ended
        self.balance -= sum(child.counted + child.below for child in ended)
        rest = max(self.balance, 0)
        head = max(self.ended, key=lambda child: child.counted, default=None)
        if self.balance >= 0:
            self.balance = 0
            self.ended = [child for child in self.ended if child.tick == number]
        return rest, head


class _Ledger:
    """The CPU time of all process trees: it takes ticks in order and counts CPU time once.

    ``trees`` are by their root process. Of each process, ``_books`` has the tree and the series to
    which its CPU time is added, and ``_accounts`` the waited-for time.
    """

    def __init__(self, samples: HostSamples) -> None:
        self._samples = samples
        self._before: dict[ProcessKey, Reading] = {}
        self.trees: dict[ProcessKey, TreeCpu] = {}
        self._books: dict[ProcessKey, tuple[TreeCpu, list[int]]] = {}
        self._accounts: dict[ProcessKey, _Account] = {}

    def add(self, number: int, tick: Tick) -> None:
        new = [key for key in tick.processes if key not in self._before]
        for key in sorted(new, key=lambda key: key.starttime):
            self._enrol(key, number, tick)
        for tree in self.trees.values():
            tree.main.append(tree.main[-1] if tree.main else 0)
            tree.python.append(tree.python[-1] if tree.python else 0)
        ended = self._ended(number, tick)
        for key, reading in tick.processes.items():
            self._book(key, reading, number, ended.get(key, []))
        self._before = tick.processes

    def _enrol(self, key: ProcessKey, number: int, tick: Tick) -> None:
        """Find the tree of a process that is new, and whether it is a Python worker."""
        program = self._samples.programs.get(key)
        if program is None:
            raise MeasurementError(
                f"samples of host {self._samples.host}: process {key.pid} has no proc line;"
                " the file was damaged"
            )
        if program.role in TREE_ROLES:
            new = TreeCpu(program, key, number, number, [0] * number, [0] * number)
            tree = self.trees.setdefault(key, new)
            self._books[key] = tree, tree.main
        elif program.role == "child":
            pid = tick.processes[key].ppid
            parents = (self._books.get(other) for other in tick.processes if other.pid == pid)
            newest = reversed(self.trees.items())
            rooted = ((tree, tree.main) for root, tree in newest if root.pid == program.root)
            owner = next(parents, None) or next(rooted, None)
            if owner is not None:
                tree, book = owner
                in_python = book is tree.python or program.cmd.startswith(("python", "pypy"))
                self._books[key] = tree, tree.python if in_python else tree.main

    def _ended(self, number: int, tick: Tick) -> dict[ProcessKey, list[_Ended]]:
        """Return the processes that are gone in this tick, by the parent that still lives.

        Those that ended together with their own parent are a part of the highest such ancestor.
        """
        gone = {key: old for key, old in self._before.items() if key not in tick.processes}
        key_of = {key.pid: key for key in self._before}
        heads: dict[ProcessKey, _Ended] = {}
        for key, old in gone.items():
            top = self._top(key, gone, key_of)
            counted = gone[top].used + gone[top].waited
            head = heads.setdefault(top, _Ended(top, number, counted))
            if key != top:
                head.below += old.used + old.waited
            head.below -= self._accounts.pop(key).balance
        parented = [head for top, head in heads.items() if gone[top].ppid in key_of]
        return grouped(parented, lambda head: key_of[gone[head.key].ppid])

    @staticmethod
    def _top(
        key: ProcessKey, gone: dict[ProcessKey, Reading], key_of: dict[int, ProcessKey]
    ) -> ProcessKey:
        """Return the highest ancestor of a process that is gone too, or the process itself.

        Args:
            key: The process.
            gone: The processes that are gone in this tick.
            key_of: The processes of the tick before, by pid.
        """
        for _ in range(len(gone)):
            parent = key_of.get(gone[key].ppid)
            if parent is None or parent not in gone:
                break
            key = parent
        return key

    def _book(self, key: ProcessKey, reading: Reading, number: int, ended: list[_Ended]) -> None:
        """Add the CPU time that a process and its ended children used since the last tick.

        Args:
            key: The process.
            reading: Its reading in this sampler tick.
            number: The number of this sampler tick.
            ended: Its children that are gone in this tick.
        """
        owner, old = self._books.get(key), self._before.get(key, Reading(0, 0, 0))
        if owner is not None:
            tree, book = owner
            tree.last = number
            book[-1] += max(reading.used - old.used, 0)
        account = self._accounts.setdefault(key, _Account())
        rest, head = account.settle(reading.waited - old.waited, ended, number)
        if head is not None:  # what a known process used between its last reading and its end
            if owner is None:
                # A parent outside of all trees may have waited for other children too: count no
                # more than the host could have done in that time.
                ticks = self._samples.ticks
                elapsed = ticks[number].mono - ticks[head.tick - 1].mono
                rest = min(rest, int(elapsed * self._samples.cpus * self._samples.clk_tck) + 1)
            owner = self._books.get(head.key)
        if owner is not None:
            owner[1][-1] += rest
