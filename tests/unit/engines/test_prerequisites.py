"""A missing prerequisite of the machine is reported at once, in one line with the remedy."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from nexmark.config.paths import repository
from nexmark.engines import prerequisites
from nexmark.engines.prerequisites import (
    disk_problem,
    java_problem,
    job_python,
    job_python_problem,
    python_problem,
)


def fake_jdk(home: Path, version: str, exit_code: int = 0) -> dict[str, str]:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" x' >&2\nexit {exit_code}\n")
    java.chmod(0o755)
    return {"JAVA_HOME": str(home), "PATH": ""}


@pytest.mark.parametrize(
    ("version", "spark"),
    [("17.0.15", "4.3.0"), ("21", "4.0.5"), ("17.0.1", "3.5.9"), ("25.0.3", "4.2.1")],
)
def test_a_supported_jdk_is_no_problem(tmp_path: Path, version: str, spark: str) -> None:
    assert java_problem(spark, fake_jdk(tmp_path, version)) == ""


@pytest.mark.parametrize(
    ("version", "spark", "found"),
    [
        ("1.8.0_402", "4.3.0", "8"),
        ("11.0.2", "4.3.0", "11"),
        ("21.0.1", "3.5.9", "21"),
        ("25", "4.1.4", "25"),
    ],
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


@pytest.mark.parametrize("version", [(3, 11, 4), (3, 12, 0), (3, 13, 5)])
def test_a_supported_python_is_no_problem(version: tuple[int, ...]) -> None:
    assert python_problem(version) == ""


@pytest.mark.parametrize("version", [(3, 9, 2), (3, 10, 13), (3, 15, 0)])
def test_an_unsupported_python_is_named(version: tuple[int, ...]) -> None:
    named = ".".join(map(str, version))
    assert f"this is {named}; install Python 3.11, 3.12" in python_problem(version)


def test_the_python_of_the_package_is_what_it_says() -> None:
    """pyproject.toml, README and the refusal name the same versions."""
    text = (repository() / "README.md").read_text()
    oldest, newest = prerequisites.PYTHONS[0], prerequisites.PYTHONS[-1]
    assert f"Python {oldest[0]}.{oldest[1]} to {newest[0]}.{newest[1]}" in text
    project = tomllib.loads((repository() / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">={oldest[0]}.{oldest[1]},<{newest[0]}.{newest[1] + 1}"


def other_python(directory: Path, version: str, exit_code: int = 0) -> Path:
    program = directory / f"python{version}"
    program.write_text(f"#!/bin/sh\nexit {exit_code}\n")
    program.chmod(0o755)
    return program


class TestJobPython:
    """Which interpreter runs the jobs, where this one is newer than a Spark supports."""

    @pytest.fixture(autouse=True)
    def this_is_newer(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(prerequisites, "HERE", (3, 14, 1))
        monkeypatch.setenv("PATH", str(tmp_path))

    def test_a_spark_that_supports_this_one_gets_it(self) -> None:
        assert job_python("4.3.0") == sys.executable

    def test_the_newest_that_all_arms_support_is_taken(self, tmp_path: Path) -> None:
        for version in ("3.11", "3.12", "3.13"):
            other_python(tmp_path, version)
        assert job_python("4.3.0", "4.0.5") == str(tmp_path / "python3.13")
        assert job_python("4.3.0", "3.5.9") == str(tmp_path / "python3.12")

    def test_one_that_does_not_run_is_passed_over(self, tmp_path: Path) -> None:
        """As programs of pyenv are for versions that it has not switched on."""
        other_python(tmp_path, "3.12", exit_code=127)
        other_python(tmp_path, "3.11")
        assert job_python("3.5.9") == str(tmp_path / "python3.11")

    def test_the_one_that_is_missing_is_named(self) -> None:
        problem = job_python_problem("4.3.0", "3.5.9")
        assert problem.startswith("Python: Spark 3.5.9 runs jobs up to Python 3.12, and this is ")
        assert problem.endswith("; install python3.12, so that it is on the PATH")


def test_it_runs_as_a_script_without_the_environment(tmp_path: Path) -> None:
    """`make env` runs it with the system's Python, before anything is installed."""
    script = prerequisites.__file__
    good = {**fake_jdk(tmp_path / "good", "17.0.1"), "PATH": "/usr/bin:/bin"}
    run = subprocess.run([sys.executable, "-I", script], env=good, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    bad = {**fake_jdk(tmp_path / "bad", "11.0.1"), "PATH": "/usr/bin:/bin"}
    run = subprocess.run([sys.executable, "-I", script], env=bad, capture_output=True, text=True)
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert "is version 11" in run.stderr
