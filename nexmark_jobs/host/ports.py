"""Find out which TCP ports of this machine are free, and which process has the others."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

from nexmark_jobs.host.processes import Process, identify, pids, text_of

LOOPBACK = "127.0.0.1"
_LISTEN = "0A"


def is_free(port: int, address: str = LOOPBACK) -> bool:
    """Return whether a server could listen on `port` now."""
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
    """Return the process that listens on `port`; None if there is none or it cannot be seen."""
    sockets = _sockets(port)
    return next((identify(pid) for pid in pids() if sockets and _has_open(pid, sockets)), None)


def listens(process: Process, port: int) -> bool:
    """Return whether `process` listens on `port`."""
    return _has_open(process.pid, _sockets(port)) and process.alive


def _sockets(port: int) -> set[str]:
    tables = [text_of(table) or "" for table in ("/proc/net/tcp", "/proc/net/tcp6")]
    lines = (line.split() for table in tables for line in table.splitlines()[1:])
    listening = (fields for fields in lines if fields[3] == _LISTEN)
    return {
        f"socket:[{fields[9]}]"
        for fields in listening
        if int(fields[1].rpartition(":")[2], 16) == port
    }


def _has_open(pid: int, targets: set[str]) -> bool:
    try:
        entries = Path(f"/proc/{pid}/fd").iterdir()
        return any(str(entry.readlink()) in targets for entry in entries)
    except OSError:
        return False
