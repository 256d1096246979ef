"""Inspects the hosts of a cluster before anything is copied: one table, all problems at once."""

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nexmark.cluster.hosts.host import Host, on_all
from nexmark.cluster.hosts.samplers import clock_offset
from nexmark.cluster.hosts.ssh import HostError
from nexmark.cluster.inspection import requirements
from nexmark.cluster.lease import ClusterError
from nexmark.config import SshCluster
from nexmark.config.clusters import PORTS
from nexmark.model import Arm
from nexmark_jobs.host import facts

_CALL_S = 40


def inspect(
    config: SshCluster, hosts: Sequence[Host], mark: str, java: Sequence[int]
) -> requirements.Inspection:
    """Look at all `hosts` at once.

    `mark` is the prefix of the mark in the environment of our processes; `java` are the accepted
    versions of the JDK.
    """
    token = secrets.token_hex(8)
    shared = Path(config.shared)
    ours = f".nexmark-check-{token}-here"
    here = _write_token(shared / ours, token)
    names = {host.name: f".nexmark-check-{token}-{host.name}" for host in hosts}
    found = on_all(hosts, lambda host: _facts(config, host, mark, {names[host.name]: token}))
    reached = [host for host in hosts if not isinstance(found[host.name], HostError)]
    expected = {ours: token} | {names[host.name]: token for host in reached}
    seen = on_all(reached, lambda host: _shared(config, host, "read", list(expected)))
    here = here or _missing_here(shared, expected)
    on_all(reached, lambda host: _shared(config, host, "remove", [names[host.name]]))
    for left in (shared / ours, *shared.glob(f".nexmark-check-{token}-*")):
        left.unlink(missing_ok=True)  # also of a host that was lost meanwhile
    reports = []
    for host in hosts:
        report = requirements.HostReport(host.name)
        facts_of = found[host.name]
        if isinstance(facts_of, HostError):
            report.note("connection", "no")
            report.problems.append(str(facts_of))
        else:
            requirements.judge(config, report, facts_of, java)
            requirements.judge_shared(config, report, seen[host.name], expected, here)
        reports.append(report)
    judged = {name: x for name, x in found.items() if not isinstance(x, HostError)}
    requirements.judge_alike(reports, judged)
    return requirements.Inspection(tuple(reports))


def _facts(config: SshCluster, host: Host, mark: str, token: Mapping[str, str]) -> dict[str, Any]:
    arms = [ports_of(config.of_arm(arm), host.name) for arm in (Arm.CANDIDATE, Arm.BASELINE)]
    request = {
        "java_home": config.java_home,
        "directories": [config.root, config.local_dir, config.shared],
        "ports": arms[0] | arms[1],
        "mark": mark,
        "shared": {"directory": config.shared, "write": token},
    }
    answer = host.call(facts, request, timeout_s=_CALL_S)
    answer["clock_offset"], answer["clock_uncertainty"] = clock_offset(host)
    return answer


def _shared(config: SshCluster, host: Host, do: str, names: list[str]) -> dict[str, Any]:
    request = {"shared": {"directory": config.shared, do: names}, "busy_window_s": 0}
    return dict(host.call(facts, request, timeout_s=_CALL_S)["shared"])


def _write_token(path: Path, token: str) -> str:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(token)
    except OSError as error:
        return f"{path.parent} cannot be written on this machine ({error.strerror}); mount it here"
    return ""


def _missing_here(shared: Path, expected: Mapping[str, str]) -> str:
    hidden = [name for name in expected if not (shared / name).exists()]
    if not hidden or len(hidden) < len(expected) - 1:
        return ""  # if a single host does not share the directory, the report of that host says so
    return f"this machine does not see what hosts write into {shared}; mount the same one here"


def listening(config: SshCluster, hosts: Sequence[Host], mark: str) -> bool:
    """Return whether the daemons with `mark` listen on all their ports on `hosts`.

    ClusterError if a stranger does: two installations that start at once may both find a port free.
    """

    def holders(host: Host) -> dict[str, Any]:
        ports = ports_of(config, host.name)
        request = {"ports": ports, "mark": mark, "busy_window_s": 0}
        return dict(host.call(facts, request, timeout_s=_CALL_S)["ports"])

    ours = True
    for name, found in on_all(hosts, holders).items():
        if isinstance(found, HostError):
            raise ClusterError(str(found))
        for port, holder in found.items():
            if holder is not None and not holder["ours"]:
                raise ClusterError(f"host {name}: {requirements.taken(config, port, holder)}")
            ours = ours and holder is not None
    return ours


def ports_of(config: SshCluster, host: str) -> dict[str, str]:
    """The ports of the daemon of a host, with the address that it listens on."""
    machine = config.hosts[host]
    names = [name for name in PORTS if name.startswith(machine.role)]
    return {str(getattr(config, name)): machine.address for name in names}
