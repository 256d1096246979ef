"""What the pages get of many nights: every field, of the nights asked for, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from nexmark.evidence.build_comparison import build_lines, compare_builds
from nexmark.model import CPU, SUITE, Basis, Value
from nexmark.store import BuildRecord, Store, history
from nexmark.store.history import Judged, Tally
from nexmark.verdict.verdict import Verdict
from tests.unit.store.conftest import SQLITE
from tests.unit.store.night_builder import OK, cpu, judged, paired, record_pair, validate
from tests.unit.store.store_builder import DAG, STARTED

OLD = BuildRecord("sha-429", "4.2.9", "pypi:4.2.9")
RED = replace(OK, value=Value.REGRESSION, ratio=1.2)


@pytest.fixture
def backend() -> str:
    return SQLITE


def test_a_night_has_all_that_a_page_shows(store: Store) -> None:
    run = judged(store, 1, directory="runs/1", teaches=False)
    store.record_grade(run, "steady")
    (found,) = history.nights(store, [DAG], 9)
    night = store.night(run)
    assert found._asdict() == {
        **{"id": run, "dag_id": DAG, "run_id": "n1", "engine": "spark-4.3.0"},
        **{"workload": "smoke", "cluster": "local", "build_id": "sha-430", "mode": "paired"},
        **{"shape": night.shape, "started": night.started, "grade": "steady"},
        **{"repetitions": 3, "queries": ["q0", "q5", "q10"], "teaches": False},
        **{"directory": "runs/1", "started_by": None},
    }


def test_nights_of_a_build_are_counted_from_the_newest(store: Store) -> None:
    runs = [judged(store, n, build=OLD if n == 2 else paired().build) for n in (1, 2, 3)]
    judged(store, 4, dag_id="other")
    assert [x.id for x in history.nights(store, [DAG], 9)] == runs[::-1]
    assert [x.id for x in history.nights(store, [DAG], 9, build="sha-430")] == [runs[2], runs[0]]
    assert [x.id for x in history.nights(store, [DAG], 1, 1)] == [runs[1]]
    assert (history.count_nights(store, [DAG]), history.count_nights(store, [])) == (3, 0)
    assert history.dag_ids(store) == [DAG, "other"]


def test_the_neighbours_of_a_night_are_of_its_dag(store: Store) -> None:
    runs = [judged(store, number) for number in (1, 3, 5, 7)]
    for number in (2, 4):
        judged(store, number, dag_id="other")
    assert history.neighbours(store, store.night(runs[1])) == (runs[0], runs[2])
    assert history.neighbours(store, store.night(runs[0])) == (None, runs[1])
    assert history.neighbours(store, store.night(runs[3])) == (runs[2], None)


@pytest.mark.parametrize(
    ("verdicts", "tally"),
    [
        ([OK], Tally({"OK": 1}, 0, 0, None, True)),
        ([RED, replace(OK, query="q0")], Tally({"OK": 1, "REGRESSION": 1}, 1, 0, None, True)),
        ([OK, replace(OK, query=SUITE, ratio=1.03)], Tally({"OK": 2}, 0, 0, 1.03, True)),
        ([replace(OK, ratio=None)], Tally({"OK": 1}, 0, 0, None, False)),
        ([replace(OK, ratio=None), replace(OK, query="q0")], Tally({"OK": 2}, 0, 0, None, True)),
        ([OK, replace(RED, metric="wall_s", decides=False)], Tally({"OK": 1}, 0, 0, None, True)),
    ],
)
def test_a_tally_is_of_the_verdicts_that_decide(
    store: Store, verdicts: list[Verdict], tally: Tally
) -> None:
    run = judged(store, 1, *verdicts)
    judged(store, 2, RED)
    assert history.tallies(store, [store.night(run)]) == {run: tally}


def test_an_accepted_verdict_is_known_whatever_it_is(store: Store) -> None:
    run = judged(store, 1, OK, replace(RED, query="q0"), queries=["q0", "q5"], repetitions=1)
    for query in ("q0", "q5"):
        record_pair(store, run, query, candidate={"measurement": cpu(9)}, baseline=9)
    validate(store, run, ("q0", "q5"))
    store.accept(run, "ada", "meant")
    covered = {row.query: row.id for row in store.acceptances()}
    accepted = [replace(x, acceptance=covered[x.query]) for x in store.verdicts(run)]
    store.record_verdicts(run, accepted)
    tally = history.tallies(store, [store.night(run)])[run]
    assert (tally.red, tally.known) == (0, 2)
    assert {x.acceptance for x in history.judged(store, [store.night(run)])} == {*covered.values()}


def test_a_verdict_has_all_that_a_list_shows(store: Store) -> None:
    run = judged(store, 1, RED)
    night = store.night(run)
    (found,) = history.judged(store, [night])
    place = ("spark-4.3.0", "smoke", "local")
    assert found == Judged(
        run, DAG, night.started, *place, "sha-430", "q5", "REGRESSION", 1.2, True, None,
        night.shape, "paired",
    )  # fmt: skip
    assert found.place == place
    assert found.series == (DAG, *place, night.shape, "paired", "q5")


def test_verdicts_are_in_the_order_of_their_nights_and_then_as_given(store: Store) -> None:
    later = judged(store, 2, replace(RED, query="q9"), replace(RED, query="q1"))
    early = judged(store, 1, RED)
    nights = [store.night(run) for run in (later, early)]
    expected = [(early, "q5"), (later, "q9"), (later, "q1")]
    for read in (history.judged, history.reds):
        found = read(store, nights)
        assert [(x.night, x.query) for x in found] == expected


@pytest.mark.parametrize(
    "change",
    [
        {"dag_id": "other"},
        {"engine": "spark-3.5.9"},
        {"workload": "big"},
        {"cluster": "moon"},
        {"workload_spec": {"events": 7}},
        {"queries": []},
    ],
)
def test_a_red_ends_with_the_next_verdict_of_its_series(
    store: Store, change: Mapping[str, Any]
) -> None:
    """Nights are recorded in another order than they began: by hand, or filled in later."""
    between = judged(store, 3, **change)
    end, red = judged(store, 4), judged(store, 2, RED)
    judged(store, 1), judged(store, 5)
    nights = history.nights(store, [DAG, "other"], 9)
    found = [x.night for x in history.reds(store, nights)]
    assert found == [red, between if change == {"queries": []} else end]


def test_builds_are_those_that_were_candidates_or_baselines(store: Store) -> None:
    for number in (1, 2, 4):
        judged(store, number, build=OLD if number == 1 else paired().build, baseline_builds=[OLD])
    judged(store, 3, build=BuildRecord("sha-other", "4.3.1", "x"), dag_id="other")
    new, old = history.builds(store, [DAG])
    assert (new.id, new.version, new.source, new.nights) == ("sha-430", "4.3.0", "pypi:4.3.0", 2)
    assert (new.first, new.last) == (STARTED + timedelta(days=2), STARTED + timedelta(days=4))
    assert (old.id, old.nights) == ("sha-429", 3)
    assert (old.first, old.last) == (STARTED + timedelta(days=1), STARTED + timedelta(days=4))
    assert new.first_seen


def test_a_build_that_was_only_a_baseline_can_be_compared(store: Store) -> None:
    judged(store, 1, queries=["q5"], baseline_builds=[OLD])
    new, old = history.builds(store, [DAG])
    assert (new.id, old.id) == ("sha-430", "sha-429")
    assert [(build.id, line is None) for build, line in build_lines(store, [DAG])] == [
        ("sha-430", False),
        ("sha-429", True),
    ]
    page = compare_builds(store, [DAG], new, old)
    assert [(line.query, line.paired, line.ratio) for line in page.lines] == [("q5", True, 1.01)]


def test_figures_are_of_the_metric_and_the_nights_and_not_of_the_suite(store: Store) -> None:
    fresh = replace(OK, fresh_pairs=1, candidate=15.0, baseline=10.0, basis=Basis.STEADY)
    run = judged(store, 1, queries=["q5"])
    wall = replace(OK, metric="wall_s", decides=False)
    store.record_verdicts(run, [fresh, wall, replace(OK, query=SUITE)])
    judged(store, 2)
    (found,) = history.figures(store, [run], [CPU])
    assert found == replace(fresh, night=run)


def test_what_a_night_could_show_is_by_the_newest_gate_of_it_alone(store: Store) -> None:
    runs = [judged(store, number) for number in (1, 2)]
    newest = replace(OK, gate_version=3, mde=0.04, noise=0.5)
    wall = replace(newest, metric="wall_s", decides=False)
    store.record_verdicts(runs[0], [newest, wall, replace(newest, query=SUITE)])
    (one,) = history.visible_changes(store, runs[:1])
    assert one == ("q5", 0.04, 0.5)
    assert len(history.visible_changes(store, runs)) == 2


def test_figures_are_of_the_newest_night_and_gate_first(store: Store) -> None:
    runs = [judged(store, number) for number in (2, 1)]
    store.record_verdicts(runs[0], [replace(OK, gate_version=3, noise=0.5)])
    found = history.figures(store, runs, [CPU])
    assert [(x.night, x.noise) for x in found] == [
        (runs[0], 0.5),
        (runs[0], 0.02),
        (runs[1], 0.02),
    ]
