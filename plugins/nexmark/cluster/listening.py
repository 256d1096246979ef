"""Whether what answers on the ports of a cluster is the cluster, and not another one like it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nexmark.cluster.base import ClusterError
from nexmark.cluster.host import Host, HostError, on_all
from nexmark.cluster.requirements import taken
from nexmark.config import SshCluster
from nexmark.config.clusters import PORTS
from nexmark_jobs.host import facts

_CALL_S = 30


def listening(config: SshCluster, hosts: Sequence[Host], mark: str) -> bool:
    """Whether the daemons with `mark` listen on every port that is theirs on `hosts`.

    ClusterError where a stranger does: two installations that start at once both found it free.
    """

    def holders(host: Host) -> dict[str, Any]:
        ports = ports_of(config, host.name)
        request = {"ports": ports, "mark": mark, "busy_window_s": 0}
        found: dict[str, Any] = host.call(facts, request, timeout_s=_CALL_S)["ports"]
        return found

    ours = True
    for name, found in on_all(hosts, holders).items():
        if isinstance(found, HostError):
            raise ClusterError(str(found))
        for port, holder in found.items():
            if holder is not None and not holder["ours"]:
                raise ClusterError(f"host {name}: {taken(config, port, holder)}")
            ours = ours and holder is not None
    return ours


def ports_of(config: SshCluster, host: str) -> dict[str, str]:
    """The ports of the daemon of a host, with the address that it listens on."""
    machine = config.hosts[host]
    names = [name for name in PORTS if name.startswith(machine.role)]
    return {str(getattr(config, name)): machine.address for name in names}


__all__ = ["listening", "ports_of"]
