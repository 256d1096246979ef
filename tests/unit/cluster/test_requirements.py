"""Preflight over hosts reports each problem that would spoil a night, with its remedy."""

from __future__ import annotations

from platform import python_version
from typing import Any

import pytest

from nexmark.cluster.inspection import (
    HostReport,
    Inspection,
    judge,
    judge_alike,
    judge_shared,
)
from nexmark.config import SshCluster, load
from nexmark.engines.prerequisites import HERE

GB = 10**9
JDK = {"home": "/jdk", "version": "17.0.15", "problem": None}


@pytest.fixture
def cluster() -> SshCluster:
    found = load().clusters["nexmark"]
    assert isinstance(found, SshCluster)
    return found


def facts(**changes: Any) -> dict[str, Any]:
    """The facts of a worker of the cluster `nexmark` that is as it should be."""
    space = {"free_bytes": 100 * GB, "writable": True, "problem": None}
    return {
        "python": python_version(),
        "cores": 8,
        "open_files": 1024,
        "free_memory_bytes": 31 * 2**30,
        "directories": dict.fromkeys(("/opt/nexmark", "/data/nexmark", "/mnt/nexmark"), space),
        "ports": {"7078": None, "8081": None},
        "clock_offset": 0.01,
        "clock_uncertainty": 0.02,
        "busy": [],
        "cpu_model": "EPYC",
        "kernel": "6.1",
        "governor": "performance",
        **changes,
    }


def problems(cluster: SshCluster, java: tuple[int, ...] = (17, 21), **changes: Any) -> list[str]:
    report = HostReport("nexmark02")
    judge(cluster, report, facts(java=changes.pop("jdk", JDK), **changes), java, HERE[:2])
    return report.problems


def test_a_host_as_it_should_be_has_no_problem(cluster: SshCluster) -> None:
    assert problems(cluster) == []


def test_a_jdk_that_the_spark_of_the_night_does_not_support(cluster: SshCluster) -> None:
    newer = {"version": "21.0.7", "problem": None}
    assert problems(cluster, jdk=newer) == []
    (problem,) = problems(cluster, java=(17,), jdk=newer)
    assert "java is 21.0.7, which the Spark of this night does not support" in problem
    assert "install a JDK 17 and set java_home" in problem


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"jdk": {"version": None, "problem": "/jdk/bin/java: No such file"}}, "set java_home"),
        ({"jdk": {"version": "11.0.2", "problem": None}}, "install a JDK 17 or 21 and set"),
        ({"python": "3.9.2"}, "is Python 3.9.2, drivers run on 3."),
        ({"cores": 4}, "its worker offers 8 cores, it has 4"),
        ({"open_files": 256}, "open files: a process may have 256 open, and Spark opens about 300"),
        ({"free_memory_bytes": 8 * 2**30}, "its worker offers 29g, 8192 MiB are free"),
        ({"clock_offset": 60.0}, "its clock is 60.0 s ahead of this machine's; keep both by NTP"),
        ({"clock_offset": -2.0}, "its clock is 2.0 s behind"),
        (
            {"busy": [{"pid": 7, "command": "stress", "cores": 1.5}]},
            "others use 1.5 cores, most of all process 7 (stress)",
        ),
        (
            {"ports": {"7078": {"pid": 9, "command": "nc", "ours": False, "problem": None}}},
            "port 7078 is taken by process 9 (nc); end it",
        ),
        (
            {"ports": {"7078": {"pid": None, "ours": False, "problem": "no such address"}}},
            "cannot listen on nexmark02:7078 (no such address); correct its address",
        ),
    ],
)
def test_what_is_wrong_with_a_host_is_one_line_with_its_remedy(
    cluster: SshCluster, changes: dict[str, Any], says: str
) -> None:
    (problem,) = problems(cluster, **changes)
    assert problem.startswith("host nexmark02: ")
    assert says in problem


def test_a_port_of_our_own_leftovers_is_no_problem(cluster: SshCluster) -> None:
    ours = {"pid": 9, "command": "java", "ours": True, "problem": None}
    assert problems(cluster, ports={"7078": ours}) == []


def test_a_full_and_a_forbidden_disk_are_told_apart(cluster: SshCluster) -> None:
    directories = facts()["directories"] | {
        "/opt/nexmark": {"free_bytes": GB, "writable": True, "problem": None},
        "/mnt/nexmark": {"free_bytes": 0, "problem": "/mnt cannot be written"},
    }
    (problem,) = problems(cluster, directories=directories)
    assert "1.0 GB are free in /opt/nexmark, 2 GB are needed" in problem
    assert "/mnt cannot be written; let the user of the connection write there" in problem


def test_a_clock_that_cannot_be_told_from_right_is_no_problem(cluster: SshCluster) -> None:
    assert problems(cluster, clock_offset=0.7, clock_uncertainty=0.3) == []


def test_a_directory_that_is_not_shared_names_whose_file_is_hidden(cluster: SshCluster) -> None:
    report = HostReport("nexmark02")
    expected = {"check-here": "a", "check-nexmark03": "a"}
    seen = {"tokens": {"check-here": "a", "check-nexmark03": None}, "problem": None}
    judge_shared(cluster, report, seen, expected, "")
    assert report.problems == [
        "host nexmark02: it does not see what nexmark03 wrote into /mnt/nexmark; "
        "mount the same directory at this path on every host and here"
    ]


def test_hosts_that_differ_are_warned_of_and_shown() -> None:
    reports = (HostReport("nexmark02"), HostReport("nexmark03"))
    judge_alike(
        reports, {"nexmark02": facts(), "nexmark03": facts(cpu_model="Xeon", governor="powersave")}
    )
    found = Inspection(reports)
    assert found.problems == []
    assert found.warnings[0] == "the hosts differ in CPU: nexmark02 EPYC, nexmark03 Xeon"
    assert found.warnings[1].startswith("the CPU governor of nexmark03 is not performance")
    assert [line.split() for line in str(found).splitlines()] == [
        ["host", "CPU", "kernel"],
        ["nexmark02", "EPYC", "6.1"],
        ["nexmark03", "Xeon", "6.1"],
    ]
