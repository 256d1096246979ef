"""What differs between the arms is the same for "Why", for the tables and for the list."""

from __future__ import annotations

from typing import Any

import pytest

from nexmark.attribution.explained import words
from nexmark.evidence.night_evidence import make_report, night_evidence
from nexmark.evidence.query_evidence import QueryEvidence, query_evidence
from nexmark.model import SUITE, Arm, Mode, Value
from nexmark.report.evidence_json import query_json
from nexmark.report.rendering import standalone
from nexmark.store import NightRecord, RepetitionRecord, Store, ValidationRecord
from tests.unit.store.store_builder import by_bounds, measurement, night

PARTITIONS = "spark.sql.shuffle.partitions"


def repetition(
    run: str, partitions: str, figure: float, number: int, **fields: Any
) -> RepetitionRecord:
    text = f"Exchange hashpartitioning(auction, {partitions})\n+- Scan"
    plan = {"text": text, "skeleton": "Exchange\nScan", "skeleton_hash": "ab"}
    confs = {PARTITIONS: partitions, "spark.driver.port": f"{number}{partitions}"}
    made = measurement(figure, plan_skeleton_hash="ab", wall_s=figure, events=1_000_000)
    result = {"plan": plan, "confs": confs}
    return RepetitionRecord(run, "q5", number, measurement=made, result=result, **fields)


def record(store: Store, made: NightRecord) -> str:
    store.record_night(made)
    store.record_validation(ValidationRecord(made.run, "q5", True))
    return made.run


def by_an_accepted_run(store: Store) -> str:
    """Tonight's only change, against the run that was accepted, is the number of partitions."""
    accepted, tonight = (night(number, queries=["q5"], repetitions=3) for number in (1, 2))
    for made, partitions, figure in ((accepted, "2", 10.0), (tonight, "60", 15.0)):
        record(store, made)
        for number in (1, 2, 3):
            store.record_repetition(repetition(made.run, partitions, figure, number))
    store.accept(accepted.run, "ada", "first", ["q5"])
    numbers: dict[str, Any] = {"ratio": 1.5, "baseline_run": accepted.run, "repetitions": 3}
    said = by_bounds("q5", Value.REGRESSION, metric="cpu_s_per_mevent", **numbers)
    store.record_verdicts(tonight.run, [said])
    return tonight.run


def by_pairs(store: Store) -> str:
    """The same between the arms of one night."""
    made = night(3, queries=["q5"], repetitions=3, mode=Mode.PAIRED, baselines={"q5": "sha-430"})
    run = record(store, made)
    for arm, partitions, figure in ((Arm.CANDIDATE, "60", 15.0), (Arm.BASELINE, "2", 10.0)):
        for number in (1, 2, 3):
            store.record_repetition(repetition(run, partitions, figure, number, arm=arm))
    numbers: dict[str, Any] = {"ratio": 1.5, "lo": 1.4, "hi": 1.6}
    said = by_bounds("q5", Value.REGRESSION, metric="cpu_s_per_mevent", **numbers)
    store.record_verdicts(run, [said])
    return run


def page(found: QueryEvidence) -> str:
    return standalone("query.html", draw=False, page=found, charts=[], over_time=[])


@pytest.mark.parametrize("recorded", [by_an_accepted_run, by_pairs])
class TestOneChange:
    def test_the_page_does_not_contradict_itself(self, store: Store, recorded: Any) -> None:
        found = query_evidence(store, store.night(recorded(store)), "q5")
        assert found.attribution is not None
        assert f"conf {PARTITIONS} 2 -> 60" in words(found.attribution)
        text = page(found)
        assert "Both arms ran with the same confs" not in text
        assert "same plan" not in text
        assert "Plan: details differ" in text
        assert found.plans.diff == found.attribution.plan.diff != ()

    def test_the_table_has_what_the_explanation_names(self, store: Store, recorded: Any) -> None:
        found = query_evidence(store, store.night(recorded(store)), "q5")
        assert found.attribution is not None
        named = [(x.name, x.candidate, x.baseline) for x in found.attribution.confs]
        listed = [(x.key, x.candidate, x.baseline) for x in found.conf_differences or ()]
        assert named == listed[:1] == [(PARTITIONS, "60", "2")]
        assert [x["set_by_harness"] for x in query_json(found)["conf_differences"]] == [False, True]

    def test_the_list_and_the_lines_of_the_night_say_the_same(
        self, store: Store, recorded: Any
    ) -> None:
        run = recorded(store)
        (line,) = night_evidence(store, store.night(run)).lines
        assert line.plan == query_evidence(store, store.night(run), "q5").plans.state
        (why,) = (x for x in make_report(store, run).lines if x.startswith("Why q5"))
        assert why.startswith(f"Why q5: slower, same operators: conf {PARTITIONS} 2 -> 60")


def test_the_plan_of_an_arm_is_the_one_that_most_of_its_repetitions_had(store: Store) -> None:
    """One repetition that was planned otherwise changes neither the list nor the page."""
    run = by_pairs(store)
    measured = measurement(10.0, plan_skeleton_hash="cd", wall_s=10.0, events=1_000_000)
    plan = {"text": "Sort\n+- Scan", "skeleton": "Sort\nScan", "skeleton_hash": "cd"}
    store.record_repetition(
        RepetitionRecord(
            run, "q5", 3, arm=Arm.BASELINE, measurement=measured, result={"plan": plan}
        )
    )
    (line,) = night_evidence(store, store.night(run)).lines
    found = query_evidence(store, store.night(run), "q5")
    assert line.plan == found.plans.state == "details differ"
    assert found.attribution is not None
    assert not found.attribution.plan.changed


def test_the_suite_has_the_confs_of_all_its_queries(store: Store) -> None:
    found = query_evidence(store, store.night(by_pairs(store)), SUITE)
    assert [x.key for x in found.conf_differences or ()] == [PARTITIONS, "spark.driver.port"]


def test_a_night_without_a_baseline_has_nothing_to_compare(store: Store) -> None:
    made = night(1, queries=["q5"])
    record(store, made)
    store.record_repetition(repetition(made.run, "2", 10.0, 1))
    found = query_evidence(store, store.night(made.run), "q5")
    assert found.conf_differences is None
    text = page(found)
    assert "There are not two arms to compare" in text
    assert "Both arms ran with the same" not in text
