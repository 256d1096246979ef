"""Check that this machine has the privileges and programs of a test cluster, and run them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from nexmark.cluster.lease import ClusterError

#: The programs, each with the Debian package that it is in.
PROGRAMS: Mapping[str, str] = {
    "ip": "iproute2",
    "tc": "iproute2",
    "sshd": "openssh-server",
    "ssh-keygen": "openssh-client",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "setsid": "util-linux",
    "mountpoint": "util-linux",
    "mount": "mount",
    "umount": "mount",
}
#: The PATH of this process with the directories of root's programs, which a user's PATH may lack.
ENVIRONMENT = {"PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/bin:/sbin:/bin"}

_TIMEOUT_S = 30
# All requests of `up` to the kernel. It runs in namespaces that end with it.
_PROBE = (
    "ip link add probe type bridge"
    " && ip link add probe0 type veth peer name probe1"
    " && mount -t tmpfs probe /mnt"
)


def program(name: str) -> str:
    """Return the path of a program; ClusterError with its package if it is not installed."""
    program = shutil.which(name, path=ENVIRONMENT["PATH"])
    if program is None:
        raise ClusterError(f"there is no {name}; install {PROGRAMS[name]} (apt-get install)")
    return program


def attempt(*command: str) -> subprocess.CompletedProcess[str]:
    """Run one of PROGRAMS, with only PATH in its environment; return its result, also a failure."""
    return subprocess.run(
        [program(command[0]), *command[1:]],
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        cwd="/",
    )


def run(*command: str) -> str:
    """Return the output of one of PROGRAMS; ClusterError if it fails."""
    result = attempt(*command)
    if result.returncode != 0:
        raise ClusterError(f"`{' '.join(command)}` failed: {_words(result)}")
    return result.stdout


def problems() -> list[str]:
    """Return what this machine lacks for a test cluster, one line each; change nothing."""
    missing = [name for name in PROGRAMS if not shutil.which(name, path=ENVIRONMENT["PATH"])]
    if missing:
        packages = sorted({PROGRAMS[name] for name in missing})
        return [
            f"test cluster: there is no {', '.join(missing)}; apt-get install {' '.join(packages)}"
        ]
    if os.geteuid() != 0:
        return ["test cluster: it needs root; run it with sudo"]
    probe = attempt("unshare", "--net", "--mount", "--uts", "--pid", "--fork", "sh", "-c", _PROBE)
    if probe.returncode == 0:
        return []
    return [
        f"test cluster: this kernel does not let us make namespaces and links: {_words(probe)}; "
        "it needs CAP_NET_ADMIN and CAP_SYS_ADMIN, bridge and veth (a container: --privileged)"
    ]


def namespace_pids(name: str) -> list[int]:
    """Return the processes in the network namespace `name`, by their pids on this machine."""
    return [int(pid) for pid in attempt("ip", "netns", "pids", name).stdout.split()]


def pids_of(pid: int) -> list[int]:
    """Return the pids of a process: on this machine, then in each PID namespace; [] if it ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return []
    pid_lines = [line.split()[1:] for line in lines if line.startswith("NSpid:")]
    return [int(field) for field in pid_lines[0]] if pid_lines else []


def _words(result: subprocess.CompletedProcess[str]) -> str:
    """Return the end of what a program has printed, in one line."""
    return " ".join((result.stderr or result.stdout).split())[-300:] or "it says nothing"
