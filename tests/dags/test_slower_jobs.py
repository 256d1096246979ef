"""One night in pairs in which a job of each kind is slower: each is red, and says what changed."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator

import pytest

from nexmark.engines import Build
from nexmark.jobs.job_template import write_new
from tests.nights.files_job import JOB, write_job
from tests.nights.orders_job import write_jobs
from tests.nights.slower_jobs import APPLICATION, SLOWER, SQL, write_slower
from tests.site import ENGINE, Site, make_site, run_name

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.extended]

PAIRS = 3


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, engine_build: Callable[[str], Build]
) -> Iterator[Site]:
    directory, build = tmp_path_factory.mktemp("slower"), engine_build(ENGINE)
    made = make_site(directory / "home", directory / "conf", build)
    made.gate_in_one_round(PAIRS)
    write_jobs(made.conf, directory / "orders", build, "secret")
    write_job(made.conf, directory / "spending")
    write_new(SQL, made.conf)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def slower(site: Site) -> subprocess.CompletedProcess[str]:
    changed = write_slower(site.conf / "jobs", site.home.parent / "changed", *SLOWER)
    return site.night("--candidate-job", str(changed))


@pytest.mark.parametrize("job", [SQL, APPLICATION, JOB])
def test_a_slower_job_of_each_kind_is_red_with_the_change_named(
    site: Site, slower: subprocess.CompletedProcess[str], job: str
) -> None:
    assert slower.returncode == 1, slower.stdout + slower.stderr
    with site.store() as store:
        run = run_name(slower)
        verdicts = {each.query: each for each in store.verdicts(run) if each.decides}
        rows = [row for row in store.repetitions(run) if row.query == job]
    verdict = verdicts[job]
    assert verdict.red, slower.stdout
    assert 1.1 < verdict.lo < verdict.ratio < verdict.hi
    assert {row.status for row in rows} == {"ok"}
    assert len({row.digest for row in rows}) == 1  # both versions put out the same rows
    assert len({(row.arm, row.formulation) for row in rows}) == 2
    assert re.search(rf"Since: the changes of the jobs .*{job}", slower.stdout), slower.stdout


def test_a_running_job_of_each_kind_survives_the_change(
    site: Site, slower: subprocess.CompletedProcess[str]
) -> None:
    """Pairs, digests, plans and state are in one verdict."""
    with site.store() as store:
        rows = {row.query: row for row in store.compatibility(run_name(slower))}
    assert rows.keys() == {SQL, APPLICATION, JOB}
    for row in rows.values():
        assert (row.outcome, row.red) == ("plan changed, state compatible", False), row.reason
        assert (row.forward, row.backward) == ("right", "right")


def test_nothing_is_left_of_either_version(
    site: Site, slower: subprocess.CompletedProcess[str]
) -> None:
    assert site.leftovers() == []
