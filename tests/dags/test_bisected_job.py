"""A job of each kind of a person's own, slower since a commit that is found by a night in pairs.

Here the slower commit follows the good one; tests/story has a longer search, by a scheduler.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from nexmark.engines import Build
from nexmark.jobs.job_template import write_new
from tests.nights.files_job import JOB, write_job
from tests.nights.orders_job import write_jobs
from tests.nights.slower_jobs import APPLICATION, SQL
from tests.site import ENGINE, NIGHT_TIMEOUT_S, Site, make_site
from tests.slower_commits import BUILD_COMMAND, assert_found, slower_commits

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.extended]

#: Three pairs left one search undecided, which ran beside other tests.
PAIRS = 5


class Search(NamedTuple):
    """A search for the commit since which a job is slower."""

    job: str
    printed: str


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, engine_build: Callable[[str], Build]
) -> Iterator[Site]:
    directory, build = tmp_path_factory.mktemp("bisected"), engine_build(ENGINE)
    made = make_site(directory / "home", directory / "conf", build, interpreted=True)
    made.gate_in_one_round(PAIRS)
    write_jobs(made.conf, directory / "orders", build, "secret")  # with the JAR of the job
    write_job(made.conf, directory / "spending")
    write_new(SQL, made.conf)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def commits(site: Site, engine_build: Callable[[str], Build]) -> list[str]:
    return slower_commits(site.home.parent / "clone", engine_build(ENGINE))


@pytest.fixture(scope="module", params=[SQL, JOB, APPLICATION])
def search(site: Site, commits: list[str], request: pytest.FixtureRequest) -> Search:
    command = [sys.executable, "-m", "nexmark.cli", "bisect", "--query", request.param]
    command += ["--repo", str(site.home.parent / "clone"), "--build-command", BUILD_COMMAND]
    command += ["--good", commits[0], "--bad", commits[1]]
    command += ["--workload", "tiny", "--cluster", "local", "--repetitions", str(PAIRS)]
    run = subprocess.run(
        command, env=site.environment, capture_output=True, text=True, timeout=NIGHT_TIMEOUT_S
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return Search(request.param, run.stdout)


def test_the_first_slower_commit_is_found(search: Search, commits: list[str]) -> None:
    assert_found(search.printed, commits, search.job)


def test_the_night_compared_the_commit_with_the_good_one_in_pairs(
    site: Site, search: Search, commits: list[str]
) -> None:
    with site.store() as store:
        verdicts = {
            night: verdict
            for night in store.nights()
            for verdict in store.verdicts(night.id)
            if verdict.query == search.job and verdict.decides
        }
        ((night, verdict),) = verdicts.items()
        assert store.build(night.build_id).source.endswith(f"/{commits[1]}")
        rows = store.repetitions(night.id)
    assert verdict.red
    assert {row.query for row in rows} == {search.job}
    assert {row.status for row in rows} == {"ok"}
    arms = [row.arm for row in rows if row.counts]
    assert sorted(arms) == ["baseline"] * PAIRS + ["candidate"] * PAIRS


def test_nothing_is_left_of_any_build(site: Site, search: Search) -> None:
    assert site.leftovers() == []
