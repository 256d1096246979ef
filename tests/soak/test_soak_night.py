"""A soak night through real Airflow and real Spark: what grows in the candidate turns it red.

The candidate is a changed version of a job of a person's own, whose listener and batches leak; in
another night, a build whose UI keeps all past work.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator

import pytest

from nexmark.engines import Build
from tests.site import ENGINE, Site, make_site, run_name
from tests.soak.leaking_job import GROWS, JOB, assert_names, write_leaking, write_steady

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.extended]

ROWS, BATCHES = 20, 100


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, engine_build: Callable[[str], Build]
) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("soak")
    soak = {"kind": "soak", "soak": {"samples": 10}, "conf_profile": "soak"}
    size = {"events": ROWS * BATCHES, "rows_per_batch": ROWS, "warmup_batches": 40}
    build = engine_build(ENGINE)
    made = make_site(directory / "home", directory / "conf", build, repetitions=1, **soak, **size)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def leaking(site: Site) -> subprocess.CompletedProcess[str]:
    write_steady(site.conf / "jobs")
    changed = site.home.parent / "changed"
    write_leaking(changed)
    return site.night("--candidate-job", str(changed))


def test_what_grows_in_the_candidate_alone_turns_the_night_red(
    site: Site, leaking: subprocess.CompletedProcess[str]
) -> None:
    assert leaking.returncode == 1, leaking.stdout + leaking.stderr
    with site.store() as store:
        run = run_name(leaking)
        (verdict,) = (each for each in store.verdicts(run) if each.red)
        rows = store.repetitions(run)
    assert (verdict.query, verdict.value) == (JOB, "REGRESSION")
    assert_names(verdict.reason, GROWS)
    assert sorted((row.arm, row.stage) for row in rows) == [
        ("baseline", 1),
        ("baseline", 2),
        ("candidate", 1),
        ("candidate", 2),
    ]
    assert {row.status for row in rows} == {"ok"}
    (batches,) = {row.batches for row in rows}
    assert batches is not None
    assert batches >= BATCHES  # the end of the input closes the windows in some more


def test_each_sample_is_said_while_it_runs(leaking: subprocess.CompletedProcess[str]) -> None:
    assert re.search(r"^after batch 5\d: driver ", leaking.stdout, re.MULTILINE)


@pytest.fixture(scope="module")
def retaining(site: Site, engine_build: Callable[[str], Build]) -> subprocess.CompletedProcess[str]:
    """A night of one build, in which confs of the candidate raise what its UI keeps."""
    confs = (
        f"{name}=100000" for name in ("spark.sql.ui.retainedExecutions", "spark.ui.retainedJobs")
    )
    words = (word for conf in confs for word in ("--candidate-conf", conf))
    against = f"directory:{engine_build(ENGINE).spark_home}"
    return site.night("--queries", "q0", "--mode", "paired", "--against", against, *words)


def test_a_conf_that_keeps_all_past_work_is_red_by_the_heap_of_the_driver(
    site: Site, retaining: subprocess.CompletedProcess[str]
) -> None:
    assert retaining.returncode == 1, retaining.stdout + retaining.stderr
    with site.store() as store:
        (verdict,) = (each for each in store.verdicts(run_name(retaining)) if each.red)
    assert (verdict.query, verdict.value) == ("q0", "REGRESSION")
    assert "live heap of the driver +" in verdict.reason


def test_nothing_is_left_of_it(site: Site, retaining: subprocess.CompletedProcess[str]) -> None:
    assert site.leftovers() == []
