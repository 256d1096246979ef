"""From result file and samples to the numbers of one repetition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexmark.measure.cpu import application_cpu
from nexmark.measure.host_samples import HostSamples, MeasurementError
from nexmark.measure.measurement import Measurement, measure_series, percentile
from nexmark.measure.result_file import parse_result
from tests.unit.measure.sample_builder import (
    at,
    batch,
    proc,
    result,
    samples,
    steady_executor,
    tick,
)

DATA = [batch(0, 2, 12, 250_000), batch(1, 12, 32, 250_000), batch(2, 32, 52, 500_000)]
LABEL = "rep-1/result.json"
END = [batch(3, 52, 62, 0, phase="end_of_input")]


def measure(
    result: dict[str, Any], hosts: Sequence[HostSamples], *, warmup_batches: int
) -> Measurement:
    run = parse_result(result)
    series = [application_cpu(samples, run.application_id, LABEL) for samples in hosts]
    return measure_series(run, series, warmup_batches=warmup_batches, min_intervals=10)


def measured(*batches: dict[str, Any], cores: float = 1.5, warmup: int = 1) -> Measurement:
    return measure(result(*batches), [steady_executor(70, cores)], warmup_batches=warmup)


class TestRun:
    def test_cores_are_cpu_seconds_by_wall_seconds(self) -> None:
        m = measured()
        assert (m.wall_s, m.cores, m.cpu_s) == pytest.approx((60, 1.5, 90))

    def test_throughput_counts_events_of_the_generator(self) -> None:
        m = measured()
        assert m.throughput == pytest.approx(1_000_000 / 60)
        assert m.throughput_per_core == pytest.approx(1_000_000 / 90)

    def test_hosts_add_up(self) -> None:
        hosts = [
            steady_executor(70, 1.5, host="nexmark02"),
            steady_executor(70, 0.5, host="nexmark03"),
        ]
        m = measure(result(), hosts, warmup_batches=0)
        assert m.cores == pytest.approx(2.0)
        assert m.hosts == ("nexmark02", "nexmark03")

    def test_python_workers_are_part_of_the_executors_cpu(self) -> None:
        lines = [
            tick(s, (3, 2, 100 * s, 0), (4, 3, 20 * s, 0), (7, 1, 5 * s, 0)) for s in range(70)
        ]
        procs = proc(3, "executor"), proc(4, "child", root=3, cmd="python3")
        driver = proc(7, "driver", label=LABEL)
        m = measure(result(), [samples(*procs, driver, *lines)], warmup_batches=0)
        assert (m.cpu_executors_s, m.cpu_python_s, m.cpu_s) == pytest.approx((60, 12, 72))
        assert m.cpu_driver_s == pytest.approx(3)

    def test_a_driver_elsewhere_is_unknown_not_zero(self) -> None:
        assert measured().cpu_driver_s is None

    def test_what_else_the_host_did_is_reported(self) -> None:
        lines = [tick(s, (3, 2, 100 * s, 0), busy=150 * s) for s in range(70)]
        m = measure(result(), [samples(proc(3, "executor"), *lines)], warmup_batches=0)
        assert m.other_cores == pytest.approx(0.5)
        assert m.steal_cores == 0


class TestMetricOfRecord:
    def test_steady_state_leaves_out_warm_up_and_end_of_input(self) -> None:
        m = measured(*DATA, *END)
        assert m.steady_wall_s == pytest.approx(40)
        assert m.steady_events == 750_000
        assert m.steady_throughput == pytest.approx(750_000 / 40)
        assert m.basis == "steady"
        assert m.cpu_s_per_mevent == pytest.approx(40 * 1.5 / 0.75)

    def test_rows_counted_once_per_reading_stream_do_not_count_twice(self) -> None:
        twice = [{**x, "input_rows": 2 * x["input_rows"]} for x in DATA]
        assert measured(*twice, *END).cpu_s_per_mevent == pytest.approx(80)

    def test_start_up_is_in_the_application_figure(self) -> None:
        """The executor lived for 70 s, the query for 60 s."""
        m = measured(*DATA, *END)
        assert m.cpu_s_per_mevent_application == pytest.approx(70 * 1.5)

    def test_a_window_below_ten_intervals_falls_back_to_the_application(self) -> None:
        m = measured(batch(0, 2, 52.1, 900_000), batch(1, 52.1, 62, 100_000))
        assert m.basis == "application"
        assert m.cpu_s_per_mevent == m.cpu_s_per_mevent_application == pytest.approx(105)
        assert m.steady_throughput is None

    def test_a_window_of_ten_intervals_is_steady(self) -> None:
        m = measured(batch(0, 2, 52, 900_000), batch(1, 52, 62.001, 100_000))
        assert m.basis == "steady"

    def test_a_sampler_held_up_at_the_edge_of_the_window_cannot_resolve_it(self) -> None:
        seconds = [s for s in range(71) if not 50 < s < 60]
        lines = [tick(s, (3, 2, 100 * s, 0)) for s in seconds]
        host = samples(proc(3, "executor"), *lines)
        assert measure(result(*DATA, *END), [host], warmup_batches=1).basis == "application"

    def test_with_only_warm_up_batches_there_is_no_steady_state(self) -> None:
        assert measured(*DATA, *END, warmup=3).basis == "application"


class TestLatencyAndState:
    def test_batch_durations_are_of_the_batches_after_the_warm_up(self) -> None:
        m = measured(batch(0, 2, 40, 1), batch(1, 40, 45, 1), batch(2, 45, 51, 999_998), *END)
        assert (m.batch_ms_p50, m.batch_ms_p95) == pytest.approx((5500, 5950))
        assert m.batches == 4

    def test_with_only_warm_up_batches_all_count(self) -> None:
        assert measured(*DATA, warmup=9).batch_ms_p50 == 20_000

    def test_state_plan_and_digest_are_taken_over(self) -> None:
        m = measured()
        assert (m.state_rows_max, m.state_rows_final, m.state_bytes_max) == (7, 5, 9)
        assert (m.state_commit_ms, m.exchanges, m.stateful_operators) == (1.5, 2, 1)
        assert (m.digest, m.digest_kind, m.plan_skeleton_hash) == (
            "00ff00ff00ff00ff",
            "sum",
            "abcd",
        )

    @settings(deadline=None, derandomize=True)
    @given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 100))
    def test_percentiles_are_numpys(self, values: list[float], percent: float) -> None:
        import numpy as np

        assert percentile(values, percent) == pytest.approx(np.percentile(values, percent))


class TestRefusals:
    """A missing measurement is an error, never 0 cores."""

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            (
                {"application_id": "app-other"},
                "no executor of app-other in the samples of nexmark02",
            ),
            ({"schema_version": 2}, "schema_version 2, this package reads 1"),
            ({"input_rows": 999_999}, "read 999,999 of 1,000,000 events"),
            ({"input_rows": 0, "workload": {}}, "read no events"),
            ({"input_rows": "many"}, "input_rows is 'many': Input should be a valid integer"),
            ({"input_rows": True}, "input_rows is True: Input should be a valid integer"),
            ({"state": {}}, "state.rows_max is None"),
            ({"batches": []}, "no data batch"),
            ({"batches": [{"id": 0, "phase": "data"}]}, "batches.0.start is None: Field required"),
            ({"start": "yesterday"}, "start is 'yesterday': Value error, Invalid isoformat string"),
            (
                {"start": "2026-11-21T04:00:00"},
                "start is .*: Value error, not a time with its time zone",
            ),
            ({"start": at(62), "end": at(2)}, "ended before it started"),
            ({"start": at(-9)}, "samples of host nexmark02 begin after the run"),
            ({"end": at(71)}, "samples of host nexmark02 end before the run"),
        ],
    )
    def test_what_cannot_be_measured_is_refused(self, fields: dict[str, Any], message: str) -> None:
        with pytest.raises(MeasurementError, match=message):
            measure(result(**fields), [steady_executor(70, 1.5)], warmup_batches=1)

    def test_no_samples_at_all(self) -> None:
        with pytest.raises(MeasurementError, match="in the samples of no host at all"):
            measure(result(), [], warmup_batches=1)

    def test_an_executor_that_did_nothing(self) -> None:
        with pytest.raises(MeasurementError, match="used no CPU during the run"):
            measured(cores=0)

    def test_every_host_must_cover_the_run(self) -> None:
        hosts = [steady_executor(70, 1.5), steady_executor(30, 1.5, host="nexmark03")]
        with pytest.raises(MeasurementError, match="samples of host nexmark03 end before the run"):
            measure(result(), hosts, warmup_batches=1)

    def test_an_executor_that_was_lost_before_the_end(self) -> None:
        """Two were asked for and two were seen, but the rest was done by one."""
        ticks = [tick(s, (3, 2, 100 * s, 0)) for s in range(40)]
        hosts = [
            steady_executor(70, 1.5),
            samples(proc(3, "executor"), *ticks, *(tick(s) for s in range(40, 71)), host="other"),
        ]
        with pytest.raises(MeasurementError, match=r"lost during the run \(on other 22.0 s before"):
            measure(result(), hosts, warmup_batches=1)
        assert measure(result(end=at(39)), hosts, warmup_batches=1).hosts == ("nexmark02", "other")
