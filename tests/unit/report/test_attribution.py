"""From event logs to the reason why a query is slower: a real pair; one arm had more to do.

The logs are from the self-test's seeded slowdown; the conf that differs is made up here.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from store_builder import measurement, night

from nexmark.attribution.explained import ChangeKind
from nexmark.evidence.explaining import attribution_of
from nexmark.evidence.night_evidence import make_report
from nexmark.measure.operator_times import repetition_parts
from nexmark.model import PROFILED, Arm, Value
from nexmark.store import RepetitionRecord, Store, ValidationRecord
from nexmark.store.gate_rows import observed
from nexmark.verdict.verdict import Verdict
from tests.unit.report.rendered import collect
from tests.unit.store.store_builder import by_bounds

LOGS = Path(__file__).parents[2] / "data" / "event_logs"
LOG = {Arm.CANDIDATE: "spark-4.3.0-q5-slowed", Arm.BASELINE: "spark-4.3.0-q5"}
CPU_S = {Arm.CANDIDATE: 13.0, Arm.BASELINE: 10.0}
PARTITIONS = {Arm.CANDIDATE: "16", Arm.BASELINE: "2"}
EVENTS = 20_000
NIGHT = night(queries=["q5"], mode="paired", baselines={"q5": "sha-430"})
RUN = NIGHT.run


def plan(*operators: str) -> dict[str, Any]:
    text = "\n".join(operators)
    return {"text": text, "skeleton": text, "skeleton_hash": str(len(text))}


def repetition(arm: str, number: int, **fields: Any) -> RepetitionRecord:
    place = LOGS / LOG[arm]
    result = json.loads((place / "result.json").read_text())
    figures = measurement(
        None,
        cpu_application_s=CPU_S[arm],
        cpu_s_per_mevent=CPU_S[arm] / EVENTS * 1e6,
        events=EVENTS,
        application_id=result["application_id"],
        wall_s=CPU_S[arm],
        plan_skeleton_hash=plan("Project", "Exchange")["skeleton_hash"],
    )
    confs = {"spark.sql.shuffle.partitions": PARTITIONS[arm]}
    values: dict[str, Any] = {
        "measurement": figures,
        "arm": arm,
        "result": {"confs": confs, "plan": plan("Project", "Exchange")},
        "parts": repetition_parts(place / "events", result, figures),
    }
    return RepetitionRecord(RUN, "q5", number, **{**values, **fields})


def verdict(value: Value = Value.REGRESSION, **fields: Any) -> Verdict:
    given: dict[str, Any] = {
        "ratio": 1.3,
        "lo": 1.2,
        "hi": 1.4,
        "reason": "slower",
        "pairs": 3,
        "mode": "paired",
    }
    values = {"night": RUN, "query": "q5", "metric": "cpu_s_per_mevent", "gate_version": 3}
    return Verdict(**{**values, "value": value, **given, **fields})


@pytest.fixture
def recorded(store: Store) -> Store:
    store.record_night(NIGHT)
    store.record_validation(ValidationRecord(RUN, "q5", True))
    for number in (1, 2, 3):
        for arm in (Arm.CANDIDATE, Arm.BASELINE):
            store.record_repetition(repetition(arm, number))
    store.record_verdicts(RUN, [verdict()])
    return store


def test_what_was_recorded_comes_back(recorded: Store) -> None:
    arms = observed(recorded, RUN, "q5")
    assert [x.number for x in arms[Arm.CANDIDATE]] == [1, 2, 3]
    assert arms[Arm.BASELINE][0].parts == tuple(repetition(Arm.BASELINE, 1).parts)


def test_the_conf_and_what_it_costs_come_to_the_top(recorded: Store) -> None:
    found = attribution_of(recorded, RUN, "q5")
    assert found is not None
    assert (found.kind, found.paired, found.pairs, found.notes) == (ChangeKind.SLOWER, True, 3, ())
    (conf,) = found.confs
    assert (conf.name, conf.baseline, conf.candidate) == ("spark.sql.shuffle.partitions", "2", "16")
    assert sum(x.contribution for x in found.parts) == pytest.approx(150.0)
    assert len([x for x in found.parts if x.name == "StateStoreSave"]) == 3


def test_what_an_arm_had_more_to_do_is_in_its_operators(recorded: Store) -> None:
    found = attribution_of(recorded, RUN, "q5")
    assert found is not None
    scan = next(x for x in found.parts if x.covers and x.covers[-1] == "MicroBatchScan")
    (rows,) = [x for x in scan.metrics if x.name == "number of output rows"]
    assert scan.contribution > 0
    assert rows.ratio == pytest.approx(1.2, abs=0.1)
    tasks = next(x for x in found.parts if x.kind == "tasks")
    assert [(x.baseline, x.candidate) for x in tasks.metrics] == [(32, 32)]


def test_a_pair_with_a_flight_recorder_explains_nothing(recorded: Store) -> None:
    """The recorder costs CPU time, more in one arm than in the other."""
    before = attribution_of(recorded, RUN, "q5")
    for arm, cpu_s in ((Arm.CANDIDATE, 99.0), (Arm.BASELINE, 50.0)):
        made = repetition(arm, 1, stage=PROFILED)
        assert made.measurement is not None
        figures = replace(made.measurement, cpu_s_per_mevent=cpu_s / EVENTS * 1e6)
        recorded.record_repetition(replace(made, measurement=figures))
    found = attribution_of(recorded, RUN, "q5")
    assert found is not None
    assert found.pairs == 3
    assert found == before


def test_a_red_query_is_explained_under_the_table(recorded: Store) -> None:
    what, why, explained, after, *_ = make_report(recorded, RUN).lines
    assert what.startswith("NIGHT FAILED")
    assert why.startswith("Why: q5")
    assert explained.startswith(
        "Why q5: slower, same operators: conf spark.sql.shuffle.partitions 2 -> 16; of +150 "
    )
    assert after.startswith("Next: ")
    assert len(explained) < 400


def test_a_quiet_query_is_not(recorded: Store) -> None:
    recorded.record_verdicts(RUN, [verdict(Value.OK, ratio=1.0)])
    assert not [x for x in make_report(recorded, RUN).lines if x.startswith("Why q5")]


@pytest.mark.parametrize(
    ("value", "ratio", "speed"),
    [
        (Value.OK, 1.0, "same speed"),
        (Value.UNDECIDED, 1.0, "speed not decided"),
        (Value.SUSPECT, 0.3, "faster"),
        (Value.FASTER, 0.3, "faster"),
    ],
)
def test_another_plan_of_a_query_that_is_not_red_is_named_with_its_speed(
    recorded: Store, value: Value, ratio: float, speed: str
) -> None:
    recorded.record_verdicts(RUN, [verdict(value, ratio=ratio, lo=0.9 * ratio, hi=1.1 * ratio)])
    _with_another_plan(recorded)
    lines = make_report(recorded, RUN).lines
    assert f"Plan: other operators than the baseline's, {speed}: q5." in lines


def test_a_query_that_the_builds_computed_in_other_ways_is_named_with_them(
    recorded: Store,
) -> None:
    recorded.record_verdicts(RUN, [verdict(Value.FASTER, ratio=0.3, lo=0.2, hi=0.4)])
    _with_another_plan(recorded)
    for arm, formulation in ((Arm.CANDIDATE, "panes"), (Arm.BASELINE, "windows")):
        for number in (1, 2, 3):
            made = repetition(arm, number)
            assert made.measurement is not None
            measured = replace(made.measurement, formulation=formulation)
            recorded.record_repetition(replace(made, measurement=measured))
    lines = make_report(recorded, RUN).lines
    assert "Formulation: q5 panes, baseline windows: not of the engine alone." in lines
    assert not [line for line in lines if line.startswith("Plan: ")]


def _with_another_plan(recorded: Store) -> None:
    other = measurement(None, plan_skeleton_hash="other", cpu_s_per_mevent=500.0)
    result = {"plan": plan("Project", "Sort", "Exchange")}
    for number in (1, 2, 3):
        made = repetition(Arm.CANDIDATE, number, measurement=other, result=result)
        recorded.record_repetition(made)


def test_another_plan_at_the_same_speed_is_a_warning(recorded: Store) -> None:
    recorded.record_verdicts(RUN, [verdict(Value.OK, ratio=1.0)])
    _with_another_plan(recorded)
    found = attribution_of(recorded, RUN, "q5")
    assert found is not None
    assert (found.kind, found.plan.added) == (ChangeKind.PLAN_CHANGED, ("Sort",))


def test_the_evidence_has_it_as_json(recorded: Store) -> None:
    evidence = json.loads(json.dumps(collect(recorded, RUN), default=str))
    found = evidence["attribution"]["q5"]
    assert found["kind"] == "slower, same operators"
    assert found["words"].startswith("conf spark.sql.shuffle.partitions 2 -> 16")
    assert found["parts"][0]["contribution"] > 0
    assert found["confs"] == [
        {"name": "spark.sql.shuffle.partitions", "candidate": "16", "baseline": "2"}
    ]
    assert evidence["attribution"].keys() == {"q5"}


def test_without_event_logs_the_rest_is_reported(recorded: Store) -> None:
    for number in (1, 2, 3):
        made = repetition(Arm.CANDIDATE, number, parts=(), parts_problem="the event log is cut off")
        recorded.record_repetition(made)
    found = attribution_of(recorded, RUN, "q5")
    assert found is not None
    assert (found.kind, found.parts) == (ChangeKind.SLOWER, ())
    assert "the event log is cut off" in found.notes[0]
    (line,) = [x for x in make_report(recorded, RUN).lines if x.startswith("Why q5")]
    assert line == "Why q5: slower, same operators: conf spark.sql.shuffle.partitions 2 -> 16."


def test_a_night_with_one_arm_is_compared_with_the_accepted_one(recorded: Store) -> None:
    one = night(2, queries=["q5"])
    recorded.record_night(one)
    made = repetition(Arm.CANDIDATE, 1)
    recorded.record_repetition(RepetitionRecord(one.run, "q5", 1, made.measurement))
    bounds = by_bounds("q5", Value.OK, ratio=1.0, baseline_run=RUN)
    recorded.record_verdicts(one.run, [bounds])
    found = attribution_of(recorded, one.run, "q5")
    assert found is not None
    assert (found.paired, found.pairs) == (False, 1)


def test_there_is_none_without_a_baseline(store: Store) -> None:
    store.record_night(NIGHT)
    store.record_repetition(repetition(Arm.CANDIDATE, 1))
    assert attribution_of(store, RUN, "q5") is None
    assert attribution_of(store, RUN, "q7") is None


def test_a_repetition_that_is_recorded_again_has_its_parts_once(recorded: Store) -> None:
    before = observed(recorded, RUN, "q5")
    recorded.record_repetition(repetition(Arm.CANDIDATE, 1))
    assert observed(recorded, RUN, "q5") == before
