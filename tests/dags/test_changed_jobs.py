"""Slower versions of the kinds of jobs of one's own, in pairs, by Airflow.

They are SQL over the events of Nexmark, an application, and Python over files, each in a night of
its own, in two rounds and with flame graphs. CI has all three in one night, in one round:
test_slower_jobs.py.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nexmark.engines import Build
from nexmark.flames.flame_files import flames_of
from nexmark.jobs.job_template import write_new
from nexmark.model import FIRST_ROUND, PROFILED
from nexmark.night.run_directory import RunDirectory
from tests.nights.files_job import JOB, write_job
from tests.nights.orders_job import write_jobs
from tests.nights.slower_jobs import APPLICATION, SQL, write_slower
from tests.site import ENGINE, Site, make_site, run_name

pytestmark = [pytest.mark.spark, pytest.mark.long]

Night = subprocess.CompletedProcess[str]

PAIRS, MORE_PAIRS = 3, 4
ROUNDS = {"rounds": [PAIRS, MORE_PAIRS], "pursue_z": [1.0]}
#: CI has the first two where its time allows.
KINDS = [
    pytest.param(SQL, id="sql", marks=pytest.mark.spare),
    pytest.param(APPLICATION, id="application", marks=pytest.mark.spare),
    pytest.param(JOB, id="files"),
]


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, engine_build: Callable[[str], Build]
) -> Iterator[Site]:
    directory, build = tmp_path_factory.mktemp("pairs"), engine_build(ENGINE)
    made = make_site(directory / "home", directory / "conf", build)
    made.gate(mode="paired", comparison=ROUNDS, self_test=0)
    write_jobs(made.conf, directory / "orders", build, "secret")
    write_job(made.conf, directory / "spending")
    write_new(SQL, made.conf)
    yield made
    made.stop()


@pytest.fixture(scope="module", params=KINDS)
def job(request: pytest.FixtureRequest) -> str:
    """The job that is slower."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def changed(site: Site, job: str) -> Path:
    """A copy of all jobs, one of them slower."""
    return write_slower(site.conf / "jobs", site.home.parent / f"changed-{job}", job)


@pytest.fixture(scope="module")
def slower(site: Site, changed: Path, job: str) -> Night:
    """The night; of the job over files it does not ask all that a person asks of a change."""
    without = ["--no-compatibility"] if job == JOB else []
    return site.night("--candidate-job", str(changed), *without)


def test_the_slower_version_turns_the_night_red(site: Site, slower: Night, job: str) -> None:
    assert slower.returncode == 1, slower.stdout + slower.stderr
    with site.store() as store:
        verdicts = {each.query: each for each in store.verdicts(run_name(slower)) if each.decides}
    verdict = verdicts[job]
    assert verdict.value == "REGRESSION", slower.stdout
    assert 1.1 < verdict.lo < verdict.ratio < verdict.hi
    assert (verdict.pairs, verdict.fresh_pairs) == (PAIRS, MORE_PAIRS)


def test_the_change_of_the_job_is_named_and_no_conf(slower: Night, job: str) -> None:
    assert re.search(rf"Since: the change of the job {job} \(", slower.stdout)
    if job == JOB:
        assert re.search(rf"Why {JOB}: slower, same operators: of \+", slower.stdout)
    if job == SQL:
        assert re.search(rf"Why {SQL}: slower, plan changed: plan \+Project[.;]", slower.stdout)


def test_both_versions_put_out_the_same_rows(site: Site, slower: Night, job: str) -> None:
    with site.store() as store:
        rows = store.repetitions(run_name(slower))
    assert {row.query for row in rows} == {job}  # other copies are left out
    assert {row.status for row in rows} == {"ok"}
    assert len({row.digest for row in rows}) == 1
    assert len({(row.arm, row.formulation) for row in rows}) == 2
    assert {row.stage for row in rows} == {FIRST_ROUND, 2, PROFILED}


def test_the_running_job_goes_on_with_its_change(slower: Night, job: str) -> None:
    """Pairs, digests, plan and state are in one verdict."""
    if job != JOB:
        asked = "Running queries, from the baseline to the candidate and back: "
        assert f"{asked}1 plan changed, state compatible." in slower.stdout
    else:
        assert "Running queries" not in slower.stdout


def test_the_alarm_has_its_evidence_with_flame_graphs(site: Site, slower: Night, job: str) -> None:
    with site.store() as store:
        night = store.night(run_name(slower))
    flames = flames_of(RunDirectory(Path(night.directory)).flames, job)
    assert flames is not None
    assert flames.problem is None
    assert all(path.is_file() for path in flames.files.values())
    page = (Path(night.directory) / "report" / "alarms" / job / "evidence.html").read_text()
    assert "data:image/svg+xml;base64," in page
    assert "--candidate-job" in page


def test_arms_take_turns_within_each_pair(site: Site, slower: Night) -> None:
    """By when they ran: a pair is done before the next begins."""
    with site.store() as store:
        all_rows = store.repetitions(run_name(slower))
    rows = [row for row in all_rows if row.stage == FIRST_ROUND]
    rows.sort(key=lambda row: row.start)
    assert [row.number for row in rows] == [1, 1, 2, 2, 3, 3]
    assert [row.position for row in rows] == list(range(1, len(rows) + 1))
    assert {row.arm for row in rows[:2]} == {"candidate", "baseline"}


def test_the_host_is_graded(site: Site, slower: Night, job: str) -> None:
    with site.store() as store:
        run = run_name(slower)
        assert store.night(run).grade in ("steady", "unsteady")  # a busy disk is the latter
        readings = store.canaries(run)
    assert {(row.group, row.moment) for row in readings} >= {(job, "before"), (job, "after")}
    assert {"cpu_s", "cpu_memory_s"} <= {row.metric for row in readings}


def test_nothing_is_left_of_either_version(site: Site, slower: Night) -> None:
    assert site.leftovers() == []
    assert not (site.home / "clusters" / "local-baseline" / "lease.json").exists()
