"""View models: from rows to what a page says, without HTML."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from difflib import unified_diff
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nexmark.attribution.differences import PlanState
from nexmark.evidence.build_comparison import compare
from nexmark.evidence.explaining import confs_compared
from nexmark.evidence.gate_health import hosts_of, right, seen_of
from nexmark.evidence.night_evidence import cost_of, night_evidence
from nexmark.evidence.night_list import GREEN, NOT_JUDGED, PAGE, RED, legend, look, nights_page
from nexmark.evidence.pairs import (
    MOST_POINTS,
    Arms,
    CpuCurve,
    arms_of,
    batch_medians,
    cores,
    pairs_of,
)
from nexmark.evidence.query_evidence import query_evidence, source_of
from nexmark.model import CPU, PROFILED, Basis, Mode, Value
from nexmark.report import charts
from nexmark.report.evidence_files import question_text
from nexmark.report.rendering import MOST, WIDTH, diff_lines, environment, scale_of
from nexmark.store import Store
from nexmark.store.history import tallies
from nexmark.store.query_history import RatioPoint, lasting_changes, trail
from nexmark.store.table_rows import RepetitionRow, SelfTestRow
from nexmark.verdict.verdict import Verdict
from nexmark.web.pages import query_of
from tests.unit.store.store_builder import by_bounds, night, record
from tests.unit.web import web_nights

STARTED = datetime(2026, 1, 1, tzinfo=UTC)


def repetition(arm: str = "candidate", number: int = 1, **changes: Any) -> Any:
    values: dict[str, Any] = {
        **{"query": "q5", "arm": arm, "number": number, "stage": 1, "status": "ok"},
        **{"plan_id": "p", "plan_skeleton_hash": "s", "wall_s": 10.0, "formulation": "panes"},
        **{"cpu_s_per_mevent": 40.0, "cpu_s_per_mevent_steady": 40.0, "confs": None},
        "cpu_s_per_mevent_application": 60.0,
    }
    return RepetitionRow(**{**values, **changes})


def point(number: int, ratio: float, baseline: str = "b") -> RatioPoint:
    at = STARTED + timedelta(days=number)
    numbers: dict[str, Any] = {"ratio": ratio, "noise": 0.01, "build": "c"}
    said = Verdict(str(number), "q5", CPU, Value.OK, "", Mode.PAIRED, 1, **numbers)
    return RatioPoint(at, "4.3.0", "s", baseline, said, "4.3.0 c", baseline)


# --- the drawing of an interval


def interval(
    ratio: float | None, lo: float | None = None, hi: float | None = None, mde: float | None = None
) -> str:
    macros = environment().get_template("macros.html").module
    row = SimpleNamespace(ratio=ratio, lo=lo, hi=hi, mde=mde)
    return str(macros.interval(scale_of([ratio, lo, hi]), row))  # type: ignore[attr-defined]


def test_as_slow_and_as_fast_are_as_far_from_the_middle() -> None:
    scale = scale_of([1.2, 1 / 1.2])
    assert scale.x(1) == WIDTH / 2
    assert scale.x(1.2) - WIDTH / 2 == pytest.approx(WIDTH / 2 - scale.x(1 / 1.2), abs=0.2)


def test_what_is_off_the_scale_is_cut_and_says_so() -> None:
    drawn = interval(30.0, 0.9, 40.0)
    (cut,) = re.findall(r'class="cut" d="M([\d.]+) 10l-5-4v8z"', drawn)
    (dot,) = re.findall(r'class="dot" cx="([\d.]+)"', drawn)
    (left,) = re.findall(r'class="span" x1="([\d.]+)" x2="[\d.]+" y1="10"', drawn)
    assert 0 <= float(left) < float(dot) == float(cut) <= WIDTH
    assert scale_of([30.0]).ends[1] <= math.exp(MOST) * 1.01


@pytest.mark.parametrize("ratio", [None, 0.0, -1.0, math.nan, math.inf])
def test_what_is_no_ratio_has_no_drawing(ratio: float | None) -> None:
    assert "svg" not in interval(ratio)


def test_a_drawing_has_words() -> None:
    assert (
        "<title>ratio 1.100, 95 % interval 1.050 to 1.150; a change of 7.0% could have been seen<"
    ) in interval(1.1, 1.05, 1.15, 0.07)


# --- verdicts


def test_every_verdict_has_a_word_a_shape_and_a_rank_of_its_own() -> None:
    looks = [look(value) for value in Value]
    assert len({x.shape for x in looks}) == len({x.rank for x in looks}) == len(Value)
    assert [x.word for x in looks] == [value.value for value in Value]
    assert len(legend()) == len(Value)


def test_what_is_accepted_comes_after_what_is_open() -> None:
    assert look(Value.REGRESSION, known=True).rank > look(Value.OK).rank
    assert look(Value.REGRESSION, known=True).tone == "calm"


# --- what a night cost


def test_the_cost_of_a_night_is_its_time_and_how_much_of_it_was_measured_steadily() -> None:
    ran = [
        repetition(number=number, start=1000.0 * number, end=1000.0 * number + 60, steady_wall_s=40)
        for number in (1, 2, 3)
    ]
    cost = cost_of([*ran, repetition(number=4, status="invalid")])
    assert cost is not None
    assert cost.words == "3 timed applications in 34:20, 6% of it steady measured work"
    assert cost_of([repetition()]) is None


@pytest.mark.parametrize(
    ("cpu_s", "words"),
    [((1800.0, 3600.0), "; 1.5 CPU-hours"), ((30.0, 60.0), "; 1.5 CPU-minutes"), ((1, None), "")],
)
def test_the_cost_of_a_night_has_its_cpu_time_if_all_of_it_is_known(
    cpu_s: tuple[float | None, ...], words: str
) -> None:
    cost = cost_of([repetition(start=0.0, end=60.0, cpu_application_s=each) for each in cpu_s])
    assert cost is not None
    assert cost.words == f"2 timed applications in 1:00, 0% of it steady measured work{words}"


def test_the_cost_of_a_soak_has_the_time_of_its_samples() -> None:
    ageing = [{"batch": batch, "at": [batch, batch + 0.5]} for batch in (100, 200)]
    cost = cost_of([repetition(start=0.0, end=100.0, steady_wall_s=60, ageing=ageing)])
    assert cost is not None
    assert cost.words.endswith("1:40, 60% of it steady measured work and 1.0% samples")


# --- arms, plans, pairs


@pytest.mark.parametrize(
    ("baseline", "state"),
    [
        ({}, PlanState.SAME),
        ({"plan_id": "other"}, PlanState.DETAILS),
        ({"plan_id": "other", "plan_skeleton_hash": "other"}, PlanState.CHANGED),
        ({"plan_skeleton_hash": None}, PlanState.UNKNOWN),
    ],
)
def test_whether_the_plan_has_changed(baseline: dict[str, Any], state: str) -> None:
    rows = [repetition(), repetition("baseline", **baseline)]
    assert arms_of(rows)["q5"].plan == state


def test_only_first_repetitions_that_count_are_compared() -> None:
    rows = [
        repetition(wall_s=20.0),
        repetition(number=2, wall_s=500.0, status="invalid"),
        repetition(number=1, wall_s=500.0, stage=2),
        repetition("baseline"),
        repetition("control", wall_s=500.0),
    ]
    assert arms_of(rows)["q5"].ratio("wall_s") == 2.0
    assert Arms().ratio("wall_s") is None


def test_the_baseline_of_bounds_is_the_candidate_of_another_night() -> None:
    arms = arms_of([repetition(wall_s=20.0)], {"q5": [repetition(), repetition("baseline")]})
    assert arms["q5"].ratio("wall_s") == 2.0


def test_pairs_are_of_one_basis_and_later_rounds_come_last() -> None:
    rows = [
        repetition(stage=2, cpu_s_per_mevent_application=90.0),
        repetition("baseline", stage=2),
        repetition("baseline"),
        repetition(),
        repetition(number=2),
    ]
    pairs = pairs_of(rows, "application")
    assert [(x.label, x.ratio) for x in pairs] == [("1", 1.0), ("2", None), ("2.1", 1.5)]


def test_a_difference_of_plans_has_its_lines_with_signs() -> None:
    diff = unified_diff(["a", "b", "c"], ["a", "B", "c"], "baseline", "candidate", lineterm="")
    lines = diff_lines(list(diff))
    assert lines[1:] == [("", "a"), ("-", "b"), ("+", "B"), ("", "c")]


def test_confs_that_differ_are_reported_but_our_own_and_no_secret_is() -> None:
    ours = {"spark.a": "1", "spark.same": "x", "spark.my.password": "1", "spark.eventLog.dir": "1"}
    theirs = {"spark.a": "2", "spark.same": "x", "spark.my.password": "2", "spark.b": "3"}
    found = [x for x in confs_compared([ours], [theirs]) or () if not x.set_by_harness]
    assert [(x.key, x.candidate, x.baseline) for x in found] == [
        ("spark.a", "1", "2"),
        ("spark.b", None, "3"),
        ("spark.my.password", "***", "***"),
    ]


# --- timelines


def test_cores_are_what_was_used_between_readings() -> None:
    points = cores(web_nights.series("n02", 2000), 1000.0)
    assert len(points) <= MOST_POINTS
    assert points[-1][0] == pytest.approx(1999.0, abs=5)
    assert all(used == pytest.approx(1.4, abs=0.1) for _, used in points[:-1])


def test_readings_of_other_repetitions_are_not_shown() -> None:
    points = cores(web_nights.series("n02", 2000), 1500.0, 1600.0)
    assert -11 <= points[0][0] <= -9
    assert 104 <= points[-1][0] <= 105


def test_batches_are_medians_over_the_repetitions() -> None:
    rows = [repetition(batch_list=[{"id": 0, "duration_ms": ms}]) for ms in (1000, 2000, 9000)]
    (batch,) = batch_medians([*rows, repetition("slowed", batch_list=[{"id": 0}])])
    assert (batch.duration_ms, batch.state_bytes) == (2000.0, None)


def test_batches_of_a_repetition_that_does_not_count_are_not_in_the_medians() -> None:
    odd = {"batch_list": [{"id": 0, "duration_ms": 9000}]}
    rows = [repetition(batch_list=[{"id": 0, "duration_ms": 1000}])]
    rows += [repetition(number=2, status="invalid", **odd), repetition(stage=PROFILED, **odd)]
    assert [batch.duration_ms for batch in batch_medians(rows)] == [1000.0]


# --- history


def test_a_lasting_change_is_dated_and_one_of_the_baseline_is_none() -> None:
    noise = [0.002 * (-1) ** number for number in range(40)]
    series = [point(n, (1.2 if n >= 20 else 1.0) + noise[n]) for n in range(40)]
    (found,) = lasting_changes(series)
    assert found.first.verdict.night == found.change.night == "20"
    moved = [
        point(n, x.verdict.ratio or 1, "b" if n < 20 else "never measured")
        for n, x in enumerate(series)
    ]
    assert lasting_changes(moved) == []


def test_a_trail_has_the_newest_verdict_of_each_night(store: Store) -> None:
    first = web_nights.record(store, 1)
    run = web_nights.record(store, 2, {"q0": Value.REGRESSION, "q5": Value.OK})
    later = web_nights.record(store, 3)
    night = store.night(run)
    points = trail(store, night, "q0", "cpu_s_per_mevent", 10)
    assert [(x.verdict.night, x.verdict.value) for x in points] == [
        (first, "OK"),
        (run, "REGRESSION"),
    ]
    assert later not in [x.verdict.night for x in points]


def test_verdicts_are_counted_as_the_night_counts_them(store: Store) -> None:
    run = web_nights.record(store, 1, web_nights.ALL_VALUES)
    tally = tallies(store, [store.night(run)])[run]
    assert tally.values == dict.fromkeys([value.value for value in Value], 1)
    assert tally.red == sum(row.red for row in store.verdicts(run)) == 4


# --- pages


@pytest.mark.parametrize(
    ("values", "colour"),
    [
        ({"q0": Value.OK}, GREEN),
        ({"q0": Value.NO_BASELINE, "q1": Value.WATCH}, GREEN),
        ({"q0": Value.OK, "q1": Value.SUSPECT}, RED),
        ({"q0": Value.MISSING}, RED),
    ],
)
def test_a_night_has_the_colour_of_its_verdicts(
    store: Store, values: dict[str, Value], colour: str
) -> None:
    run = web_nights.record(store, 1, values)
    page = night_evidence(store, store.night(run))
    assert page.colour == colour
    (line,) = nights_page(store, [web_nights.DAG]).lines[:1]
    assert line.colour == colour


def test_a_night_that_compared_nothing_is_not_green_for_the_eye(store: Store) -> None:
    first = by_bounds("q5", Value.NO_BASELINE, "no accepted baseline")
    run = record(store, night(1))
    store.record_verdicts(run, [first])
    page = night_evidence(store, store.night(run))
    (line,) = nights_page(store, [store.night(run).dag_id]).lines
    assert page.colour == line.colour == "NOT COMPARED"
    assert look(Value.NO_BASELINE).tone not in {
        look(value).tone for value in Value if value != Value.NO_BASELINE
    }
    assert page.report.lines[0].startswith("NOTHING COMPARED: no accepted baseline; ")
    assert "Nothing was compared" in question_text(page, Path("x.html"), Path("kept"))


def test_a_night_without_verdicts_is_neither_green_nor_red(store: Store) -> None:
    made = web_nights.paired_night(1)
    web_nights.start(store, made)
    page = night_evidence(store, store.night(made.run))
    assert (page.colour, page.done, len(page.lines)) == (NOT_JUDGED, 0, 2)


def test_the_page_of_a_night_says_what_why_and_what_next(store: Store) -> None:
    before = web_nights.record(store, 1)
    run = web_nights.record(store, 2, {"q0": Value.OK, "q2": Value.REGRESSION})
    page = night_evidence(store, store.night(run))
    what, why, *_, after, health, _ = page.report.lines
    assert what.startswith("NIGHT FAILED: 1 slower (q2)")
    assert "q2" in why
    assert "nexmark accept" in after
    assert health.startswith("Gate: ")
    assert page.report.alarms
    assert (page.before, page.after) == (before, None)
    assert [host.name for host in page.hosts] == ["n02", "n03"]
    assert page.hosts[0].apart == pytest.approx(0.01)


def test_the_page_of_a_query_has_the_canary_of_its_later_rounds(store: Store) -> None:
    values = {"q0": Value.OK, "q1": Value.OK, "q5": Value.REGRESSION}
    run = web_nights.record(store, 1, values)
    web_nights.record_canary(store, run, ("n02",), group="round_2")
    pages = {query: query_evidence(store, store.night(run), query) for query in values}
    groups = {query: {(x.group, x.host) for x in page.canary} for query, page in pages.items()}
    own = {("q0", "n02"), ("q0", "n03")}
    assert groups == {"q0": own, "q1": set(), "q5": {("round_2", "n02")}}
    shown = str(environment().get_template("macros.html").module.setting(pages["q5"]))  # type: ignore[attr-defined]
    assert "<td>round_2</td><td>n02</td>" in shown


def test_the_page_of_a_query_has_what_may_explain_it(store: Store) -> None:
    run = web_nights.record(store, 1, {"q0": Value.OK, "q5": Value.REGRESSION})
    page = query_evidence(store, store.night(run), "q5")
    assert page.plans.state == PlanState.CHANGED
    assert {sign for sign, _ in diff_lines(page.plans.diff)} >= {"+", "-"}
    assert len(page.pairs) == 6
    assert [curve.host for curve in page.cpu] == ["n02", "n03"] * 2
    assert len(page.batches) == 16
    assert page.source is not None
    assert "SELECT" in page.source.reference
    assert "def panes" in page.source.formulation
    assert page.since.startswith("since build 4.3.0")


def test_the_list_of_nights_has_pages(store: Store) -> None:
    for number in range(PAGE + 2):
        web_nights.start(store, web_nights.paired_night(number % 60, run_id=f"r{number}"))
    last = nights_page(store, [web_nights.DAG], 99)
    assert (last.page, last.pages, last.total) == (2, 2, PAGE + 3)
    assert len(last.lines) == 3


# --- gate, builds, hosts


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("aa", Value.OK, True),
        ("aa", Value.REGRESSION, False),
        ("aa", Value.INVALID, None),
        ("slowdown", Value.REGRESSION, True),
        ("slowdown", Value.UNDECIDED, False),
        ("slowdown", Value.NO_BASELINE, None),
    ],
)
def test_when_the_gate_was_right(kind: str, value: Value, expected: bool | None) -> None:
    test = SelfTestRow(night_id="n", kind=kind, query="q1", value=value)
    assert right(test) is expected


def seen_verdict(query: str, mde: float | None) -> Verdict:
    return Verdict("n", query, CPU, Value.OK, "", Mode.PAIRED, 8, mde=mde, noise=0.01)


def test_the_least_visible_query_comes_first() -> None:
    seen = seen_of(
        [
            seen_verdict("q0", 0.05),
            seen_verdict("q1", 0.2),
            seen_verdict("q0", 0.07),
            seen_verdict("q2", None),
        ]
    )
    assert [(x.query, x.mde) for x in seen] == [
        ("q1", 0.2),
        ("q0", pytest.approx(0.06)),
        ("q2", None),
    ]


def figure(build: str, baseline: str = "", **changes: Any) -> Verdict:
    verdict = Verdict("n", "q5", CPU, Value.OK, "", Mode.PAIRED, 8, baseline_build=baseline)
    figures = {"candidate": 40.0, "baseline": 50.0, "basis": Basis.STEADY, "build": build}
    return replace(verdict, **{**figures, **changes})


def test_pairs_of_two_builds_count_before_their_medians() -> None:
    ours = [figure("new", "old", ratio=1.1, lo=1.05, hi=1.15, candidate=80.0)]
    (line,) = compare(ours, [figure("old")], ours, [figure("old")], "new", "old")
    assert (line.ratio, line.lo, line.paired) == (pytest.approx(1.1), 1.05, True)


def test_pairs_the_other_way_round_are_turned_round() -> None:
    theirs = [figure("old", "new", ratio=0.5, lo=0.4, hi=0.8)]
    (line,) = compare([], [], [], theirs, "new", "old")
    assert (line.ratio, line.lo, line.hi) == (2.0, 1.25, 2.5)
    assert line.new == 50.0


def test_without_pairs_medians_of_different_nights_are_compared_on_one_basis() -> None:
    ours = [figure("new", candidate=44.0), figure("new", candidate=900.0, basis=Basis.APPLICATION)]
    ours.append(figure("new", candidate=44.0))
    (line,) = compare(ours, [figure("old")], ours, [], "new", "old")
    assert (line.ratio, line.paired) == (pytest.approx(1.1), False)


def test_a_host_shows_the_timing_that_moved_most() -> None:
    def reading(metric: str, moment: str, mean: float) -> Any:
        return SimpleNamespace(host="n02", group="", metric=metric, moment=moment, value=mean)

    (host,) = hosts_of(
        [
            *(reading("cpu_s", "before", 1.0), reading("cpu_s", "after", 0.8)),
            *(reading("cpu_memory_s", "before", 1.0), reading("cpu_memory_s", "after", 1.1)),
            *(reading("fsync_s", "before", 1.0), reading("fsync_s", "after", 9.0)),
            reading("steal_percent", "after", 3.0),
        ]
    )
    assert (host.timing, host.drift, host.steal_percent) == ("cpu_s", 0.8, 3.0)
    assert host.load is None


@pytest.mark.parametrize(
    ("task", "query"),
    [
        ("q5.record", "q5"),
        ("q14_python_udf.plan", "q14_python_udf"),
        ("judge", ""),
        ("q99", ""),
    ],
)
def test_a_task_belongs_to_the_query_of_its_group(task: str, query: str) -> None:
    assert query_of(task) == query


def test_texts_of_a_query_are_those_of_this_package() -> None:
    source = source_of("q14_python_udf")
    assert source is not None
    assert source.name.endswith("q14_calculation.py")
    assert source_of("q5/../../x") is None


def test_a_chart_of_one_arm_has_its_table() -> None:
    chart = charts.cpu_chart("n02", [CpuCurve("candidate", 1, 1, "n02", 1.0, (1.0,), (2.0,))])
    assert chart.rows == (("candidate", 1.0, 2.0),)


def test_no_page_knows_a_path_of_this_machine_beside_that_of_the_night() -> None:
    templates = Path(charts.__file__).with_name("templates")
    assert all("event_log_path" not in path.read_text() for path in templates.iterdir())
