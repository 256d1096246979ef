"""The tests without Spark pass on every Python that the package supports."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nexmark.config.paths import repository
from nexmark.engines.prerequisites import PYTHONS

pytestmark = [pytest.mark.slow, pytest.mark.long]

OTHERS = [version for version in PYTHONS if version != sys.version_info[:2]]
STEP_S = 1800


@pytest.mark.parametrize("version", OTHERS, ids=lambda version: ".".join(map(str, version)))
def test_the_quick_suite_passes(version: tuple[int, int], tmp_path: Path) -> None:
    """In an environment of the same lock files, on the Python that is installed here."""
    name = f"python{version[0]}.{version[1]}"
    program = shutil.which(name)
    if program is None or subprocess.run([program, "-c", ""]).returncode:
        pytest.skip(f"{name} is not on the PATH")
    uv = str(Path(sys.executable).with_name("uv"))
    python = str(tmp_path / "bin" / "python")
    lock = ["--require-hashes", "requirements-dev.lock"]
    for step in (
        [program, "-m", "venv", "--without-pip", str(tmp_path)],
        [uv, "pip", "sync", "--quiet", "--python", python, *lock],
        [uv, "pip", "install", "--quiet", "--python", python, "--no-deps", "--editable", "."],
    ):
        subprocess.run(step, cwd=repository(), check=True, timeout=STEP_S)
    mine = ("PYTEST", "PYTHON", "VIRTUAL_ENV")
    environment = {name: x for name, x in os.environ.items() if not name.startswith(mine)}
    chosen = ["-m", "not spark and not slow and not long", "tests/unit", "tests/docs"]
    run = subprocess.run(
        [python, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *chosen],
        cwd=repository(),
        env=environment,
        capture_output=True,
        text=True,
        timeout=2 * STEP_S,
    )
    assert run.returncode == 0, run.stdout[-3000:]
