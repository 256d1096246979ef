"""Sample the CPU time of the Spark processes on this host from /proc; one JSON object per line.

    cpu_sampler.py --out FILE --pid-file FILE --max-seconds N [--interval 1.0] [--root-pid P ...]

One file, standard library only, any Python from 3.8 on: it is copied to a host and started there,
detached, beside a query. It ends by itself after ``--max-seconds``; SIGTERM or SIGINT ends it
earlier, after a last reading. The pid file is written (atomically) when the first reading is
safely in FILE, which tells a starter that sampling has begun; it is removed when the sampler ends,
whatever the reason. A second sampler with the same pid file refuses to start while the first one
lives. An existing FILE is replaced. Exit code 0 after a proper end, 1 when samples cannot be
written (disk full, directory gone, another sampler), 2 for a wrong argument; one line on stderr.

The sampler follows every executor (``CoarseGrainedExecutorBackend``), driver (``SparkSubmit``) and
``--root-pid`` process with all descendants (Python workers); standalone Worker and Master daemons;
and the parent of each of these, because the ``cutime``/``cstime`` of a parent include the last
CPU time of a child that ended between two readings. It looks at a new process at once and, if
young, again 1, 2, 4 ... 64 readings later, because a launcher becomes the program that it starts
(``exec``) some time after it has forked. It leaves out an executor whose NEXMARK_OWNER names
another home, or another cluster than its own and the baseline's beside it: two masters may give
the same application id in the same second.

Format 1. ``wall`` is seconds since the epoch, ``mono`` CLOCK_MONOTONIC seconds, CPU times are in
ticks of 1/``clk_tck`` s, ``starttime`` in ticks since boot; (pid, starttime) identifies a process
even if its pid is used again.

    {"kind":"header","format":1,"host":..,"clk_tck":100,"cpus":2,"boot_id":..,"interval_s":1.0,
     "wall":..,"mono":..,"boot":..,"scope":"host"|"pidns","pid":..}
        boot: seconds since boot at ``mono``, with the time that the host slept: ``starttime``
        counts so; scope: "pidns" inside a pid namespace, where ``host_cpu`` still tells of the
        whole machine
    {"kind":"proc","pid":..,"starttime":..,"ppid":..,"root":..,"role":..,"app_id":..|null,
     "label":..|null,"cmd":"java CoarseGrainedExecutorBackend"}
        before the first tick that has the process, and again when it became another program.
        role: executor | driver | worker_daemon | master_daemon | root | parent | child;
        root: pid of the root whose tree it belongs to; app_id: of executors; label: the
        ``--result`` argument of a driver, or its conf ``spark.nexmark.label``, which an
        application has that is not ours. No other arguments are shown: they may hold secrets.
    {"kind":"tick","wall":..,"mono":..,"host_cpu":[user,nice,system,idle,iowait,irq,softirq,steal],
     "procs":[[pid,ppid,starttime,utime,stime,cutime,cstime],...]}
        parents are read before their children. So a child that is still listed cannot yet be in
        the ``cutime`` of its parent of the same tick, and one that is gone is in it by the next.
    {"kind":"end","reason":"signal"|"max-seconds","wall":..,"mono":..,"ticks":..,"skipped":..,
     "self_cpu_s":..,"elapsed_s":..}
        skipped: readings left out because the host did not let the sampler run in time.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

FORMAT = 1
CLK_TCK = os.sysconf("SC_CLK_TCK")
INITIAL_PID_NAMESPACE = 0xEFFFFFFC  # PROC_PID_INIT_INO of the kernel
LAST_RECHECK = 64  # after this number of readings the kind of a process is final
YOUNG_S = 60.0  # if a process is older when first seen, its kind is final at once
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

ROLES = {
    b"org.apache.spark.executor.CoarseGrainedExecutorBackend": "executor",
    b"org.apache.spark.deploy.SparkSubmit": "driver",
    b"org.apache.spark.deploy.worker.Worker": "worker_daemon",
    b"org.apache.spark.deploy.master.Master": "master_daemon",
}
LABELS = (b"spark.nexmark.label", b"--result")
TREE_ROLES = frozenset(["executor", "driver", "root"])  # followed with their descendants
FOLLOWED = TREE_ROLES | {"child"}
OWNER = b"NEXMARK_OWNER"  # HOME|CLUSTER: see host/processes.py
BASELINE = b"-baseline"  # ends the name of the cluster that the baseline runs on


class SamplerError(Exception):
    """Sampling cannot start or continue; the text is one line: what, where, remedy."""


class Stat(NamedTuple):
    """The fields of /proc/PID/stat that are kept; times in clock ticks."""

    pid: int
    ppid: int
    starttime: int
    utime: int
    stime: int
    cutime: int
    cstime: int


class Program(NamedTuple):
    """The program of a process, from its command line."""

    role: str | None
    app_id: str | None
    label: str | None
    cmd: str


@dataclass
class Tracked:
    """A process that is read at every tick; with its newest stat."""

    stat: Stat
    role: str
    root: int
    program: Program

    def line(self) -> dict[str, Any]:
        """Return the ``proc`` line."""
        pid, ppid, starttime = self.stat[:3]
        place = {"pid": pid, "starttime": starttime, "ppid": ppid, "root": self.root}
        return {"kind": "proc", **place, **self.program._asdict(), "role": self.role}


def read_bytes(path: str) -> bytes | None:
    """Return the content of a file of /proc; None if the process is gone or may not be read."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a Path costs half as much again
            return file.read()
    except OSError:
        return None


def list_pids() -> set[int]:
    """Return all pids of the host."""
    return {int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()}


def read_stat(pid: int) -> Stat | None:
    """Return the stat of a process, None when it is gone. The name may hold blanks and ')'."""
    data = read_bytes(f"/proc/{pid}/stat")
    if not data:
        return None
    fields = data[data.rindex(b")") + 2 :].split()
    utime, stime, cutime, cstime = (int(field) for field in fields[11:15])
    return Stat(pid, int(fields[1]), int(fields[19]), utime, stime, cutime, cstime)


def option(arguments: Sequence[bytes], name: bytes) -> str | None:
    """Return the value of ``--name value`` or ``--name=value`` in a command line, else None."""
    for position, argument in enumerate(arguments):
        if argument == name and position + 1 < len(arguments):
            return arguments[position + 1].decode("utf-8", "replace")
        if argument.startswith(name + b"="):
            return argument[len(name) + 1 :].decode("utf-8", "replace")
    return None


def identify(arguments: Sequence[bytes]) -> Program:
    """Return the program that a command line runs.

    The main class of a Java program is its first argument in the package ``org.apache.spark``;
    ``org.apache.spark.launcher.Main org.apache.spark.deploy.SparkSubmit`` is therefore no driver.
    """
    name = arguments[0].rsplit(b"/", 1)[-1].decode("utf-8", "replace")
    classes = [argument for argument in arguments if argument.startswith(b"org.apache.spark.")]
    if name != "java" or not classes:
        return Program(None, None, None, name)
    role = ROLES.get(classes[0])
    app_id = option(arguments, b"--app-id") if role == "executor" else None
    labels = (option(arguments, name) for name in LABELS) if role == "driver" else ()
    label = next(filter(None, labels), None)
    return Program(role, app_id, label, "java " + classes[0].rsplit(b".", 1)[1].decode())


def read_program(pid: int) -> Program:
    """Return the current program of the process; the empty program when it is gone."""
    command = read_bytes(f"/proc/{pid}/cmdline") or b""
    program = identify(command.rstrip(b"\0").split(b"\0"))
    if program.role == "executor" and is_of_another_cluster(pid):
        return program._replace(role=None)
    return program


def is_of_another_cluster(pid: int) -> bool:
    """Return whether the process has the mark of another home or cluster; False without marks."""
    environment = read_bytes(f"/proc/{pid}/environ") or b""
    variables = environment.split(b"\0")
    marks = [each.partition(b"=")[2] for each in variables if each.startswith(OWNER + b"=")]
    cluster = candidate_of(os.environb.get(OWNER, b""))
    return bool(cluster) and any(candidate_of(mark) != cluster for mark in marks)


def candidate_of(mark: bytes) -> bytes:
    """Return the mark of the candidate's cluster for the mark of either arm's."""
    return mark[: -len(BASELINE)] if mark.endswith(BASELINE) else mark


class ProcessTable:
    """The processes of the host that are followed; call ``tick`` once per reading."""

    def __init__(self, root_pids: Sequence[int] = ()) -> None:
        """Start with an empty table; ``root_pids`` are followed whatever their program is."""
        self._root_pids = frozenset(root_pids)
        self._ticks = 0
        self._parents: dict[int, int] = {}  # every pid of the last listing -> parent when new
        self._seen: dict[int, int] = {}  # young pid -> tick of its first showing
        self._tracked: dict[int, Tracked] = {}
        self._order: list[int] = []  # tracked pids, parents before children
        self._news: list[dict[str, Any]] = []

    def tick(self) -> list[dict[str, Any]]:
        """Read once; return a ``proc`` line for each new program, then the ``tick`` line."""
        self._discover()
        if not self._order:
            self._order = self._parents_first()
        wall, mono = now()
        stats = []
        for pid in self._order:
            stat = read_stat(pid)
            process = self._tracked[pid]
            if stat is None or stat.starttime != process.stat.starttime:
                del self._tracked[pid]
                self._parents.pop(pid, None)  # the pid may be another process by now
                self._order = []
                continue
            if stat.ppid != process.stat.ppid:
                self._parents[pid] = stat.ppid
                self._order = []
            process.stat = stat
            stats.append(stat)
        self._ticks += 1
        tick = {"kind": "tick", "wall": wall, "mono": mono, "host_cpu": host_cpu(), "procs": stats}
        lines, self._news = [*self._news, tick], []
        return lines

    def _discover(self) -> None:
        """Look at pids that are new, or so young that they may have become another program."""
        present = list_pids() - {os.getpid()}
        self._parents = {p: parent for p, parent in self._parents.items() if p in present}
        since = self._ticks - LAST_RECHECK
        self._seen = {
            pid: tick for pid, tick in self._seen.items() if pid in self._parents and tick >= since
        }
        fresh = [pid for pid in sorted(present.difference(self._parents)) if self._notice(pid)]
        ages = {pid: self._ticks - seen for pid, seen in self._seen.items()}
        due = [pid for pid, age in ages.items() if age > 0 and age & (age - 1) == 0]  # a power of 2
        roots = [pid for pid in [*fresh, *due] if self._look(pid)]
        if fresh or roots:
            self._adopt()
        for pid in roots:
            parent = self._tracked[pid].stat.ppid
            if parent > 0 and parent not in self._tracked:
                self._track(parent, "parent", pid, read_program(parent))

    def _notice(self, pid: int) -> bool:
        """Remember a new process; False when it is gone already."""
        stat = read_stat(pid)
        if stat is not None:
            self._parents[pid] = stat.ppid
            uptime = time.clock_gettime(time.CLOCK_BOOTTIME)
            if uptime - stat.starttime / CLK_TCK < YOUNG_S:
                self._seen[pid] = self._ticks
        return stat is not None

    def _look(self, pid: int) -> bool:
        """Track a process if it is a root, note its changed program; return if it is a new root."""
        program = read_program(pid)
        process = self._tracked.get(pid)
        role = "root" if pid in self._root_pids else program.role
        parent = self._tracked.get(self._parents[pid])
        if role != "root" and parent is not None and parent.program == program:
            role = None  # forked only: it still shows the command line of its parent
        if role is not None and (process is None or process.role != role):
            return self._track(pid, role, pid, program) and role in TREE_ROLES
        if process is not None and program.cmd and program != process.program:
            process.program = program
            self._news.append(process.line())
        return False

    def _adopt(self) -> None:
        """Track the children of tracked processes, generation by generation."""
        candidates = {pid for pid in self._parents if self._role(pid) in (None, "parent")}
        children = [0]
        while children:
            children = [pid for pid in candidates if self._role(self._parents[pid]) in FOLLOWED]
            candidates.difference_update(children)
            for pid in children:
                root = self._tracked[self._parents[pid]].root
                self._track(pid, "child", root, read_program(pid))

    def _role(self, pid: int) -> str | None:
        process = self._tracked.get(pid)
        return None if process is None else process.role

    def _track(self, pid: int, role: str, root: int, program: Program) -> bool:
        """Read a process at every tick from now on; return False if it has ended already.

        Args:
            pid: The process.
            role: Its role in the samples; child for a process that another one started.
            root: The process whose child it is, or itself.
            program: What it runs.
        """
        stat = read_stat(pid)
        if stat is None or (role == "child" and stat.ppid != self._parents[pid]):
            self._parents.pop(pid, None)  # gone, or the pid is another process by now
            return False
        self._tracked[pid] = Tracked(stat, role, root, program)
        self._order = []
        self._news.append(self._tracked[pid].line())
        return True

    def _parents_first(self) -> list[int]:
        """Return the tracked pids, every parent before its children."""

        def depth(pid: int) -> int:
            steps = 0
            process = self._tracked.get(pid)
            while process is not None and steps <= len(self._tracked):
                steps += 1
                process = self._tracked.get(process.stat.ppid)
            return steps

        return sorted(self._tracked, key=depth)


def now() -> tuple[float, float]:
    """Return (wall, monotonic) seconds of one moment: read again when interrupted in between."""
    for _ in range(5):
        before = time.monotonic()
        wall = time.time()
        after = time.monotonic()
        if after - before < 0.001:
            break
    return wall, after


def slept() -> float:
    """Return the seconds by which the clock since boot is ahead of the monotonic one."""
    boot = time.CLOCK_BOOTTIME
    return max(time.clock_gettime(boot) - time.monotonic() for _ in range(5))


def host_cpu() -> list[int]:
    """Return user, nice, system, idle, iowait, irq, softirq and steal ticks of the machine."""
    line = (read_bytes("/proc/stat") or b"").split(b"\n", 1)[0]
    return [int(field) for field in line.split()[1:9]]


class SamplesFile:
    """The samples file: whole lines, written without a buffer; it notices when the file is gone."""

    def __init__(self, path: Path) -> None:
        """Make a new file at ``path``."""
        self.path = path
        path.unlink(missing_ok=True)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        self._inode = os.fstat(self._descriptor).st_ino

    def write(self, *lines: dict[str, Any]) -> None:
        """Append lines; OSError if that fails, SamplerError if the file was replaced."""
        data = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
        if self.path.stat().st_ino != self._inode:
            raise SamplerError(f"{self.path} was replaced by another file; sampling ends here")
        while data:
            data = data[os.write(self._descriptor, data) :]


@contextlib.contextmanager
def handshake(path: Path) -> Iterator[Callable[[], None]]:
    """Hold the pid file; yield the function that writes it. A second sampler with it is refused.

    Its directory is locked from the check for another sampler until the file is written.
    """
    path = path.parent.resolve() / path.name
    directory = os.open(path.parent, os.O_RDONLY)

    def holder() -> int:
        text = (read_bytes(str(path)) or b"").strip()
        return int(text) if text.isdigit() else 0

    def publish() -> None:  # the pid and nothing else, so that `kill $(cat FILE)` is safe
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            temporary.write_text(f"{os.getpid()}\n")
            temporary.rename(path)
        finally:
            temporary.unlink(missing_ok=True)
        fcntl.flock(directory, fcntl.LOCK_UN)

    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        pid = holder()
        command = read_bytes(f"/proc/{pid}/cmdline") or b""
        theirs = option(command.split(b"\0"), b"--pid-file")
        if theirs and Path(f"/proc/{pid}/cwd", theirs).resolve() == path:
            remedy = f"end it (kill -TERM {pid}) or give another --pid-file"
            raise SamplerError(f"a sampler (pid {pid}) holds {path}; {remedy}")
        yield publish
    finally:
        if holder() == os.getpid():
            path.unlink()
        os.close(directory)


def stop_signals() -> int:
    """Return a file descriptor that becomes readable at a stop signal.

    ``signal.sigtimedwait`` cannot be used: if the process was stopped (SIGSTOP, SIGCONT) for longer
    than the wait, Python 3.11 returns a signal that nobody sent.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: None)
    return reader


def sample(out: Path, pid: Path, interval: float, max_seconds: float, roots: list[int]) -> None:
    """Sample until a stop signal or ``max_seconds``.

    Args:
        out: the samples file.
        pid: the pid file.
        interval: seconds between readings.
        max_seconds: seconds after which sampling ends.
        roots: pids that are followed whatever their program is.
    """
    stop = stop_signals()
    with handshake(pid) as publish:
        output = SamplesFile(out)
        table = ProcessTable(roots)
        wall, start = now()
        output.write(header(interval, wall, start))
        slot = ticks = skipped = 0
        reason = None
        while True:
            output.write(*table.tick())
            ticks += 1
            if ticks == 1:
                publish()
            if reason is not None:
                break
            late = int((time.monotonic() - start) / interval) - slot
            skipped += late
            slot += late + 1
            due = min(start + slot * interval, start + max_seconds)
            if select.select([stop], [], [], max(0.0, due - time.monotonic()))[0]:
                reason = "signal"
            elif time.monotonic() >= start + max_seconds:
                reason = "max-seconds"
        wall, mono = now()
        end = {"kind": "end", "reason": reason, "wall": wall, "mono": mono, "ticks": ticks}
        cost = {"self_cpu_s": round(time.process_time(), 4), "elapsed_s": round(mono - start, 3)}
        output.write({**end, "skipped": skipped, **cost})


def header(interval: float, wall: float, mono: float) -> dict[str, Any]:
    """Return the header line of a samples file."""
    boot_id = (read_bytes("/proc/sys/kernel/random/boot_id") or b"").strip().decode()
    initial = Path("/proc/self/ns/pid").stat().st_ino == INITIAL_PID_NAMESPACE
    place = {"host": os.uname().nodename, "clk_tck": CLK_TCK, "cpus": os.cpu_count()}
    times = {"interval_s": interval, "wall": wall, "mono": mono, "boot": mono + slept()}
    scope = {"scope": "host" if initial else "pidns", "pid": os.getpid()}
    return {"kind": "header", "format": FORMAT, **place, "boot_id": boot_id, **times, **scope}


class SamplerParser(argparse.ArgumentParser):
    """A parser that reports a wrong argument in one line."""

    def error(self, message: str) -> NoReturn:
        """Print the error and end with exit code 2."""
        self.exit(2, f"cpu_sampler: {message}; see --help\n")


def positive(text: str) -> float:
    """Return the number; ValueError unless it is above 0 and finite."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError
    return value


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = SamplerParser(prog="cpu_sampler", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--out", type=Path, required=True, help="samples file (JSON lines)")
    parser.add_argument("--pid-file", type=Path, required=True, help="readiness handshake")
    parser.add_argument("--max-seconds", type=positive, required=True, help="end by itself")
    parser.add_argument("--interval", type=positive, default=1.0, help="seconds (default 1.0)")
    parser.add_argument("--root-pid", type=int, action="append", default=[], help="follow it too")
    args = parser.parse_args(argv)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        sample(args.out, args.pid_file, args.interval, args.max_seconds, args.root_pid)
        return 0
    except SamplerError as error:
        problem = str(error)
    except OSError as error:
        remedy = "make the directory or free disk space"
        problem = f"cannot write {args.out} and {args.pid_file}: {error}; {remedy}"
    print("cpu_sampler: " + problem, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
