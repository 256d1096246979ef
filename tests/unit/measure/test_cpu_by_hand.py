"""The CPU of an application on a host, tick by tick, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from nexmark.measure.cpu import application_cpu, executors_of, tree_cpu
from nexmark.measure.host_samples import HostSamples, ProcessKey
from nexmark.measure.shares import HostExecutors, ProcessCpu, host_executors
from tests.unit.measure.sample_builder import APP, T0, Row, proc, samples, tick

WORKER = proc(2, "worker_daemon", cmd="java Worker")
EXECUTOR = proc(3, "executor", ppid=2)
PYTHON = proc(4, "child", ppid=3, root=3, cmd="python3 -m pyspark.daemon")
SECOND = proc(5, "child", ppid=3, root=3, cmd="python3 -m pyspark.daemon")
SHELL = proc(6, "child", ppid=3, root=3, cmd="chmod")


def host(*seconds: list[Row], procs: Any = (), **fields: Any) -> HostSamples:
    """A worker (pid 2), its executor (3), Python workers of that (4, 5) and a shell (6)."""
    usual = (WORKER, EXECUTOR, PYTHON, SECOND, SHELL)
    ticks = (tick(second, *rows) for second, rows in enumerate(seconds))
    return samples(*usual, *procs, *ticks, **fields)


def booked(*seconds: list[Row], procs: Any = ()) -> list[tuple[int, int]]:
    """Clock ticks of the executor's tree at each reading: of the JVM, of Python workers."""
    (tree,) = tree_cpu(host(*seconds, procs=procs))
    return list(zip(tree.main, tree.python, strict=True))


class TestTree:
    """Rows: pid, parent, own ticks, ticks of the children that it waited for."""

    def test_each_reading_adds_what_is_new_and_the_first_adds_all(self) -> None:
        rows: list[list[Row]] = [
            [],
            [(3, 2, 100, 30), (4, 3, 8, 2)],
            [(3, 2, 150, 30), (4, 3, 8, 7)],
            [(3, 2, 150, 31), (4, 3, 9, 7)],
        ]
        assert booked(*rows) == [(0, 0), (130, 10), (180, 15), (181, 16)]

    def test_a_reading_that_runs_back_takes_nothing_away(self) -> None:
        assert booked([(3, 2, 100, 0)], [(3, 2, 99, 0)])[1] == (100, 0)

    def test_a_child_whose_pid_is_lower_than_its_parent_s_is_found(self) -> None:
        """Pids are used again: the order is by start."""
        late = {**proc(4, "child", ppid=90, root=90, cmd="python3"), "starttime": 95}
        read = tick(0, (90, 2, 10, 0))
        read["procs"].append([4, 90, 95, 7, 0, 0, 0])
        (tree,) = tree_cpu(samples(proc(90, "executor", ppid=2), late, read))
        assert (tree.main, tree.python) == ([10], [7])

    @pytest.mark.parametrize(
        ("cmd", "expected"), [("pypy3 daemon.py", (1, 5)), ("python", (1, 5)), ("bash", (6, 0))]
    )
    def test_a_program_is_a_python_worker_by_its_command(
        self, cmd: str, expected: tuple[int, int]
    ) -> None:
        other = proc(7, "child", ppid=3, root=3, cmd=cmd)
        assert booked([(3, 2, 1, 0), (7, 3, 5, 0)], procs=[other]) == [expected]

    def test_a_child_whose_parent_is_gone_is_of_the_newest_tree_of_its_root(self) -> None:
        """Process 3 was an executor before, and its pid was used again."""
        again = {**EXECUTOR, "starttime": 50}
        orphan = {**PYTHON, "ppid": 1, "starttime": 60}
        read = tick(1)
        read["procs"] += [[3, 2, 50, 10, 0, 0, 0], [4, 1, 60, 7, 0, 0, 0]]
        first, second = tree_cpu(samples(EXECUTOR, again, orphan, tick(0, (3, 2, 5, 0)), read))
        assert (first.main, first.python) == ([5, 5], [0, 0])
        assert (second.main, second.python) == ([0, 10], [0, 7])

    def test_a_child_of_no_tree_is_nobody_s(self) -> None:
        other = proc(7, "child", ppid=77, root=77, cmd="python3")
        assert booked([(3, 2, 1, 0), (7, 77, 5, 0)], procs=[other]) == [(1, 0)]

    @pytest.mark.parametrize(
        ("waited", "jvm", "python"),
        [
            ([0, 125, 125, 155], 40, 125),  # in time; a child never seen is the executor's
            ([0, 0, 125, 155], 40, 125),  # one reading later
            ([0, 100, 125, 155], 40, 125),  # in two readings
            ([0, 100, 100, 130], 40, 100),  # nothing more than what was seen
            ([0, 0, 0, 30], 40, 100),  # not waited for: nothing is known of its end
        ],
    )
    def test_an_ended_child_is_in_its_parent_s_time_of_this_reading_or_the_next(
        self, waited: list[int], jvm: int, python: int
    ) -> None:
        rows: list[list[Row]] = [[(3, 2, 10, x)] for x in waited]
        rows[0].append((4, 3, 100, 0))
        assert booked(*rows)[-1] == (jvm, python)

    @pytest.mark.parametrize(("shell", "expected"), [(5, (5, 60)), (45, (65, 40))])
    def test_of_two_that_ended_one_after_the_other_the_costlier_used_the_rest(
        self, shell: int, expected: tuple[int, int]
    ) -> None:
        rows: list[list[Row]] = [
            [(3, 2, 0, 0), (4, 3, 40, 0), (6, 3, shell, 0)],
            [(3, 2, 0, 0), (6, 3, shell, 0)],
            [(3, 2, 0, 40 + shell + 20)],
        ]
        assert booked(*rows)[-1] == expected

    def test_two_that_nobody_waited_for_keep_what_was_seen_of_them(self) -> None:
        rows: list[list[Row]] = [
            [(3, 2, 0, 0), (4, 3, 50, 0), (6, 4, 500, 0), (5, 3, 10, 0)],
            [(3, 2, 0, 0)],
            [(3, 2, 0, 300)],
            [(3, 2, 0, 300)],
        ]
        assert booked(*rows)[-1] == (0, 560)

    def test_what_a_child_waited_for_itself_ended_with_it(self) -> None:
        assert booked([(3, 2, 1, 0), (4, 3, 10, 50)], [(3, 2, 1, 70)])[-1] == (1, 70)

    @pytest.mark.parametrize("later", [False, True])
    def test_children_that_end_with_their_parent_are_in_the_time_that_is_told_of_it(
        self, later: bool
    ) -> None:
        """The worker waits for 7 ticks more than were seen: in this reading or the next."""
        seen, more = [(3, 2, 100, 0), (4, 3, 10, 20), (5, 3, 40, 3), (6, 5, 2, 0)], 7
        told = 100 + 30 + 43 + 2 + more
        rows: list[list[Row]] = [
            [(2, 1, 0, 0), *seen],
            [(2, 1, 0, 0 if later else told)],
            [(2, 1, 0, told)],
            [(2, 1, 0, told)],
        ]
        assert booked(*rows)[-1] == (107, 75)

    def test_a_child_that_ended_before_its_parent_told_is_in_the_time_of_both(self) -> None:
        rows: list[list[Row]] = [
            [(2, 1, 0, 0), (3, 2, 10, 0), (4, 3, 100, 0)],
            [(2, 1, 0, 0), (3, 2, 10, 0)],
            [(2, 1, 0, 112)],
            [(2, 1, 0, 112)],
        ]
        assert booked(*rows)[-1] == (12, 100)

    @pytest.mark.parametrize(("gone", "told", "most"), [(1, 1, 201), (2, 2, 201), (2, 3, 401)])
    def test_an_outsider_tells_no_more_than_the_host_could_have_done_since_the_last_reading(
        self, gone: int, told: int, most: int
    ) -> None:
        """Two processors of 100 ticks in a second; the child was last seen before `gone`."""
        rows: list[list[Row]] = [
            [(2, 1, 0, 90_000 if second >= told else 0), *[(3, 2, 100, 0)] * (second < gone)]
            for second in range(5)
        ]
        assert booked(*rows)[-1] == (100 + most, 0)


class TestExecutors:
    """Read every second; one executor is there from the second reading to the fourth."""

    HOST = host([], *[[(3, 2, 100 * n, 0), (4, 3, 10 * n, 0)] for n in (1, 2, 3)], [], [])

    @pytest.mark.parametrize(
        ("begin", "end", "count", "gone"),
        [
            (0.0, 9.0, 1, 0),
            (3.9, 9.0, 1, 0),
            (4.0, 9.0, 0, 1),  # the first reading without it is no life
            (0.0, 1.1, 1, 0),
            (0.0, 1.0, 0, 0),  # one that starts at the end comes too late
        ],
    )
    def test_one_counts_that_lived_in_a_period(
        self, begin: float, end: float, count: int, gone: int
    ) -> None:
        found = executors_of(self.HOST, tree_cpu(self.HOST), APP, (T0 + begin, T0 + end))
        assert (len(found.trees), found.gone_before) == (count, gone)
        assert found.starts == (T0 + 1,) * count
        assert found.ends == (T0 + 4,) * count

    def test_one_that_is_there_at_the_last_reading_has_no_end(self) -> None:
        alive = host([(3, 2, 1, 0)], [(3, 2, 2, 0)])
        found = executors_of(alive, tree_cpu(alive), APP, (T0, T0 + 9))
        assert (found.starts, found.ends) == ((T0,), ())

    def test_its_readings_are_of_its_life_with_its_python_workers(self) -> None:
        times = tuple(T0 + n for n in range(6))
        process = ProcessCpu(times[1:4], (1.1, 2.2, 3.3), 0.01)
        assert host_executors(self.HOST, APP) == HostExecutors("nexmark02", 1.0, times, (process,))
        assert host_executors(self.HOST, APP, (T0 + 4, T0 + 9)).executors == ()

    def test_a_series_has_all_that_is_known_of_it(self) -> None:
        found = application_cpu(self.HOST, APP)
        assert (found.host, found.interval_s) == ("nexmark02", 1.0)
        assert found.times == tuple(T0 + n for n in range(6))
        assert found.executors == (0.0, 1.0, 2.0, 3.0, 3.0, 3.0)
        assert found.python == (0.0, 0.1, 0.2, 0.3, 0.3, 0.3)
        assert (found.executor_count, found.executors_gone_before) == (1, 0)
        assert (found.executor_starts, found.executor_ends) == ((T0 + 1,), (T0 + 4,))
        gone = application_cpu(self.HOST, APP, period=(T0 + 4, T0 + 9))
        assert (gone.executor_count, gone.executors_gone_before) == (0, 1)
        assert gone.executors == gone.python == (0.0,) * 6


class TestMachine:
    @pytest.mark.parametrize(
        ("columns", "scope", "busy", "steal"),
        [
            (8, "host", (0.0, 1.03), (0.0, 1.28)),
            (10, "host", (0.0, 1.03), (0.0, 1.28)),
            (7, "host", None, None),
            (8, "pidns", None, None),
        ],
    )
    def test_idle_time_and_waiting_are_not_busy_and_stolen_time_is_apart(
        self, columns: int, scope: str, busy: Any, steal: Any
    ) -> None:
        """User 1, nice 2, system 4, idle 8, iowait 16, irq 32, softirq 64, steal 128, guests."""
        ticks = [tick(0), tick(1)]
        for place, read in enumerate(ticks):
            read["host_cpu"] = [9 + place * 2**n for n in range(columns)]
        found = application_cpu(samples(*ticks, scope=scope), APP)
        assert (found.busy, found.steal) == (busy, steal)

    @pytest.mark.parametrize(
        ("end", "cores"),
        [
            ({"self_cpu_s": 0.25, "elapsed_s": 10.0}, 0.025),
            ({"self_cpu_s": 0.0, "elapsed_s": 10.0}, 0.0),
            ({"self_cpu_s": 0.25, "elapsed_s": 0.0}, None),
            ({"self_cpu_s": 0.25}, None),
            ({"elapsed_s": 10.0}, None),
            ({}, None),
        ],
    )
    def test_the_sampler_s_own_cores_are_known_where_it_told_both_times(
        self, end: dict[str, float], cores: float | None
    ) -> None:
        found = application_cpu(samples(tick(0), {"kind": "end", **end}), APP)
        assert found.sampler_cores == cores


def test_a_driver_counts_with_its_children_and_other_trees_do_not() -> None:
    driver = proc(7, "driver", label="mine")
    child = proc(8, "child", ppid=7, root=7, cmd="python3")
    root = proc(9, "root")
    rows: list[Row] = [(3, 2, 100, 0), (7, 1, 30, 0), (8, 7, 12, 0), (9, 1, 500, 0)]
    found = application_cpu(host(rows, procs=[driver, child, root]), APP, "mine")
    assert (found.driver, found.executors, found.python) == ((0.42,), (1.0,), (0.0,))
    keys = [x.root for x in tree_cpu(host(rows, procs=[driver, child, root]))]
    assert keys == [ProcessKey(pid, pid) for pid in (3, 7, 9)]
