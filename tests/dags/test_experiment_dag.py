"""The DAG of experiments through Airflow: each arm a task, then a table, and rows in the store."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nexmark.airflow_site.airflow_home import airflow_command, airflow_environment, prepare
from nexmark.config import load
from nexmark.engines import Build
from nexmark.evidence.experiment_evidence import experiments_of
from nexmark_jobs.host.processes import marked
from tests.experiments.test_experiment_verb import ENTRY
from tests.site import ENGINE, NIGHT_TIMEOUT_S, make_site

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_an_experiment_is_measured_compared_and_recorded(
    tmp_path: Path, engine_build: Callable[[str], Build], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = make_site(tmp_path / "home", tmp_path / "conf", engine_build(ENGINE))
    (site.conf / "experiments.yaml").write_text(ENTRY)
    for name in ("NEXMARK_HOME", "NEXMARK_CONF"):
        monkeypatch.setenv(name, site.environment[name])
    environment = airflow_environment(load())
    prepare(environment)
    conf = json.dumps({"name": "tiny", "pairs": 1})
    ran = subprocess.run(
        airflow_command(["dags", "test", "nexmark_experiment", "-c", conf]),
        env=environment,
        capture_output=True,
        text=True,
        timeout=NIGHT_TIMEOUT_S,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    with site.store() as store:
        (found,) = experiments_of(store)
    assert [(arm.arm, arm.outcome) for arm in found.arms] == [
        ("union", "right"),
        ("explode", "right"),
    ]
    assert found.arms[1].saves is not None
    (page,) = site.home.glob("runs/nexmark_experiment/*/experiment.html")
    assert "All arms have equal results." in page.read_text()
    assert not list(page.parent.glob("applications/events-*"))
    assert marked(str(site.home)) == {}
