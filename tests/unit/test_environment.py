"""The environment is what the lock files say, and pyspark in it is whole."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
COMPILE = [UV, "pip", "compile", "--quiet", "--no-header", "--generate-hashes", "--universal"]


def test_pyspark_client_stays_out() -> None:
    """It owns files of pyspark and would overwrite them with another version's."""
    with pytest.raises(metadata.PackageNotFoundError):
        metadata.version("pyspark-client")


def test_pyspark_is_of_one_version() -> None:
    import pyspark

    assert pyspark.__version__ == metadata.version("pyspark")


def test_only_the_excluded_dependency_is_missing() -> None:
    check = subprocess.run(
        [UV, "pip", "check", "--python", sys.executable], capture_output=True, text=True
    )
    complaints = [line for line in check.stderr.splitlines() if " requires " in line]
    assert len(complaints) == 1, check.stderr
    assert "requires `pyspark-client" in complaints[0]


@pytest.mark.parametrize(
    ("lock", "extra"),
    [
        ("requirements.lock", []),
        ("requirements-dev.lock", ["--group", "dev", "-c", "requirements.lock"]),
    ],
)
def test_locks_are_current(lock: str, extra: list[str], tmp_path: Path) -> None:
    """`make lock` after a change of pyproject.toml; existing pins are kept by uv."""
    renewed = tmp_path / lock
    shutil.copy(ROOT / lock, renewed)
    subprocess.run(
        [*COMPILE, "--python-version", "3.11", *extra, "pyproject.toml", "-o", renewed],
        cwd=ROOT,
        check=True,
    )
    assert _pins(renewed) == _pins(ROOT / lock)


def test_bootstrap_lock_has_the_same_uv() -> None:
    assert _pins(ROOT / "requirements-bootstrap.lock") <= _pins(ROOT / "requirements.lock")


@pytest.mark.parametrize("lock", sorted(path.name for path in ROOT.glob("requirements*.lock")))
def test_locks_name_no_registry(lock: str) -> None:
    assert "://" not in (ROOT / lock).read_text()


def _pins(lock: Path) -> set[str]:
    return {
        line.rstrip("\\ ")
        for line in lock.read_text().splitlines()
        if line[:1].isalnum() or line.startswith("    --hash")
    }
