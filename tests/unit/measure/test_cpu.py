"""Whose CPU it was, and at which instant."""

from __future__ import annotations

import pytest

from nexmark.measure.cpu import application_cpu, tree_cpu
from nexmark.measure.cpu_series import CpuSeries
from nexmark.measure.host_samples import HostSamples, MeasurementError
from tests.unit.measure.sample_builder import APP, T0, proc, samples, steady_executor, tick

WORKER = proc(2, "worker_daemon", cmd="java Worker")
EXECUTOR = proc(3, "executor", ppid=2, cmd="java CoarseGrainedExecutorBackend")
DAEMON = proc(4, "child", ppid=3, root=3, cmd="python3")
FORKED = proc(5, "child", ppid=4, root=3, cmd="python3")


def final(host: HostSamples) -> tuple[int, int]:
    """(executor JVM, Python workers) ticks at the end."""
    (tree,) = tree_cpu(host)
    return tree.main[-1], tree.python[-1]


def test_python_workers_are_told_apart_from_the_executor() -> None:
    host = samples(
        WORKER,
        EXECUTOR,
        DAEMON,
        FORKED,
        tick(0, (2, 1, 9, 0), (3, 2, 50, 0), (4, 3, 7, 0), (5, 4, 30, 0)),
    )
    assert final(host) == (50, 37)


def test_a_program_started_by_a_python_worker_counts_as_python() -> None:
    shell = proc(6, "child", ppid=5, root=3, cmd="sh")
    host = samples(
        EXECUTOR,
        DAEMON,
        FORKED,
        shell,
        tick(0, (3, 2, 1, 0), (4, 3, 1, 0), (5, 4, 1, 0), (6, 5, 40, 0)),
    )
    assert final(host) == (1, 42)


def test_a_program_started_by_the_executor_itself_counts_as_executor() -> None:
    host = samples(
        EXECUTOR, proc(6, "child", ppid=3, root=3, cmd="chmod"), tick(0, (3, 2, 1, 0), (6, 3, 4, 0))
    )
    assert final(host) == (5, 0)


def test_what_a_worker_used_after_its_last_reading_counts_as_python() -> None:
    host = samples(
        EXECUTOR, DAEMON, tick(0, (3, 2, 10, 0), (4, 3, 100, 0)), tick(1, (3, 2, 10, 125))
    )
    assert final(host) == (10, 125)


def test_a_child_gone_before_its_parent_tells_is_not_counted_twice() -> None:
    """The parent is read, then waits for the child, then the child is looked for."""
    host = samples(
        EXECUTOR,
        DAEMON,
        tick(0, (3, 2, 10, 0), (4, 3, 100, 0)),
        tick(1, (3, 2, 10, 0)),
        tick(2, (3, 2, 10, 120)),
    )
    assert final(host) == (10, 120)


def test_a_child_never_seen_counts_for_the_process_that_waited_for_it() -> None:
    host = samples(
        EXECUTOR,
        DAEMON,
        tick(0, (3, 2, 0, 0), (4, 3, 5, 0)),
        tick(1, (3, 2, 0, 30), (4, 3, 5, 70)),
    )
    assert final(host) == (30, 75)


def test_the_last_moments_of_an_executor_are_reported_by_the_worker_daemon() -> None:
    host = samples(
        WORKER, EXECUTOR, tick(0, (2, 1, 9, 400), (3, 2, 100, 0)), tick(1, (2, 1, 9, 540))
    )
    assert final(host) == (140, 0)


def test_the_last_moments_are_reported_though_python_workers_were_left_to_init() -> None:
    host = samples(
        WORKER,
        EXECUTOR,
        DAEMON,
        tick(0, (2, 1, 0, 0), (3, 2, 100, 0), (4, 3, 500, 0)),
        tick(1, (2, 1, 0, 110)),
        tick(2, (2, 1, 0, 110)),
    )
    assert final(host) == (110, 500)


def test_what_the_worker_daemon_waited_for_before_is_not_ours() -> None:
    host = samples(WORKER, EXECUTOR, tick(0, (2, 1, 0, 9000), (3, 2, 100, 0)))
    assert final(host) == (100, 0)


def test_an_outsider_tells_no_more_than_the_host_could_have_done() -> None:
    """The parent of a driver may have waited for something quite different as well."""
    parent = proc(9, "parent", cmd="airflow")
    root = proc(3, "root", ppid=9)
    host = samples(parent, root, tick(0, (9, 1, 0, 0), (3, 9, 100, 0)), tick(1, (9, 1, 0, 90000)))
    (tree,) = tree_cpu(host)
    assert tree.main[-1] <= 100 + 201


def test_a_child_nobody_waited_for_keeps_what_was_seen() -> None:
    host = samples(
        EXECUTOR,
        DAEMON,
        tick(0, (3, 2, 10, 0), (4, 3, 100, 0)),
        tick(1, (3, 2, 10, 0)),
        tick(2, (3, 2, 10, 0)),
        tick(3, (3, 2, 10, 25)),
    )
    assert final(host) == (35, 100)


def test_a_pid_used_again_is_another_process() -> None:
    again = {**DAEMON, "starttime": 77}
    second = tick(1, (3, 2, 10, 100))
    second["procs"].append([4, 3, 77, 8, 0, 0, 0])
    host = samples(EXECUTOR, DAEMON, again, tick(0, (3, 2, 10, 0), (4, 3, 100, 0)), second)
    assert final(host) == (10, 108)


def test_a_process_is_what_it_became_after_exec() -> None:
    """At first sight a fork of the Worker daemon still looks like its parent."""
    host = samples(
        WORKER,
        proc(3, "child", ppid=2, root=2, cmd="java Worker"),
        tick(0, (2, 1, 0, 0), (3, 2, 5, 0)),
        EXECUTOR,
        tick(1, (2, 1, 0, 0), (3, 2, 60, 0)),
    )
    assert final(host) == (60, 0)


class TestApplication:
    def test_other_applications_on_the_host_do_not_count(self) -> None:
        other = proc(7, "executor", app_id="app-other")
        host = samples(EXECUTOR, other, tick(0, (3, 2, 100, 0), (7, 2, 900, 0)))
        assert application_cpu(host, APP).executors == (1.0,)

    def test_all_executors_of_the_application_count(self) -> None:
        host = samples(EXECUTOR, proc(7, "executor"), tick(0, (3, 2, 100, 0), (7, 2, 50, 0)))
        assert application_cpu(host, APP).executors == (1.5,)

    def test_ticks_are_turned_into_seconds_by_the_clock_of_that_host(self) -> None:
        host = samples(EXECUTOR, tick(0, (3, 2, 100, 0)), clk_tck=250)
        assert application_cpu(host, APP).executors == (0.4,)

    def test_a_driver_is_found_by_its_label(self) -> None:
        mine = proc(7, "driver", label="rep-1/result.json")
        other = proc(8, "driver", label="rep-2/result.json")
        host = samples(mine, other, EXECUTOR, tick(0, (7, 1, 30, 0), (8, 1, 50, 0), (3, 2, 1, 0)))
        assert application_cpu(host, APP, "rep-1/result.json").driver == (0.3,)
        assert application_cpu(host, APP, "rep-3/result.json").driver is None
        assert application_cpu(host, APP).driver is None

    def test_a_host_without_its_executors_says_so(self) -> None:
        assert application_cpu(samples(tick(0)), APP).executor_count == 0

    def test_machine_totals_count_from_the_first_tick(self) -> None:
        host = samples(tick(0, busy=5000), tick(1, busy=5150))
        assert application_cpu(host, APP).busy == (0.0, 1.5)

    def test_machine_totals_are_unknown_inside_a_pid_namespace(self) -> None:
        host = samples(tick(0, busy=5000), tick(1, busy=5150), scope="pidns")
        assert application_cpu(host, APP).busy is None


class TestInstants:
    @pytest.fixture
    def series(self) -> CpuSeries:
        return application_cpu(steady_executor(10, cores=1.5), APP)

    def test_between_two_readings_cpu_grows_on_a_straight_line(self, series: CpuSeries) -> None:
        assert series.between(series.executors, T0 + 2.25, T0 + 4.5) == pytest.approx(2.25 * 1.5)

    def test_the_edges_of_the_samples_are_inside(self, series: CpuSeries) -> None:
        assert series.between(series.executors, T0, T0 + 10) == pytest.approx(15)

    def test_an_instant_before_the_samples_is_an_error(self, series: CpuSeries) -> None:
        with pytest.raises(
            MeasurementError, match=r"nexmark02 begin after the run \(0.5 s short\)"
        ):
            series.at(series.executors, T0 - 0.5)

    def test_an_instant_after_the_samples_is_an_error(self, series: CpuSeries) -> None:
        with pytest.raises(MeasurementError, match=r"nexmark02 end before the run \(2.0 s short\)"):
            series.at(series.executors, T0 + 12)

    def test_time_runs_by_the_monotonic_clock(self) -> None:
        """One wall stamp is 0.2 s off (read late); the median is not."""
        host = samples(
            EXECUTOR, *(tick(s, (3, 2, 100 * s, 0), step=0.2 * (s == 3)) for s in range(9))
        )
        series = application_cpu(host, APP)
        assert series.times[3] - series.times[2] == pytest.approx(1.0)

    def test_a_clock_that_was_set_meanwhile_is_an_error(self) -> None:
        host = samples(EXECUTOR, tick(0, (3, 2, 0, 0)), tick(1, (3, 2, 9, 0), step=-3600.0))
        with pytest.raises(MeasurementError, match=r"nexmark02 was moved by 3600.000 s"):
            application_cpu(host, APP)
