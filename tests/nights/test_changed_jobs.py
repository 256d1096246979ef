"""A slower version of a job over own files and of an application, in pairs, by Airflow.

Each row is put through a loop of its own, so the rows stay as they are and the tasks take longer.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from nexmark.model import FIRST_ROUND
from tests.nights.files_job import JOB
from tests.nights.test_nights import Night
from tests.site import Site, run_name

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.extended]

PAIRS = 3
ROUNDS = {"rounds": [PAIRS, PAIRS], "pursue_z": [1.0]}
APPLICATION = "orders"
#: By file, what the change puts in place of what.
SLOWER = {
    f"{JOB}.py": ("plus_one(amount)", "plus_one(amount) + {loop}"),
    "orders.py": ('where("amount > 50")', 'where("amount > 50").where("{loop} = 0")'),
}
LOOP = "size(filter(sequence(1, 200000 + CAST(amount AS INT)), number -> number < 0))"


@pytest.fixture(scope="module")
def changed(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of all jobs, two of them slower."""
    directory = tmp_path_factory.mktemp("changed") / "jobs"
    shutil.copytree(site.conf / "jobs", directory)
    for name, (old, new) in SLOWER.items():
        text = (directory / name).read_text()
        assert old in text
        (directory / name).write_text(text.replace(old, new.format(loop=LOOP)))
    return directory


@pytest.fixture(scope="module")
def slower(site: Site, changed: Path) -> Night:
    site.gate(mode="paired", comparison=ROUNDS, self_test=0, flame_graphs=False)
    night = site.night("--candidate-job", str(changed), "--no-compatibility")
    site.gate(max_ratio=1.25)
    return night


@pytest.mark.parametrize("job", [JOB, APPLICATION])
def test_the_slower_version_turns_the_night_red(site: Site, slower: Night, job: str) -> None:
    assert slower.returncode == 1, slower.stdout + slower.stderr
    with site.store() as store:
        (verdict,) = (
            each for each in store.verdicts(run_name(slower)) if each.decides and each.query == job
        )
    assert verdict.value == "REGRESSION", slower.stdout
    assert 1.1 < verdict.lo < verdict.ratio < verdict.hi
    assert (verdict.pairs, verdict.fresh_pairs) == (PAIRS, PAIRS)


def test_the_change_of_the_job_is_named(slower: Night) -> None:
    assert re.search(rf"Since: .*the change of the job {JOB}", slower.stdout), slower.stdout


def test_both_versions_put_out_the_same_rows(site: Site, slower: Night) -> None:
    with site.store() as store:
        rows = store.repetitions(run_name(slower))
    assert {row.query for row in rows} == {JOB, APPLICATION}  # other copies are left out
    assert {row.status for row in rows} == {"ok"}
    for job in (JOB, APPLICATION):
        of_job = [row for row in rows if row.query == job]
        assert len({row.digest for row in of_job}) == 1
        assert len({(row.arm, row.formulation) for row in of_job}) == 2
        assert {row.stage for row in of_job} == {FIRST_ROUND, 2}


def test_nothing_is_left_of_either_version(site: Site, slower: Night) -> None:
    assert site.leftovers() == []
