"""Run a host of the test cluster: a network namespace with its own sshd, name, pids and disk."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nexmark.cluster.lease import ClusterError
from testbed import init, system

BRIDGE = "nexmark0"
PREFIX = 24  # bits of the network that all hosts are in
SSH_PORT = 22

_NETNS = Path("/etc/netns")
_WAIT_S = 20.0
_POLL_S = 0.02
_BANNER_TIMEOUT_S = 2.0
# The host's /etc/ssh is its own directory: the names below are sshd's defaults.
_SSHD_CONFIG = """\
ListenAddress {address}
HostKey /etc/ssh/ssh_host_ed25519_key
AuthorizedKeysFile /etc/ssh/authorized_keys
AuthenticationMethods publickey
PermitRootLogin prohibit-password
PermitUserRC no
StrictModes no
UsePAM no
UseDNS no
MaxStartups 50:30:100
Subsystem sftp internal-sftp
"""
# sshd without PAM refuses an account whose password is locked with a "!", as root's often is.
_SHADOW = "root:*:19000:0:99999:7:::\nsshd:*:19000:0:99999:7:::\n"


@dataclass(frozen=True)
class NamespaceHost:
    """A host; its namespace and its link on this machine have the same name.

    Attributes:
        address: Its IPv4 address, in the /24 network of the bridge.
        state: The directory on this machine with `disk`, `tmp` and `ssh` of the host, and with
            `init.log`.
        root: The path of `disk` on the host.
    """

    name: str
    address: str
    state: Path
    root: str

    @property
    def disk(self) -> Path:
        """Return the directory on this machine that the host sees as `root`."""
        return self.state / "disk"

    @property
    def host_key(self) -> str:
        """Return the type and the key of the host, as in a file known_hosts."""
        return " ".join(self._key_file.with_suffix(".pub").read_text().split()[:2])

    @property
    def _key_file(self) -> Path:
        return self.state / "ssh" / "ssh_host_ed25519_key"

    def prepare(self, hosts_file: str, authorized_key: str) -> None:
        """Write the files of the host; keep its disk and its key if they exist.

        `hosts_file` is the text of its /etc/hosts, `authorized_key` the public key that it accepts.
        """
        for directory in (self.disk, self.state / "ssh", self.state / "tmp"):
            directory.mkdir(parents=True, exist_ok=True)
        (self.state / "tmp").chmod(0o1777)
        make_key(self._key_file)
        (self.state / "ssh" / "authorized_keys").write_text(authorized_key)
        config = _SSHD_CONFIG.format(address=self.address)
        (self.state / "ssh" / "sshd_config").write_text(config)
        (_NETNS / self.name).mkdir(parents=True, exist_ok=True)
        (_NETNS / self.name / "hosts").write_text(hosts_file)
        (self.disk / "home").mkdir(exist_ok=True)
        (_NETNS / self.name / "passwd").write_text(self._passwd())
        shadow = _NETNS / self.name / "shadow"
        shadow.touch(mode=0o600)
        shadow.write_text(_SHADOW)
        Path(self.root).mkdir(parents=True, exist_ok=True)

    def _passwd(self) -> str:
        """Return the accounts of this machine, with another home of root: so no dot file is run."""
        lines = Path("/etc/passwd").read_text().splitlines()
        others = [line for line in lines if not line.startswith("root:")]
        return "\n".join([f"root:x:0:0:root:{self.root}/home:/bin/sh", *others, ""])

    def connect(self) -> None:
        """Make the namespace and its link to the bridge, or repair them."""
        inside = ("ip", "-n", self.name)
        if system.attempt(*inside, "link", "show", "lo").returncode != 0:
            self._kill_all()
            system.attempt("ip", "netns", "del", self.name)
            system.run("ip", "netns", "add", self.name)
        ends = (*inside, "link", "show", "eth0"), ("ip", "link", "show", self.name)
        if any(system.attempt(*end).returncode != 0 for end in ends):
            system.attempt("ip", "link", "del", self.name)
            system.attempt(*inside, "link", "del", "eth0")
            peer = ("peer", "name", "eth0", "address", hardware_address(self.address))
            system.run("ip", "link", "add", self.name, "type", "veth", *peer, "netns", self.name)
        system.run("ip", "link", "set", self.name, "addrgenmode", "none", "master", BRIDGE, "up")
        system.run(*inside, "link", "set", "lo", "up")
        system.run(*inside, "link", "set", "eth0", "addrgenmode", "none", "up")
        system.run(*inside, "addr", "replace", f"{self.address}/{PREFIX}", "dev", "eth0")
        queues = (("tc", "qdisc"), self.name), (("tc", "-n", self.name, "qdisc"), "eth0")
        for command, device in queues:
            if "netem" in system.run(*command, "show", "dev", device):  # a killed test left it
                system.run(*command, "del", "dev", device, "root")

    def boot(self) -> None:
        """Start process 1 of the host unless it runs; it goes on when this process ends."""
        if self.init_pid() is not None:
            return
        command = ["setsid", "--fork", "ip", "netns", "exec", self.name]
        command += ["unshare", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
        command += [interpreter(), "-I", "-S", init.__file__, self.name]
        command += [str(self.disk), self.root, str(self.state / "ssh"), "/etc/ssh"]
        command += [str(self.state / "tmp"), "/tmp"]  # last: it may hide the other two
        with (self.state / "init.log").open("wb") as log:
            subprocess.run(
                [system.program(command[0]), *command[1:]],
                env=system.ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                check=True,
                timeout=_WAIT_S,
            )

    def wait_booted(self) -> None:
        """Wait for process 1 to have set the host up; ClusterError with its last words if not."""
        if not _wait(lambda: self._booted()):
            said = " ".join((self.state / "init.log").read_text(errors="replace").split())[-300:]
            raise ClusterError(f"{self.name} does not start: {said or 'it says nothing'}")

    def init_pid(self) -> int | None:
        """Return the pid of the host's process 1 on this machine, None if it does not run."""
        for pid in system.namespace_pids(self.name):
            inside = system.pids_of(pid)[1:]
            if inside == [1] and not _ended(pid):
                return pid
        return None

    def _booted(self) -> bool:
        pid = self.init_pid()
        return pid is not None and Path(f"/proc/{pid}/root{init.READY}").exists()

    def start_sshd(self) -> None:
        """Start sshd, a child of process 1, unless one listens."""
        if self._listens():
            return
        sshd = system.program("sshd")
        system.run(*self.enter(), sshd, "-E", "/etc/ssh/sshd.log")

    def wait_answer(self) -> None:
        """Wait for sshd to answer; ClusterError with the last line of its log if it does not."""
        if not _wait(self.answers):
            try:
                lines = (self.state / "ssh" / "sshd.log").read_text(errors="replace").splitlines()
            except OSError:
                lines = []
            last = lines[-1] if lines else "its log is empty"
            raise ClusterError(f"{self.name}: sshd does not answer on {self.address}: {last}")

    def answers(self) -> bool:
        """Tell whether sshd sends its greeting when a client connects."""
        try:
            with socket.create_connection((self.address, SSH_PORT), _BANNER_TIMEOUT_S) as link:
                return link.recv(8).startswith(b"SSH-2.0")
        except OSError:
            return False

    def enter(self) -> tuple[str, ...]:
        """Return the words before a command that run it on the host; ClusterError if it is down."""
        pid = self.init_pid()
        if pid is None:
            raise ClusterError(f"{self.name} is down; `nexmark cluster up` starts it")
        return ("nsenter", "-t", str(pid), "-m", "-n", "-u", "-p", "--")

    def status(self) -> str:
        """Return one line: the name, the address and the state of the host."""
        pid = self.init_pid()
        if pid is None:
            state = "down"
        elif not self.answers():
            state = "broken: its sshd does not answer; `nexmark cluster up` repairs it"
        else:
            processes = [pid for pid in system.namespace_pids(self.name) if system.pids_of(pid)[1:]]
            state = f"up, {len(processes)} processes, its disk is {self.disk}"
        return f"{self.name}  {self.address}  {state}"

    def remove(self) -> None:
        """End all that runs in the namespace, and remove it, its link and its files in /etc."""
        self._kill_all()
        system.attempt("ip", "link", "del", self.name)
        system.attempt("ip", "netns", "del", self.name)
        shutil.rmtree(_NETNS / self.name, ignore_errors=True)
        with contextlib.suppress(OSError):
            _NETNS.rmdir()  # unless there are others in it
        with contextlib.suppress(OSError):
            Path(self.root).rmdir()

    def _kill_all(self) -> None:
        """Kill all processes of the host; ClusterError if one does not end."""

        def killed() -> bool:
            pids = {*system.namespace_pids(self.name), *self._inits()}
            alive = [pid for pid in pids if not _ended(pid)]
            for pid in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not alive

        if not _wait(killed):
            raise ClusterError(f"{self.name}: its processes cannot be killed; restart this machine")

    def _inits(self) -> list[int]:
        """Return the pids of process 1 of this host, even if its namespace has lost its name.

        They are found by the command line.
        """
        words = f"\0{init.__file__}\0{self.name}\0{self.disk}\0".encode()
        pids = []
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if words in file.read_bytes():
                    pids.append(int(file.parent.name))
        return pids

    def _listens(self) -> bool:
        """Tell whether a process listens on the port of SSH, even if the link is broken."""
        table = Path(f"/proc/{self.init_pid()}/net/tcp")
        try:
            rows = [line.split() for line in table.read_text().splitlines()[1:]]
        except OSError:
            return False
        return any(row[3] == "0A" and row[1].endswith(f":{SSH_PORT:04X}") for row in rows)


def make_key(file: Path) -> None:
    """Make a pair of ed25519 keys, `file` (mode 600) and `file`.pub, unless both exist."""
    if file.exists() and file.with_suffix(".pub").exists():
        return
    file.unlink(missing_ok=True)
    system.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "nexmark", "-f", str(file))


def hardware_address(address: str) -> str:
    """Return the MAC address for an IPv4 address.

    It is the same every time, so that the caches of neighbours stay right.
    """
    return "02:00:" + ":".join(f"{int(byte):02x}" for byte in address.split("."))


def interpreter() -> str:
    """Return the real path of this Python: a virtual environment has a link to it."""
    return str(Path(sys.executable).resolve())


def _ended(pid: int) -> bool:
    """Tell whether a process has ended, even if its exit status was not read yet."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"


def _wait(condition: Callable[[], bool]) -> bool:
    """Wait until a condition is true; return False if it is not within 20 s."""
    deadline = time.monotonic() + _WAIT_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True
