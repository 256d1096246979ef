"""The first bad one of three builds is found by nights that a running scheduler runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nexmark.airflow_site.api import TOKEN
from nexmark.engines import Build
from nexmark.store import open_store
from tests.airflow_site import Airflow
from tests.site import ENGINE, NIGHT_TIMEOUT_S, Site

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

PAIRS = 3
SUBMIT = "org.apache.spark.deploy.SparkSubmit"


@pytest.fixture(scope="module")
def builds(site: Site, engine_build: Callable[[str], Build]) -> list[str]:
    """A build, and two later ones whose executors run without the compiler."""
    good = engine_build(ENGINE).spark_home
    return [str(good), *(str(slowed(good, site.home.parent / name)) for name in ("b", "c"))]


def slowed(build: Path, copy: Path) -> Path:
    shutil.copytree(build, copy, copy_function=_linked)
    program = copy / "bin" / "spark-submit"
    text = program.read_text()
    assert text.count(SUBMIT) == 1
    program.unlink()  # or the one of the build it is linked with would be changed too
    conf = "spark.executor.extraJavaOptions=-Xint"
    program.write_text(text.replace(SUBMIT, f"{SUBMIT} --conf {conf}"))
    program.chmod(0o755)
    (copy / "NAME").write_text(copy.name)
    return copy


def _linked(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)
    return target


@pytest.fixture(scope="module")
def search(airflow: Airflow, site: Site, builds: list[str], results: str) -> str:
    """What `nexmark bisect` printed."""
    good, between, bad = (f"directory:{build}" for build in builds)
    command = [sys.executable, "-m", "nexmark.cli", "bisect", "--query", "q0", "--engine", ENGINE]
    command += ["--good", good, "--builds", between, "--bad", bad]
    command += ["--workload", "tiny", "--cluster", "local", "--repetitions", str(PAIRS)]
    command += ["--airflow", f"http://127.0.0.1:{airflow.port}"]
    run = subprocess.run(
        command,
        env={**site.environment, "NEXMARK_DB": results, TOKEN: airflow.token},
        capture_output=True,
        text=True,
        timeout=3 * NIGHT_TIMEOUT_S,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_the_first_bad_build_is_found(search: str, builds: list[str]) -> None:
    print(search)
    last = search.splitlines()[-1]
    assert last.startswith(f"first bad build: directory:{builds[1]}, with 9")
    assert "q0 is " in last
    assert "slower" in last


def test_its_nights_are_those_of_the_scheduler(
    airflow: Airflow, site: Site, results: str, search: str, builds: list[str]
) -> None:
    with open_store(results) as store:
        nights = [x for x in store.nights() if x.dag_id == "nexmark_build"]
        sources = {store.build(night.build_id).source for night in nights}
        assert sources == {f"directory:{build}" for build in builds[1:]}
        for night in nights:
            assert airflow.state("nexmark_build", night.run_id) == "failed"  # it is slower
            arms = [x.arm for x in store.repetitions(night.id) if x.ok]
            assert sorted(arms) == ["baseline"] * PAIRS + ["candidate"] * PAIRS
    assert site.leftovers() == []
