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
    return next((identify(pid) for pid in pids() if sockets and _has_open(pid, sockets)), None)


def listens(process: Process, port: int) -> bool:
    """Whether this very process listens on `port`."""
    return _has_open(process.pid, _sockets(port)) and process.alive


def _sockets(port: int) -> set[str]:
    tables = [text_of(table) or "" for table in ("/proc/net/tcp", "/proc/net/tcp6")]
    lines = (line.split() for table in tables for line in table.splitlines()[1:])
    listening = (x for x in lines if x[3] == _LISTEN)
    return {f"socket:[{x[9]}]" for x in listening if int(x[1].rpartition(":")[2], 16) == port}


def _has_open(pid: int, targets: set[str]) -> bool:
    try:
        entries = Path(f"/proc/{pid}/fd").iterdir()
        return any(str(entry.readlink()) in targets for entry in entries)
    except OSError:
        return False
