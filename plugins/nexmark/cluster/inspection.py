"""Looking at the hosts of a cluster before anything is copied: one table, every problem at once."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nexmark.cluster.host import Host, HostError, on_all
from nexmark.cluster.host_report import HostReport, Inspection
from nexmark.cluster.listening import ports_of
from nexmark.cluster.requirements import judge, judge_alike, judge_shared
from nexmark.cluster.samplers import clock_offset
from nexmark.config import BASELINE, CANDIDATE, SshCluster
from nexmark_jobs.host import facts

_CALL_S = 40


def inspect(
    config: SshCluster, hosts: Sequence[Host], mark: str, java: Sequence[int]
) -> Inspection:
    """Look at all `hosts` at once.

    `mark` begins what is in the environment of our processes; `java` are versions of the JDK.
    """
    token = secrets.token_hex(8)
    shared = Path(config.shared)
    ours = f".nexmark-check-{token}-here"
    here = _write_token(shared / ours, token)
    names = {host.name: f".nexmark-check-{token}-{host.name}" for host in hosts}
    found = on_all(hosts, lambda host: _facts(config, host, mark, {names[host.name]: token}))
    reached = [host for host in hosts if not isinstance(found[host.name], HostError)]
    expected = {ours: token} | {names[host.name]: token for host in reached}
    seen = on_all(reached, lambda host: _read(config, host, list(expected)))
    here = here or _missing_here(shared, expected)
    on_all(reached, lambda host: _remove(config, host, names[host.name]))
    for left in (shared / ours, *shared.glob(f".nexmark-check-{token}-*")):
        left.unlink(missing_ok=True)  # of a host too that was lost meanwhile
    reports = []
    for host in hosts:
        report = HostReport(host.name)
        facts_of = found[host.name]
        if isinstance(facts_of, HostError):
            report.note("connection", "no")
            report.problems.append(str(facts_of))
        else:
            judge(config, report, facts_of, java)
            judge_shared(config, report, seen[host.name], expected, here)
        reports.append(report)
    judge_alike(reports, {n: f for n, f in found.items() if not isinstance(f, HostError)})
    return Inspection(tuple(reports))


def _facts(config: SshCluster, host: Host, mark: str, token: Mapping[str, str]) -> dict[str, Any]:
    arms = [ports_of(config.of_arm(arm), host.name) for arm in (CANDIDATE, BASELINE)]
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


def _read(config: SshCluster, host: Host, names: list[str]) -> dict[str, Any]:
    request = {"shared": {"directory": config.shared, "read": names}, "busy_window_s": 0}
    found: dict[str, Any] = host.call(facts, request, timeout_s=_CALL_S)["shared"]
    return found


def _remove(config: SshCluster, host: Host, name: str) -> None:
    request = {"shared": {"directory": config.shared, "remove": [name]}, "busy_window_s": 0}
    host.call(facts, request, timeout_s=_CALL_S)


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
        return ""  # that a single host does not share it is told of that host
    return f"what hosts write into {shared} is not seen on this machine; mount the same one here"


__all__ = ["inspect"]
