"""Start processes detached and with a mark, and find and end them by this mark.

Every process is started with NEXMARK_OWNER in its environment, which its children inherit (the
worker's executors, their Python workers). The package ends only processes with its mark.

As a program on a host, by `do` of the request:

    start {command, environment, mark, log} -> {pid, start_ticks}
    owned {mark}                            -> {processes: [{pid, start_ticks, command, mark}]}
    end   {mark, grace_s}                   -> {ended: [the same], left: [the same]}
    kill  {mark, again}                     -> {killed: how many}

The last three take `pid` and `word` as well: the process with this pid, or those with this word in
their command line.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

OWNER_VARIABLE = "NEXMARK_OWNER"

_PROC = Path("/proc")
_POLL_S = 0.05
_KILL_WAIT_S = 10.0
_EXEC_POLL_S = 0.001
_EXEC_WAIT_S = 1.0
_ROUNDS = 3
#: The only variables that Spark, Kafka and what they start get from whoever starts them: where to
#: find programs, libraries, files and tickets. No other one can change a JVM, a Spark or a Python.
INHERITED = (
    "HOME",
    "JAVA_HOME",
    "KRB5CCNAME",
    "LD_LIBRARY_PATH",
    "LOGNAME",
    "PATH",
    "TMPDIR",
    "TZ",
    "USER",
)
#: The JVM writes names of files in the letters of its locale; every host has this one.
LOCALE = {"LC_ALL": "C.UTF-8"}


@dataclass(frozen=True, order=True)
class Process:
    """One process: a pid is used again, pid and start time (ticks after boot) together are not."""

    pid: int
    start_ticks: int

    @property
    def alive(self) -> bool:
        """Return whether the process still runs; a zombie does not."""
        return _stat(self.pid) == (self.start_ticks, True)

    @property
    def command(self) -> str:
        """Return the beginning of the command line, for messages."""
        text = b" ".join(_words(self.pid)).decode(errors="replace").strip() or "(ended)"
        return text if len(text) <= 120 else f"{text[:60]} ... {text[-55:]}"


def plain_environment() -> dict[str, str]:
    """Return the variables of this environment that a process of ours gets; see `INHERITED`."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ} | LOCALE


def text_of(path: Path | str) -> str | None:
    """Return the text of a file, without blanks around it; None if it cannot be read."""
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return None


def owner_mark(home: Path, cluster: str) -> str:
    """Return the value of NEXMARK_OWNER for processes of `cluster` of `home`."""
    return f"{home}|{cluster}"


def identify(pid: int) -> Process | None:
    """Return the process with this pid, or None if there is none."""
    stat = _stat(pid)
    return Process(pid, stat[0]) if stat and stat[1] else None


def owned(mark: str) -> list[Process]:
    """Return every living process with `mark`, except this one and its ancestors."""
    return with_variable(OWNER_VARIABLE, mark)


def with_word(mark: str, word: str) -> list[Process]:
    """Return the processes with a mark that have a word in their command line; see `owned`."""
    wanted = word.encode()
    return [process for process in owned(mark) if wanted in b" ".join(_words(process.pid))]


def with_variable(name: str, value: str) -> list[Process]:
    """Return every living process with this variable in its environment; see `marked`."""
    return sorted(process for process, mark in marked(value, name).items() if mark == value)


def marked(prefix: str = "", name: str = OWNER_VARIABLE) -> dict[Process, str]:
    """Return the living processes whose mark begins with `prefix`, each with its mark; see `owned`.

    Processes of another PID namespace are left out. Containers and hosts of the test cluster have
    such processes: they are visible from here, but belong to another host.

    Args:
        prefix: how the mark begins.
        name: the variable that has the mark.
    """
    entry = f"{name}={prefix}".encode()
    ours = _ancestors(os.getpid())
    marks = {}
    for pid in set(pids()) - ours:
        try:
            environment = environment_of(pid)
        except OSError:  # ended meanwhile, or another user's
            continue
        if entry not in environment or not _is_of_this_host(pid):
            continue
        process = identify(pid)
        for variable in environment.split(b"\0"):
            if process and variable.startswith(entry):
                marks[process] = variable.decode(errors="replace").partition("=")[2]
    return marks


def environment_of(pid: int) -> bytes:
    """Return the environment that a process was started with, as in /proc.

    OSError if it has ended or is another user's. While a process becomes another program (exec),
    the kernel shows no environment. This function waits for that moment to pass; otherwise a
    starting process would be overlooked.
    """
    deadline = time.monotonic() + _EXEC_WAIT_S
    while True:
        environment = (_PROC / str(pid) / "environ").read_bytes()
        if environment or not _is_in_exec(pid) or time.monotonic() > deadline:
            return environment
        time.sleep(_EXEC_POLL_S)


def start_detached(
    command: Sequence[str], environment: Mapping[str, str], mark: str, log: Path
) -> Process:
    """Start a command in a session of its own.

    Args:
        command: the words of the command line.
        environment: all variables of the process, beside its mark.
        mark: the value of NEXMARK_OWNER.
        log: the file to which the output is appended.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            env={**environment, OWNER_VARIABLE: mark},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    child.returncode = 0  # outlives this object on purpose; `end` collects it
    stat = _stat(child.pid)
    return Process(child.pid, stat[0] if stat else 0)


def end(processes: Iterable[Process], grace_s: float = 10.0) -> list[Process]:
    """End processes and the process groups that they lead or led: SIGTERM, then SIGKILL.

    Args:
        processes: the processes.
        grace_s: seconds between SIGTERM and SIGKILL.

    Returns:
        The processes that are still alive after that: they wait in the kernel.
    """
    asked = list(processes)
    waiting = _living(asked)
    for number, timeout in ((signal.SIGTERM, grace_s), (signal.SIGKILL, _KILL_WAIT_S)):
        for process in asked:
            _signal(process, number)
        deadline = time.monotonic() + timeout
        while waiting and time.monotonic() < deadline:
            for process in asked:  # take the exit status of our own children: no zombie stays
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)
            waiting = _living(asked)
            if waiting:
                time.sleep(_POLL_S)
        if not waiting:
            break
    return waiting


def kill(process: Process, *, again: bool) -> bool:
    """Kill a process; with `again` its group, and start its command again, as systemd does.

    Returns False if it has ended by itself.
    """
    if not process.alive:
        return False
    try:
        if not again:
            os.kill(process.pid, signal.SIGKILL)
            return True
        command = [os.fsdecode(word) for word in _words(process.pid)]
        variables = os.fsdecode(environment_of(process.pid)).split("\0")
        log = (_PROC / str(process.pid) / "fd" / "1").readlink()
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        return False
    environment = dict(each.split("=", 1) for each in variables if "=" in each)
    end([process], grace_s=0)
    start_detached(command, environment, environment[OWNER_VARIABLE], log)
    return True


def kill_one(mark: str, word: str, draws: random.Random, *, again: bool) -> bool:
    """Kill one of the processes that `with_word` returns; return False if there is none to kill.

    Args:
        mark: the mark of the processes.
        word: a word in their command lines.
        draws: draws the process.
        again: also start its command again.
    """
    candidates = with_word(mark, word)
    return bool(candidates) and kill(draws.choice(candidates), again=again)


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Carry the request out; see the module."""
    do = request["do"]
    if do == "start":
        environment = plain_environment() | request["environment"]
        log = Path(request["log"])
        return asdict(start_detached(request["command"], environment, request["mark"], log))
    if do == "owned":
        return {"processes": _described(_asked(request), request)}
    if do == "kill":
        return {"killed": sum(kill(each, again=request["again"]) for each in _asked(request))}
    if do != "end":
        raise SystemExit(f"processes: cannot {do!r}")
    ended: list[dict[str, Any]] = []
    # A process that is being ended may start another one just then: look again.
    for _ in range(_ROUNDS):
        remaining = _asked(request)
        if not remaining:
            break
        ended += _described(remaining, request)
        end(remaining, request["grace_s"])
    return {"ended": ended, "left": _described(_asked(request), request)}


def _asked(request: dict[str, Any]) -> list[Process]:
    candidates = with_word(request["mark"], request.get("word", ""))
    return [process for process in candidates if request.get("pid") in (None, process.pid)]


def _words(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().removesuffix(b"\0").split(b"\0")
    except OSError:
        return []


def _described(processes: Iterable[Process], request: dict[str, Any]) -> list[dict[str, Any]]:
    mark = request["mark"]
    return [{**asdict(each), "command": each.command, "mark": mark} for each in processes]


def _living(processes: Iterable[Process]) -> list[Process]:
    """Return the living among `processes` and in the process groups that they lead or led."""
    return sorted({member for process in processes for member in _with_group(process)})


def _with_group(process: Process) -> list[Process]:
    stat = _stat(process.pid)
    if stat and stat[0] != process.start_ticks:
        return []  # its pid is another's: the kernel gives no pid that a group still has
    return [
        member
        for pid in pids()
        if (fields := stat_fields(pid)) and process.pid in (pid, int(fields[2]))
        if (member := identify(pid))
    ]


def _signal(process: Process, number: int) -> None:
    if not _with_group(process):
        return
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:  # it leads no group
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def _is_of_this_host(pid: int) -> bool:
    try:
        ours, theirs = (_PROC / name / "ns" / "pid" for name in ("self", str(pid)))
        return ours.readlink() == theirs.readlink()
    except OSError:  # ended meanwhile
        return False


def _ancestors(pid: int) -> set[int]:
    ancestors = set()
    while pid > 0 and pid not in ancestors:
        ancestors.add(pid)
        fields = stat_fields(pid)
        pid = int(fields[1]) if fields else 0
    return ancestors


def _is_in_exec(pid: int) -> bool:
    """Return whether a process will get an environment; OSError for a kernel thread."""
    (_PROC / str(pid) / "exe").readlink()
    fields = stat_fields(pid)
    return fields is not None and not 0 < int(fields[47]) == int(fields[48])  # env_start, env_end


def _stat(pid: int) -> tuple[int, bool] | None:
    """Return the start time in ticks and whether a process runs; None if there is no such process.

    A process whose first thread has ended runs, and has its ports, until its last thread ends.
    """
    fields = stat_fields(pid)
    if not fields:
        return None
    return int(fields[19]), fields[0] not in "ZX" or int(fields[17]) > 1


def pids() -> list[int]:
    """Return the pids of all processes that are visible from here."""
    return [int(directory.name) for directory in _PROC.iterdir() if directory.name.isdigit()]


def stat_fields(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the third (state) on."""
    text = text_of(_PROC / str(pid) / "stat")
    return text[text.rindex(")") + 2 :].split() if text else None
