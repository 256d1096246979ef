"""CPU time per Spark application from /proc samples, and which of its executors count.

Executors that lived while the query ran count. One that was lost before the first batch does not,
nor one that started after the end: an executor exits at the end of its application, often before
the driver has unregistered, and the master then starts another in its place.

A process reports its own CPU time (``utime + stime``) and its waited-for time (``cutime +
cstime``): of the children it has waited for, with all that these had waited for. The CPU time of a
tree is what the samples show for its processes, and the growth of a parent's waited-for time less
the time already counted for the children that ended: the last moments of a known child, and the
whole life of one between two readings. Nothing is lost, and nothing is counted twice:

- The sampler reads parents before children. A child missing from a tick is in its parent's
  waited-for time of that tick or of the next, never earlier; it is looked for in these two only.
- A child may end together with its own children, or leave them to init. Their time is taken to
  be within the growth of the parent's waited-for time when the growth is large enough for all.
- A process whose parent did not wait for it counts with its last reading.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from nexmark.measure.cpu_series import CpuSeries
from nexmark.measure.samples import (
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
    """Cumulative clock ticks of a tree, by tick: of Python workers and of all the rest."""

    program: SampledProgram
    root: ProcessKey
    first: int
    last: int
    main: list[int]
    python: list[int]


@dataclass(frozen=True)
class Executors:
    """The executors of an application that lived in a period; how many were gone before it."""

    trees: tuple[TreeCpu, ...]
    starts: tuple[float, ...]
    ends: tuple[float, ...]
    gone_before: int


def executors_of(
    samples: HostSamples, trees: Iterable[TreeCpu], app_id: str, period: Period
) -> Executors:
    """Return the executors of an application on a host; times as ``HostSamples.times``.

    ``ends``: when one was first found to be gone, for those that were.
    """
    times = (*samples.times(), math.inf)
    own = [x for x in trees if x.program.role == "executor" and x.program.app_id == app_id]
    begun = [(x, at) for x in own if (at := samples.started(x.root, x.first)) < period[1]]
    lived = [(x, at) for x, at in begun if times[x.last + 1] > period[0]]
    ends = (times[x.last + 1] for x, _ in lived)
    return Executors(
        trees=tuple(x for x, _ in lived),
        starts=tuple(at for _, at in lived),
        ends=tuple(at for at in ends if at < math.inf),
        gone_before=len(begun) - len(lived),
    )


def application_cpu(
    samples: HostSamples, app_id: str, label: str | None = None, *, period: Period = ALWAYS
) -> CpuSeries:
    """Return the CPU of an application on one host: zeros if no executor of it was there.

    Executors are found by ``app_id``, and only those that lived in the ``period`` count
    (``RunResult.work``). The driver is found by its ``label`` (its ``--result`` argument); None for
    a host that is known not to have it.
    """
    trees = tree_cpu(samples)
    found = executors_of(samples, trees, app_id, period)
    executors = found.trees
    drivers = [x for x in trees if label and (x.program.role, x.program.label) == ("driver", label)]
    whole = samples.scope == "host" and all(len(x.host_cpu) >= 8 for x in samples.ticks)
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
        executors=seconds(x.main for x in executors),
        python=seconds(x.python for x in executors),
        driver=seconds(y for x in drivers for y in (x.main, x.python)) if drivers else None,
        busy=machine(lambda x: x[0] + x[1] + x[2] + x[5] + x[6]),
        steal=machine(lambda x: x[7]),
        executor_count=len(executors),
        executor_starts=found.starts,
        executor_ends=found.ends,
        executors_gone_before=found.gone_before,
        sampler_cores=spent / elapsed if spent is not None and elapsed else None,
    )


def tree_cpu(samples: HostSamples) -> list[TreeCpu]:
    """Return the CPU of every executor, driver and root process tree in the samples."""
    ledger = _Ledger(samples)
    for number, tick in enumerate(samples.ticks):
        ledger.add(number, tick)
    return list(ledger.trees.values())


@dataclass
class _Ended:
    """A process that is gone: the ticks counted for it, and for the children gone with it."""

    key: ProcessKey
    tick: int
    counted: int
    below: int = 0


@dataclass
class _Account:
    """Balances a parent's waited-for time with the time already counted for its ended children.

    ``balance`` is waited-for time that is not counted yet; below zero, ended children are not in it
    yet. ``ended`` are the children that ended in this tick, and earlier ones while it is so.
    """

    balance: int = 0
    ended: list[_Ended] = field(default_factory=list)

    def settle(self, growth: int, ended: list[_Ended], number: int) -> tuple[int, _Ended | None]:
        """Take in the growth of the waited-for time, and the children that are gone in this tick.

        Returns the ticks to book now and the costliest child they may be the last of.
        """
        self.balance += growth
        if self.balance < 0:
            # The parent did not wait for them: they keep their counted time. If there is only one,
            # the parent may have waited for it, but its own children were left to init.
            alone = self.balance + self.ended[0].below if len(self.ended) == 1 else 0
            self.balance = max(alone, 0)
        self.ended += ended
        self.balance -= sum(x.counted + x.below for x in ended)
        rest = max(self.balance, 0)
        head = max(self.ended, key=lambda x: x.counted, default=None)
        if self.balance >= 0:
            self.balance = 0
            self.ended = [x for x in self.ended if x.tick == number]
        return rest, head


class _Ledger:
    """Takes tick after tick and books every CPU tick once."""

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
        """Find the tree and the class of a process that is new in this tick."""
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
        """Return the processes that are gone, those together as one, by the first living parent."""
        gone = {key: old for key, old in self._before.items() if key not in tick.processes}
        key_of = {key.pid: key for key in self._before}
        heads: dict[ProcessKey, _Ended] = {}
        for key, old in gone.items():
            top = self._top(key, gone, key_of)
            counted = gone[top].own + gone[top].waited
            head = heads.setdefault(top, _Ended(top, number, counted))
            if key != top:
                head.below += old.own + old.waited
            head.below -= self._accounts.pop(key).balance
        parented = [head for top, head in heads.items() if gone[top].ppid in key_of]
        return grouped(parented, lambda head: key_of[gone[head.key].ppid])

    @staticmethod
    def _top(
        key: ProcessKey, gone: dict[ProcessKey, Reading], key_of: dict[int, ProcessKey]
    ) -> ProcessKey:
        """Return the highest ancestor that is gone too."""
        for _ in range(len(gone)):
            parent = key_of.get(gone[key].ppid)
            if parent is None or parent not in gone:
                break
            key = parent
        return key

    def _book(self, key: ProcessKey, reading: Reading, number: int, ended: list[_Ended]) -> None:
        owner, old = self._books.get(key), self._before.get(key, Reading(0, 0, 0))
        if owner is not None:
            tree, book = owner
            tree.last = number
            book[-1] += max(reading.own - old.own, 0)
        account = self._accounts.setdefault(key, _Account())
        rest, head = account.settle(reading.waited - old.waited, ended, number)
        if head is not None:  # what a known process used between its last reading and its end
            if owner is None:
                # An outsider may have waited for others too: no more than the host could have done.
                ticks = self._samples.ticks
                elapsed = ticks[number].mono - ticks[head.tick - 1].mono
                rest = min(rest, int(elapsed * self._samples.cpus * self._samples.clk_tck) + 1)
            owner = self._books.get(head.key)
        if owner is not None:
            owner[1][-1] += rest
