"""The tests without Spark pass with the oldest and the newest of all that pyproject.toml allows."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from nexmark.config.paths import repository
from tests.environments.quick_suite import UV, create_environment, run_quick_suite, run_step

pytestmark = [pytest.mark.slow, pytest.mark.long]


def project() -> list[Requirement]:
    """The requirements of the package."""
    content = tomllib.loads((repository() / "pyproject.toml").read_text())
    return [Requirement(text) for text in content["project"]["dependencies"]]


def lowest(requirement: Requirement) -> str:
    """The lower bound of a requirement."""
    (bound,) = (x.version for x in requirement.specifier if x.operator in (">=", "=="))
    return bound


def installed(python: str, name: str) -> str:
    """The version of a distribution in the environment of `python`."""
    program = f"from importlib.metadata import version; print(version({name!r}))"
    command = [python, "-c", program]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def resolve(resolution: str, pins: Path, *options: str) -> None:
    """Write the pins of a resolution, `highest` or `lowest-direct`."""
    version = ".".join(map(str, sys.version_info[:2]))
    chosen = ["--resolution", resolution, "--python-version", version, *options]
    run_step(UV, "pip", "compile", "--quiet", *chosen, "pyproject.toml", "-o", str(pins))


def test_the_quick_suite_passes_with_the_oldest(tmp_path: Path) -> None:
    """The tools of the tests are as new as these dependencies let them be."""
    pins = tmp_path / "oldest.txt"
    resolve("lowest-direct", pins)
    tools = ["install", "--group", "dev", "--constraints", str(pins)]
    python = create_environment(sys.executable, tmp_path / "env", ["sync", str(pins)], tools)
    for requirement in project():
        if requirement.name.startswith("apache-airflow"):
            assert installed(python, requirement.name) == lowest(requirement)
    run = run_quick_suite(python)
    assert run.returncode == 0, run.stdout[-3000:]


def test_the_quick_suite_passes_with_the_newest(tmp_path: Path) -> None:
    """What `make lock` would choose today."""
    pins = tmp_path / "newest.txt"
    resolve("highest", pins, "--group", "dev")
    python = create_environment(sys.executable, tmp_path / "env", ["sync", str(pins)])
    run = run_quick_suite(python)
    assert run.returncode == 0, run.stdout[-3000:]
