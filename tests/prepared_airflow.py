"""The Airflow database that the homes of tests begin with: each would migrate its own otherwise."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nexmark.airflow_site.airflow_home import airflow_environment, prepare, prepared_mark
from nexmark.config import load, paths
from nexmark_jobs.host.leases import locked

_MAKING_S = 600


def share_prepared_airflow(home: Path) -> None:
    """Let a home begin with the database of `make run`'s home for tests; it is made if need be."""
    shared = paths.home() / "prepared-airflow"
    shared.mkdir(parents=True, exist_ok=True)
    with locked(shared / ".lock", _MAKING_S):
        database, _ = _prepared(shared, make=True)
    own, mark = _prepared(home, make=False)
    own.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    shutil.copyfile(database, own)
    mark.touch()


def _prepared(home: Path, *, make: bool) -> tuple[Path, Path]:
    """The database of a home, and the file that says that it is prepared."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEXMARK_HOME", str(home))
        patch.delenv("NEXMARK_AIRFLOW_DB", raising=False)
        environment = airflow_environment(load())
        if make:
            prepare(environment)
        return home / "airflow" / "airflow.db", prepared_mark(environment)
