"""The DAG `nexmark_prune` through Airflow: it deletes what is old, and nothing in a dry run."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from nexmark.airflow_site.airflow_home import airflow_command, airflow_environment, prepare
from nexmark.config import load, paths
from nexmark.store import open_store
from tests.prepared_airflow import share_prepared_airflow
from tests.unit.retention.test_pruning import kept, night

_KEPT = 10
_TIMEOUT_S = 300


def test_airflow_prunes_what_is_old_and_nothing_in_a_dry_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = tmp_path / "conf"
    shutil.copytree(paths.conf_dir(), conf)
    share_prepared_airflow(tmp_path / "home")
    (conf / "retention.yaml").write_text(f"retention:\n  run_nights: {_KEPT}\n")
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NEXMARK_CONF", str(conf))
    monkeypatch.delenv("NEXMARK_DB", raising=False)
    environment = airflow_environment(load())
    prepare(environment)
    with open_store(paths.database_url()) as store:
        runs = [night(store, days) for days in range(10, 11 + _KEPT)]

    def run_dag(params: dict[str, bool]) -> str:
        ran = subprocess.run(
            airflow_command(["dags", "test", "nexmark_prune", "-c", json.dumps(params)]),
            env=environment,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
        )
        assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
        return ran.stdout + ran.stderr

    assert "why they stay" in run_dag({"dry_run": True})
    assert all(kept(runs))
    assert "why they stay" in run_dag({"dry_run": False})
    assert kept(runs) == [True] * _KEPT + [False]
