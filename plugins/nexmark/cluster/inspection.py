"""Looking at the hosts of a cluster before anything is copied: one table, every problem at once."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from platform import python_version
from typing import Any

from nexmark.cluster.host import Host, HostError, on_all
from nexmark.cluster.samplers import clock_offset
from nexmark.config import SshCluster
from nexmark.config.fields import mebibytes
from nexmark_jobs.host import facts

#: Free disk space that a night needs: a build, packed and unpacked; state and shuffle files.
ROOT_BYTES, LOCAL_BYTES, SHARED_BYTES = 2 * 10**9, 2 * 10**9, 10**9
#: So many cores that strangers use on a host make its figures worthless.
BUSY_CORES = 0.5
JAVA_MAJORS = ("17", "21")

_CALL_S = 40
_PERFORMANCE = ("performance", None)


@dataclass
class HostReport:
    """What was found on a host: `cells` by column of the table, and what is wrong, a line each."""

    host: str
    cells: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def note(self, column: str, text: str, problem: str = "") -> None:
        """Fill a cell; a problem marks it and is told below the table."""
        self.cells[column] = f"{text} !" if problem else text
        if problem:
            self.problems.append(f"host {self.host}: {problem}")


@dataclass(frozen=True)
class Inspection:
    """The reports of all hosts."""

    reports: tuple[HostReport, ...]

    @property
    def problems(self) -> list[str]:
        """What keeps a night from being run."""
        return [problem for report in self.reports for problem in report.problems]

    @property
    def warnings(self) -> list[str]:
        """What makes figures worse than they could be."""
        return [warning for report in self.reports for warning in report.warnings]

    def __str__(self) -> str:
        """The table; `!` marks what is wrong."""
        columns = list(dict.fromkeys(c for report in self.reports for c in report.cells))
        rows = [["host", *columns]]
        rows += [[r.host, *(r.cells.get(c, "-") for c in columns)] for r in self.reports]
        widths = [max(len(row[i]) for row in rows) for i in range(len(columns) + 1)]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
                 for row in rows]  # fmt: skip
        return "\n".join(lines)


def inspect(config: SshCluster, hosts: Sequence[Host], mark: str) -> Inspection:
    """Look at all `hosts` at once; `mark` begins what is in the environment of our processes."""
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
            _judge(config, report, facts_of)
            _judge_shared(config, report, seen[host.name], expected, here)
        reports.append(report)
    _judge_alike(reports, {n: f for n, f in found.items() if not isinstance(f, HostError)})
    return Inspection(tuple(reports))


def _facts(config: SshCluster, host: Host, mark: str, token: Mapping[str, str]) -> dict[str, Any]:
    machine = config.hosts[host.name]
    master = machine.role == "master"
    ports = (
        (config.master_port, config.master_ui_port)
        if master
        else (config.worker_port, config.worker_ui_port)
    )
    request = {
        "java_home": config.java_home,
        "directories": [config.root, config.local_dir, config.shared],
        "ports": {str(port): machine.address for port in ports},
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


def _judge(config: SshCluster, report: HostReport, found: Mapping[str, Any]) -> None:
    for judge in (
        _judge_connection,
        _judge_java,
        _judge_python,
        _judge_size,
        _judge_disk,
        _judge_ports,
        _judge_clock,
        _judge_load,
    ):
        judge(config, report, found)


def _judge_connection(config: SshCluster, report: HostReport, found: Mapping[str, Any]) -> None:
    report.note("connection", "ok")


def _judge_java(config: SshCluster, report: HostReport, found: Mapping[str, Any]) -> None:
    java = found["java"]
    problem = java["problem"] or ""
    if not problem and java["version"].split(".")[0] not in JAVA_MAJORS:
        problem = f"java is {java['version']}"
    if problem:
        problem += f"; install a JDK {' or '.join(JAVA_MAJORS)} and set java_home to it"
    report.note("JDK", java["version"] or "none", problem)


def _judge_python(config: SshCluster, report: HostReport, found: Mapping[str, Any]) -> None:
    here, there = python_version(), found["python"]
    problem = ""
    if here.split(".")[:2] != there.split(".")[:2]:
        problem = (
            f"{config.python} is Python {there}, here it is {here}, and Python workers must be of "
            "the same minor version; set python to one that is"
        )
    report.note("Python", there, problem)


def _judge_size(config: SshCluster, report: HostReport, found: Mapping[str, Any]) -> None:
    machine = config.hosts[report.host]
    cores, free = found["cores"], found["free_memory_bytes"] // 2**20
    lacking = []
    if machine.cores and machine.cores > cores:
        lacking.append(f"its worker offers {machine.cores} cores, it has {cores}")
    if machine.memory and mebibytes(machine.memory) > free:
        lacking.append(f"its worker offers {machine.memory}, {free} MiB are free")
    remedy = "; correct cores and memory of the host, or end what uses its memory"
    report.note("cores", str(cores))
    report.note("free memory", f"{free / 1024:.1f} GiB", " and ".join(lacking) and
                " and ".join(lacking) + remedy)  # fmt: skip


def _judge_disk(config: SshCluster, report: HostReport, found: Mapping[str, Any]) -> None:
    least = {config.root: ROOT_BYTES, config.local_dir: LOCAL_BYTES, config.shared: SHARED_BYTES}
    problems = []
    for path, needed in least.items():
        directory = found["directories"][path]
        free = directory["free_bytes"] or 0
        if directory["problem"]:
            problems.append(f"{directory['problem']}; let the user of the connection write there")
        elif free < needed:
            problems.append(
                f"{free / 1e9:.1f} GB are free in {path}, {needed / 1e9:.0f} GB are needed; free "
                "some or choose another directory"
            )
    root = found["directories"][config.root]["free_bytes"] or 0
    report.note("free disk", f"{root / 1e9:.0f} GB", " | ".join(problems))


def _judge_ports(config: SshCluster, report: HostReport, found: Mapping[str, Any]) -> None:
    problems = []
    for port, holder in found["ports"].items():
        if holder is None or holder["ours"]:
            continue
        if holder["problem"]:
            address = config.hosts[report.host].address
            problems.append(
                f"cannot listen on {address}:{port} ({holder['problem']}); correct its address"
            )
            continue
        who = (
            f"process {holder['pid']} ({holder['command']})" if holder["pid"] else "another process"
        )
        problems.append(
            f"port {port} is taken by {who}; end it, or give cluster {config.name} another port"
        )
    report.note("ports", "taken" if problems else "free", " | ".join(problems))


def _judge_clock(config: SshCluster, report: HostReport, found: Mapping[str, Any]) -> None:
    offset, uncertainty = found["clock_offset"], found["clock_uncertainty"]
    problem = ""
    if abs(offset) - uncertainty > config.max_clock_offset_s:
        problem = (
            f"its clock is {abs(offset):.1f} s {'ahead of' if offset > 0 else 'behind'} this "
            "machine's; keep both by NTP (chrony)"
        )
    report.note("clock", f"{offset:+.2f} s ± {uncertainty:.2f}", problem)


def _judge_load(config: SshCluster, report: HostReport, found: Mapping[str, Any]) -> None:
    cores = sum(process["cores"] for process in found["busy"])
    problem = ""
    if cores > BUSY_CORES:
        first = found["busy"][0]
        problem = (
            f"others use {cores:.1f} cores, most of all process {first['pid']} "
            f"({first['command']}); end it or wait until it has ended"
        )
    report.note("others' load", f"{cores:.1f}", problem)


def _judge_shared(
    config: SshCluster,
    report: HostReport,
    seen: Mapping[str, Any] | HostError,
    expected: Mapping[str, str],
    here: str,
) -> None:
    if isinstance(seen, HostError):
        report.note("shared", "no", str(seen))
        return
    problem = here
    if seen["problem"]:
        problem = f"{seen['problem']}; mount {config.shared} and let the user write there"
    elif seen["tokens"] != expected and not here:
        hidden = [name.rsplit("-", 1)[1] for name in expected if name not in seen["tokens"]]
        hidden += [n.rsplit("-", 1)[1] for n, t in seen["tokens"].items() if t != expected[n]]
        problem = (
            f"it does not see what {' and '.join(hidden)} wrote into {config.shared}; "
            "mount the same directory at this path on every host and here"
        )
    report.note("shared", "no" if problem else "yes", problem)


def _judge_alike(reports: Sequence[HostReport], found: Mapping[str, Mapping[str, Any]]) -> None:
    """Hosts that differ, or that change their frequency, measure badly; a night is still run."""
    describe: Iterator[tuple[str, Callable[[Mapping[str, Any]], str]]] = iter(
        (
            ("CPU", lambda f: f"{f['cpu_model'] or '?'}"),
            ("kernel", lambda f: str(f["kernel"])),
        )
    )
    for what, tell in describe:
        kinds = {name: tell(facts_of) for name, facts_of in found.items()}
        for report in reports:
            if report.host in kinds:
                report.note(what, kinds[report.host])
        if len(set(kinds.values())) > 1:
            reports[0].warnings.append(
                f"the hosts differ in {what}: " + ", ".join(f"{n} {k}" for n, k in kinds.items())
            )
    slow = [n for n, facts_of in found.items() if facts_of["governor"] not in _PERFORMANCE]
    if slow:
        reports[0].warnings.append(
            f"the CPU governor of {', '.join(slow)} is not performance; set it with "
            "cpupower frequency-set -g performance"
        )


__all__ = ["HostReport", "Inspection", "inspect"]
