"""With what a red verdict began: a build, confs, a workload, or none of these."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nexmark.evidence.alarms import FEW_NIGHTS, alarm_groups, alarm_lines
from nexmark.evidence.night_rows import night_rows
from nexmark.model import CANDIDATE_JOB, Arm, Value
from nexmark.store import BuildRecord, RepetitionRecord, Store
from tests.unit.store.night_builder import OK, judged, measurement

OLD, NEW = BuildRecord("sha-430", "4.3.0", "pypi:4.3.0"), BuildRecord("sha-431", "4.3.1", "pypi:x")
SLOW = replace(OK, value=Value.REGRESSION, ratio=1.12, reason="slower")
PARTITIONS = "spark.sql.shuffle.partitions"


def recorded(store: Store, number: int, *verdicts: Any, partitions: int = 2, **night: Any) -> str:
    """A judged night whose candidate ran with a number of partitions."""
    run = judged(store, number, *verdicts, **night)
    for verdict in verdicts:
        confs = {PARTITIONS: str(partitions), "spark.driver.port": str(7000 + number)}
        made = RepetitionRecord(
            run, verdict.query, 1, measurement=measurement(), result={"confs": confs}
        )
        store.record_repetition(made)
    return run


def lines(store: Store, run: str) -> list[str]:
    stored = night_rows(store, store.night(run))
    return alarm_lines(store, alarm_groups(store, stored.night, stored.verdicts))


def test_another_build(store: Store) -> None:
    recorded(store, 1, OK, build=OLD)
    run = recorded(store, 2, SLOW, build=NEW)
    assert lines(store, run) == [f"since build 4.3.1 pypi:x sha-431 (night {run}): q5 1.120"]


def test_a_comparison_that_a_person_repeats_began_with_its_build(store: Store) -> None:
    """Two chosen builds differ by themselves, whatever was measured the night before."""
    night = {"build": NEW, "baselines": {"q5": OLD.id}, "baseline_builds": [OLD]}
    recorded(store, 1, SLOW, teaches=False, **night)
    recorded(store, 2, OK, teaches=False, partitions=60, **night)  # another question in between
    run = recorded(store, 3, SLOW, teaches=False, **night)
    assert lines(store, run) == [f"since build 4.3.1 pypi:x sha-431 (night {run}): q5 1.120"]


def test_another_conf_of_the_same_build(store: Store) -> None:
    recorded(store, 1, OK, build=OLD)
    first = recorded(store, 2, SLOW, build=OLD, partitions=60)
    run = recorded(store, 3, SLOW, build=NEW, partitions=60)
    assert lines(store, run) == [
        f"since conf {PARTITIONS} 2 -> 60 (night {first}): q5 1.120 (2 nights)"
    ]


def test_a_conf_that_only_the_candidate_had(store: Store) -> None:
    """A trial of a conf: the baseline ran without it, in the same night."""
    recorded(store, 1, OK, build=OLD)
    run = recorded(store, 2, SLOW, build=OLD, partitions=60)
    result = {"confs": {PARTITIONS: "2"}}
    baseline = RepetitionRecord(
        run, SLOW.query, 1, arm=Arm.BASELINE, measurement=measurement(), result=result
    )
    store.record_repetition(baseline)
    assert lines(store, run) == [f"since conf {PARTITIONS} 2 -> 60 (night {run}): q5 1.120"]


@pytest.mark.parametrize("nights_before", [0, 1])
def test_a_conf_of_the_candidate_alone_is_named_without_the_build_of_both(
    store: Store, nights_before: int
) -> None:
    for number in range(nights_before):
        recorded(store, number + 1, OK, build=OLD)
    night = {"candidate_conf": {PARTITIONS: "60"}, "baselines": {"q5": OLD.id}}
    night |= {"baseline_builds": [OLD]}
    run = recorded(store, 2, SLOW, build=OLD, partitions=60, **night)
    result = {"confs": {PARTITIONS: "2"}}
    baseline = RepetitionRecord(
        run, SLOW.query, 1, arm=Arm.BASELINE, measurement=measurement(), result=result
    )
    store.record_repetition(baseline)
    assert lines(store, run) == [f"since conf {PARTITIONS} 2 -> 60 (night {run}): q5 1.120"]


@pytest.mark.parametrize(("build", "more"), [(OLD, ""), (NEW, " and build 4.3.1 pypi:x sha-431")])
def test_a_changed_job_that_only_the_candidate_ran(
    store: Store, build: BuildRecord, more: str
) -> None:
    recorded(store, 1, OK, build=OLD)
    alone = {CANDIDATE_JOB: "/changed", f"{CANDIDATE_JOB}.q5": "sql-1"}
    night = {"candidate_conf": alone, "baselines": {"q5": OLD.id}, "baseline_builds": [OLD]}
    run = recorded(store, 2, SLOW, build=build, **night)
    assert lines(store, run) == [f"since the change of the job q5{more} (night {run}): q5 1.120"]


def test_changed_jobs_are_named_together(store: Store) -> None:
    alone = {CANDIDATE_JOB: "/changed", f"{CANDIDATE_JOB}.q5": "a", f"{CANDIDATE_JOB}.q7": "b"}
    night = {"candidate_conf": alone, "baselines": {"q5": OLD.id, "q7": OLD.id}}
    night |= {"baseline_builds": [OLD]}
    run = recorded(store, 2, SLOW, replace(SLOW, query="q7"), build=OLD, **night)
    assert lines(store, run) == [
        f"since the changes of the jobs q5, q7 (night {run}): q5 1.120, q7 1.120"
    ]


def test_another_build_and_another_conf(store: Store) -> None:
    recorded(store, 1, OK, build=OLD)
    run = recorded(store, 2, SLOW, build=NEW, partitions=60)
    (line,) = lines(store, run)
    assert line.startswith(f"since build 4.3.1 pypi:x sha-431 and conf {PARTITIONS} 2 -> 60 (night")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"workload": "small"}, "since workload smoke -> small (night"),
        (
            {"workload_spec": {"events": 7, "seed": 1, "repetitions": 9}},
            "since workload smoke, events 100000 -> 7 (night",
        ),
    ],
)
def test_another_workload(store: Store, changed: dict[str, Any], words: str) -> None:
    recorded(store, 1, OK, build=OLD)
    run = recorded(store, 2, SLOW, build=OLD, **changed)
    (line,) = lines(store, run)
    assert line.startswith(words)


def test_nothing_changed(store: Store) -> None:
    recorded(store, 1, OK, build=OLD)
    run = recorded(store, 2, SLOW, build=OLD)
    (line,) = lines(store, run)
    assert line.startswith(f"since night {run}, with the same build 4.3.0 pypi sha-430, confs and")


def test_the_first_night_of_all_names_its_build(store: Store) -> None:
    run = recorded(store, 1, SLOW, build=OLD)
    (line,) = lines(store, run)
    assert line.startswith("since build 4.3.0 pypi sha-430 (night")


def test_a_build_and_a_conf_that_came_later_are_alarms_of_their_own(store: Store) -> None:
    slow_q0, ok_q0 = (replace(each, query="q0") for each in (SLOW, OK))
    recorded(store, 1, OK, ok_q0, build=OLD)
    by_build = recorded(store, 2, SLOW, ok_q0, build=NEW)
    by_conf = recorded(store, 3, SLOW, slow_q0, build=NEW, partitions=60)
    assert lines(store, by_conf) == [
        f"since build 4.3.1 pypi:x sha-431 (night {by_build}): q5 1.120 (2 nights)",
        f"since conf {PARTITIONS} 2 -> 60 (night {by_conf}): q0 1.120",
    ]
    run = recorded(store, 4, SLOW, slow_q0, build=NEW, partitions=60)
    assert len(lines(store, run)) == 2


def test_a_query_that_became_red_later_with_the_same_build_and_confs_is_no_other_cause(
    store: Store,
) -> None:
    slow_q0, ok_q0 = (replace(each, query="q0") for each in (SLOW, OK))
    recorded(store, 1, OK, ok_q0, build=OLD)
    recorded(store, 2, SLOW, ok_q0, build=NEW)
    run = recorded(store, 3, SLOW, slow_q0, build=NEW)
    (line,) = lines(store, run)
    assert "q5 1.120 (2 nights), q0 1.120" in line


def test_an_alarm_of_many_nights_beside_one_of_tonight(store: Store) -> None:
    """The first nights that are read show where q0 began, but not where q5 did."""
    slow_q0, ok_q0 = (replace(each, query="q0") for each in (SLOW, OK))
    recorded(store, 1, OK, ok_q0, build=OLD)
    first = recorded(store, 2, SLOW, ok_q0, build=NEW)
    for number in range(3, 3 + 2 * FEW_NIGHTS):
        recorded(store, number, SLOW, ok_q0, build=NEW)
    run = recorded(store, 99, SLOW, slow_q0, build=NEW, partitions=60)
    nights = 2 + 2 * FEW_NIGHTS
    assert lines(store, run) == [
        f"since build 4.3.1 pypi:x sha-431 (night {first}): q5 1.120 ({nights} nights)",
        f"since conf {PARTITIONS} 2 -> 60 (night {run}): q0 1.120",
    ]
