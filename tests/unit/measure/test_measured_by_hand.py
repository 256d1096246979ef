"""The measurements of one repetition from round figures, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import pytest

from nexmark.measure.cpu_series import CpuSeries
from nexmark.measure.host_samples import MeasurementError
from nexmark.measure.measurement import (
    MIN_INTERVALS,
    Measurement,
    SteadyWindow,
    measure_series,
    percentile,
    steady_window,
)
from nexmark.measure.result_file import ResultBatch, RunFacts, parse_result
from nexmark.measure.shares import ExecutorWork, TaskSpan
from nexmark.model import TASK_CPU
from tests.unit.measure.sample_builder import result

RUN = parse_result(result())
BATCHES = (
    ResultBatch(0, "data", 10.0, 30.0, 200, 20_000.0),
    ResultBatch(1, "data", 30.0, 50.0, 300, 18_000.0),
    ResultBatch(2, "data", 50.0, 80.0, 500, 30_000.0),
    ResultBatch(3, "end_of_input", 80.0, 90.0, 0, 10_000.0),
)
#: From 8 to 90; its events are twice the rows of its batches.
SMALL = replace(RUN, start=8.0, end=90.0, input_rows=2000, batches=BATCHES)
TIMES = (0.0, 10.0, 30.0, 32.0, 80.0, 90.0, 100.0)


def line(cores: float, *, more: float = 0.0) -> tuple[float, ...]:
    """Seconds at TIMES of something that uses `cores`, and `more` after the run."""
    used = [time * cores for time in TIMES]
    return (*used[:-1], used[-1] + more)


FIRST = CpuSeries(
    host="h1",
    interval_s=0.5,
    times=TIMES,
    executors=line(1.0, more=3.0),
    python=line(0.25, more=2.0),
    driver=line(0.125),
    busy=line(2.0),
    steal=line(0.5),
    executor_count=1,
    sampler_cores=0.01,
)
SECOND = replace(
    FIRST,
    host="h2",
    interval_s=0.25,
    executors=line(0.5),
    python=line(0.0),
    driver=None,
    busy=line(1.0),
    sampler_cores=0.02,
)


def measured(
    *series: CpuSeries, run: Any = SMALL, warmup: int = 1, least: int = 2, **more: Any
) -> Measurement:
    return measure_series(run, series, warmup_batches=warmup, min_intervals=least, **more)


def test_every_figure_of_a_repetition() -> None:
    """Events of the steady state: 800 of 1000 rows, so 1600 of 2000."""
    found = vars(measured(FIRST, SECOND))
    expected = {
        "events": 2000,
        "wall_s": 82.0,
        "cores": 1.75,
        "cpu_s": 143.5,
        "cpu_executors_s": 123.0,
        "cpu_python_s": 20.5,
        "cpu_driver_s": 10.25,
        "cpu_application_s": 103 + 27 + 50,
        "throughput": 2000 / 82,
        "throughput_per_core": 2000 / 143.5,
        "basis": "steady",
        "cpu_s_per_mevent": 87.5 / 1600 * 1e6,
        "cpu_s_per_mevent_steady": 87.5 / 1600 * 1e6,
        "cpu_s_per_mevent_application": 180 / 2000 * 1e6,
        "warmup_batches": 1,
        "steady_events": 1600,
        "steady_wall_s": 50.0,
        "steady_cpu_s": 87.5,
        "steady_throughput": 32.0,
        "steady_throughput_per_core": 1600 / 87.5,
        "batches": 4,
        "batch_ms_p50": 24_000.0,
        "batch_ms_p95": 29_400.0,
        "batch_ms_p99": 29_880.0,
        "hosts": ("h1", "h2"),
        "sampling_interval_s": 0.5,
        "sampler_cores": 0.02,
        "other_cores": 3 - 1.75 - 0.125,
        "steal_cores": 1.0,
        "figures": {},
        "latency": None,
        "ageing": None,
    }
    facts = {each.name: getattr(SMALL, each.name) for each in fields(RunFacts)}
    for name, value in (facts | expected).items():
        assert found.pop(name) == (pytest.approx(value) if isinstance(value, float) else value)
    assert found == {}


def tasks(*spans: tuple[float, float], executor: str = "0") -> ExecutorWork:
    """An executor whose tasks have a start and CPU-seconds."""
    of_spans = [TaskSpan((1, 0), start, start + 1, cpu_s) for start, cpu_s in spans]
    return ExecutorWork(executor, "h1", of_spans)


def test_the_work_of_tasks_is_what_started_in_the_steady_state_with_python() -> None:
    """The steady state is from 30 to 80; Python uses a quarter of a core in it."""
    work = [tasks((29.9, 100.0), (30.0, 3.0), (79.9, 4.0)), tasks((80.0, 100.0), (50.0, 5.0))]
    found = measured(FIRST, SECOND, work=work)
    assert found.figures == {TASK_CPU: pytest.approx((3 + 4 + 5 + 12.5) / 1600 * 1e6)}
    whole = measured(FIRST, SECOND, least=100, work=work)
    assert whole.figures == {TASK_CPU: pytest.approx((212 + 20.5) / 2000 * 1e6)}


def test_no_work_of_tasks_is_known() -> None:
    """Spark counts a task when it ends: a lost executor's are not there, a long task's are 0."""
    assert measured(FIRST, SECOND, work=[tasks((40.0, 0.0))]).figures == {}
    assert measured(FIRST, SECOND, work=[tasks((40.0, 1.0))], killed=True).figures == {}


def test_without_a_steady_state_the_application_is_the_basis() -> None:
    found = measured(FIRST, SECOND, least=100)
    assert found.basis == "application"
    assert found.cpu_s_per_mevent == found.cpu_s_per_mevent_application == 90_000
    steady = (x for name, x in vars(found).items() if "steady" in name)
    assert set(steady) == {None}


def test_executors_that_rest_in_the_steady_state_leave_none_to_measure() -> None:
    idle = replace(FIRST, executors=(0.0, 8.0, *[10.0] * 5), python=(0.0,) * 7, sampler_cores=None)
    found = measured(idle)
    assert (found.basis, found.cpu_s_per_mevent_steady) == ("application", None)
    assert (found.steady_cpu_s, found.steady_throughput_per_core) == (0.0, None)
    assert found.steady_throughput == 32.0
    assert found.sampler_cores is None


def test_half_a_second_of_cpu_is_a_measurement_and_none_is_not() -> None:
    none = replace(FIRST, executors=(0.0,) * 7, python=(0.0,) * 7)
    assert measured(replace(none, executors=line(0.005))).cpu_s == pytest.approx(0.41)
    with pytest.raises(MeasurementError, match=r"q5: the executors of .* used no CPU during"):
        measured(none)
    before = replace(none, executors=(0.0, *[5.0] * 6))
    with pytest.raises(MeasurementError, match="used no CPU during the run"):
        measured(before, run=replace(SMALL, start=10.0))


@pytest.mark.parametrize(
    ("series", "driver_s", "other"),
    [
        ((FIRST,), 10.25, 0.625),
        ((SECOND,), None, 0.5),
        ((replace(FIRST, busy=line(0.5)),), 10.25, 0.0),  # never below nothing
        ((FIRST, replace(SECOND, busy=None)), 10.25, None),
    ],
)
def test_what_is_neither_executor_nor_driver_is_another_s_where_whole_machines_are_seen(
    series: Sequence[CpuSeries], driver_s: float | None, other: float | None
) -> None:
    found = measured(*series)
    assert (found.cpu_driver_s, found.other_cores) == (driver_s, other)


@pytest.mark.parametrize(
    ("warmup", "least", "expected"),
    [
        (0, 2, SteadyWindow(10.0, 80.0, 2000)),
        (1, 2, SteadyWindow(30.0, 80.0, 1600)),
        (2, 2, None),  # 30 s; the readings around 50 s are 48 s apart
        (3, 2, None),
    ],
)
def test_the_steady_state_is_of_the_data_batches_after_the_warm_up(
    warmup: int, least: int, expected: SteadyWindow | None
) -> None:
    assert steady_window(SMALL, [FIRST], warmup, least) == expected


@pytest.mark.parametrize(
    ("interval_s", "times", "steady"),
    [
        (5.0, (10.0, 30.0, 32.0, 75.0, 80.0, 85.0), True),  # ten intervals to the second
        (5.1, (10.0, 30.0, 32.0, 75.0, 80.0, 85.0), False),
        (1.0, (10.0, 30.0, 35.0, 75.0, 80.0, 85.0), True),
        (1.0, (10.0, 30.0, 35.1, 75.0, 80.0, 85.0), False),
        (1.0, (10.0, 30.0, 35.0, 75.0, 80.0, 85.1), False),
    ],
)
def test_the_steady_state_is_at_least_so_many_intervals_and_gaps_long(
    interval_s: float, times: tuple[float, ...], steady: bool
) -> None:
    one = replace(FIRST, times=times, interval_s=interval_s)
    fine = replace(FIRST, times=tuple(float(x) for x in range(100)), interval_s=1.0)
    assert MIN_INTERVALS == 10
    for both in ([one, fine], [fine, one]):
        assert (steady_window(SMALL, both, 1, MIN_INTERVALS) is not None) is steady


@pytest.mark.parametrize(
    ("rows", "events", "expected"),
    [
        ((900, 60, 40), 2000, 200),
        ((0, 0, 0), 2000, None),
        ((1000, 0, 0), 2000, None),
        ((3, 1, 0), 4, 1),
        ((2, 1, 0), 2, 1),  # two thirds of an event
        ((4, 1, 0), 2, None),  # two fifths
    ],
)
def test_events_of_the_steady_state_are_its_share_in_the_rows(
    rows: tuple[int, ...], events: int, expected: int | None
) -> None:
    batches = tuple(replace(x, input_rows=n) for x, n in zip(BATCHES, rows, strict=False))
    window = steady_window(replace(SMALL, batches=batches, input_rows=events), [FIRST], 1, 2)
    assert (window and window.events) == expected


@pytest.mark.parametrize(
    ("percent", "expected"), [(0, 1.0), (25, 1.75), (50, 3.0), (60, 3.6), (100, 16.0)]
)
def test_a_percentile_is_between_the_two_nearest_ranks(percent: float, expected: float) -> None:
    assert percentile([16.0, 1.0, 4.0, 2.0], percent) == pytest.approx(expected)
    assert percentile([7.0], percent) == 7.0


def test_batches_that_started_in_another_order_are_refused() -> None:
    turned = (BATCHES[0], replace(BATCHES[1], start=9.5), *BATCHES[2:])
    with pytest.raises(MeasurementError, match="batch 1 started before batch 0"):
        measured(FIRST, run=replace(SMALL, batches=turned))
    together = (BATCHES[0], replace(BATCHES[1], start=10.0), *BATCHES[2:])
    assert measured(FIRST, run=replace(SMALL, batches=together)).batches == 4


class TestExecutors:
    """The first data batch begins at 10, the run ends at 90."""

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({"executor_count": 3}, r"2 executors were asked for and 3 were seen \(3 on h1\)"),
            ({"executor_count": 1}, r"2 executors were asked for and 1 were seen \(1 on h1\)"),
            (
                {"executor_starts": (5.0, 12.5), "executors_gone_before": 1},
                r"started too late \(on h1 2.5 s after its begin\)",
            ),
            ({"executor_ends": (82.5, 95.0)}, r"lost during the run \(on h1 7.5 s before the end"),
            ({"executor_ends": (90.0,)}, r"lost during the run \(on h1 0.0 s before the end"),
        ],
    )
    def test_one_too_many_too_few_too_late_or_lost_is_refused_unless_killed_on_purpose(
        self, fields: dict[str, Any], said: str
    ) -> None:
        none = replace(FIRST, host="h0", executor_count=0)
        own = replace(FIRST, **{"executor_count": 2, **fields})
        with pytest.raises(MeasurementError, match=said):
            measured(none, own, executors=2)
        assert measured(none, own, executors=2, killed=True).hosts == ("h0", "h1")

    @pytest.mark.parametrize(
        "fields",
        [
            {},
            {"executor_starts": (5.0, 10.0), "executors_gone_before": 1},
            {"executor_starts": (12.5,)},
            {"executors_gone_before": 1},
            {"executor_ends": (90.5,)},
        ],
    )
    def test_those_that_were_there_all_the_time_are_measured(self, fields: dict[str, Any]) -> None:
        assert measured(replace(FIRST, **fields), executors=1).hosts == ("h1",)

    def test_where_nobody_says_how_many_any_number_will_do(self) -> None:
        assert measured(replace(FIRST, executor_count=7)).hosts == ("h1",)

    def test_none_at_all_is_said_with_the_hosts(self) -> None:
        none = replace(FIRST, executor_count=0)
        said = "q5: no executor of app-.* in the samples of h1, h2;"
        with pytest.raises(MeasurementError, match=said):
            measured(none, replace(none, host="h2"), executors=2)
