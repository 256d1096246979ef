"""Process 1 of a host of the test cluster: sets the host up, then collects what has ended.

    python3 -I -S init.py NAME SOURCE TARGET [SOURCE TARGET ...]

Standard library only. Run in namespaces of its own (mount, UTS, PID, network): sets the hostname,
binds each SOURCE directory on TARGET, and puts an empty file system on /run and /dev/shm. It starts
nothing; when it is killed, the kernel ends all that runs on the host.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

#: In the host's own /run once all is set up.
READY = "/run/nexmark-ready"

_IDLE_S = 0.2


def main(name: str, *mounts: str) -> None:
    """Set the host up and collect orphans for ever."""
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
