"""Where the variance of a figure comes from: `nexmark bench noise`.

Runs queries of one build again and again, each run a fresh application, measured as a night
measures it. Nothing changes, so all that differs is noise. Two runs of a query follow each other
directly (neighbours), then the other queries have their turn. With --figures every application is
kept in a file, and the same command goes on where it stopped. Each command is one piece, as a night
is. Beside each application it reads the threads of driver and executors, and does a fixed piece of
work.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import canary
from bench.applications import Applications, RanApplication, applications
from bench.arguments import Parser, whole
from bench.beside import Beside
from bench.noise_table import report
from bench.thread_times import CLASSES, ThreadSeries
from nexmark.config import KNOWN_QUERIES, Config, load
from nexmark.labs.kept_runs import KeptRuns
from nexmark.terminal import run_command, show_line

if TYPE_CHECKING:
    from nexmark.measure.cpu import Period

USUAL, FIXED = "usual", "fixed"
HEAPS = (USUAL, FIXED)
"""The heap as in a night; or all of it taken from the machine at the start."""
_DRIVER = "spark.driver.defaultJavaOptions"
_EXECUTOR = "spark.executor.defaultJavaOptions"
_SAMPLING_S = 0.25
_NEIGHBOURS = 2
_KEPT_LEVELS = ("cpu_s", "cpu_memory_s", "steal_percent", "psi_cpu", "psi_io", "load_1m")


def order(runs: int, arms: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield each run of each arm, two of an arm after each other, the arms in turns.

    The arm that comes first changes from turn to turn.
    """
    for turn, first in enumerate(range(1, runs + 1, _NEIGHBOURS)):
        shift = turn % len(arms)
        for arm in (*arms[shift:], *arms[:shift]):
            for number in range(first, min(first + _NEIGHBOURS, runs + 1)):
                yield number, arm


@dataclass(frozen=True)
class Piece:
    """One command: a part of the study that lasts at most `minutes`."""

    kept: KeptRuns
    todo: Sequence[tuple[int, str]]
    begin: float
    minutes: float

    def has_time_for(self, arm: str, now: float) -> bool:
        """Tell whether an application of an arm ends in time, by the longest of its kept ones.

        Of an arm without any, the longest of the other arms counts.
        """
        runs = self.kept.figures.items()
        known = [run["seconds"] for (_, name), run in runs if name == arm]
        longest = max(known or [run["seconds"] for _, run in runs], default=0.0)
        return now + longest <= self.begin + 60 * self.minutes

    def go_on(self, bench: Applications) -> None:
        """Run what is to be run, as long as there is time for it."""
        number = 1 + max((run["piece"] for run in self.kept.figures.values()), default=0)
        for place, (turn, arm) in enumerate(self.todo, 1):
            if not self.has_time_for(arm, time.monotonic()):
                return
            figures = measure(bench, f"{turn}-{arm.replace(' ', '-')}", arm)
            self.kept.keep(turn, arm, {"piece": number, **figures})
            show_line(
                f"{place} of {len(self.todo)}: {arm}, run {turn}: {figures['cpu_steady_s']:.2f} "
                f"CPU-s in {len(figures['batch_cpu_s'])} steady batches, "
                f"{figures['seconds']:.0f} s in all"
            )


def heap_confs(heap: str, executor_memory: str, driver_memory: str) -> dict[str, str]:
    """Return the confs of a variant of the heap."""
    if heap == USUAL:
        return {}
    return {
        _EXECUTOR: f"-Xms{executor_memory} -XX:+AlwaysPreTouch",
        _DRIVER: f"-Xms{driver_memory} -XX:+AlwaysPreTouch",
    }


def measure(bench: Applications, name: str, arm: str) -> dict[str, Any]:
    """Run an application of an arm, which is a query and a heap; return all its figures."""
    begin, date = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
    query, heap = arm.split()
    config = bench.cluster.config
    before = canary.run(str(bench.directory))["metrics"]
    events = bench.directory / f"{name}-events"
    events.mkdir()
    confs = {
        **heap_confs(heap, config.executor_memory, config.driver_memory),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "true",
        "spark.eventLog.compression.codec": "zstd",
    }
    beside = Beside(bench.cluster.mark, config.executors)
    ran = bench.run(name, query, confs, watch=beside.watching, sampling_interval_s=_SAMPLING_S)
    return {
        "date": date,
        **cpu_figures(ran, events, bench.workload.warmup_batches),
        **thread_figures(beside, steady_period(ran, bench.workload.warmup_batches)),
        "canary": {level: before[level] for level in _KEPT_LEVELS if level in before},
        "beside": beside.pieces(ran.result.start, ran.result.end),
        "seconds": time.monotonic() - begin,
    }


def steady_period(ran: RanApplication, warmup_batches: int) -> Period:
    """Return start and end of the steady batches, in epoch seconds."""
    from nexmark.measure.result_file import data_batches

    steady = data_batches(ran.result.batches)[warmup_batches:]
    return steady[0].start, steady[-1].end


def cpu_figures(ran: RanApplication, events: Path, warmup_batches: int) -> dict[str, Any]:
    """Return the CPU-seconds of an application and of its steady batches.

    The figures of processes are from the samples, the figures of tasks (`task_...`, without the
    collector and the JIT) from Spark's event log. A batch has the tasks that started in it.
    """
    from nexmark.measure.result_file import data_batches
    from nexmark.measure.shares import read_executor_work

    result, series = ran.result, ran.series
    steady = data_batches(result.batches)[warmup_batches:]
    work = read_executor_work(events, result.application_id)
    tasks = [task for executor in work for task in executor.tasks]
    executors = [one + other for one, other in zip(series.executors, series.python, strict=True)]
    driver = series.driver or (0.0,) * len(series.times)
    start, end = steady[0].start, steady[-1].end

    def of_tasks(since: float, until: float) -> float:
        return sum(task.cpu_s for task in tasks if since <= task.start < until)

    return {
        "events": sum(batch.input_rows for batch in steady),
        "wall_steady_s": end - start,
        "cpu_steady_s": series.between(executors, start, end),
        "cpu_application_s": executors[-1],
        "driver_steady_s": series.between(driver, start, end),
        "driver_application_s": driver[-1],
        "task_steady_s": of_tasks(start, end),
        "task_application_s": sum(task.cpu_s for task in tasks),
        "batch_cpu_s": [series.between(executors, each.start, each.end) for each in steady],
        "batch_task_s": [of_tasks(each.start, each.end) for each in steady],
        "batch_ms": [each.duration_ms for each in steady],
        "sampler_cpu_s": ran.samples.sampler_cpu_s,
    }


def thread_figures(beside: Beside, steady: Period) -> dict[str, dict[str, float]]:
    """Return the CPU-seconds of each class of threads, steady and in all."""

    def between(series: Sequence[ThreadSeries]) -> dict[str, float]:
        return {kind: sum(each.between(kind, *steady) for each in series) for kind in CLASSES}

    def whole(series: Sequence[ThreadSeries]) -> dict[str, float]:
        return {kind: sum(each.whole()[kind] for each in series) for kind in CLASSES}

    driver = [beside.driver] if beside.driver else []
    return {
        "threads_steady": between(beside.executors),
        "threads_application": whole(beside.executors),
        "driver_threads_steady": between(driver),
        "driver_threads_application": whole(driver),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; 0, 1 where an application fails, 2 for a wrong argument."""
    config = load()
    parser = Parser(prog="nexmark bench noise", description=__doc__)
    parser.add_argument("--queries", type=listed(KNOWN_QUERIES), default=["q0", "q5", "q20"])
    parser.add_argument(
        "--runs", type=whole(0, 1000), default=20, help="of each; 0: only the table"
    )
    parser.add_argument("--minutes", type=whole(1, 10_000), default=120, help="of this piece")
    parser.add_argument("--heap", type=listed(HEAPS), default=[USUAL], help=" or ".join(HEAPS))
    parser.add_argument("--engine", default=config.newest.name, choices=list(config.engines))
    parser.add_argument("--workload", default="compare", choices=list(config.workloads))
    parser.add_argument("--figures", type=Path, help="a file for every application, or with some")
    parser.add_argument("--keep", type=Path, help="where logs, samples and event logs are kept")
    return run_command(partial(_study, config, parser.parse_args(argv)))


def listed(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Return the type of an argument that is a list of known words, as q0,q5."""

    def words(text: str) -> list[str]:
        given = [word.strip() for word in text.split(",")]
        for word in given:
            if word not in known:
                raise argparse.ArgumentTypeError(f"{word!r} is unknown; known: {', '.join(known)}")
        return list(dict.fromkeys(given))

    return words


def _study(config: Config, given: argparse.Namespace) -> int:
    begin = time.monotonic()
    arms = [f"{query} {heap}" for query in given.queries for heap in given.heap]
    of = f"noise of {given.workload} {given.engine}"
    with ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nexmark-noise-")))
        kept = KeptRuns(of, given.figures or temporary / "input.jsonl")
        todo = missing(kept.figures, given.runs, arms)
        piece = Piece(kept, todo, begin, given.minutes)
        if todo and piece.has_time_for(todo[0][1], begin):
            load_now = f"load {os.getloadavg()[0]:.1f} at the start"
            print(f"{of}: {len(todo)} applications to run, {load_now}", flush=True)
            home = given.keep or temporary
            bench = stack.enter_context(
                applications(config, given.engine, given.workload, home, "noise")
            )
            piece.go_on(bench)
    left = missing(kept.figures, given.runs, arms)
    print(f"\n{of}, {len(kept.figures)} applications; {left_over(kept.figures, left)}")
    report(kept.figures)
    return 0


def missing(
    figures: Mapping[tuple[int, str], Any], runs: int, arms: Sequence[str]
) -> list[tuple[int, str]]:
    """Return the runs that are still to be run, in their order."""
    return [each for each in order(runs, arms) if each not in figures]


def left_over(
    figures: Mapping[tuple[int, str], Mapping[str, Any]], left: Sequence[tuple[int, str]]
) -> str:
    """Return in words how many runs are left, and how long they take."""
    if not left:
        return "all that was asked for"
    seconds = [run["seconds"] for run in figures.values()]
    about = f", about {len(left) * sum(seconds) / len(seconds) / 60:.0f} minutes" if seconds else ""
    return f"{len(left)} are left{about}: the same command goes on"


if __name__ == "__main__":
    sys.exit(main())
