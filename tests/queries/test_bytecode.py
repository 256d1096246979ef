"""A driver imports PySpark from a directory, which has bytecode, not from the archive."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nexmark.config import paths
from nexmark.engines import Build
from tests.site import ENGINE

WHERE = """
from nexmark_jobs.bytecode import use_directory
use_directory()
import pyspark
print(pyspark.__file__)
"""


def imported(home: Path) -> Path:
    """The PySpark that a driver imports which spark-submit of `home` has started."""
    said = subprocess.run(
        [sys.executable, "-c", WHERE],
        cwd=paths.repository(),
        env={
            **os.environ,
            "SPARK_HOME": str(home),
            "PYTHONPATH": str(home / "python" / "lib" / "pyspark.zip"),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(said.stdout.strip()).parent


@pytest.fixture
def archive(engine_build: Callable[[str], Build]) -> Path:
    """The archive of PySpark of a real build."""
    return engine_build(ENGINE).spark_home / "python" / "lib" / "pyspark.zip"


def test_of_a_wheel(engine_build: Callable[[str], Build]) -> None:
    home = engine_build(ENGINE).spark_home
    assert imported(home) == home


def test_of_a_release_of_apache(tmp_path: Path, archive: Path) -> None:
    (tmp_path / "python" / "lib").mkdir(parents=True)
    (tmp_path / "python" / "lib" / "pyspark.zip").symlink_to(archive)
    (tmp_path / "python" / "pyspark").symlink_to(archive.parents[2])
    assert imported(tmp_path) == tmp_path / "python" / "pyspark"


def test_of_a_build_that_has_the_archive_only(tmp_path: Path, archive: Path) -> None:
    (tmp_path / "python" / "lib").mkdir(parents=True)
    copy = tmp_path / "python" / "lib" / "pyspark.zip"
    copy.symlink_to(archive)
    assert imported(tmp_path) == copy / "pyspark"
