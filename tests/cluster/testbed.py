"""The test cluster as tests use it: running on its hosts, looking at them, breaking them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import testbed as namespaces
from nexmark.config import SshCluster
from nexmark_jobs.host.processes import owned, owner_mark
from testbed import NamespaceHost, system
from testbed.connections import CONNECTIONS, read_connections
from testbed.host import interpreter

_TIMEOUT_S = 60
_LIBFAKETIME = "/usr/lib/*/faketime/libfaketime.so.1"


@dataclass(frozen=True)
class HostProcess:
    """A process of a host.

    Attributes:
        pid: on this machine.
        inside: its pid on the host.
        parent: its parent's pid on this machine.
        state: the letter of /proc/PID/stat; Z is a zombie.
        command: the command line, its words joined by spaces; in brackets if it has none.
    """

    pid: int
    inside: int
    parent: int
    state: str
    command: str


@dataclass(frozen=True)
class Testbed:
    """A test cluster that is up, with `home` as its NEXMARK_HOME."""

    __test__ = False

    cluster: SshCluster
    home: Path

    @property
    def hosts(self) -> dict[str, NamespaceHost]:
        """The hosts by name."""
        return namespaces.hosts(self.cluster, self.home)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a program that shall use this cluster."""
        return os.environ | {"NEXMARK_HOME": str(self.home)}

    @property
    def connections(self) -> dict[str, Any]:
        """The Airflow connections by id."""
        return read_connections(self.home / CONNECTIONS)

    def export(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let this process have the Airflow connections of all hosts."""
        for machine in self.cluster.hosts.values():
            content = json.dumps(self.connections[machine.connection])
            monkeypatch.setenv(f"AIRFLOW_CONN_{machine.connection.upper()}", content)

    def up(self) -> None:
        """Repair what a test has broken."""
        namespaces.up(self.cluster, self.home)

    def run(
        self, name: str, *command: str, check: bool = True, timeout: float = _TIMEOUT_S
    ) -> subprocess.CompletedProcess[str]:
        """Run `command` on the host as root, past its sshd."""
        return subprocess.run(
            [*self.hosts[name].enter(), *command],
            env=system.ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=check,
            timeout=timeout,
        )

    @contextlib.contextmanager
    def running(self, name: str, *command: str) -> Iterator[HostProcess]:
        """`command` runs on the host, its output dropped; it is killed at the end."""
        entering = subprocess.Popen(
            [*self.hosts[name].enter(), *command],
            env=system.ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield self._child(name, entering.pid, " ".join(command))
        finally:
            for process in self.processes(name):
                if process.parent == entering.pid:
                    os.kill(process.pid, signal.SIGKILL)
            entering.kill()
            entering.wait()

    def _child(self, name: str, parent: int, command: str) -> HostProcess:
        deadline = time.monotonic() + _TIMEOUT_S
        while time.monotonic() < deadline:
            for process in self.processes(name):
                if process.parent == parent and process.command == command:
                    return process
            time.sleep(0.02)
        raise AssertionError(f"{command} does not start on {name}")

    def ssh(self, name: str, *command: str) -> subprocess.CompletedProcess[str]:
        """Run `command` with the system's ssh client, by the connection: its key, its host key."""
        connection = self.connections[self.cluster.hosts[name].connection]
        address = connection["host"]
        known = self.home / f"known_hosts-{name}"
        known.write_text(f"{address} {connection['extra']['host_key']}\n")
        options = ("BatchMode=yes", "StrictHostKeyChecking=yes", f"UserKnownHostsFile={known}")
        return subprocess.run(
            [
                *("ssh", "-F", "none", "-i", connection["extra"]["key_file"]),
                *(word for option in options for word in ("-o", option)),
                *(f"{connection['login']}@{address}", shlex.join(command)),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
        )

    def processes(self, name: str) -> list[HostProcess]:
        """All processes of the host but process 1: sshd too, and zombies."""
        found = (_process(pid) for pid in system.namespace_pids(name))
        return [process for process in found if process and process.inside != 1]

    def kill(
        self, name: str, pattern: str, number: signal.Signals = signal.SIGKILL
    ) -> list[HostProcess]:
        """Signal the processes of the host whose command line has `pattern` (a regular expression).

        Returns those that were signalled; those that were killed are gone then, and with them what
        they listened on.
        """
        found = [
            p for p in self.processes(name) if p.state != "Z" and re.search(pattern, p.command)
        ]
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, number)
        if number == signal.SIGKILL:
            _wait_gone(found)
        return found

    def crash(self, name: str) -> None:
        """Kill process 1 of the host, and with it all that runs there; `up` starts it again."""
        pid = self.hosts[name].init_pid()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    def leftovers(self) -> list[str]:
        """What a night left on the hosts, here and in the shared directory; sshd is not of it."""
        found = []
        for name in self.hosts:
            running = [p for p in self.processes(name) if "sshd" not in p.command]
            found += [f"{name}: process {process.command[:120]}" for process in running]
            found += [f"{name}: {path}" for path in self._temporary(name)]
        found += [str(path) for path in sorted(Path(self.cluster.shared).iterdir())]
        ours = f"{socket.gethostname()}:{owner_mark(self.home, self.cluster.name)}"
        found += [f"here: process {process.command}" for process in owned(ours)]
        state = self.home / "clusters" / self.cluster.name
        return found + [str(path) for path in sorted(state.glob("*"))]

    def _temporary(self, name: str) -> list[str]:
        """What is on the host that is not there for longer than a night or a copy."""
        root = self.cluster.root
        local = self.cluster.local_dir
        places = (f"{root}/nights", f"{root}/incoming", local, "/tmp", "/dev/shm")
        search = ("find", *places, "-mindepth", "1", "-maxdepth", "1", "!", "-name", "hsperfdata_*")
        search += ("!", "-name", "*faketime*")  # what moves a clock here
        hidden = ("find", f"{root}/releases", "-maxdepth", "1", "-name", ".*")
        listed = [self.run(name, *command, check=False).stdout for command in (search, hidden)]
        return sorted("".join(listed).splitlines())

    def link_down(self, name: str) -> None:
        """Pull the host's cable."""
        system.run("ip", "link", "set", name, "down")

    def link_up(self, name: str) -> None:
        """Plug it in again."""
        system.run("ip", "link", "set", name, "up")

    @contextlib.contextmanager
    def small_disk(self, name: str, size: str, directory: str | None = None) -> Iterator[None]:
        """An empty file system of `size` (as of tmpfs, e.g. 10m) on a directory of the host.

        `directory` is `incoming` below the cluster's root unless it is given.
        """
        place = directory or f"{self.cluster.root}/incoming"
        self.run(name, "mkdir", "-p", place)
        self.run(name, "mount", "-t", "tmpfs", "-o", f"size={size}", "small_disk", place)
        try:
            yield
        finally:
            self.run(name, "umount", "--lazy", place, check=False)

    def fill_disk(self, name: str, directory: str) -> None:
        """Shrink a small disk of the host until it is full; existing files stay."""
        for _ in range(20):
            used = self.run(name, "df", "--output=used", "-B4k", directory).stdout.split()[-1]
            size = f"remount,size={max(int(used), 1) * 4}k"
            if self.run(name, "mount", "-o", size, directory, check=False).returncode == 0:
                return  # else there is more in it now
        raise AssertionError(f"{directory} of {name} grows too fast to be filled")

    @contextlib.contextmanager
    def full_disk(self, name: str, directory: str) -> Iterator[None]:
        """A directory of the host is a file system without room."""
        with self.small_disk(name, "64k", directory):
            fill = ("sh", "-c", 'cat /dev/zero > "$1"/full', "-", directory)
            assert self.run(name, *fill, check=False).returncode != 0
            yield

    def grow_disk(self, name: str, directory: str, size: str) -> None:
        """A small disk of the host has `size` from now on."""
        self.run(name, "mount", "-o", f"remount,size={size}", directory)

    @contextlib.contextmanager
    def clock_off(self, name: str, seconds: float) -> Iterator[None]:
        """The host's Python and what it starts, and its `date`, are `seconds` ahead.

        The kernel has no clock per namespace: libfaketime is loaded into these programs.
        """
        there = Path(self.cluster.python).parent
        here = self.hosts[name].disk / there.relative_to(self.cluster.root)
        python, wrapper, date = here / "python3", here / "date_off", here / "date"
        shutil.copy("/usr/bin/date", date)
        link = python.readlink()
        python.unlink()
        _clock_wrapper(python, interpreter(), f"FAKETIME={seconds:+f}")
        _clock_wrapper(wrapper, str(there / date.name), f"FAKETIME={seconds:+f}")
        self.run(name, "mount", "--bind", str(there / wrapper.name), "/usr/bin/date")
        try:
            yield
        finally:
            self.run(name, "umount", "--lazy", "/usr/bin/date", check=False)
            for file in (python, wrapper, date):
                file.unlink()
            python.symlink_to(link)

    @contextlib.contextmanager
    def clock_that_jumps(self, name: str) -> Iterator[None]:
        """The wall clock of the host's samplers is what `set_clock` says, also while they run.

        Their monotonic clock goes on. Programs that sleep cannot be given such a clock.
        """
        there = Path(self.cluster.python).parent
        python = self._ahead(name).with_name("python3")
        self.set_clock(name, 0)
        link = python.readlink()
        python.unlink()
        settings = f"FAKETIME_TIMESTAMP_FILE={there / 'ahead'} FAKETIME_CACHE_DURATION=1"
        settings += " FAKETIME_DONT_FAKE_MONOTONIC=1"
        _clock_wrapper(python, interpreter(), settings, only="cpu_sampler.py")
        try:
            yield
        finally:
            python.unlink()
            python.symlink_to(link)
            self._ahead(name).unlink()

    def set_clock(self, name: str, seconds: float) -> None:
        """A clock that jumps is ahead by `seconds` from now on."""
        temporary = self._ahead(name).with_suffix(".tmp")
        temporary.write_text(f"{seconds:+f}\n")
        temporary.replace(self._ahead(name))

    def _ahead(self, name: str) -> Path:
        there = Path(self.cluster.python).parent
        return self.hosts[name].disk / there.relative_to(self.cluster.root) / "ahead"

    @contextlib.contextmanager
    def changed_host_key(self, name: str) -> Iterator[None]:
        """The host has another host key than the connection says, as after a reinstallation."""
        directory = self.hosts[name].state / "ssh"
        aside = directory / "right"
        keys = [directory / "ssh_host_ed25519_key", directory / "ssh_host_ed25519_key.pub"]
        aside.mkdir()
        for key in keys:
            key.rename(aside / key.name)
        namespaces.make_key(keys[0])
        self.restart_sshd(name)
        try:
            yield
        finally:
            for key in keys:
                (aside / key.name).replace(key)
            aside.rmdir()
            self.restart_sshd(name)

    def restart_sshd(self, name: str) -> None:
        """Kill the host's sshd with all its sessions and start it again, as its init would."""
        self.kill(name, "^sshd")
        self.start_sshd(name)

    def start_sshd(self, name: str) -> None:
        """Start sshd where it was killed, and wait until it answers."""
        self.hosts[name].start_sshd()
        self.hosts[name].wait_answer()


def _clock_wrapper(file: Path, program: str, settings: str, only: str = "") -> None:
    """Write a program that runs `program`, with another clock if `only` is in its arguments."""
    library = next(Path("/").glob(_LIBFAKETIME[1:]))
    file.write_text(
        f'#!/bin/sh\ncase "$*" in *{only}*) export LD_PRELOAD={library} {settings} ;; esac\n'
        f'exec {program} "$@"\n'
    )
    file.chmod(0o755)


def _wait_gone(processes: Iterable[HostProcess]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    for process in processes:
        while _runs(process):
            assert time.monotonic() < deadline, f"{process.command} does not end"
            time.sleep(0.01)


def _runs(process: HostProcess) -> bool:
    now = _process(process.pid)
    return now is not None and now.inside == process.inside and now.state not in "ZX"


def netem_problem() -> str:
    """Why this kernel cannot lose and delay packets, or '' if it can; nothing is changed."""
    probe = "ip link add a type veth peer name b && tc qdisc add dev a root netem delay 1ms"
    if system.attempt("unshare", "--net", "sh", "-c", probe).returncode == 0:
        return ""
    return "this kernel has no sch_netem (CONFIG_NET_SCH_NETEM)"


@contextlib.contextmanager
def netem(name: str, loss_percent: float = 0, delay_ms: float = 0) -> Iterator[None]:
    """The host's cable loses and delays packets, the same in both directions."""
    ends = (("tc",), name), (("tc", "-n", name), "eth0")
    fault = ("netem", "loss", f"{loss_percent}%", "delay", f"{delay_ms}ms")
    try:
        for tc, device in ends:
            system.run(*tc, "qdisc", "add", "dev", device, "root", *fault)
        yield
    finally:
        for tc, device in ends:
            system.attempt(*tc, "qdisc", "del", "dev", device, "root")


def _process(pid: int) -> HostProcess | None:
    """The process, None if it ended or is in no PID namespace below ours."""
    inside = system.pids_of(pid)[1:]
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return None
    if not inside:
        return None
    comm = stat[stat.index("(") + 1 : stat.rindex(")")]
    fields = stat[stat.rindex(")") + 2 :].split()
    command = " ".join(words).strip() or f"[{comm}]"
    return HostProcess(pid, inside[0], int(fields[1]), fields[0], command)


__all__ = ["HostProcess", "Testbed", "netem", "netem_problem"]
