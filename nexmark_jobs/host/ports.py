"""TCP ports of this machine: free or taken, and by whom."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

from nexmark_jobs.host.processes import Process, identify, pids, text_of

LOOPBACK = "127.0.0.1"
_LISTEN = "0A"


def is_free(port: int, address: str = LOOPBACK) -> bool:
    """Whether a server could listen on `port` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def listener(port: int) -> Process | None:
    """The process that listens on `port`; None if there is none or it cannot be seen."""
    sockets = _sockets(port)
    holders = (pid for pid in pids() if sockets and _has_open(pid, sockets))
    holder = next(holders, None)
    return None if holder is None else identify(holder)


def listens(process: Process, port: int) -> bool:
    """Whether this very process listens on `port`."""
    return _has_open(process.pid, _sockets(port)) and process.alive


def _sockets(port: int) -> set[str]:
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in (text_of(table) or "").splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(f"socket:[{fields[9]}]")
    return found


def _has_open(pid: int, targets: set[str]) -> bool:
    try:
        entries = Path(f"/proc/{pid}/fd").iterdir()
        return any(str(entry.readlink()) in targets for entry in entries)
    except OSError:
        return False
