"""A soak night through real Airflow and real Spark: what grows in the candidate turns it red.

Spark's own list of past executions is the leak: the candidate keeps them all.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator

import pytest

from nexmark.engines import Build
from tests.site import ENGINE, Site, make_site, run_name

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.extended]

ROWS, BATCHES = 20, 150
LEAK = ("spark.sql.ui.retainedExecutions=100000", "spark.ui.retainedJobs=100000")


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, engine_build: Callable[[str], Build]
) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("soak")
    soak = {"kind": "soak", "soak": {"samples": 10}, "conf_profile": "soak"}
    size = {"events": ROWS * BATCHES, "rows_per_batch": ROWS, "warmup_batches": 60}
    build = engine_build(ENGINE)
    made = make_site(directory / "home", directory / "conf", build, repetitions=1, **soak, **size)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def leaking(site: Site, engine_build: Callable[[str], Build]) -> subprocess.CompletedProcess[str]:
    same = f"directory:{engine_build(ENGINE).spark_home}"
    confs = (word for conf in LEAK for word in ("--candidate-conf", conf))
    return site.night("--queries", "q0", "--against", same, *confs)


def test_what_grows_in_the_candidate_alone_turns_the_night_red(
    site: Site, leaking: subprocess.CompletedProcess[str]
) -> None:
    assert leaking.returncode == 1, leaking.stdout + leaking.stderr
    with site.store() as store:
        run = run_name(leaking)
        (verdict,) = (each for each in store.verdicts(run) if each.red)
        rows = store.repetitions(run)
    assert (verdict.query, verdict.value) == ("q0", "REGRESSION")
    assert verdict.reason.startswith("grows in 2 pairs: live heap of the driver +")
    assert sorted((row.arm, row.stage) for row in rows) == [
        ("baseline", 1),
        ("baseline", 2),
        ("candidate", 1),
        ("candidate", 2),
    ]
    assert {row.status for row in rows} == {"ok"}
    assert {row.batches for row in rows} == {BATCHES}


def test_each_sample_is_said_while_it_runs(leaking: subprocess.CompletedProcess[str]) -> None:
    assert "after batch 75: driver " in leaking.stdout


def test_nothing_is_left_of_it(site: Site, leaking: subprocess.CompletedProcess[str]) -> None:
    assert site.leftovers() == []
