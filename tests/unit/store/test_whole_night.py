"""A night that is recorded at once has the rows of one that is recorded step by step."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

from sqlalchemy import select

from nexmark.measure.executed_plan import Part
from nexmark.model import Value
from nexmark.store import RepetitionRecord, Store, ValidationRecord, WholeNight
from nexmark.store.accepting import EXPIRED, WITHDRAWN, states
from nexmark.store.table_base import Base
from nexmark.store.table_rows import CanaryRow, PartRow, RepetitionRow, SelfTestRow
from tests.unit.store.night_builder import OK
from tests.unit.store.store_builder import STARTED, measurement, night, series

PLAN = {"text": "Project", "skeleton": "Project", "skeleton_hash": "ab"}
HOUR = timedelta(hours=1)


def whole(number: int) -> WholeNight:
    """A night with rows of every kind."""
    made = night(number)
    repetition = RepetitionRecord(
        made.run,
        "q5",
        1,
        measurement=measurement(),
        result={"plan": PLAN, "batches": [{"id": 0}]},
        series=[series()],
        parts=[Part(0, "operator", "Project", 1.5)],
    )
    reading = {"host": "n02", "group": "q5", "moment": "before", "metric": "cpu_s", "value": 0.01}
    tested = {"kind": "aa", "query": "q5", "size": 1.0, "value": Value.OK, "gate_version": 2}
    return WholeNight(
        made,
        made.started + HOUR,
        [repetition, replace(repetition, number=2)],
        [ValidationRecord(made.run, "q5", True, [], 9, {"rows": 5})],
        [CanaryRow(**reading, taken=made.started)],
        [SelfTestRow(**tested)],
        [replace(OK, night=made.run)],
        "unsteady",
        "the canary moved",
    )


def columns(row: Base, *left_out: str) -> dict[str, Any]:
    names = [column.name for column in row.__table__.columns]
    return {name: getattr(row, name) for name in names if name not in left_out}


def self_tests_of(store: Store, run: str) -> list[SelfTestRow]:
    return [row for row in store.self_tests(whole(1).night.engine) if row.night_id == run]


def parts_of(store: Store, run: str) -> list[dict[str, Any]]:
    with store.reading() as session:
        parts = select(PartRow).join(RepetitionRow).where(RepetitionRow.night_id == run)
        return [columns(row, "repetition_id") for row in session.scalars(parts)]


def rows(store: Store, run: str) -> list[dict[str, Any]]:
    """All rows of a night, without what is different for another night."""
    other = ("id", "night_id", "run_id", "directory", "started", "recorded", "judged", "taken")
    repetitions = store.repetitions(run)
    of_repetitions = [each for row in repetitions for each in store.sample_series(row.id)]
    tables = (
        [store.night(run)],
        repetitions,
        of_repetitions,
        store.validations(run),
        self_tests_of(store, run),
    )
    found = [columns(row, *other, "repetition_id") for table in tables for row in table]
    found += [one._asdict() | {"taken": None} for one in store.canaries(run)]
    return [*found, *(asdict(one) | {"night": "", "judged": None} for one in store.verdicts(run))]


def test_it_has_the_same_rows(store: Store) -> None:
    one, other = whole(1), whole(2)
    store.record_whole_night(one)
    together = rows(store, one.night.run)
    store.record_night(other.night)
    store.record_grade(other.night.run, "unsteady", "the canary moved")
    for repetition in other.repetitions:
        store.record_repetition(repetition)
    for validation in other.validations:
        store.record_validation(validation)
    store.record_canary(other.night.run, other.canaries)
    store.record_verdicts(other.night.run, other.verdicts)
    store.record_self_test(other.night.run, other.self_tests[0])
    apart = rows(store, other.night.run)
    assert len(together) == len(apart) == 9
    assert together == apart
    parts = parts_of(store, one.night.run)
    assert parts == parts_of(store, other.night.run)
    assert [part["name"] for part in parts] == ["Project", "Project"]


def test_its_rows_are_of_the_moment_that_it_names(store: Store) -> None:
    made = whole(1)
    store.record_whole_night(made)
    run = made.night.run
    moments = {row.recorded for row in (*store.repetitions(run), *store.validations(run))}
    assert moments == {made.judged}
    assert [row.judged for row in self_tests_of(store, run)] == [made.judged]


def test_an_acceptance_and_a_withdrawal_can_be_of_an_earlier_moment(store: Store) -> None:
    made = whole(1)
    store.record_whole_night(made)
    run, then = made.night.run, made.judged + HOUR
    store.accept(run, "ada", "known", ["q5"], expires=then + HOUR, at=then)
    store.accept(run, "bob", "wrong", ["q5"], at=then)
    store.withdraw(2, "bob", "it was wrong", at=then + HOUR)
    first, second = store.acceptances()
    assert (first.accepted, second.accepted) == (then, then)
    assert second.withdrawal is not None
    assert second.withdrawal.withdrawn == then + HOUR
    assert [state for _, state in states([first, second], then + HOUR)] == [EXPIRED, WITHDRAWN]
    assert then > STARTED
