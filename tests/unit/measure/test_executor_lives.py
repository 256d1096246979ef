"""Which executors count: those that lived while the query ran, with all they used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from nexmark.measure.cpu import application_cpu
from nexmark.measure.cpu_series import pack, unpack
from nexmark.measure.host_samples import HostSamples, MeasurementError
from nexmark.measure.measurement import Measurement, measure_series
from nexmark.measure.result_file import parse_result
from nexmark.measure.shares import host_executors
from tests.unit.measure.sample_builder import APP, Row, batch, proc, result, samples, tick

WORKER = proc(2, "worker_daemon", cmd="java Worker")
BOOT = 900.0  # seconds since boot when `mono` is 1000, so at T0


def started(second: float) -> int:
    """The pid of a process that started then, which is its starttime in these samples, too."""
    return round((BOOT + second) * 100)


def host(lives: Sequence[tuple[float, float]], *, end: float = 72, **fields: Any) -> HostSamples:
    """A host that is read each second; each executor lives from to, and uses a whole core."""
    procs = [proc(started(begin), "executor", ppid=2) for begin, _ in lives]
    ticks = []
    for second in range(int(end) + 1):
        rows: list[Row] = [(2, 1, 0, 0)]
        for begin, gone in lives:
            if begin <= second < gone:
                rows.append((started(begin), 2, round((second - begin) * 100), 0))
        ticks.append(tick(second, *rows))
    clocks = {"mono": 1000.0, "boot": BOOT, **fields}
    return samples(WORKER, *procs, *ticks, **clocks)


def measure(
    *hosts: HostSamples, executors: int = 1, killed: bool = False, **fields: Any
) -> Measurement:
    run = parse_result(result(**fields))
    series = [application_cpu(x, run.application_id, period=run.work) for x in hosts]
    series = [unpack(pack(x)) for x in series]
    settings = {"warmup_batches": 1, "min_intervals": 10, "executors": executors}
    return measure_series(run, series, killed=killed, **settings)


#: The run is from second 2 to 62; the executor ends at 64.
ONE = (1.0, 64.0)


class TestAfterTheEnd:
    """An executor exits before its driver has unregistered, and the master starts another."""

    def test_the_replacement_of_an_executor_that_has_ended_is_no_second_one(self) -> None:
        found = measure(host([ONE, (64.5, 70.0)]))
        assert found.cores == pytest.approx(1.0)

    def test_its_cpu_is_not_in_the_application(self) -> None:
        alone = measure(host([ONE]))
        found = measure(host([ONE, (64.5, 70.0)]))
        assert found.basis == "application"
        assert found == alone

    def test_one_that_started_between_the_end_and_the_next_reading_does_not_count(self) -> None:
        """The reading before the end has not got it; the one after the end has both."""
        found = measure(host([ONE, (62.6, 70.0)]))
        assert found == measure(host([ONE]))

    def test_one_that_the_stalled_sampler_saw_only_after_the_end_lived_during_the_run(self) -> None:
        ticks = [tick(s, (2, 1, 0, 0)) for s in (0, 1)]
        pid = started(1.5)
        ticks += [tick(s, (2, 1, 0, 0), (pid, 2, round((s - 1.5) * 100), 0)) for s in (65, 66)]
        stalled = samples(WORKER, proc(pid, "executor"), *ticks, mono=1000.0, boot=BOOT)
        assert measure(stalled).cpu_s > 0

    def test_it_is_none_of_the_executors_that_may_be_silent(self) -> None:
        run = parse_result(result())
        found = host_executors(host([ONE, (64.5, 70.0)]), APP, run.work)
        assert len(found.executors) == 1

    def test_on_another_host_it_does_not_count_either(self) -> None:
        hosts = host([ONE]), host([(64.5, 70.0)], host="nexmark03")
        assert measure(*hosts).cores == pytest.approx(1.0)


class TestBeforeTheFirstBatch:
    BATCHES = (batch(0, 12, 32, 500_000), batch(1, 32, 62, 500_000))

    def test_an_executor_that_was_lost_and_replaced_in_time_is_no_second_one(self) -> None:
        found = measure(host([(1.0, 5.0), (6.0, 64.0)]), batches=list(self.BATCHES))
        assert found.cpu_s == pytest.approx(56.0)

    def test_its_cpu_is_not_in_the_application(self) -> None:
        found = measure(host([(1.0, 5.0), (6.0, 64.0)]), batches=list(self.BATCHES))
        alone = measure(host([(6.0, 64.0)]), batches=list(self.BATCHES))
        assert found == alone

    def test_one_that_was_replaced_too_late_is_refused(self) -> None:
        lives = [(1.0, 5.0), (20.0, 64.0)]
        late = "lost before the first batch, and the one in its place started too late"
        with pytest.raises(MeasurementError, match=rf"{late} \(on nexmark02 8.0 s after its begin"):
            measure(host(lives), batches=list(self.BATCHES))

    def test_one_that_was_never_replaced_is_refused(self) -> None:
        lives = [(1.0, 5.0), (1.5, 64.0)]
        with pytest.raises(MeasurementError, match="2 executors were asked for and 1 were seen"):
            measure(host(lives), executors=2, batches=list(self.BATCHES))

    def test_a_late_one_that_takes_nobodys_place_is_for_the_shares_to_tell(self) -> None:
        lives = [(1.0, 64.0), (20.0, 64.0)]
        assert measure(host(lives), executors=2, batches=list(self.BATCHES)).cpu_s > 0


class TestDuringTheRun:
    def test_one_that_was_lost_and_replaced_is_refused(self) -> None:
        with pytest.raises(MeasurementError, match="1 executors were asked for and 2 were seen"):
            measure(host([(1.0, 30.0), (31.0, 64.0)]))

    def test_one_that_was_lost_and_not_replaced_is_refused(self) -> None:
        with pytest.raises(MeasurementError, match=r"lost during the run \(on nexmark02 32.0 s"):
            measure(host([(1.0, 30.0), (1.5, 64.0)]), executors=2)

    def test_where_kills_are_wanted_all_that_lived_meanwhile_count(self) -> None:
        lives = [(1.0, 30.0), (31.0, 64.0), (64.5, 70.0)]
        found = measure(host(lives), killed=True)
        assert found.cpu_s == pytest.approx(58.0, abs=1.5)
