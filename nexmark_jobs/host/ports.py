"""TCP ports of this machine: free or taken, and by whom."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from pathlib import Path

from nexmark_jobs.host.processes import Process, identify

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
    if not sockets:
        return None
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit() and _has_open(directory / "fd", sockets):
            return identify(int(directory.name))
    return None


def listens(process: Process, port: int) -> bool:
    """Whether this very process listens on `port`."""
    return _has_open(Path(f"/proc/{process.pid}/fd"), _sockets(port)) and process.alive


def _sockets(port: int) -> set[str]:
    return {f"socket:[{inode}]" for inode in _listening_inodes(port)}


def _listening_inodes(port: int) -> Iterator[str]:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]


def _has_open(descriptors: Path, targets: set[str]) -> bool:
    try:
        return any(str(entry.readlink()) in targets for entry in descriptors.iterdir())
    except OSError:
        return False
