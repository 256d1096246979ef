"""`nexmark job check` runs a new job as it is, and says what it is and whether it is right."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.site import ENGINE, Site

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_new_job_runs_and_is_right(site: Site) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "nexmark.cli", "job", "check", "mine"],
        env=site.environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    said = made.stdout.splitlines()
    assert said[0].startswith(f"mine on {ENGINE}, Spark ")
    assert said[1] == (
        "columns: auction BIGINT, window_start TIMESTAMP, bids BIGINT, highest BIGINT"
    )
    assert any(line.startswith("keeps state: stateStoreSave") for line in said)
    assert said[-1].startswith("right: ")
    assert said[-1].endswith("rows equal the reference; two runs agree")
    assert not (site.home / "job-check" / "mine").exists()
