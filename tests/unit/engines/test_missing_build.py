"""A date without a build: `make run` says so at once (a night of Airflow: tests/story)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from nexmark.config import paths

ENGINE = "spark-next"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a home in which an engine has no build of any date."""
    directory = tmp_path_factory.mktemp("missing")
    conf, home = directory / "conf", directory / "home"
    shutil.copytree(paths.repository() / "include" / "conf", conf)
    template = f"{directory}/spark-{{{{ ds_nodash }}}}.tgz"
    engine = {
        "build": {"pypi": "4.3.0"},
        "snapshots": {"tarball": template, "sha512": f"{template}.sha512"},
        "workload": "smoke",
        "schedule": "0 22 * * *",
    }
    (conf / "engines.yaml").write_text(yaml.safe_dump({"engines": {ENGINE: engine}}))
    return {**os.environ, "NEXMARK_HOME": str(home), "NEXMARK_CONF": str(conf)}


@pytest.mark.parametrize("date", ["2026-11-03", "2026-11-31", "2999-01-01"])
def test_the_command_says_so_at_once(environment: dict[str, str], date: str) -> None:
    command = [sys.executable, "-m", "nexmark.cli", "run", "--engine", ENGINE, "--date", date]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    no_date = "nexmark run: Invalid value: --date: '2026-11-31' is not a date; write it like"
    expected = {
        "2026-11-03": (0, "no build for 2026-11-03: "),
        "2026-11-31": (2, no_date),
        "2999-01-01": (2, "date: 2999-01-01 is in the future (UTC)"),
    }
    code, says = expected[date]
    assert run.returncode == code
    assert (run.stdout + run.stderr).startswith(says)
    assert (run.stdout + run.stderr).count("\n") == 1
    assert not Path(environment["NEXMARK_HOME"]).exists()
