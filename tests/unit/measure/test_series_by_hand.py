"""A series of CPU by hand: what it says at an instant, what is kept of it, and whose it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nexmark.measure.cpu_series import CpuSeries, pack, unpack
from nexmark.measure.host_samples import MeasurementError
from nexmark.measure.shares import HostExecutors, ProcessCpu

WHOLE = CpuSeries(
    host="h1",
    interval_s=0.5,
    times=(10.0, 12.0, 16.0),
    executors=(1.0, 5.0, 13.25),
    python=(0.0, 0.5, 0.75),
    driver=(2.0, 2.5, 2.75),
    busy=(0.0, 9.0, 27.125),
    steal=(0.0, 0.25, 1.0),
    executor_count=2,
    sampler_cores=0.015,
    executor_ends=(15.5,),
    executor_starts=(9.5, 9.75),
    executors_gone_before=1,
)


@pytest.mark.parametrize(
    ("instant", "value", "gap"),
    [(10.0, 1.0, 2.0), (11.0, 3.0, 2.0), (12.0, 5.0, 4.0), (14.0, 9.125, 4.0), (16.0, 13.25, 4.0)],
)
def test_between_two_readings_a_value_is_on_the_line_from_one_to_the_other(
    instant: float, value: float, gap: float
) -> None:
    assert WHOLE.at(WHOLE.executors, instant) == value
    assert WHOLE.gap_at(instant) == gap
    assert WHOLE.between(WHOLE.executors, 10.0, instant) == value - 1.0


@pytest.mark.parametrize(
    ("times", "instant", "said"),
    [
        ((10.0, 12.0, 16.0), 9.5, r"of host h1 begin after the run \(0.5 s short\)"),
        ((10.0, 12.0, 16.0), 18.0, r"of host h1 end before the run \(2.0 s short\)"),
        ((10.0,), 10.0, r"of host h1 end before the run \(0.0 s short\)"),
        ((10.0,), 9.0, r"of host h1 begin after the run \(1.0 s short\)"),
    ],
)
def test_an_instant_that_no_two_readings_enclose_is_refused(
    times: tuple[float, ...], instant: float, said: str
) -> None:
    with pytest.raises(MeasurementError, match=said):
        replace(WHOLE, times=times).at(WHOLE.executors, instant)


def test_two_readings_are_enough() -> None:
    assert replace(WHOLE, times=(10.0, 12.0)).at((1.0, 5.0), 11.0) == 3.0


@pytest.mark.parametrize(
    "series", [WHOLE, replace(WHOLE, driver=None, busy=None, steal=None, sampler_cores=None)]
)
def test_what_was_packed_is_what_is_unpacked(series: CpuSeries) -> None:
    assert unpack(pack(series)) == series


def test_times_and_seconds_are_kept_to_the_millisecond() -> None:
    exact = replace(WHOLE, executors=(0.0004, 0.9996, 13.2504))
    assert unpack(pack(exact)).executors == (0.0, 1.0, 13.25)


def test_where_another_sampler_counts_the_executors_only_the_rest_is_left() -> None:
    nothing = (0.0, 0.0, 0.0)
    left = replace(
        WHOLE,
        executors=nothing,
        python=nothing,
        executor_count=0,
        executor_starts=(),
        executor_ends=(),
        executors_gone_before=0,
    )
    assert WHOLE.without_executors() == left
    one = HostExecutors("h1", 0.5, (1.0, 2.0), (ProcessCpu((1.0, 2.0), (0.0, 1.0), 0.01),))
    assert one.without_executors() == HostExecutors("h1", 0.5, (1.0, 2.0), ())
