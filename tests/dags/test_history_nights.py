"""Nights of history mode through real Airflow and real Spark: one arm, against its own past.

The past is made of the figures of the first real night and judged by the shipped code; then a night
of the same build and one with 32 shuffle partitions, which q5 pays for, are really measured.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator

import pytest

from nexmark.config import CANDIDATE
from nexmark.engines import Build
from nexmark.store.models import VerdictRow
from tests.dags.earlier_nights import make_past
from tests.site import ENGINE, Site, make_site, run_name

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

REPETITIONS, NIGHTS = 3, 4
GATE = {
    "mode": "history",
    "pairs": REPETITIONS,
    "calibration_nights": NIGHTS,
    # Other load is what one arm cannot be told from: only gross changes count here.
    "one_arm_z": 6.0,
}


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, engine_build: Callable[[str], Build]
) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("history")
    # Too seldom sampled for a steady state: every repetition is measured as a whole.
    build = engine_build(ENGINE)
    made = make_site(directory / "home", directory / "conf", build, sampling_interval_s=1)
    made.gate(**GATE)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def first(site: Site) -> subprocess.CompletedProcess[str]:
    return site.night("--queries", "q5", "--repetitions", str(REPETITIONS))


@pytest.fixture(scope="module")
def past(site: Site, first: subprocess.CompletedProcess[str]) -> None:
    with site.store() as store:
        make_past(store, run_name(first), NIGHTS, [CANDIDATE], site.gate(**GATE))


@pytest.fixture(scope="module")
def same(site: Site, past: None) -> subprocess.CompletedProcess[str]:
    return site.night("--queries", "q5", "--repetitions", str(REPETITIONS))


@pytest.fixture(scope="module")
def slower(site: Site, same: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    conf = ("--candidate-conf", "spark.sql.shuffle.partitions=32")
    return site.night("--queries", "q5", "--repetitions", str(REPETITIONS), *conf)


def deciding(site: Site, night: subprocess.CompletedProcess[str]) -> VerdictRow:
    """The verdict on q5 that decides."""
    with site.store() as store:
        (found,) = (row for row in store.verdicts(run_name(night)) if row.decides)
    return found


def test_the_first_night_says_how_many_more_it_needs(
    site: Site, first: subprocess.CompletedProcess[str]
) -> None:
    assert first.returncode == 0, first.stdout + first.stderr
    verdict = deciding(site, first)
    assert (verdict.value, verdict.mode) == ("CALIBRATING", "history")
    assert verdict.reason == f"0 of {NIGHTS} nights to compare with"


def test_the_same_build_is_green_by_one_arm_relative_to_the_canary(
    site: Site, same: subprocess.CompletedProcess[str]
) -> None:
    assert same.returncode == 0, same.stdout + same.stderr
    verdict = deciding(site, same)
    assert (verdict.value, verdict.mode, verdict.pairs) == ("OK", "history", REPETITIONS)
    assert verdict.lo < verdict.ratio < verdict.hi
    assert verdict.mde > 0
    assert "relative to the canary" in verdict.reason
    with site.store() as store:
        assert {row.arm for row in store.repetitions(run_name(same))} == {CANDIDATE}


def test_a_slower_candidate_turns_the_night_red_with_its_size(
    site: Site, slower: subprocess.CompletedProcess[str]
) -> None:
    assert slower.returncode == 1, slower.stdout + slower.stderr
    verdict = deciding(site, slower)
    assert verdict.value == "REGRESSION"
    assert 1.5 < verdict.lo < verdict.ratio < verdict.hi
    assert re.search(r"slower: \d\.\d+ of the last \d+ nights", verdict.reason)
    assert "queries fail the night: q5 REGRESSION" in slower.stdout
    assert site.leftovers() == []
