"""The home of the example nights, made once for all processes of a test run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nexmark.example.example_home import enter_example_home
from nexmark_jobs.host.leases import locked

TIMEOUT_S = 300
SITE = "site"


@contextmanager
def example_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Enter the home of the example until the end of the block; its site is beside it.

    Nobody may change them.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    own = shared / "example-of-all-tests"
    own.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEXMARK_HOME", str(own))
        patch.setenv("NEXMARK_DB", f"sqlite:///{own / 'mine.db'}")
        patch.setenv("NEXMARK_AIRFLOW_DB", f"sqlite:///{own / 'mine.db'}")
        with locked(shared / "example.lock", TIMEOUT_S):
            home = enter_example_home(print)
            if not (own / SITE).exists():
                command = [sys.executable, "-m", "nexmark.cli", "site", "--out", str(own / SITE)]
                subprocess.run(command, check=True, timeout=TIMEOUT_S)
        yield home
