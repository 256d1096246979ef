"""Nights of pairs through real Airflow and real Spark: both arms, suspects, the self-test.

The noise that the gate needs is not waited for: after the first real night, nights of the past are
made of its figures, with a noise of 15 % (so short runs have no less), and judged by the shipped
code. What is judged then is real: a night of the build against itself, and one in which the
candidate alone has 16 shuffle partitions, which q5 pays for.
"""

from __future__ import annotations

import dataclasses
import random
import re
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from nexmark.cluster import open_cluster
from nexmark.config import BASELINE, CANDIDATE, load
from nexmark.engines import Build
from nexmark.flames import flames_of
from nexmark.measure.measurement import Measurement
from nexmark.store import (
    BuildRecord,
    NightRecord,
    RepetitionRecord,
    Store,
    ValidationRecord,
    open_store,
)
from nexmark.store.models import Night, Repetition, VerdictRow
from nexmark.verdict.nightly import judge_night
from nexmark.verdict.rules import MIN_FRESH_PAIRS
from tests.site import DAG_ID, ENGINE, Site, make_site

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PAIRS, NIGHTS = 3, 4
ARMS = ("candidate", "baseline", "control", "slowed")
NOISE = 0.15
GATE = {
    "version": 1,
    "metric": "cpu_s_per_mevent",
    "max_ratio": 2.0,
    "mode": "paired",
    "pairs": PAIRS,
    "confirmation": 1,
    "calibration_nights": 3,
    "order_seed": None,
    "canary": 1,
    # The tests run beside other load: that the canary is read is tested, not what it says.
    "canary_bound": 0.99,
    "canary_unsteady": 0.9,
    "canary_limits": {},
}


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, engine_build: Callable[[str], Build]
) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("pairs")
    made = make_site(directory / "home", directory / "conf", engine_build(ENGINE))
    (made.conf / "gate.yaml").write_text(yaml.safe_dump(GATE))
    yield made
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEXMARK_CONF", str(made.conf))
        for arm in (CANDIDATE, BASELINE):
            open_cluster(load().clusters["local"].of_arm(arm), made.home).stop()


def stored(site: Site) -> Store:
    return open_store(f"sqlite:///{site.home / 'results.db'}")


def run_name(night: subprocess.CompletedProcess[str]) -> str:
    match = re.search(rf"Run ({DAG_ID}/\S+)", night.stdout)
    assert match, night.stdout + night.stderr
    return match[1]


def deciding(store: Store, run: str) -> VerdictRow:
    """The verdict on q5 that decides."""
    (found,) = (row for row in store.verdicts(run) if row.decides and row.query == "q5")
    return found


@pytest.fixture(scope="module")
def first(site: Site) -> subprocess.CompletedProcess[str]:
    return site.night("--queries", "q5")


@pytest.fixture(scope="module")
def past(site: Site, first: subprocess.CompletedProcess[str]) -> None:
    """The first night is accepted, and as many nights as the noise is learned from have been."""
    with stored(site) as store:
        store.accept(run_name(first), "ada", "the first night")
        night = store.night(run_name(first))
        row = store.repetitions(night.id)[0]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NEXMARK_CONF", str(site.conf))
            gate = load().gate
        for number in range(NIGHTS, 0, -1):
            run = past_night(store, night, row, number)
            made = store.paired_night(run)
            store.record_verdicts(run, judge_night(made, store.earlier(run, 100), gate))


def past_night(store: Store, night: Night, row: Repetition, ago: int) -> str:
    """A night so many days before `night`, with pairs of the figures of `row`; its name."""
    build = store.build(night.build_id)
    record = NightRecord(
        dag_id=night.dag_id,
        run_id=f"past {ago}",
        engine=night.engine,
        workload=night.workload,
        cluster=night.cluster,
        build=BuildRecord(build.id, build.version, build.source),
        jobs=night.jobs,
        workload_spec=night.workload_spec,
        cluster_spec=night.cluster_spec,
        queries=["q5"],
        repetitions=PAIRS,
        directory=Path(night.directory),
        started=night.started - timedelta(days=ago),
        mode="paired",
        baselines={"q5": night.build_id},
    )
    store.record_night(record)
    store.record_validation(ValidationRecord(record.run, "q5", success=True))
    noise = random.Random(ago)
    for number in range(1, PAIRS + 1):
        for arm in (CANDIDATE, BASELINE):
            figures = noisy(row, noise.gauss(1, NOISE))
            store.record_repetition(
                RepetitionRecord(record.run, "q5", number, measurement=figures, arm=arm)
            )
    return record.run


def noisy(row: Repetition, factor: float) -> Measurement:
    """The figures of a repetition, with its costs multiplied."""
    names = [field.name for field in dataclasses.fields(Measurement)]
    values: dict[str, Any] = {name: getattr(row, name) for name in names}
    for name in names:
        if name.startswith("cpu_s_per_mevent") and values[name] is not None:
            values[name] *= factor
    return Measurement(**values)


@pytest.fixture(scope="module")
def same(site: Site, past: None) -> subprocess.CompletedProcess[str]:
    return site.night("--queries", "q5")


@pytest.fixture(scope="module")
def slower(site: Site, same: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    (site.conf / "gate.yaml").write_text(yaml.safe_dump(GATE | {"self_test": 0}))  # to be quick
    conf = "spark.sql.shuffle.partitions=16"
    return site.night("--queries", "q5", "--candidate-conf", conf)


def test_the_first_night_has_nothing_to_compare_with_and_says_so(
    first: subprocess.CompletedProcess[str],
) -> None:
    assert first.returncode == 0, first.stdout + first.stderr
    assert "compared in pairs with nothing, for there is no accepted build: q5" in first.stdout
    assert re.search(r"q5 .* CALIBRATING", first.stdout)


def test_a_build_against_itself_is_green_and_says_that_it_is(
    site: Site, same: subprocess.CompletedProcess[str]
) -> None:
    assert same.returncode == 0, same.stdout + same.stderr
    assert "a night A against A" in same.stdout
    with stored(site) as store:
        run = run_name(same)
        verdict = deciding(store, run)
        assert verdict.value in ("OK", "UNCONFIRMED")
        assert (verdict.mode, verdict.pairs) == ("paired", PAIRS)
        assert verdict.lo < verdict.ratio < verdict.hi
        assert verdict.mde > 0
        rows = store.repetitions(run)
        arms = {arm: sum(row.arm == arm and row.stage == 1 for row in rows) for arm in ARMS}
        assert arms == dict.fromkeys(ARMS, PAIRS)
        assert {row.status for row in rows} == {"ok"}


def test_arms_take_turns_within_each_pair(
    site: Site, same: subprocess.CompletedProcess[str]
) -> None:
    """By when they ran: a pair is done before the next begins."""
    with stored(site) as store:
        rows = [row for row in store.repetitions(run_name(same)) if row.stage == 1]
    by_start = sorted(rows, key=lambda row: row.start)
    assert [row.number for row in by_start] == sorted(row.number for row in rows)
    assert [row.position for row in by_start] == list(range(1, len(rows) + 1))


def test_the_host_is_graded_and_the_gate_tested(
    site: Site, same: subprocess.CompletedProcess[str]
) -> None:
    with stored(site) as store:
        run = run_name(same)
        assert store.night(run).grade in ("steady", "unsteady")  # a busy disk is the latter
        readings = store.canaries(run)
        assert {(row.group, row.moment) for row in readings} >= {("q5", "before"), ("q5", "after")}
        assert {"cpu_s", "cpu_memory_s"} <= {row.metric for row in readings}
        tests = {row.kind: row for row in store.self_tests() if row.night_id == run}
    assert set(tests) == {"aa", "slowdown"}
    assert tests["slowdown"].size == pytest.approx(1.2)
    assert "Gate: self-test: " in same.stdout


def test_a_slower_candidate_turns_the_night_red_with_its_size_and_interval(
    site: Site, slower: subprocess.CompletedProcess[str]
) -> None:
    assert slower.returncode == 1, slower.stdout + slower.stderr
    assert "q5: looks changed (candidate" in slower.stdout
    with stored(site) as store:
        run = run_name(slower)
        verdict = deciding(store, run)
        assert verdict.value == "REGRESSION"
        assert 1.3 < verdict.lo < verdict.ratio < verdict.hi
        assert verdict.fresh_pairs == MIN_FRESH_PAIRS
    assert "verdict: failed: 1 of 1 queries fail the night: q5 REGRESSION" in slower.stdout


def test_the_setting_that_made_it_slower_is_named_first(
    slower: subprocess.CompletedProcess[str],
) -> None:
    assert re.search(
        r"Why q5: slower, same plan: conf spark\.sql\.shuffle\.partitions \d+ -> 16", slower.stdout
    )


def test_the_alarm_has_its_evidence_with_flame_graphs(
    site: Site, slower: subprocess.CompletedProcess[str]
) -> None:
    with stored(site) as store:
        night = store.night(run_name(slower))
    found = flames_of(Path(night.directory), "q5")
    assert found is not None
    assert found.problem is None
    assert all(path.is_file() for path in found.files.values())
    page = (Path(night.directory) / "report" / "alarms" / "q5" / "evidence.html").read_text()
    assert "data:image/svg+xml;base64," in page
    assert "spark.sql.shuffle.partitions" in page
    assert "--candidate-conf spark.sql.shuffle.partitions=16" in page


def test_nothing_is_left_of_either_arm(
    site: Site, slower: subprocess.CompletedProcess[str]
) -> None:
    assert site.leftovers() == []
    assert not (site.home / "clusters" / "local-baseline" / "lease.json").exists()
