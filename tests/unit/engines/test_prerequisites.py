"""A missing prerequisite of the machine is reported at once, in one line with the remedy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nexmark.engines import prerequisites
from nexmark.engines.prerequisites import disk_problem, java_problem, python_problem


def fake_jdk(home: Path, version: str, exit_code: int = 0) -> dict[str, str]:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" x' >&2\nexit {exit_code}\n")
    java.chmod(0o755)
    return {"JAVA_HOME": str(home), "PATH": ""}


@pytest.mark.parametrize(
    ("version", "spark"), [("17.0.15", "4.3.0"), ("21", "4.3.0"), ("17.0.1", "3.5.9")]
)
def test_a_supported_jdk_is_no_problem(tmp_path: Path, version: str, spark: str) -> None:
    assert java_problem(spark, fake_jdk(tmp_path, version)) == ""


@pytest.mark.parametrize(
    ("version", "spark", "found"),
    [("1.8.0_402", "4.3.0", "8"), ("11.0.2", "4.3.0", "11"), ("21.0.1", "3.5.9", "21")],
)
def test_an_unsupported_jdk_is_named(tmp_path: Path, version: str, spark: str, found: str) -> None:
    problem = java_problem(spark, fake_jdk(tmp_path, version))
    assert (
        f"java is version {found}, which this Spark does not support; install a JDK 17" in problem
    )
    assert "\n" not in problem


def test_no_jdk_at_all_is_said(tmp_path: Path) -> None:
    assert "no java on the PATH" in java_problem("4.3.0", {"PATH": str(tmp_path)})


def test_a_wrong_java_home_is_named(tmp_path: Path) -> None:
    problem = java_problem("4.3.0", {"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin"})
    assert f"JAVA_HOME is {tmp_path}, but there is no bin/java" in problem


def test_a_java_that_fails_is_named(tmp_path: Path) -> None:
    assert "failed with exit code 3" in java_problem("4.3.0", fake_jdk(tmp_path, "17", 3))


def test_disk_space_is_that_of_the_nearest_directory_that_exists(tmp_path: Path) -> None:
    assert disk_problem(tmp_path / "not" / "yet", needed=1) == ""
    problem = disk_problem(tmp_path / "not" / "yet", needed=10**18)
    assert f"are free in {tmp_path}, 1000000000.0 GB are needed; free some" in problem


def test_an_unsupported_python_is_named() -> None:
    assert python_problem((3, 11, 4)) == ""
    assert "this is 3.9.2; install Python 3.11" in python_problem((3, 9, 2))
    assert "this is 3.13.0" in python_problem((3, 13, 0))


def test_it_runs_as_a_script_without_the_environment(tmp_path: Path) -> None:
    """`make env` runs it with the system's Python, before anything is installed."""
    script = prerequisites.__file__
    good = {**fake_jdk(tmp_path / "good", "17.0.1"), "PATH": "/usr/bin:/bin"}
    run = subprocess.run([sys.executable, "-I", script], env=good, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    bad = {**fake_jdk(tmp_path / "bad", "11.0.1"), "PATH": "/usr/bin:/bin"}
    run = subprocess.run([sys.executable, "-I", script], env=bad, capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stderr.count("\n") == 1
    assert "is version 11" in run.stderr
