"""The tables of `nexmark bench noise`: what the kept applications say."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import correlation, fmean, median
from typing import Any

from bench.noise_statistics import (
    Components,
    Design,
    after_covariates,
    best_design,
    between_groups,
    components,
    design,
    deviation,
    matched_medians,
)
from bench.thread_times import CLASSES, COLLECTOR, COMPILER, TASKS
from nexmark.terminal import columns

Run = Mapping[str, Any]
_CORE_HOUR_S = 3600.0
_LENGTHS = (5, 10, 20, 40, 80)
_PAIR = 2


def _less(*kinds: str) -> Callable[[Run], float]:
    """Return a figure: the steady CPU without some classes of threads."""
    return lambda run: run["cpu_steady_s"] - sum(run["threads_steady"][kind] for kind in kinds)


FIGURES: dict[str, Callable[[Run], float]] = {
    "executors, steady": lambda run: float(run["cpu_steady_s"]),
    "with driver, steady": lambda run: float(run["cpu_steady_s"] + run["driver_steady_s"]),
    "executors, whole life": lambda run: float(run["cpu_application_s"]),
    "with driver, whole life": lambda run: float(
        run["cpu_application_s"] + run["driver_application_s"]
    ),
    "wall time, steady": lambda run: float(run["wall_steady_s"]),
    "without JIT": _less(COMPILER),
    "without JIT and GC": _less(COMPILER, COLLECTOR),
    "task threads": lambda run: float(run["threads_steady"][TASKS]),
    "tasks, event log": lambda run: float(run["task_steady_s"]),
}
"""The figures whose noise is compared, each in seconds of an application."""
BLOCKS, TASKS_OF_BATCHES = "batch_cpu_s", "batch_task_s"
BATCHES = {"blocks of batches": BLOCKS, "tasks of batches": TASKS_OF_BATCHES}
_BLOCK_S = 4.0
"""A block of batches lasts at least this long.

CPU of processes is read four times a second, so where a batch ends in between is not known exactly;
over a block this matters little. Spark counts tasks exactly, so these need no blocks.
"""
_COVARIATES = {"beside": "beside", "canary before": "canary"}
_TIMINGS = ("cpu_s", "cpu_memory_s")


def report(figures: Mapping[tuple[int, str], Run]) -> None:
    """Print the tables of each arm."""
    arms = dict.fromkeys(arm for _, arm in figures)
    for arm in arms:
        numbered = {number: run for (number, name), run in figures.items() if name == arm}
        runs = dict(sorted(numbered.items()))
        pieces = len({run["piece"] for run in runs.values()})
        seconds = median(run["seconds"] for run in runs.values())
        print(f"\n{arm}: {len(runs)} applications in {pieces} pieces, {seconds:.0f} s each\n")
        heads = (
            "figure",
            "median s",
            "applications",
            "neighbours",
            "apart",
            "pieces",
            *(f"after {name}" for name in (*_COVARIATES, "beside, pairs")),
        )
        print(columns(heads, list(_figure_rows(runs))))
        print(f"\n{columns(('threads', 'share', 'CV', 'share of all', 'CV'), _threads(runs))}")
        for name, key in BATCHES.items():
            print("\n".join(_design_lines(name, key, list(runs.values()))))
        print(_sampler_line(list(runs.values())))
    if text := prior_line(figures):
        print(f"\n{text}")


def prior_line(figures: Mapping[tuple[int, str], Run], heap: str = "usual") -> str:
    """Return what pairs of all queries differ by; '' if no query has three pairs.

    It is what the gate believes of a query that it knows nothing of: the root mean square of the
    deviations of the queries, by all CPU time of the executors and by the tasks'. The correlation
    is the mean of the queries'.

    Args:
        figures: The applications.
        heap: The arms that count, by the second word of their names.
    """
    deviations, correlations = [], []
    for arm in dict.fromkeys(arm for _, arm in figures if arm.split()[-1] == heap):
        runs = {number: run for (number, name), run in sorted(figures.items()) if name == arm}
        near = pairs(runs, apart=False)
        both = [
            [math.log(figure(runs[later]) / figure(runs[earlier])) for earlier, later in near]
            for figure in (FIGURES["executors, steady"], FIGURES["tasks, event log"])
        ]
        if len(near) > 2:
            deviations.append([deviation(ratios) or 0.0 for ratios in both])
            correlations.append(correlation(*both))
    if not deviations:
        return ""
    every, tasks = (math.sqrt(fmean(d * d for d in of)) for of in zip(*deviations, strict=True))
    return (
        f"pairs of unchanged arms, heap {heap}, root mean square of {len(deviations)} queries: "
        f"{every:.1%} by all CPU time of the executors, {tasks:.1%} by the tasks', correlation "
        f"{fmean(correlations):.2f}\nprior_deviation of gate.yaml, rounded up to whole percent: "
        f"{math.ceil(100 * every) / 100:g} and {math.ceil(100 * tasks) / 100:g}"
    )


def _figure_rows(runs: Mapping[int, Run]) -> Iterator[list[str]]:
    for name, figure in FIGURES.items():
        seconds = {number: figure(run) for number, run in runs.items()}
        if min(seconds.values()) > 0:
            logs = {number: math.log(value) for number, value in seconds.items()}
            yield [name, f"{median(seconds.values()):.2f}", *_noise_cells(runs, logs)]
    for name, key in BATCHES.items():
        table = log_batches(list(runs.values()), key)
        if len(table) == len(runs):
            logs = dict(zip(runs, matched_medians(table), strict=True))
            yield [f"median of {name}", "", *_noise_cells(runs, logs)]


def _noise_cells(runs: Mapping[int, Run], logs: Mapping[int, float]) -> list[str]:
    values = list(logs.values())
    near, far = pairs(runs, apart=False), pairs(runs, apart=True)
    return [
        _percent(deviation(values)),
        _percent(deviation(logs[later] - logs[earlier] for earlier, later in near)),
        _percent(deviation(logs[later] - logs[earlier] for earlier, later in far)),
        _percent(between_groups(values, [run["piece"] for run in runs.values()])),
        *(_percent(_after(runs, logs, key)) for key in _COVARIATES.values()),
        _percent(_pairs_after(runs, logs, near, "beside")),
    ]


def pairs(runs: Mapping[int, Run], *, apart: bool) -> list[tuple[int, int]]:
    """Return pairs of runs in a row within a piece.

    Args:
        runs: The runs of an arm by their numbers.
        apart: Those with other arms between them; else those that followed each other directly.
    """
    odd = 0 if apart else 1
    return [
        (earlier, later)
        for earlier, later in pairwise(runs)
        if later == earlier + 1
        and earlier % _PAIR == odd
        and runs[earlier]["piece"] == runs[later]["piece"]
    ]


def _timings(run: Run, key: str) -> list[float] | None:
    known = run[key]
    return [math.log(known[name]) for name in _TIMINGS] if set(_TIMINGS) <= set(known) else None


def _after(runs: Mapping[int, Run], logs: Mapping[int, float], key: str) -> float | None:
    timings = {number: _timings(run, key) for number, run in runs.items()}
    known = {number: row for number, row in timings.items() if row}
    return after_covariates([logs[number] for number in known], list(known.values()))


def _pairs_after(
    runs: Mapping[int, Run], logs: Mapping[int, float], near: Sequence[tuple[int, int]], key: str
) -> float | None:
    """Return the deviation of the ratio of neighbours that a covariate leaves unexplained.

    Args:
        runs: The runs by their numbers.
        logs: The logs of a figure of each run.
        near: The numbers of the runs that followed each other directly.
        key: The covariate.
    """
    ratios, covariates = [], []
    for earlier, later in near:
        one, other = _timings(runs[earlier], key), _timings(runs[later], key)
        if one and other:
            ratios.append(logs[later] - logs[earlier])
            covariates.append([after - before for before, after in zip(one, other, strict=True)])
    return after_covariates(ratios, covariates, through_origin=True)


def _threads(runs: Mapping[int, Run]) -> list[list[str]]:
    rows = []
    for kind in CLASSES:
        cells = []
        for key in ("threads_steady", "threads_application"):
            seconds = [run[key][kind] for run in runs.values()]
            whole = fmean(sum(run[key].values()) for run in runs.values())
            cells += [_percent(fmean(seconds) / whole if whole else None), _percent(_cv(seconds))]
        rows.append([kind, *cells])
    return rows


def _cv(seconds: Sequence[float]) -> float | None:
    """Return the deviation as a part of the mean: a class may have no CPU at all in a run."""
    mean, spread = fmean(seconds), deviation(seconds)
    return spread / mean if spread is not None and mean > 0 else None


def block_size(runs: Sequence[Run], key: str) -> int:
    """Return how many batches are one block, by their median duration."""
    if key == TASKS_OF_BATCHES:
        return 1
    duration_s = float(median(ms for run in runs for ms in run["batch_ms"])) / 1000
    return max(math.ceil(_BLOCK_S / duration_s), 1)


def log_batches(runs: Sequence[Run], key: str) -> list[list[float]]:
    """Return the logs of the CPU of the blocks of each run; a block without any is left out.

    It is left out of all runs, so that the blocks still match.
    """
    size = block_size(runs, key)
    tables = [_blocks(run[key], size) for run in runs]
    common = min(map(len, tables))
    kept = [place for place in range(common) if all(table[place] > 0 for table in tables)]
    return [[math.log(table[place]) for place in kept] for table in tables] if kept else []


def _blocks(batches: Sequence[float], size: int) -> list[float]:
    """Return the sums of blocks of batches; what is left at the end is left out."""
    return [sum(batches[at : at + size]) for at in range(0, len(batches) - size + 1, size)]


def _design_lines(name: str, key: str, runs: Sequence[Run]) -> Iterator[str]:
    of_blocks = components(log_batches(runs, key))
    if of_blocks is None:
        return
    parts = of_blocks.by_batch(block_size(runs, key))
    yield (
        f"\n{name}: {parts.application:.1%} between applications, {parts.batch:.1%} between the "
        f"batches of one"
    )
    start_s, batch_s = _costs(runs)
    yield (
        f"  an application costs {start_s:.1f} CPU-s beside its steady batches, {batch_s:.2f} for "
        f"each; a core-hour for each arm buys:"
    )
    for text, each in _designs(parts, start_s, batch_s, len(runs[0][key])):
        yield (
            f"  {each.applications:>4} applications of {each.batches:>3} steady batches: "
            f"deviation of the ratio {each.deviation:.2%}{text}"
        )


def _costs(runs: Sequence[Run]) -> tuple[float, float]:
    """Return the CPU-seconds of an application beside its steady batches, and of one of these."""
    steady = [run["cpu_steady_s"] + run["driver_steady_s"] for run in runs]
    whole = [run["cpu_application_s"] + run["driver_application_s"] for run in runs]
    count = median(len(run["batch_cpu_s"]) for run in runs)
    return median(whole) - median(steady), median(steady) / count


def _designs(
    parts: Components, start_s: float, batch_s: float, now: int
) -> Iterator[tuple[str, Design]]:
    """Yield what a core-hour buys by the number of steady batches, each with its line's mark.

    Args:
        parts: The components of the variance.
        start_s: What an application costs beside its steady batches, in CPU-seconds.
        batch_s: What a steady batch costs, in CPU-seconds.
        now: The number of steady batches that was measured.
    """
    lengths = dict.fromkeys(_LENGTHS, "") | {now: " (as now)"}
    best = best_design(parts, start_s, batch_s, _CORE_HOUR_S)
    if best:
        lengths[best.batches] = lengths.get(best.batches, "") + " (best)"
    for length, text in sorted(lengths.items()):
        if fits := design(parts, start_s, batch_s, _CORE_HOUR_S, length):
            yield text, fits


def _sampler_line(runs: Sequence[Run]) -> str:
    ratios = [run["task_steady_s"] / run["cpu_steady_s"] for run in runs]
    text = f"\ntasks of the event log are {median(ratios):.1%} of the executors' CPU"
    sampler = [run["sampler_cpu_s"] for run in runs if run["sampler_cpu_s"]]
    share = f"; the sampler took {median(sampler):.2f} CPU-s of an application" if sampler else ""
    return text + share


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
