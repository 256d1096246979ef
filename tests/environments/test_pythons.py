"""The tests without Spark pass on every Python that the package supports."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nexmark.engines.prerequisites import PYTHONS
from tests.environments.quick_suite import create_environment, run_quick_suite

pytestmark = [pytest.mark.slow, pytest.mark.long]

OTHERS = [version for version in PYTHONS if version != sys.version_info[:2]]
LOCK = ["sync", "--require-hashes", "requirements-dev.lock"]


@pytest.mark.parametrize("version", OTHERS, ids=lambda version: ".".join(map(str, version)))
def test_the_quick_suite_passes(version: tuple[int, int], tmp_path: Path) -> None:
    """In an environment of the same lock files, on the Python that is installed here."""
    name = f"python{version[0]}.{version[1]}"
    program = shutil.which(name)
    if program is None or subprocess.run([program, "-c", ""]).returncode:
        pytest.skip(f"{name} is not on the PATH")
    run = run_quick_suite(create_environment(program, tmp_path, LOCK))
    assert run.returncode == 0, run.stdout[-3000:]
