"""Who did its share and who stood still: the bounds, by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nexmark.measure.shares import (
    ExecutorWork,
    HostExecutors,
    ProcessCpu,
    TaskSpan,
    read_executor_work,
    stalled,
    uneven,
)

PERIOD = (10.0, 70.0)
NAMES = {"10.0.0.1": "h1"}


def work(executor: str, count: int, *, host: str = "10.0.0.1", at: float = 20.0) -> ExecutorWork:
    """An executor that ran `count` tasks of one stage, each half a second of CPU."""
    return ExecutorWork(executor, host, [TaskSpan((1, 0), at, at + 1, 0.5)] * count)


def running(host: str, count: int) -> HostExecutors:
    return HostExecutors(host, 1.0, (), (ProcessCpu((), (), 0.01),) * count)


def shares(
    *done: ExecutorWork, executors: int, cores: int = 1, hosts: Sequence[HostExecutors] = ()
) -> list[str]:
    return uneven(done, hosts, executors=executors, cores=cores, period=PERIOD, names=NAMES)


class TestShares:
    @pytest.mark.parametrize(
        ("counts", "found"),
        [
            ((9, 3), 0),  # a third of the others'
            ((9, 2), 1),
            ((7, 2), 1),
            ((4, 0), 1),
            ((3, 0), 0),  # of three tasks nobody can tell
            ((9, 9, 9, 2), 1),
            ((9, 2, 2), 0),  # usual is what the others did in the middle: 5.5
            ((9, 9, 0, 0), 2),
            ((12, 12, 2, 2), 2),
            ((9,), 0),
        ],
    )
    def test_less_than_a_third_of_what_is_usual_is_no_share(
        self, counts: tuple[int, ...], found: int
    ) -> None:
        done = [work(str(place), count) for place, count in enumerate(counts)]
        assert len(shares(*done, executors=len(counts))) == found

    def test_the_share_is_said_in_figures(self) -> None:
        assert shares(work("0", 9), work("1", 9), work("2", 2, host="10.0.0.9"), executors=3) == [
            "an executor on host 10.0.0.9 ran 2 of 20 tasks"
            " (10%, 33% is its share; 1.0 of 10.0 CPU-s)"
        ]

    def test_processes_that_never_registered_have_run_nothing(self) -> None:
        silent = [running("h1", 2), running("h2", 1)]
        assert shares(work("0", 8), work("1", 8), executors=3, hosts=silent) == [
            "an executor on host h2 ran 0 of 16 tasks (0%, 33% is its share; 0.0 of 8.0 CPU-s)"
        ]
        assert shares(work("0", 8), executors=2, hosts=silent) == [
            "an executor on host h1 ran 0 of 8 tasks (0%, 50% is its share; 0.0 of 4.0 CPU-s)"
        ]
        assert shares(work("0", 8), work("1", 8), executors=2, hosts=silent) == []

    def test_stages_with_fewer_tasks_than_slots_do_not_count(self) -> None:
        done = work("0", 7), work("1", 0)
        assert shares(*done, executors=2, cores=3) != []
        assert shares(*done, executors=2, cores=4) == []

    @pytest.mark.parametrize(("at", "found"), [(9.9, 0), (10.0, 1), (70.0, 1), (70.1, 0)])
    def test_tasks_count_that_were_launched_in_the_period(self, at: float, found: int) -> None:
        assert len(shares(work("0", 8, at=at), work("1", 0), executors=2)) == found


def read(*frozen: tuple[float, float]) -> tuple[ProcessCpu, ...]:
    """Executors read every second, busy but for one span each."""
    found = []
    for start, end in frozen:
        used = [0.0]
        for second in range(80):
            used.append(used[-1] + (0.0 if start <= second < end else 0.9))
        found.append(ProcessCpu(tuple(float(x) for x in range(81)), tuple(used), 0.01))
    return tuple(found)


def host(*frozen: tuple[float, float], name: str = "h1", interval_s: float = 1.0) -> HostExecutors:
    return HostExecutors(name, interval_s, tuple(float(x) for x in range(81)), read(*frozen))


def tasks(*spans: tuple[float, float], address: str = "10.0.0.1") -> ExecutorWork:
    return ExecutorWork("0", address, [TaskSpan((1, 0), *span, 1.0) for span in spans])


def seconds(hosts: Sequence[HostExecutors], *done: ExecutorWork) -> list[float]:
    """For how long an executor stood still, by the messages."""
    found = stalled(done, hosts, period=PERIOD, names=NAMES)
    assert all("used no CPU for" in x for x in found)
    return [float(x.split(" s while")[0].split()[-1]) for x in found]


class TestStill:
    @pytest.mark.parametrize(
        ("frozen", "span", "found"),
        [
            ((20, 28), (15.0, 40.0), [8.0]),
            ((20, 28), (23.0, 40.0), [5.0]),  # the limit: five intervals
            ((20, 28), (23.1, 40.0), []),
            ((20, 28), (15.0, 25.0), [5.0]),
            ((20, 28), (15.0, 24.9), []),
            ((20, 28), (20.0, 25.0), [5.0]),  # a task of no longer
            ((20, 25), (15.0, 40.0), [5.0]),
            ((20, 24), (15.0, 40.0), []),
            ((20, 28), (22.0, 27.5), [5.5]),  # a task that begins and ends meanwhile
            ((20, 28), (30.0, 60.0), []),
            ((40, 48), (15.0, 39.0), []),
        ],
    )
    def test_an_executor_stands_still_while_it_has_a_task(
        self, frozen: tuple[int, int], span: tuple[float, float], found: list[float]
    ) -> None:
        assert seconds([host(frozen)], tasks((2.0, 3.0), span)) == found

    def test_the_longest_of_several_is_said(self) -> None:
        used = (0.0 if x in (*range(20, 26), *range(40, 49)) else 0.9 for x in range(80))
        totals = [0.0]
        for each in used:
            totals.append(totals[-1] + each)
        times = tuple(float(x) for x in range(81))
        twice = HostExecutors("h1", 1.0, times, (ProcessCpu(times, tuple(totals), 0.01),))
        assert seconds([twice], tasks((15.0, 60.0))) == [9.0]
        assert seconds([twice], tasks((38.0, 60.0))) == [9.0]

    @pytest.mark.parametrize(
        ("frozen", "spans", "found"),
        [
            # Two processes; one executor has a task all the time, the other has these.
            (((20, 28), (80, 80)), (), []),
            (((20, 28), (80, 80)), ((15.0, 40.0),), [8.0]),
            (((20, 28), (40, 48)), (), []),
            (((20, 28), (20, 28)), (), [8.0]),
            (((20, 28), (80, 80)), ((15.0, 22.0),), []),
            (((20, 28), (80, 80)), ((26.0, 40.0),), []),
            (((20, 28), (80, 80)), ((20.0, 28.0),), [8.0]),
        ],
    )
    def test_of_two_on_a_host_one_without_a_task_may_rest(
        self,
        frozen: tuple[tuple[int, int], ...],
        spans: tuple[tuple[float, float], ...],
        found: list[float],
    ) -> None:
        assert seconds([host(*frozen)], tasks((12.0, 69.0)), tasks(*spans)) == found

    def test_tasks_of_another_host_say_nothing(self) -> None:
        elsewhere = tasks((15.0, 40.0), address="h2")
        assert seconds([host((20, 28))], elsewhere) == []
        assert seconds([host((20, 28), name="h2")], elsewhere) == [8.0]

    @pytest.mark.parametrize(("interval_s", "found"), [(0.1, [4.0]), (0.8, [4.0]), (0.9, [])])
    def test_short_intervals_see_three_seconds_and_others_five_intervals(
        self, interval_s: float, found: list[float]
    ) -> None:
        assert seconds([host((20, 24), interval_s=interval_s)], tasks((15.0, 40.0))) == found
        assert seconds([host((20, 22), interval_s=interval_s)], tasks((15.0, 40.0))) == []


class TestGaps:
    @pytest.mark.parametrize(
        ("interval_s", "times", "gap"),
        [
            (0.1, (20.0, 23.0), None),
            (0.1, (20.0, 23.5), 3.5),
            (1.0, (20.0, 25.0), None),
            (1.0, (20.0, 25.5), 5.5),
            (0.1, (2.0, 9.9), None),
            (0.1, (2.0, 10.0), 8.0),
            (0.1, (70.0, 75.0), 5.0),
            (0.1, (70.1, 78.0), None),
            (0.1, (20.0, 26.0, 27.0, 32.0), 6.0),
            (0.1, (20.0,), None),
            (0.1, (), None),
        ],
    )
    def test_a_host_that_gives_no_sample_in_the_run_has_stalled(
        self, interval_s: float, times: tuple[float, ...], gap: float | None
    ) -> None:
        own = HostExecutors("h1", interval_s, times, ())
        said = [] if gap is None else [f"host h1 gave no sample for {gap} s of the run"]
        assert stalled([], [own], period=PERIOD, names=NAMES) == said

    def test_each_host_is_told(self) -> None:
        hosts = [HostExecutors(name, 0.1, (20.0, 28.0), ()) for name in ("h1", "h2")]
        assert len(stalled([], hosts, period=PERIOD, names=NAMES)) == 2


class TestLog:
    def found(self, tmp_path: Path, period: tuple[float, float] | None = None) -> list[str]:
        """Executor 0 lived from 1 to 5 seconds, executor 1 from 4."""

        def moved(kind: str, name: str, second: int) -> dict[str, Any]:
            info = {"Executor Info": {"Host": "h1"}} if kind == "Added" else {}
            event = {"Event": f"SparkListenerExecutor{kind}", "Timestamp": 1000 * second}
            return {**event, "Executor ID": name, **info}

        events = [
            moved("Added", "0", 1),
            moved("Added", "1", 4),
            moved("Removed", "0", 5),
            moved("Removed", "7", 5),
        ]
        lines = (json.dumps(x, separators=(",", ":")) + "\n" for x in events)
        (tmp_path / "app-1").write_text("".join(lines))
        more = {} if period is None else {"period": period}
        return [x.executor for x in read_executor_work(tmp_path, "app-1", **more)]

    @pytest.mark.parametrize(
        ("period", "executors"),
        [
            (None, ["0", "1"]),
            ((0.0, 9.0), ["0", "1"]),
            ((0.0, 4.0), ["0"]),
            ((0.0, 1.0), []),
            ((4.9, 9.0), ["0", "1"]),
            ((5.0, 9.0), ["1"]),
        ],
    )
    def test_those_have_a_share_that_were_registered_in_the_period(
        self, tmp_path: Path, period: tuple[float, float] | None, executors: list[str]
    ) -> None:
        assert self.found(tmp_path, period) == executors
