"""What the gate and the attribution get of a night's rows, in every field."""

from __future__ import annotations

import math
from dataclasses import asdict, fields, replace
from datetime import timedelta
from typing import Any

import pytest

from nexmark.attribution.explained import Observed, Plan
from nexmark.measure.executed_plan import Part
from nexmark.model import PROFILED, Basis, Mode, Value
from nexmark.store import BuildRecord, RepetitionRecord, Store, ValidationRecord
from nexmark.store.gate_rows import observed
from nexmark.store.table_rows import CompatibilityRow
from nexmark.store.verdict_rows import COLUMNS, row_of, verdict_of
from nexmark.verdict.measured_night import Canary, Measured, MeasuredNight, Pair
from nexmark.verdict.verdict import Verdict
from tests.unit.store.conftest import SQLITE
from tests.unit.store.night_builder import canary, cpu, paired, record_pair, validate
from tests.unit.store.store_builder import STARTED, by_bounds, measurement

RUN = paired().run
CPU = "cpu_s_per_mevent"
SLOWED = ("slowed", "baseline")
VERDICT = Verdict(
    RUN, "q5", CPU, Value.REGRESSION, "slower", Mode.PAIRED, 2, True, 1.2, 1.1, 1.3, 0.07, 0.18,
    0.01, 5, 10, 0.02, 1.5, 0.25, "sha-429",
    repetitions=5,
)  # fmt: skip


@pytest.fixture
def backend() -> str:
    return SQLITE


@pytest.fixture
def begun(store: Store) -> Store:
    store.record_night(paired(queries=["q5", "q0"], repetitions=2))
    return store


def broken(query: str, red: bool = True) -> CompatibilityRow:
    said = {"outcome": "no restore", "reason": f"{query} lost its state"}
    return CompatibilityRow(query=query, baseline_build="sha-429", red=red, **said)


class TestNight:
    def test_it_is_whole(self, begun: Store) -> None:
        validate(begun, RUN, ["q0", "q5"])
        record_pair(begun, RUN, "q5", candidate=12, baseline=9)
        record_pair(begun, RUN, "q5", stage=2, candidate=15, baseline=9)
        record_pair(begun, RUN, "q0", candidate={"failed": "lost"}, baseline=6)
        begun.record_canary(RUN, [canary("before", 5, group="q0"), canary("after", math.nan)])
        night = begun.paired_night(RUN)
        after, before = night.canary
        assert before == Canary("spin_ms", (5,), (), "", "q0")
        assert math.isnan(*after.after)
        assert replace(night, measured=(), canary=()) == MeasuredNight(
            RUN,
            (),
            (),
            expected=("q5", "q0"),
            asked=2,
            missing={"q0": "candidate repetition 1: lost"},
            baseline=dict.fromkeys(("q0", "q5", "q10"), "sha-429"),
            groups={"q0": "q0"},
            teaches=True,
            candidate="sha-430",
        )
        assert night.measured == (
            Measured("q5", CPU, (Pair(1, 12, 9),), ((Pair(1, 15, 9),),), "steady"),
            Measured("q5", "wall_s", (Pair(1, 4, 3),), ((Pair(1, 5, 3),),)),
            Measured("q5", "batch_ms_p99", (Pair(1, 480, 360),), ((Pair(1, 600, 360),),)),
            Measured("q0", CPU, (Pair(1, None, 6),), (), "steady"),
            Measured("q0", "wall_s", (Pair(1, None, 2),)),
            Measured("q0", "batch_ms_p99", (Pair(1, None, 240),)),
        )

    def test_a_query_that_the_night_no_longer_has_comes_last(self, begun: Store) -> None:
        for query in ("q1", "q0", "q5"):
            record_pair(begun, RUN, query, candidate=12, baseline=9)
        queries = [x.query for x in begun.paired_night(RUN).measured if x.metric == CPU]
        assert queries == ["q5", "q0", "q1"]

    def test_it_is_of_one_night_and_of_the_queries_asked_for(self, begun: Store) -> None:
        other = paired(2, queries=["q5", "q0"], baselines={}, teaches=False)
        begun.record_night(other)
        record_pair(begun, other.run, "q5", candidate=12, baseline=9)
        begun.record_canary(other.run, [canary("before", 5)])
        begun.record_compatibility(other.run, [broken("q5")])
        begun.record_validation(ValidationRecord(other.run, "q5", False, ["rows"]))
        assert begun.paired_night(RUN) == MeasuredNight(
            RUN, (), expected=("q5", "q0"), asked=2, candidate="sha-430",
            baseline=dict.fromkeys(("q0", "q5", "q10"), "sha-429"),
        )  # fmt: skip
        empty = begun.paired_night(other.run, queries=["q0"])
        assert (empty.measured, empty.invalid, empty.expected) == ((), {}, ("q0",))
        assert (empty.teaches, empty.baseline) == (False, {})

    def test_canaries_are_in_the_order_of_time_and_then_as_recorded(self, begun: Store) -> None:
        late, early = (STARTED + timedelta(hours=hour) for hour in (3, 1))
        begun.record_canary(RUN, [canary("before", 7, taken=late)])
        begun.record_canary(RUN, [canary("before", 5, taken=early, host="")])
        times = ((7, late), (5, early), (6, early))
        begun.record_canary(RUN, [canary("before", x, taken=at) for x, at in times])
        (only,) = begun.paired_night(RUN).canary
        assert only.before == (5, 6, 7)

    def test_it_has_the_self_test_without_what_is_of_the_candidate(self, begun: Store) -> None:
        record_pair(begun, RUN, "q5", candidate=99, baseline=9, slowed=12)
        begun.record_compatibility(RUN, [broken("q5")])
        night = begun.paired_night(RUN, SLOWED, ["q5"])
        assert {x.pairs for x in night.measured if x.metric == CPU} == {(Pair(1, 12, 9),)}
        assert (night.invalid, night.candidate) == ({}, "")


class TestRightness:
    def test_a_query_that_does_not_go_on_from_its_checkpoint_is_invalid(self, begun: Store) -> None:
        """Unless the row says that it does, or is of a query that the night does not have."""
        assert begun.paired_night(RUN).invalid == {}
        begun.record_compatibility(RUN, [broken("q0", False), broken("q7"), broken("q5")])
        assert begun.paired_night(RUN).invalid == {"q5": "no restore: q5 lost its state"}

    @pytest.mark.parametrize(
        ("arms", "failures", "said"),
        [
            (["candidate"], [], "its result is wrong"),
            (["candidate"], ["a", "b"], "a | b"),
            (["baseline"], ["a"], "baseline: a"),
            (["candidate", "baseline"], ["a"], "a"),
        ],
    )
    def test_the_first_reason_counts_and_the_candidates_before_the_baselines(
        self, begun: Store, arms: list[str], failures: list[str], said: str
    ) -> None:
        for arm in arms:
            begun.record_validation(ValidationRecord(RUN, "q5", False, failures, arm=arm))
        record_pair(begun, RUN, "q5", candidate={"invalid": "digest"}, baseline=9)
        assert begun.paired_night(RUN).invalid == {"q5": said}

    def test_a_repetition_with_a_wrong_result_says_which_one_it_is(self, begun: Store) -> None:
        validate(begun, RUN, ["q5"])
        record_pair(begun, RUN, "q5", 2, candidate=12, baseline={"invalid": "digest"})
        assert begun.paired_night(RUN).invalid == {"q5": "baseline repetition 2: digest"}

    def test_only_a_candidate_that_ran_has_to_be_verified(self, begun: Store) -> None:
        validate(begun, RUN, ["q0"])
        begun.record_validation(ValidationRecord(RUN, "q5", True, arm="baseline"))
        record_pair(begun, RUN, "q0", candidate=12, baseline=9)
        record_pair(begun, RUN, "q5", candidate={"failed": "lost"}, baseline=9)
        assert begun.paired_night(RUN).invalid == {}
        record_pair(begun, RUN, "q5", candidate=12, baseline=9)
        assert begun.paired_night(RUN).invalid == {"q5": "its result was not verified"}

    @pytest.mark.parametrize(
        ("state", "measured"), [(1, True), (0.5, True), (0, False), (None, False), (-1, False)]
    )
    def test_what_has_to_be_positive_counts_from_the_first_byte(
        self, begun: Store, state: float | None, measured: bool
    ) -> None:
        own = {"measurement": cpu(9, state_bytes_max=state)}
        record_pair(begun, RUN, "q5", candidate=own, baseline=own)
        found = {x.metric for x in begun.paired_night(RUN).measured}
        assert ("state_bytes_max" in found) is measured

    def test_the_basis_is_of_right_repetitions_alone(self, begun: Store) -> None:
        record_pair(begun, RUN, "q5", candidate=12, baseline=9)
        without = {"measurement": cpu(99, cpu_s_per_mevent_steady=None), "invalid": "digest"}
        record_pair(begun, RUN, "q5", 2, candidate=without, baseline=9)
        found = {x.metric: x for x in begun.paired_night(RUN).measured}
        assert found[CPU].basis == "steady"
        assert found[CPU].pairs == (Pair(1, 12, 9), Pair(2, None, 9))

    def test_where_nothing_is_right_nothing_is_measured(self, begun: Store) -> None:
        record_pair(begun, RUN, "q5", candidate={"failed": "a"}, baseline={"invalid": "b"})
        assert begun.paired_night(RUN).measured == ()


PLAN = {"text": "Scan 1", "skeleton": "Scan", "skeleton_hash": "ab"}
PARTS = (
    Part(0, "operator", "Scan", 0.5, None, 0, 1, (1, 2), {"rows": 5.0}),
    Part(1, "operator", "Filter", None, 0, 1, 1, (), {}),
)


class TestObserved:
    """What the attribution gets of each repetition that counts."""

    def record(self, store: Store, number: int = 1, **changes: Any) -> None:
        values: dict[str, Any] = {
            "measurement": measurement(
                10.0, wall_s=4.0, events=1_000, steady_events=800, formulation="flat"
            ),
            "result": {"plan": PLAN, "confs": {"spark.a": 1}, "batches": [{"id": 0}]},
            "parts": PARTS,
            "parts_problem": "cut off",
        }
        store.record_repetition(RepetitionRecord(RUN, "q5", number, **{**values, **changes}))

    def test_it_is_whole(self, begun: Store) -> None:
        self.record(begun)
        assert observed(begun, RUN, "q5") == {
            "candidate": [
                Observed(
                    **{"number": 1, "stage": 1, "basis": "steady", "events": 800},
                    **{"cpu_s_per_mevent": 10.0, "wall_s": 4.0, "plan": Plan(**PLAN)},
                    **{"formulation": "flat", "confs": {"spark.a": "1"}, "parts": PARTS},
                    problem="cut off",
                )
            ],
            "baseline": [],
        }

    def test_what_was_not_kept_is_empty(self, begun: Store) -> None:
        bare = measurement(None, events=1_000, steady_events=800, formulation=None)
        self.record(begun, measurement=bare, result={}, parts=(), parts_problem=None)
        self.record(begun, 2, arm="baseline")
        found = observed(begun, RUN, "q5")
        (one,) = found["candidate"]
        assert (one.basis, one.events, one.plan, one.formulation) == (
            "application",
            1_000,
            None,
            "",
        )
        assert (one.confs, one.parts, one.problem) == ({}, (), None)
        assert [x.number for x in found["baseline"]] == [2]

    @pytest.mark.parametrize(
        "change",
        [
            {"arm": "control"},
            {"stage": PROFILED},
            {"invalid": "digest"},
            {"measurement": measurement(0.0, steady_events=800)},
            {"measurement": measurement(10.0, wall_s=0.0)},
            {"measurement": measurement(10.0, events=5, steady_events=0)},
            {"measurement": measurement(None, events=0, steady_events=5)},
        ],
    )
    def test_what_does_not_count_is_left_out(self, begun: Store, change: dict[str, Any]) -> None:
        self.record(begun, **change)
        assert observed(begun, RUN, "q5") == {"candidate": [], "baseline": []}

    def test_it_is_of_one_query_and_the_large_columns_are_not_read(self, begun: Store) -> None:
        self.record(begun)
        asked: dict[str, Any] = {}
        known = begun.repetitions

        def noted(run: str, queries: Any, **how: Any) -> Any:
            asked.update(how)
            return known(run, queries, **how)

        begun.repetitions = noted  # type: ignore[method-assign]
        assert observed(begun, RUN, "q0") == {"candidate": [], "baseline": []}
        assert asked == {"leave_out": ("batch_list",)}


def read_back(verdict: Verdict, build: str = "") -> Verdict:
    """Return the verdict of the columns with which a verdict is recorded."""
    row = row_of(verdict, RUN, STARTED)
    return verdict_of([getattr(row, column.key) for column in COLUMNS], build)


class TestColumns:
    """A verdict as a row, and the row as the verdict again."""

    @pytest.mark.parametrize(
        "verdict",
        [
            VERDICT,
            Verdict(RUN, "q5", CPU, Value.MISSING, "lost", Mode.PAIRED, 2),
            replace(VERDICT, candidate=12.0, baseline=10.0, basis=Basis.STEADY, decides=False),
        ],
    )
    def test_a_verdict_comes_back(self, verdict: Verdict) -> None:
        found = read_back(verdict, "sha-430")
        assert found == verdict
        assert (found.build, found.judged, found.acceptance) == ("sha-430", STARTED, None)
        accepted = replace(verdict, acceptance=7)
        assert read_back(accepted).acceptance == 7

    def test_every_field_has_a_column(self) -> None:
        """A field that nobody writes would come back as its default."""
        full = {field.name: getattr(VERDICT, field.name) or field.name for field in fields(Verdict)}
        written = {**full, "mode": Mode.PAIRED, "value": Value.OK, "night": RUN}
        verdict = Verdict(**{**written, "judged": STARTED, "decides": False})
        found = read_back(verdict, verdict.build)
        assert asdict(found) == asdict(verdict)

    def test_of_bounds_there_is_the_run_and_no_pairs(self) -> None:
        said = by_bounds("q5", Value.OK, baseline_run="dag/base", repetitions=3, candidate=12.0)
        row = row_of(said, RUN, STARTED)
        assert (row.baseline_build, row.pairs, row.fresh_pairs) == (None,) * 3
        assert (row.bound, row.baseline_run, row.repetitions) == (1.1, "dag/base", 3)
        back = read_back(said)
        assert back == replace(said, night=RUN)
        assert (back.baseline_build, back.pairs, back.fresh_pairs) == ("", 0, 0)
        assert back.against == "dag/base"


class TestEarlier:
    def test_two_nights_that_began_at_once_are_in_the_order_of_their_names(
        self, store: Store
    ) -> None:
        for name in ("b", "a"):
            store.record_night(paired(run_id=name, build=BuildRecord(name, "4.3.0", name)))
            store.record_verdicts(paired(run_id=name).run, [replace(VERDICT, baseline_build="")])
        later = paired(2, started=paired().started + timedelta(seconds=1))
        store.record_night(later)
        found = store.earlier(later.run, 9)
        assert [(one.night[-1], one.build) for (one,) in found] == [("a", "a"), ("b", "b")]
        assert store.earlier(paired(run_id="b").run, 9) == []
        assert store.earlier(later.run, 9, ["q0"]) == [[], []]

    def test_verdicts_in_another_mode_than_the_nights_are_none_of_it(self, store: Store) -> None:
        store.record_night(paired())
        store.record_night(paired(2))
        store.record_verdicts(RUN, [VERDICT, replace(VERDICT, query="q0", mode=Mode.BOUNDS)])
        assert [[x.query for x in night] for night in store.earlier(paired(2).run, 9)] == [["q5"]]
        store.record_verdicts(RUN, [replace(VERDICT, mode=Mode.BOUNDS)])
        assert store.earlier(paired(2).run, 9) == []
