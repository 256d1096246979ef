"""Inspect the hosts of a cluster before anything is copied: one table, all problems at once.

The facts of a host (`nexmark_jobs.host.facts`) are compared with what a night needs.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nexmark.cluster.hosts.host import Host, on_all
from nexmark.cluster.hosts.samplers import clock_offset
from nexmark.cluster.hosts.ssh import HostError
from nexmark.cluster.lease import ClusterError
from nexmark.config import SshCluster
from nexmark.config.fields import mebibytes
from nexmark.engines.prerequisites import files_problem
from nexmark.model import Arm
from nexmark.terminal import columns
from nexmark_jobs.host import facts

#: Bytes of free disk that a night needs: a build, packed and unpacked; state and shuffle files.
ROOT_BYTES, LOCAL_BYTES, SHARED_BYTES = 2 * 10**9, 2 * 10**9, 10**9
#: If other programs use more cores of a host than this, its figures are worthless.
BUSY_CORES = 0.5

_PERFORMANCE = ("performance", None)
_CALL_S = 40
Facts = Mapping[str, Any]


@dataclass
class HostReport:
    """The findings on a host: `cells` by column of the table, and `problems`, one line each."""

    host: str
    cells: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def note(self, column: str, text: str, problem: str = "") -> None:
        """Fill a cell; a problem marks the cell and is printed below the table."""
        self.cells[column] = f"{text} !" if problem else text
        if problem:
            self.problems.append(f"host {self.host}: {problem}")


@dataclass(frozen=True)
class Inspection:
    """The reports of all hosts."""

    reports: tuple[HostReport, ...]

    @property
    def problems(self) -> list[str]:
        """Return the problems that keep a night from running."""
        return [problem for report in self.reports for problem in report.problems]

    @property
    def warnings(self) -> list[str]:
        """Return the problems that only make figures worse."""
        return [warning for report in self.reports for warning in report.warnings]

    def __str__(self) -> str:
        """Return the table; `!` marks a problem."""
        names = list(dict.fromkeys(c for report in self.reports for c in report.cells))
        rows = [[r.host, *(r.cells.get(c, "-") for c in names)] for r in self.reports]
        return columns(["host", *names], rows)


def inspect(
    config: SshCluster,
    hosts: Sequence[Host],
    mark: str,
    java: Sequence[int],
    python: Sequence[int],
) -> Inspection:
    """Look at all hosts at once.

    Args:
        config: The cluster.
        hosts: Its hosts.
        mark: How the value of NEXMARK_OWNER begins in our own processes.
        java: The versions of the JDK that the builds of the night can use.
        python: The minor version of the Python that drivers run on.
    """
    token = secrets.token_hex(8)
    shared = Path(config.shared)
    ours = f".nexmark-check-{token}-here"
    here = _write_token(shared / ours, token)
    names = {host.name: f".nexmark-check-{token}-{host.name}" for host in hosts}
    answers = on_all(hosts, lambda host: _facts(config, host, mark, {names[host.name]: token}))
    judged = {name: answer for name, answer in answers.items() if not isinstance(answer, HostError)}
    reached = [host for host in hosts if host.name in judged]
    expected = {ours: token} | {names[name]: token for name in judged}
    seen = on_all(reached, lambda host: _shared(config, host, "read", list(expected)))
    here = here or _missing_here(shared, expected)
    on_all(reached, lambda host: _shared(config, host, "remove", [names[host.name]]))
    for left in (shared / ours, *shared.glob(f".nexmark-check-{token}-*")):
        left.unlink(missing_ok=True)  # also of a host that was lost meanwhile
    reports = tuple(HostReport(host.name) for host in hosts)
    for report in reports:
        if report.host in judged:
            judge(config, report, judged[report.host], java, python)
            judge_shared(config, report, seen[report.host], expected, here)
        else:
            report.note("connection", "no")
            report.problems.append(str(answers[report.host]))
    judge_alike(reports, judged)
    return Inspection(reports)


def _facts(config: SshCluster, host: Host, mark: str, token: Mapping[str, str]) -> dict[str, Any]:
    """Return the facts of a host.

    Args:
        config: The cluster.
        host: The host.
        mark: How the value of NEXMARK_OWNER begins in our own processes.
        token: What the host writes into the shared directory, by file name.
    """
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
    """Let a host read or remove files of the shared directory; return its answer.

    Args:
        config: The cluster.
        host: The host.
        do: read or remove.
        names: The names of the files.
    """
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

    Two installations that start at the same time may both find a port free.

    Raises:
        ClusterError: Another process listens on one of the ports.
    """

    def holders(host: Host) -> dict[str, Any]:
        request = {"ports": ports_of(config, host.name), "mark": mark, "busy_window_s": 0}
        return dict(host.call(facts, request, timeout_s=_CALL_S)["ports"])

    ours = True
    for name, holders_of_host in on_all(hosts, holders).items():
        if isinstance(holders_of_host, HostError):
            raise ClusterError(str(holders_of_host))
        for port, holder in holders_of_host.items():
            if holder is not None and not holder["ours"]:
                raise ClusterError(f"host {name}: {_taken(config, port, holder)}")
            ours = ours and holder is not None
    return ours


def ports_of(config: SshCluster, host: str) -> dict[str, str]:
    """Return the ports of the daemon of a host, with the address that it listens on."""
    machine = config.hosts[host]
    return {
        str(port): machine.address
        for name, port in config.ports.items()
        if name.startswith(machine.role)
    }


def judge(
    config: SshCluster,
    report: HostReport,
    facts: Facts,
    java: Sequence[int],
    python: Sequence[int],
) -> None:
    """Compare the facts of a host with the needs of the cluster and its builds.

    Args:
        config: The cluster.
        report: The report of the host, which gets the findings.
        facts: The facts.
        java: The versions of the JDK that the builds of the night can use.
        python: The minor version of the Python that drivers run on.
    """
    report.note("connection", "ok")
    _judge_java(report, facts["java"], java)
    _judge_python(config, report, facts["python"], python)
    for check in _CHECKS:
        check(config, report, facts)


def _judge_java(report: HostReport, java: Facts, majors: Sequence[int]) -> None:
    problem = java["problem"] or ""
    if not problem and int(java["version"].split(".")[0]) not in majors:
        problem = f"java is {java['version']}, which the Spark of this night does not support"
    if problem:
        wanted = " or ".join(map(str, majors)) or "that all builds of this night support"
        problem += f"; install a JDK {wanted} and set java_home to it"
    report.note("JDK", java["version"] or "none", problem)


def _judge_python(
    config: SshCluster, report: HostReport, there: str, python: Sequence[int]
) -> None:
    """Compare the Python of a host with the Python of the drivers.

    Args:
        config: The cluster.
        report: The report of the host, which gets the findings.
        there: The version of the host's Python.
        python: The minor version of the Python that drivers run on.
    """
    driver = ".".join(map(str, python))
    same = driver == ".".join(there.split(".")[:2])
    remedy = "Python workers must be of the same minor version; set python to one that is"
    differs = f"{config.python} is Python {there}, drivers run on {driver} here, and {remedy}"
    report.note("Python", there, "" if same else differs)


def _judge_size(config: SshCluster, report: HostReport, facts: Facts) -> None:
    machine = config.hosts[report.host]
    cores, free = facts["cores"], facts["free_memory_bytes"] // 2**20
    lacking = []
    if machine.cores and machine.cores > cores:
        lacking.append(f"its worker offers {machine.cores} cores, it has {cores}")
    if machine.memory and mebibytes(machine.memory) > free:
        lacking.append(f"its worker offers {machine.memory}, {free} MiB are free")
    remedy = "; correct cores and memory of the host, or end what uses its memory"
    report.note("cores", str(cores))
    problem = " and ".join(lacking) + remedy if lacking else ""
    report.note("free memory", f"{free / 1024:.1f} GiB", problem)


def _judge_files(config: SshCluster, report: HostReport, facts: Facts) -> None:
    limit = facts["open_files"]
    problem = "" if limit is None else files_problem(limit)
    report.note("open files", "no limit" if limit is None else str(limit), problem)


def _judge_disk(config: SshCluster, report: HostReport, facts: Facts) -> None:
    least = {config.root: ROOT_BYTES, config.local_dir: LOCAL_BYTES, config.shared: SHARED_BYTES}
    problems = []
    for path, needed in least.items():
        directory = facts["directories"][path]
        free = directory["free_bytes"] or 0
        if directory["problem"]:
            problems.append(f"{directory['problem']}; let the user of the connection write there")
        elif free < needed:
            too_few = f"{free / 1e9:.1f} GB are free in {path}, {needed / 1e9:.0f} GB are needed"
            problems.append(f"{too_few}; free some or choose another directory")
    root = facts["directories"][config.root]["free_bytes"] or 0
    report.note("free disk", f"{root / 1e9:.0f} GB", " | ".join(problems))


def _judge_ports(config: SshCluster, report: HostReport, facts: Facts) -> None:
    address = config.hosts[report.host].address
    problems = [
        f"cannot listen on {address}:{port} ({holder['problem']}); correct its address"
        if holder["problem"]
        else _taken(config, port, holder)
        for port, holder in facts["ports"].items()
        if holder is not None and not holder["ours"]
    ]
    report.note("ports", "taken" if problems else "free", " | ".join(problems))


def _taken(config: SshCluster, port: str, holder: Facts) -> str:
    pid = holder["pid"]
    who = f"process {pid} ({holder['command']})" if pid else "another process"
    return f"port {port} is taken by {who}; end it, or give cluster {config.name} another port"


def _judge_clock(config: SshCluster, report: HostReport, facts: Facts) -> None:
    offset, uncertainty = facts["clock_offset"], facts["clock_uncertainty"]
    wrong = abs(offset) - uncertainty > config.max_clock_offset_s
    way = "ahead of" if offset > 0 else "behind"
    differs = f"its clock is {abs(offset):.1f} s {way} this machine's; keep both by NTP (chrony)"
    report.note("clock", f"{offset:+.2f} s ± {uncertainty:.2f}", differs if wrong else "")


def _judge_load(config: SshCluster, report: HostReport, facts: Facts) -> None:
    cores = sum(process["cores"] for process in facts["busy"])
    problem = ""
    if cores > BUSY_CORES:
        first = facts["busy"][0]
        most = f"most of all process {first['pid']} ({first['command']})"
        problem = f"others use {cores:.1f} cores, {most}; end it or wait until it has ended"
    report.note("others' load", f"{cores:.1f}", problem)


_CHECKS = (
    _judge_size,
    _judge_files,
    _judge_disk,
    _judge_ports,
    _judge_clock,
    _judge_load,
)


def judge_shared(
    config: SshCluster, report: HostReport, seen: Facts | HostError, expected: Facts, here: str
) -> None:
    """Check that the host saw the files of all hosts in the shared directory.

    Args:
        config: The cluster.
        report: The report of the host, which gets the findings.
        seen: The tokens that the host read, by file name, or the error.
        expected: The tokens that were written, by file name.
        here: The reason why this machine does not share the directory, or ''.
    """
    if isinstance(seen, HostError):
        report.note("shared", "no", str(seen))
        return
    problem = here
    if seen["problem"]:
        problem = f"{seen['problem']}; mount {config.shared} and let the user write there"
    elif seen["tokens"] != expected and not here:
        hidden = [name.rsplit("-", 1)[1] for name in expected if name not in seen["tokens"]]
        hidden += [n.rsplit("-", 1)[1] for n, t in seen["tokens"].items() if t != expected[n]]
        remedy = "mount the same directory at this path on every host and here"
        others = " and ".join(hidden)
        problem = f"it does not see what {others} wrote into {config.shared}; {remedy}"
    report.note("shared", "no" if problem else "yes", problem)


def judge_alike(reports: Sequence[HostReport], facts_of_hosts: Mapping[str, Facts]) -> None:
    """Note hosts that differ or change their frequency: figures get worse, but the night runs."""
    for what, key in (("CPU", "cpu_model"), ("kernel", "kernel")):
        kinds = {name: str(facts[key] or "?") for name, facts in facts_of_hosts.items()}
        for report in reports:
            if report.host in kinds:
                report.note(what, kinds[report.host])
        if len(set(kinds.values())) > 1:
            listed = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
            reports[0].warnings.append(f"the hosts differ in {what}: {listed}")
    slow = [name for name, facts in facts_of_hosts.items() if facts["governor"] not in _PERFORMANCE]
    if slow:
        remedy = "set it with cpupower frequency-set -g performance"
        problem = f"the CPU governor of {', '.join(slow)} is not performance"
        reports[0].warnings.append(f"{problem}; {remedy}")
