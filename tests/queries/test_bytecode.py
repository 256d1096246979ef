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

JOBS = ("dump_events", "paced_query", "resume_queries", "run_query", "verify_queries")
#: Start a job for its help, as spark-submit does, and print which PySpark it has.
START = """
import contextlib, runpy, sys
sys.argv[1:] = ["--help"]
with contextlib.suppress(SystemExit):
    runpy.run_path(sys.argv[0], run_name="__main__")
print(sys.modules["pyspark"].__file__)
"""


def imported(home: Path, job: str = "run_query") -> Path:
    """The PySpark of a job that spark-submit of `home` has started."""
    path = paths.repository() / "nexmark_jobs" / f"{job}.py"
    said = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.argv[0] = {str(path)!r}; {START}"],
        env={
            **os.environ,
            "SPARK_HOME": str(home),
            "PYTHONPATH": os.pathsep.join(map(str, (home / "python" / "lib").glob("*.zip"))),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(said.stdout.splitlines()[-1]).parent


@pytest.fixture
def wheel(engine_build: Callable[[str], Build]) -> Path:
    """The home of a Spark that came as a wheel."""
    return engine_build(ENGINE).spark_home


@pytest.fixture
def release(tmp_path: Path, wheel: Path) -> Path:
    """The home of a Spark as Apache releases it; it has the archives only."""
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / "lib").symlink_to(wheel / "python" / "lib")
    return tmp_path


@pytest.mark.parametrize("job", JOBS)
def test_every_job_with_a_wheel(wheel: Path, job: str) -> None:
    assert imported(wheel, job) == wheel


def test_a_release_of_apache(release: Path, wheel: Path) -> None:
    (release / "python" / "pyspark").symlink_to(wheel)
    assert imported(release) == release / "python" / "pyspark"


def test_a_build_that_has_the_archive_only(release: Path) -> None:
    assert imported(release) == release / "python" / "lib" / "pyspark.zip" / "pyspark"
