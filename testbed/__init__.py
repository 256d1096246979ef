"""Start and end the test cluster: the hosts of an SSH cluster as namespaces of this machine.

All its files are below `<home>/testbed`. Only the namespaces with their links, their files in
/etc/netns, and the mount of the shared directory are elsewhere. The whole machine has one set of
namespaces, so only one home may use them at a time: its path is in LOCK while the cluster is up.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path, PurePath

from nexmark.cluster.lease import ClusterError
from nexmark.config import SshCluster
from nexmark.engines.prerequisites import java_problem
from testbed import system
from testbed.connections import CONNECTIONS, put_connections, remove_connections
from testbed.host import (
    BRIDGE,
    PREFIX,
    NamespaceHost,
    hardware_address,
    interpreter,
    make_key,
)

LOCK = Path("/run/nexmark-testbed.lock")


def hosts(cluster: SshCluster, home: Path) -> dict[str, NamespaceHost]:
    """Return the hosts of `cluster` by name, even if they are down."""
    return {
        name: NamespaceHost(name, machine.address, home / "testbed" / name, cluster.root)
        for name, machine in cluster.hosts.items()
    }


def client_key(home: Path) -> Path:
    """Return the file with the private key that every host accepts for root."""
    return home / "testbed" / "key"


def up(cluster: SshCluster, home: Path) -> None:
    """Start the hosts that do not run, repair what is broken, and write their connections.

    Raises ClusterError if this machine cannot have a test cluster, if another home has it, or if a
    host does not start within 20 s.
    """
    problems = [*system.problems(), *filter(None, [java_problem()])]
    if problems:
        raise ClusterError("; ".join(problems))
    with _claimed(cluster, home):
        LOCK.write_text(f"{home}\n")
        _build(cluster, home)


def _build(cluster: SshCluster, home: Path) -> None:
    """Make the network, the shared directory and the hosts; wait until all hosts answer."""
    machines = hosts(cluster, home)
    (home / "testbed").mkdir(parents=True, exist_ok=True)
    make_key(client_key(home))
    _share(cluster.shared, home)
    _bridge(cluster.driver_address)
    names = [(host.address, host.name) for host in machines.values()]
    names += [("127.0.0.1", "localhost"), (cluster.driver_address, socket.gethostname())]
    hosts_file = "".join(f"{address} {name}\n" for address, name in names)
    for host in machines.values():
        host.prepare(hosts_file, client_key(home).with_suffix(".pub").read_text())
        _link(host.disk / PurePath(cluster.python).relative_to(cluster.root), interpreter())
        _link(host.disk / PurePath(cluster.java_home).relative_to(cluster.root), _java_home())
        host.connect()
        host.boot()
    for host in machines.values():
        host.wait_booted()
        host.start_sshd()
    for host in machines.values():
        host.wait_answer()
    put_connections(home / CONNECTIONS, _connections(cluster, home))


def down(cluster: SshCluster, home: Path) -> None:
    """End the hosts and remove all that belongs to them; do nothing if there are none."""
    machines = hosts(cluster, home)
    traces = [home / "testbed", *(Path("/run/netns") / name for name in machines)]
    if not _owner() and not any(trace.exists() for trace in traces):
        return
    problems = system.problems()
    if problems:
        raise ClusterError("; ".join(problems))
    with _claimed(cluster, home):
        _remove(cluster, home)
        LOCK.write_text("")


def _remove(cluster: SshCluster, home: Path) -> None:
    for host in hosts(cluster, home).values():
        host.remove()
    system.attempt("ip", "link", "del", BRIDGE)
    if _is_mounted(cluster.shared):
        system.run("umount", "--lazy", cluster.shared)
    with contextlib.suppress(OSError):
        Path(cluster.shared).rmdir()  # unless it has files of somebody else
    names = [host.connection for host in cluster.hosts.values()]
    remove_connections(home / CONNECTIONS, [*names, *filter(None, [cluster.kafka])])
    shutil.rmtree(home / "testbed", ignore_errors=True)


def status(cluster: SshCluster, home: Path) -> list[str]:
    """Return one line for each host."""
    if os.geteuid() != 0:
        raise ClusterError("test cluster: it needs root; run it with sudo")
    owner = _owner()
    if owner and owner != home:
        return [f"{name}  belongs to {owner}" for name in cluster.hosts]
    return [host.status() for host in hosts(cluster, home).values()]


@contextlib.contextmanager
def _claimed(cluster: SshCluster, home: Path) -> Iterator[None]:
    """Hold the lock of the test cluster for the block.

    ClusterError if another `up` or `down` runs on this machine, or if the cluster of another home
    is up. What a cluster of another home has left is removed.
    """
    with LOCK.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClusterError("test cluster: it is being started or ended; wait for it") from None
        owner = _owner()
        if owner and owner != home:
            if (owner / "testbed").exists() and any(map(system.namespace_pids, cluster.hosts)):
                raise ClusterError(
                    f"the test cluster of {owner} is up; end it with "
                    f"`NEXMARK_HOME={owner} nexmark cluster down` first"
                )
            _remove(cluster, owner)  # its disks are gone, or all its processes were killed
        yield


def _owner() -> Path | None:
    """Return the home that has the cluster."""
    try:
        text = LOCK.read_text().strip()
    except FileNotFoundError:
        return None
    return Path(text) if text else None


def _bridge(address: str) -> None:
    """Make the bridge that connects the hosts; the driver on this machine has `address` on it."""
    if system.attempt("ip", "link", "show", BRIDGE).returncode != 0:
        mac = hardware_address(address)
        system.run("ip", "link", "add", BRIDGE, "address", mac, "type", "bridge")
    system.run("ip", "link", "set", BRIDGE, "addrgenmode", "none", "up")
    system.run("ip", "addr", "replace", f"{address}/{PREFIX}", "dev", BRIDGE)


def _share(shared: str, home: Path) -> None:
    """Mount `<home>/testbed/shared` on `shared`; the hosts that start later see this mount, too."""
    source = home / "testbed" / "shared"
    source.mkdir(exist_ok=True)
    Path(shared).mkdir(parents=True, exist_ok=True)
    if not source.samefile(shared):
        if _is_mounted(shared):  # by a cluster whose home is gone
            system.run("umount", "--lazy", shared)
        system.run("mount", "--bind", str(source), shared)


def _is_mounted(directory: str) -> bool:
    return system.attempt("mountpoint", "-q", directory).returncode == 0


def _link(link: Path, target: str) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink() or str(link.readlink()) != target:
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def _java_home() -> str:
    """Return the directory of this machine's JDK: $JAVA_HOME, or the JDK of `java` on the PATH."""
    configured = os.environ.get("JAVA_HOME")
    return configured or str(Path(shutil.which("java") or "java").resolve().parents[1])


def _connections(cluster: SshCluster, home: Path) -> dict[str, object]:
    machines = hosts(cluster, home)
    return {
        host.connection: {
            "conn_type": "ssh",
            "host": host.address,
            "login": "root",
            "extra": {"key_file": str(client_key(home)), "host_key": machines[name].host_key},
        }
        for name, host in cluster.hosts.items()
    }


__all__ = [
    "BRIDGE",
    "LOCK",
    "NamespaceHost",
    "client_key",
    "down",
    "hosts",
    "make_key",
    "status",
    "up",
]
