"""Run as process 1 of a host of the test cluster: set the host up, then collect ended processes.

    python3 -I -S init.py NAME SOURCE TARGET [SOURCE TARGET ...]

This file imports only the standard library. The process has namespaces of its own (mount, UTS, PID,
network). It sets the hostname, binds each SOURCE directory on TARGET, and mounts an empty file
system on /run and /dev/shm. It starts no process. When it is killed, the kernel ends all processes
of the host.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

#: The file in the host's own /run that exists when the host is set up.
READY = "/run/nexmark-ready"

_IDLE_S = 0.2


def main(name: str, *mounts: str) -> None:
    """Set the host up and collect its ended processes until this one is killed."""
    socket.sethostname(name)
    for directory in ("/run", "/dev/shm"):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", directory], check=True)
    Path("/dev/shm").chmod(0o1777)
    Path("/run/sshd").mkdir()  # sshd's sandbox
    for source, target in zip(mounts[::2], mounts[1::2], strict=True):
        subprocess.run(["mount", "--bind", source, target], check=True)
    Path(READY).touch()
    while True:
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(_IDLE_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
