"""Parts of a repetition and operators of a plan: each figure, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from nexmark.measure.event_log import EventLog, StageTotals
from nexmark.measure.executed_plan import (
    OPERATOR,
    OUTSIDE,
    PHASE,
    STAGE,
    TASKS,
    Part,
    PlanNode,
    SqlMetric,
    nodes_of,
    places_in_reference,
)
from nexmark.measure.operator_times import parts

BUILD, UPDATE = "time in aggregation build [s]", "time to update [s]"
COMMIT, WRITE, SORT = "time to commit changes [s]", "shuffle write time [s]", "sort time [s]"


@pytest.mark.parametrize(
    ("metric", "key", "value"),
    [
        (SqlMetric("number of rows", "sum"), "number of rows", 7),
        (SqlMetric("data size", "size"), "data size [bytes]", 7),
        (SqlMetric("time to update", "timing"), "time to update [s]", 0.007),
        (SqlMetric("shuffle write time", "nsTiming"), "shuffle write time [s]", 0.0),
        (SqlMetric("number of total state rows", "sum"), "number of total state rows", 4),
        (SqlMetric("memory used by state", "size"), "memory used by state [bytes]", 4),
    ],
)
def test_a_metric_has_its_unit_and_adds_up_unless_it_is_a_level(
    metric: SqlMetric, key: str, value: float
) -> None:
    assert metric.key == key
    assert metric.over_batches([1, 4, 2]) == pytest.approx(value, abs=1e-12)


def test_nanoseconds_are_seconds_to_the_microsecond() -> None:
    assert SqlMetric("x", "nsTiming").over_batches([1_234_567_890]) == 1.234568
    assert SqlMetric("x", "nsTiming").over_batches([10**15]) == 10.0**6


def node(place: int, parent: int | None, name: str) -> PlanNode:
    return PlanNode(place, parent, 0, name, None, {})


class TestPlan:
    def info(self, name: str, *children: dict[str, Any], metrics: Any = ()) -> dict[str, Any]:
        own = [
            {"accumulatorId": number, "name": text, "metricType": kind}
            for number, (text, kind) in enumerate(metrics)
        ]
        return {"nodeName": name, "simpleString": name, "children": [*children], "metrics": own}

    @pytest.mark.parametrize(
        ("name", "kind", "kept"),
        [
            ("number of output rows", "sum", True),
            ("sort time", "timing", True),
            ("avg hash probes", "average", False),
            ("custom", "v2Custom", False),
            ("peak memory", "size", False),
            ("number of partitions", "sum", False),
            ("remote merged bytes read", "size", False),
            ("local blocks read", "sum", False),
            ("duration", "timing", False),
            ("task commit time", "timing", False),
            ("duration of it", "timing", True),
            ("local bytes read", "size", False),
            ("records read", "sum", False),
        ],
    )
    def test_metrics_that_nobody_compares_are_left_out(
        self, name: str, kind: str, kept: bool
    ) -> None:
        (only,) = nodes_of(self.info("Scan", metrics=[(name, kind)]))
        assert only.metrics == ({0: SqlMetric(name, kind)} if kept else {})

    def test_an_operator_that_prints_nothing_has_the_name_of_its_node(self) -> None:
        silent = {**self.info("Scan"), "simpleString": ""}
        assert [x.name for x in nodes_of(self.info("Project", silent))] == ["Project", "Scan"]

    def test_an_operator_in_generated_code_knows_which_until_the_next_wrapper(self) -> None:
        plan = self.info(
            "WholeStageCodegen (3)",
            self.info("A", self.info("B", self.info("InputAdapter", self.info("C")))),
        )
        assert [(x.name, x.codegen) for x in nodes_of(plan)] == [("A", 3), ("B", 3), ("C", None)]

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("Exchange (a, b)", True),
            ("BroadcastExchange", True),
            ("ReusedExchange (a)", False),
            ("Project", False),
        ],
    )
    def test_an_exchange_is_one_by_its_first_word(self, name: str, expected: bool) -> None:
        assert node(0, None, name).is_exchange is expected

    def test_only_metrics_with_a_value_are_shown_by_name_and_added_where_names_are_equal(
        self,
    ) -> None:
        one = PlanNode(4, 3, 2, "Scan", None, {}, stage=5)
        found = one.operator(
            {
                SqlMetric("rows", "sum"): 3,
                SqlMetric("b", "timing"): 1.5,
                SqlMetric("b", "nsTiming"): 0.25,
                SqlMetric("nothing", "sum"): 0,
            }
        )
        metrics = {"b [s]": 1.75, "rows": 3}
        assert found == Part(4, OPERATOR, "Scan", parent=3, depth=2, stage=5, metrics=metrics)
        assert list(found.metrics) == ["b [s]", "rows"]

    @pytest.mark.parametrize(
        ("plan", "places"),
        [
            ("ABC", [0, 1, 2]),
            ("AXC", [0, None, 2]),
            ("BC", [1, 2]),
            ("XABC", [None, 0, 1, 2]),
            ("X", [None]),
        ],
    )
    def test_another_plan_is_laid_on_it_by_names(self, plan: str, places: list[int | None]) -> None:
        reference = [node(place, None, name) for place, name in enumerate("ABC")]
        assert (
            places_in_reference([node(i, None, name) for i, name in enumerate(plan)], reference)
            == places
        )


def test_a_long_plan_with_many_equal_operators_is_laid_on_another() -> None:
    reference = [node(place, None, "Project") for place in range(250)]
    assert places_in_reference([node(0, None, "Filter"), *reference], reference) == [
        None,
        *range(250),
    ]


def chain(*operators: tuple[str, int, dict[str, float]]) -> tuple[Part, ...]:
    return tuple(
        Part(
            *(place, OPERATOR, name), parent=place - 1 if place else None, stage=stage, metrics=own
        )
        for place, (name, stage, own) in enumerate(operators)
    )


class TestParts:
    STAGES = {  # noqa: RUF012
        2: StageTotals(2, 4.0, 0.25, 8.0, 0.5, 0.125),
        None: StageTotals(1, 1.0, 0.5, 2.0, 0.25, 0.0),
        1: StageTotals(3, 2.0, 0.0, 8.0, 0.0, 0.0),
    }

    def found(self) -> list[Part]:
        operators = chain(("top", 2, {WRITE: 2.0}), ("low", 1, {SORT: 4.0}))
        return parts(EventLog(operators, self.STAGES), 20.0, {"addBatch": 3.0, "walCommit": 0.5})

    def test_parts_are_in_order_and_numbered(self) -> None:
        assert [(x.place, x.kind, x.name, x.stage) for x in self.found()] == [
            (0, OPERATOR, "top", 2),
            (1, OPERATOR, "low", 1),
            (2, STAGE, "rest of stage 1", 1),
            (3, STAGE, "rest of stage 2", 2),
            (4, STAGE, "tasks of no known stage", None),
            (5, TASKS, "starting tasks", None),
            (6, OUTSIDE, "outside of tasks", None),
            (7, PHASE, "addBatch", None),
            (8, PHASE, "walCommit", None),
        ]

    def test_each_has_its_seconds(self) -> None:
        """Threads of stage 2 used half of their time, and threads of stage 1 a quarter."""
        expected = [1.0, 1.0, 1.0, 3.0, 1.0, 0.75, 20 - 7.75, None, None]
        assert [x.cpu_s for x in self.found()] == pytest.approx(expected)

    def test_each_has_its_figures(self) -> None:
        found = {x.name: dict(x.metrics) for x in self.found()}
        assert found["rest of stage 2"] == {
            "tasks": 2,
            "CPU of tasks [s]": 4.0,
            "CPU of starting tasks [s]": 0.25,
            "time of tasks [s]": 8.0,
            "garbage collection [s]": 0.5,
            "waiting for shuffle data [s]": 0.125,
        }
        assert found["rest of stage 1"] == {
            "tasks": 3,
            "CPU of tasks [s]": 2.0,
            "time of tasks [s]": 8.0,
        }
        assert found["starting tasks"] == {"tasks": 6}
        assert found["outside of tasks"] == {"garbage collection while tasks ran [s]": 0.75}
        assert found["walCommit"] == {"time [s]": 0.5}

    def test_own_stopwatches_of_one_operator_add_up_and_of_spans_the_longest_counts(self) -> None:
        one = chain(("a", 1, {COMMIT: 1.0, WRITE: 0.5, SORT: 0.25, BUILD: 2.0, UPDATE: 1.0}))
        log = EventLog(one, {1: StageTotals(1, 10.0, 0.0, 10.0)})
        assert parts(log, 10.0, {})[0].cpu_s == pytest.approx(3.75)

    def test_stopwatches_of_a_stage_that_used_no_cpu_time_are_none_either(self) -> None:
        log = EventLog(chain(("a", 1, {WRITE: 2.0})), {1: StageTotals(1, 0.0, 0.0, 4.0)})
        assert [x.cpu_s for x in parts(log, 1.0, {})[:2]] == [0.0, 0.0]

    def test_a_stage_that_ran_for_less_than_a_millisecond_keeps_its_cpu_time(self) -> None:
        """Spark tells CPU time in nanoseconds, and the time of a task in milliseconds."""
        log = EventLog(chain(("a", 1, {})), {1: StageTotals(1, 0.000_812_345_6, 0.0, 0.0)})
        _, rest, *_ = parts(log, 1.0, {})
        assert (rest.cpu_s, rest.depth) == (0.000_812_345_6, 0)
        assert rest.metrics == {"tasks": 1, "CPU of tasks [s]": 0.000_812}

    def test_a_span_that_is_shorter_than_what_is_below_is_nothing_and_not_less(self) -> None:
        two = chain(("a", 1, {BUILD: 1.0, WRITE: 0.5}), ("b", 1, {WRITE: 3.0}))
        log = EventLog(two, {1: StageTotals(1, 10.0, 0.0, 10.0)})
        assert [x.cpu_s for x in parts(log, 10.0, {})[:2]] == pytest.approx([0.5, 3.0])

    def test_both_inputs_of_a_join_are_in_its_span(self) -> None:
        join = (
            Part(0, OPERATOR, "agg", stage=1, metrics={BUILD: 9.0}),
            Part(1, OPERATOR, "join", parent=0, stage=1),
            Part(2, OPERATOR, "left", parent=1, stage=1, metrics={SORT: 2.0}),
            Part(3, OPERATOR, "scan", parent=2, stage=1),
            Part(4, OPERATOR, "right", parent=1, stage=1, metrics={BUILD: 3.0}),
            Part(5, OPERATOR, "other", parent=1, stage=2, metrics={BUILD: 1.0}),
        )
        log = EventLog(join, {1: StageTotals(1, 10.0, 0.0, 10.0), 2: StageTotals(1, 1.0, 0, 1.0)})
        found = parts(log, 20.0, {})
        assert [x.cpu_s for x in found[:6]] == [4.0, None, 2.0, None, 3.0, 1.0]
        assert [x.covers for x in found[:6]] == [(1, 3), (), (), (), (), ()]
