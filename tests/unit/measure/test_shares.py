"""An executor that does not do its share, or a host that stands still, is found; others are not."""

from __future__ import annotations

from collections.abc import Sequence

from nexmark.measure.shares import (
    ExecutorWork,
    HostExecutors,
    TaskSpan,
    host_executors,
    stalled,
    uneven,
)
from tests.unit.measure.sample_builder import APP, T0, proc, samples, tick

NAMES = {"10.0.0.12": "nexmark02", "10.0.0.13": "nexmark03"}
ADDRESSES = ("10.0.0.12", "10.0.0.13")
PERIOD = (T0, T0 + 60)


def ran(executor: int, *stages: int, host: int | None = None, seconds: float = 1.0) -> ExecutorWork:
    """An executor of one core that ran a task in each of these stages; one begins every 2 s."""
    address = ADDRESSES[executor if host is None else host]
    tasks = [TaskSpan((n, 0), T0 + 2 * n, T0 + 2 * n + seconds, seconds) for n in stages]
    return ExecutorWork(str(executor), address, tasks)


def on(name: str, *cores: Sequence[float], missing: range = range(0)) -> HostExecutors:
    """A host whose executors use these cores in each second; some readings are missing."""
    used = [[0.0] for _ in cores]
    for series, each in zip(used, cores, strict=True):
        for value in each:
            series.append(series[-1] + value)
    seconds = [n for n in range(61) if n not in missing]
    ticks = [
        tick(n, *((10 + i, 2, round(series[n] * 100), 0) for i, series in enumerate(used)))
        for n in seconds
    ]
    procs = [proc(10 + i, "executor", ppid=2) for i in range(len(cores))]
    return host_executors(samples(*procs, *ticks, host=name), APP)


BUSY = [0.9] * 60
HOSTS = (on("nexmark02", BUSY), on("nexmark03", BUSY))


def shares(*work: ExecutorWork, hosts: Sequence[HostExecutors] = HOSTS) -> list[str]:
    return uneven(work, hosts, executors=2, cores=1, period=PERIOD, names=NAMES)


def stalls(*work: ExecutorWork, hosts: Sequence[HostExecutors] = HOSTS) -> list[str]:
    return stalled(work, hosts, period=PERIOD, names=NAMES)


class TestShares:
    def test_even_shares_are_no_finding(self) -> None:
        assert shares(ran(0, *range(20)), ran(1, *range(20))) == []

    def test_an_executor_without_a_task_is_named_with_its_host_and_share(self) -> None:
        both = ran(1, *range(20), *range(20))
        assert shares(ran(0), both) == [
            "an executor on host nexmark02 ran 0 of 40 tasks"
            " (0%, 50% is its share; 0.0 of 40.0 CPU-s)"
        ]

    def test_a_frozen_executor_that_never_registered_is_found_by_its_process(self) -> None:
        (found,) = shares(ran(1, *range(20), *range(20)))
        assert found.startswith("an executor on host nexmark02 ran 0 of 40 tasks")

    def test_one_that_came_late_and_did_a_fifth_is_named(self) -> None:
        late = ran(0, *range(14, 20))
        other = ran(1, *range(20), *range(14))
        (found,) = shares(late, other)
        assert found.startswith("an executor on host nexmark02 ran 6 of 40 tasks (15%,")

    def test_one_that_came_a_little_late_is_no_finding(self) -> None:
        assert shares(ran(0, *range(8, 20)), ran(1, *range(20), *range(8))) == []

    def test_stages_with_fewer_tasks_than_slots_say_nothing(self) -> None:
        """A global aggregate has one task; one executor may have all of these."""
        assert shares(ran(0), ran(1, *range(20))) == []

    def test_a_handful_of_tasks_says_nothing(self) -> None:
        assert shares(ran(0), ran(1, 0, 0, 1)) == []

    def test_an_executor_that_was_replaced_is_for_others_to_tell(self) -> None:
        assert shares(ran(0), ran(1, *range(9), *range(9)), ran(2, host=0)) == []

    def test_a_single_executor_has_nobody_to_be_compared_with(self) -> None:
        work = [ran(0, *range(20))]
        found = uneven(work, HOSTS[:1], executors=1, cores=2, period=PERIOD, names=NAMES)
        assert found == []

    def test_tasks_before_and_after_the_run_do_not_count(self) -> None:
        outside = [TaskSpan((n, 0), T0 - 9, T0 - 8, 1) for n in range(30)]
        first = ran(0, *range(20))
        first.tasks += outside
        assert shares(first, ran(1, *range(20))) == []


class TestStalls:
    def test_busy_executors_are_no_finding(self) -> None:
        assert stalls(ran(0, *range(20)), ran(1, *range(20))) == []

    def test_an_executor_frozen_in_a_task_is_named_with_the_seconds(self) -> None:
        frozen = on("nexmark02", [0.9] * 20 + [0.0] * 8 + [0.9] * 32)
        work = ran(0, 9, seconds=12.0), ran(1, *range(20))
        assert stalls(*work, hosts=(frozen, HOSTS[1])) == [
            "an executor on host nexmark02 used no CPU for 8.0 s while it had a task"
        ]

    def test_an_executor_without_a_task_may_be_quiet(self) -> None:
        quiet = on("nexmark02", [0.9] * 20 + [0.001] * 8 + [0.9] * 32)
        assert stalls(ran(0, 1, 2, 20), ran(1, *range(20)), hosts=(quiet, HOSTS[1])) == []

    def test_a_task_may_wait_for_a_moment(self) -> None:
        waits = on("nexmark02", [0.9] * 20 + [0.0] * 4 + [0.9] * 36)
        assert stalls(ran(0, 9, seconds=12.0), ran(1, 9), hosts=(waits, HOSTS[1])) == []

    def test_of_two_executors_on_a_host_the_one_without_a_task_may_be_quiet(self) -> None:
        quiet = [0.9] * 20 + [0.0] * 8 + [0.9] * 32
        two = on("nexmark02", quiet, BUSY)
        idle, busy = ran(0, 1), ran(1, 9, host=0, seconds=12.0)
        assert stalls(idle, busy, hosts=(two,)) == []

    def test_of_two_executors_with_a_task_each_neither_may_be_quiet(self) -> None:
        quiet = [0.9] * 20 + [0.0] * 8 + [0.9] * 32
        two = on("nexmark02", quiet, BUSY)
        work = ran(0, 9, seconds=12.0), ran(1, 9, host=0, seconds=12.0)
        assert stalls(*work, hosts=(two,)) == [
            "an executor on host nexmark02 used no CPU for 8.0 s while it had a task"
        ]

    def test_a_gap_in_the_samples_is_a_stall_of_the_host(self) -> None:
        gap = on("nexmark03", BUSY, missing=range(30, 38))
        assert stalls(hosts=(HOSTS[0], gap)) == [
            "host nexmark03 gave no sample for 9.0 s of the run"
        ]

    def test_samples_that_end_before_the_run_are_for_the_measurement_to_tell(self) -> None:
        ended = on("nexmark03", BUSY, missing=range(50, 61))
        assert stalls(hosts=(ended,)) == []

    def test_a_reading_or_two_may_be_late(self) -> None:
        assert stalls(hosts=(on("nexmark03", BUSY, missing=range(30, 34)),)) == []
