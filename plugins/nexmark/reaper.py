"""End what a command started, when the command itself was killed: the command's reaper.

    command (nexmark run, nexmark ui ...)  NEXMARK_COMMAND in the environment of all it starts
      +- reaper, in a session of its own: waits for the end of the command, uses no CPU

A command that ends by itself, on Ctrl-C or on SIGTERM, ends all processes that it started, and then
its reaper. After kill -9 the reaper ends every process on this machine that has the command in its
environment. Then it ends, on every host, the processes of each cluster that the command had
claimed. The processes of a night in your own Airflow belong to no command: the next night ends
those that are left.
"""

import contextlib
import os
import select
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from nexmark.model import Say
from nexmark_jobs.host import processes
from nexmark_jobs.host.processes import Process, identify

COMMAND_VARIABLE = "NEXMARK_COMMAND"

_GRACE_S = 3.0
#: A process that is being ended may start another one just then.
_ROUNDS = 5
_POLL_S = 0.2


def command_variables() -> dict[str, str]:
    """Return the variables that mark every process of this command in its environment.

    Airflow's processes change their titles, and would overwrite their environment with it.
    """
    me = identify(os.getpid())
    assert me is not None
    return {COMMAND_VARIABLE: _text(me), "SPT_NOENV": "1"}


def command_of_environment() -> Process | None:
    """Return the process of the command that started this process; None in your own Airflow."""
    pid, _, ticks = os.environ.get(COMMAND_VARIABLE, "").partition(":")
    return Process(int(pid), int(ticks)) if pid.isdigit() and ticks.isdigit() else None


@contextlib.contextmanager
def reaper_of_command(environment: Mapping[str, str]) -> Iterator[None]:
    """Run a reaper of this command while the block runs.

    Args:
        environment: The environment of the reaper. The variable that marks processes of a command
            is left out of it, so that the reaper does not end itself.
    """
    me = identify(os.getpid())
    assert me is not None
    unmarked = {name: value for name, value in environment.items() if name != COMMAND_VARIABLE}
    reaper = processes.start_detached(
        [sys.executable, "-m", __name__, str(me.pid), str(me.start_ticks)],
        unmarked,
        _mark(),
        _home() / "logs" / "reaper.log",
    )
    try:
        yield
    finally:
        processes.end([reaper])


def wait_for_reapers(say: Say, within_s: float = 120.0) -> None:
    """Wait while a reaper ends the processes of a killed command, at most `within_s` seconds."""
    deadline = time.monotonic() + within_s
    announced = False
    while any(not _watched(reaper).alive for reaper in processes.owned(_mark())):
        if time.monotonic() > deadline:
            return  # the claim of the cluster then fails, and its message names the holder
        if not announced:
            say("waiting: processes of a killed command are being ended")
        announced = True
        time.sleep(_POLL_S)


def _watched(reaper: Process) -> Process:
    """Return the command that a reaper waits for; the reaper itself if it has just ended."""
    pid, _, ticks = reaper.command.rpartition(" ")
    words = (pid.rpartition(" ")[2], ticks)
    return Process(*map(int, words)) if all(word.isdigit() for word in words) else reaper


def _home() -> Path:
    from nexmark.config import paths

    return paths.home()


def _mark() -> str:
    """Return the value of NEXMARK_OWNER in the reapers of this home."""
    return processes.owner_mark(_home(), "reaper")


def main(arguments: Sequence[str] | None = None) -> int:
    """Wait for the end of a command, then end what it started; return the exit code.

    Args:
        arguments: The command's pid and its start time in clock ticks after the boot; None reads
            them from the command line.
    """
    pid, ticks = map(int, sys.argv[1:] if arguments is None else arguments)
    command = Process(pid, ticks)
    _wait_for_end(command)
    _log(f"the command with process {pid} has ended and has not ended what it started")
    _end_processes(command)
    _clear_clusters(command)
    return 0


def _wait_for_end(process: Process) -> None:
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if process.alive:  # another process may have its pid by now
            select.select([descriptor], [], [])
    finally:
        os.close(descriptor)


def _end_processes(command: Process) -> None:
    """End every process of this machine that descends from the command."""
    for _ in range(_ROUNDS):
        remaining = processes.with_variable(COMMAND_VARIABLE, _text(command))
        if not remaining:
            return
        for process in remaining:
            _log(f"ending {process.pid} {process.command}")
        processes.end(remaining, _GRACE_S)


def _clear_clusters(command: Process) -> None:
    """End, on all hosts, the processes of the clusters that the command had claimed."""
    from nexmark.cluster import ClusterError, open_cluster
    from nexmark.config import load, paths

    for config in load().all_clusters:
        cluster = open_cluster(config, paths.home())
        try:
            lease = cluster.holder()
            if lease is None or lease.command != command:
                continue
            cluster.claim(replace(lease, holder=identify(os.getpid())))
            for line in cluster.stop():
                _log(f"ended {line}")
        except ClusterError as error:
            _log(str(error))


def _text(process: Process) -> str:
    return f"{process.pid}:{process.start_ticks}"


def _log(text: str) -> None:
    """Write a line to the log, with the pid of the reaper."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    print(f"{now} reaper {os.getpid()}: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
