"""Environments beside the one of the tests, and the tests without Spark in them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from nexmark.config.paths import repository

UV = str(Path(sys.executable).with_name("uv"))
STEP_S = 1800


def run_step(*command: str) -> None:
    """Run a command in the repository."""
    subprocess.run(command, cwd=repository(), check=True, timeout=STEP_S)


def create_environment(program: str, directory: Path, *steps: Sequence[str]) -> str:
    """Create an environment, install into it by `uv pip STEP...`, and the package itself last.

    Args:
        program: The Python of the environment.
        directory: Where the environment is made.
        steps: The arguments of `uv pip`, without `--python`.

    Returns:
        The path of the environment's Python.
    """
    python = str(directory / "bin" / "python")
    run_step(program, "-m", "venv", "--without-pip", str(directory))
    for verb, *rest in (*steps, ["install", "--no-deps", "--editable", "."]):
        run_step(UV, "pip", verb, "--quiet", "--python", python, *rest)
    return python


def run_quick_suite(python: str) -> subprocess.CompletedProcess[str]:
    """Run the tests that start no Spark."""
    mine = ("PYTEST", "PYTHON", "VIRTUAL_ENV")
    environment = {name: x for name, x in os.environ.items() if not name.startswith(mine)}
    chosen = ["-m", "not spark and not slow and not long", "tests/unit", "tests/docs"]
    return subprocess.run(
        [python, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *chosen],
        cwd=repository(),
        env=environment,
        capture_output=True,
        text=True,
        timeout=2 * STEP_S,
    )
