"""Nights of pairs through real Airflow and real Spark: both arms, rounds, the self-test.

After the first real night, nights of the past are made of its figures and judged by the shipped
code: they are what the gate has learned. What is judged then is real: a night of the
build against itself, and one in which the candidate alone has 8 shuffle partitions, which q5 pays
for. CI's night of pairs is in test_changed_jobs.py.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nexmark.engines import Build
from nexmark.flames.flame_files import flames_of
from nexmark.model import FIRST_ROUND, PROFILED
from nexmark.night.run_directory import RunDirectory
from nexmark.store import Store
from nexmark.verdict.verdict import Verdict
from tests.dags.earlier_nights import make_past
from tests.site import ENGINE, Site, make_site, run_name

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

PAIRS, MORE_PAIRS, NIGHTS = 3, 4, 4
ARMS = ("candidate", "baseline", "control", "slowed")
ROUNDS = {"rounds": [PAIRS, MORE_PAIRS], "pursue_z": [1.0]}
GATE = {
    "mode": "paired",
    **ROUNDS,
    "comparison": ROUNDS,
}


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, engine_build: Callable[[str], Build]
) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("pairs")
    made = make_site(directory / "home", directory / "conf", engine_build(ENGINE), interpreted=True)
    made.gate(**GATE)
    yield made
    made.stop()


def deciding(store: Store, run: str) -> Verdict:
    """The verdict on q5 that decides."""
    (found,) = (row for row in store.verdicts(run) if row.decides and row.query == "q5")
    return found


@pytest.fixture(scope="module")
def first(site: Site) -> subprocess.CompletedProcess[str]:
    return site.night("--queries", "q5")


@pytest.fixture(scope="module")
def past(site: Site, first: subprocess.CompletedProcess[str]) -> None:
    """The first night is accepted, and nights before it have taught the gate the noise."""
    with site.store() as store:
        store.accept(run_name(first), "ada", "the first night")
        make_past(store, run_name(first), NIGHTS, site.gate(**GATE))


@pytest.fixture(scope="module")
def same(site: Site, past: None) -> subprocess.CompletedProcess[str]:
    return site.night("--queries", "q5")


@pytest.fixture(scope="module")
def slower(site: Site, past: None) -> subprocess.CompletedProcess[str]:
    """Without the gate's test of itself, which the night against itself has."""
    site.gate(**GATE, self_test=0)
    conf = "spark.sql.shuffle.partitions=8"
    made = site.night("--queries", "q5", "--candidate-conf", conf)
    site.gate(**GATE)
    return made


def test_the_first_night_has_nothing_to_compare_with_and_says_so(
    first: subprocess.CompletedProcess[str],
) -> None:
    assert first.returncode == 0, first.stdout + first.stderr
    assert "compared in pairs with nothing, for there is no accepted build: q5" in first.stdout
    assert re.search(r"q5 .* NO BASELINE", first.stdout)


def test_a_build_against_itself_is_green_and_says_that_it_is(
    site: Site, same: subprocess.CompletedProcess[str]
) -> None:
    assert same.returncode == 0, same.stdout + same.stderr
    assert "a night A against A" in same.stdout
    with site.store() as store:
        run = run_name(same)
        verdict = deciding(store, run)
        assert verdict.value in ("OK", "UNDECIDED")
        assert (verdict.mode, verdict.pairs) == ("paired", PAIRS)
        assert verdict.lo < verdict.ratio < verdict.hi
        assert verdict.mde > 0
        rows = store.repetitions(run)
        arms = {arm: sum(row.arm == arm and row.stage == 1 for row in rows) for arm in ARMS}
        assert arms == dict.fromkeys(ARMS, PAIRS)
        assert {row.status for row in rows} == {"ok"}
        tests = {row.kind: row for row in store.self_tests(ENGINE) if row.night_id == run}
    assert set(tests) == {"aa", "slowdown"}
    assert tests["slowdown"].size == pytest.approx(1.2)
    assert "Gate: self-test: " in same.stdout


def test_a_slower_candidate_turns_the_night_red_with_its_size_and_interval(
    site: Site, slower: subprocess.CompletedProcess[str]
) -> None:
    assert slower.returncode == 1, slower.stdout + slower.stderr
    assert "q5: goes on to round 2 (candidate)" in slower.stdout, slower.stdout
    assert re.search(r"q5: \d\.\d{3} \(\d\.\d{3} to \d\.\d{3}\) after 2 pairs", slower.stdout)
    with site.store() as store:
        run = run_name(slower)
        verdict = deciding(store, run)
        assert verdict.value == "REGRESSION", slower.stdout
        assert 1.1 < verdict.lo < verdict.ratio < verdict.hi
        assert (verdict.pairs, verdict.fresh_pairs) == (PAIRS, MORE_PAIRS)
        stages = {row.stage for row in store.repetitions(run)}
        assert stages == {FIRST_ROUND, 2, PROFILED}
    assert "verdict: failed: 1 of 1 queries fail the night: q5 REGRESSION" in slower.stdout


def test_the_setting_that_made_it_slower_is_named_first(
    slower: subprocess.CompletedProcess[str],
) -> None:
    assert re.search(
        r"Why q5: slower, same operators: conf spark\.sql\.shuffle\.partitions \d+ -> 8\b",
        slower.stdout,
    )


def test_the_alarm_has_its_evidence_with_flame_graphs(
    site: Site, slower: subprocess.CompletedProcess[str]
) -> None:
    with site.store() as store:
        night = store.night(run_name(slower))
    found = flames_of(RunDirectory(Path(night.directory)).flames, "q5")
    assert found is not None
    assert found.problem is None
    assert all(path.is_file() for path in found.files.values())
    page = (Path(night.directory) / "report" / "alarms" / "q5" / "evidence.html").read_text()
    assert "data:image/svg+xml;base64," in page
    assert "spark.sql.shuffle.partitions" in page
    assert "--candidate-conf spark.sql.shuffle.partitions=8" in page


def test_arms_take_turns_within_each_pair(
    site: Site, slower: subprocess.CompletedProcess[str]
) -> None:
    """By when they ran: a pair is done before the next begins."""
    with site.store() as store:
        rows = [row for row in store.repetitions(run_name(slower)) if row.stage == 1]
    arms = {arm: sum(row.arm == arm for row in rows) for arm in ARMS[:2]}
    assert arms == dict.fromkeys(ARMS[:2], PAIRS)
    by_start = sorted(rows, key=lambda row: row.start)
    assert [row.number for row in by_start] == sorted(row.number for row in rows)
    assert [row.position for row in by_start] == list(range(1, len(rows) + 1))


def test_the_host_is_graded(site: Site, slower: subprocess.CompletedProcess[str]) -> None:
    with site.store() as store:
        run = run_name(slower)
        assert store.night(run).grade in ("steady", "unsteady")  # a busy disk is the latter
        readings = store.canaries(run)
        assert {(row.group, row.moment) for row in readings} >= {("q5", "before"), ("q5", "after")}
        assert {"cpu_s", "cpu_memory_s"} <= {row.metric for row in readings}


def test_nothing_is_left_of_either_arm(
    site: Site, slower: subprocess.CompletedProcess[str]
) -> None:
    assert site.leftovers() == []
    assert not (site.home / "clusters" / "local-baseline" / "lease.json").exists()
