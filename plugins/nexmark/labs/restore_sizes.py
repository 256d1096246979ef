"""Grow the state of a query, restart the query at each size, and measure how long it restores.

The state grows once, with snapshots on the local disk. At each size every restart begins with a
fresh copy of the checkpoint, so all restarts load the same state. For changelogs, the query first
runs `DELTAS` more batches with changelogs in a copy: a restart then loads the snapshot and replays
these changelogs.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import product
from pathlib import Path
from typing import Any

from nexmark.engines import Build
from nexmark.engines.launcher import Launcher, log_of, logged_cause, progress
from nexmark.errors import NexmarkError
from nexmark.labs.kept_runs import KeptRuns
from nexmark.model import Say, Spread, grouped
from nexmark.recovery.checkpoint_files import commits, gaps
from nexmark.recovery.recovery_run import state_confs
from nexmark.recovery.remote_storage import RemoteStorage
from nexmark.recovery.splits import restore_s, sst_bytes, state_rows
from nexmark_jobs.host.whole_files import write_whole

DELTAS = 5
MODES = ("snapshot", "changelog")
_BATCHES = 3
"""Batches that a restart runs: the first one restores, the gap between the last two is regular."""
_EVENTS = 10**9
_POLL_S = 0.05
_RUN_S = 3600.0
_MB = 2**20

#: The figures of Oceanus for q20 with 57 GB of state in 8 tasks: the restore took 10 s and the
#: interruption 25 s; with state that stays in remote storage, 1.5 s and 17 s.
TASK_MB = 57 * 1024 / 8
OCEANUS = (
    ("Flink, RocksDB", "remote", "", "10", "", "25"),
    ("Flink, state in remote storage", "remote", "", "1.5", "", "17"),
)


@dataclass(frozen=True)
class Restarted:
    """One restart of the query.

    Attributes:
        mode: snapshot or changelog.
        place: local or remote.
        state_mb: The size of the SSTs of the state that it loaded.
        restore_s: Seconds of load and replay, summed over state stores; None if the engine reports
            neither.
        interruption_s: Seconds from its start to its first commit, less the regular gap between
            commits.
        commit_s: Seconds of the longest commit of an operator in its last batch.
    """

    mode: str
    place: str
    state_mb: float
    restore_s: float | None
    interruption_s: float
    commit_s: float


@dataclass(frozen=True)
class Growth:
    """A query whose state grows, and its restarts.

    Attributes:
        query, tps, seed, rows_per_batch: The query and its endless input.
        repetitions: Restarts in each cell of the table.
        remote: The storage that is compared with the local disk.
        conf: More Spark confs.
    """

    query: str
    tps: int
    seed: int
    rows_per_batch: int
    repetitions: int
    remote: RemoteStorage
    conf: Mapping[str, str] = field(default_factory=dict)


def restarts(
    build: Build,
    growth: Growth,
    sizes_mb: list[int],
    mark: Mapping[str, str],
    say: Say,
    keep: Path | None = None,
) -> Iterator[Restarted]:
    """Restart the query at each size, with snapshots and changelogs, locally and remotely.

    Args:
        build: The Spark build that runs the query.
        growth: The query, its input, and the number of restarts.
        sizes_mb: The sizes of the state, smallest first.
        mark: The environment variable that marks the processes.
        say: Called with each line of progress.
        keep: A directory that keeps the states and the restarts, so that a call that was
            interrupted can go on; None keeps nothing.

    Raises:
        NexmarkError: The query failed, its state does not grow, or `keep` is of something else.
    """
    with tempfile.TemporaryDirectory(prefix="nexmark-sizes-", ignore_cleanup_errors=True) as new:
        runs, kept = _Runs(build, growth, Path(new), mark), keep or Path(new)
        kept.mkdir(exist_ok=True)
        known = KeptRuns(f"{growth} on {build.id}", kept / "restarts.jsonl")
        numbers = range(1, growth.repetitions + 1)
        before: Path | None = None
        for size in sizes_mb:
            snapshot = kept / f"{size}-snapshot"
            cells = list(product(numbers, MODES, ("local", "remote")))
            names = [(number, f"{size} MB {mode} {place}") for number, mode, place in cells]
            if not all(name in known.figures for name in names):
                sizes = runs.grown(kept, size, before)
                say(f"{size} MB: the state has {sizes['snapshot']:.0f} MB")
            for name, (_, mode, place) in zip(names, cells, strict=True):
                if name not in known.figures:
                    restarted = runs.restart(kept / f"{size}-{mode}", mode, place, sizes[mode])
                    known.keep(*name, asdict(restarted))
                    away = f"away for {restarted.interruption_s:.1f} s"
                    say(f"{name[1]}, repetition {name[0]}: {away}")
                kept_figures = known.figures[name]
                yield Restarted(
                    **{each.name: kept_figures[each.name] for each in fields(Restarted)}
                )
            shutil.rmtree(kept / f"{size}-changelog", ignore_errors=True)
            before = snapshot if snapshot.is_dir() else before


@dataclass
class _Runs:
    """The runs of a query whose state grows; `number` counts them."""

    build: Build
    growth: Growth
    work: Path
    mark: Mapping[str, str]
    number: int = 0

    def grown(self, kept: Path, size: int, before: Path | None) -> dict[str, float]:
        """Make the states of a size from the state `before`; return their sizes in MB by mode.

        States that an interrupted call has already made are used.
        """
        ends = (".json", "-snapshot", "-changelog")
        done, snapshot, changed = (kept / f"{size}{end}" for end in ends)
        if not done.exists():
            if before is not None and not snapshot.exists():
                before.rename(snapshot)
            state_mb, rows = self.grow(snapshot, size)
            shutil.rmtree(changed, ignore_errors=True)
            shutil.copytree(snapshot, changed)
            more = self.with_changelogs(changed)
            sizes = {"snapshot": state_mb, "changelog": state_mb * more / rows}
            write_whole(done, json.dumps(sizes))
        sizes_mb: dict[str, float] = json.loads(done.read_text())
        return sizes_mb

    def grow(self, checkpoint: Path, size_mb: int) -> tuple[float, int]:
        """Run until the SSTs have this size; return their size in MB and the number of rows."""
        last = self._run(
            checkpoint, "snapshot", "local", lambda p: sst_bytes(p[-1]) >= size_mb * _MB
        )[-1]
        return sst_bytes(last) / _MB, state_rows(last)

    def with_changelogs(self, checkpoint: Path) -> int:
        """Run for `DELTAS` batches with changelogs; return the number of rows."""
        batches = self._run(checkpoint, "changelog", "local", lambda p: len(p) >= DELTAS)
        return state_rows(batches[-1])

    def restart(self, checkpoint: Path, mode: str, place: str, state_mb: float) -> Restarted:
        """Restart the query once, in a copy of the checkpoint.

        Args:
            checkpoint: The directory whose checkpoint the restart begins with.
            mode: snapshot or changelog.
            place: local or remote.
            state_mb: The size of the state, for the result.
        """
        copy = self.work / "copy"
        shutil.copytree(checkpoint, copy)
        try:
            before, started = set(commits(copy / "checkpoint")), time.time()
            batches = self._run(copy, mode, place, lambda p: len(p) >= _BATCHES)
            made = {n: at for n, at in commits(copy / "checkpoint").items() if n not in before}
        finally:
            shutil.rmtree(copy)
        last = min(made) + _BATCHES - 1
        operators = batches[_BATCHES - 1]["stateOperators"]
        return Restarted(
            mode,
            place,
            state_mb,
            restore_s(batches[0]),
            max(0.0, made[min(made)] - started - gaps(made)[last]),
            max(operator["commitTimeMs"] for operator in operators) / 1000,
        )

    def _run(
        self,
        checkpoint: Path,
        mode: str,
        place: str,
        is_enough: Callable[[list[dict[str, Any]]], bool],
    ) -> list[dict[str, Any]]:
        """Run the query until it has done enough, then kill it; return its progress by batch.

        Args:
            checkpoint: The directory of the checkpoint.
            mode: snapshot or changelog.
            place: local or remote.
            is_enough: Returns from the progress so far whether the run may end.
        """
        self.number += 1
        remote = place == "remote"
        confs = state_confs("rocksdb", changelog=mode == "changelog") | dict(self.growth.conf)
        if remote:
            confs |= self.growth.remote.confs(self.build, self.work / "no-fault")
        result = self.work / f"run-{self.number}.json"
        launcher = Launcher(self.build, confs, self.work, self.mark)
        url = self.growth.remote.url(checkpoint) if remote else str(checkpoint)
        asked = self.growth
        given = [
            "--query",
            asked.query,
            "--events",
            str(_EVENTS),
            "--tps",
            str(asked.tps),
            "--seed",
            str(asked.seed),
            "--rows-per-batch",
            str(asked.rows_per_batch),
            "--sink",
            "noop",
            "--digest",
            "off",
            "--checkpoint",
            url,
            "--result",
            str(result),
        ]
        deadline = time.monotonic() + _RUN_S
        with launcher.started(given, result) as process:
            while not ((batches := progress(result)) and is_enough(batches)):
                if process.poll() is not None:
                    raise NexmarkError(
                        f"recovery: {logged_cause(log_of(result), process.returncode)}"
                    )
                if time.monotonic() > deadline:
                    raise NexmarkError(f"recovery: not enough after {_RUN_S:.0f} s; see --grow-to")
                time.sleep(_POLL_S)
        return batches


def cells(restarted: Sequence[Restarted]) -> list[list[str]]:
    """Return the rows of the table: mode, place, size, restore, interruption, commit."""
    groups = grouped(restarted, lambda each: (each.mode, each.place, each.state_mb))
    return [
        [
            mode,
            place,
            f"{size:.0f}",
            _spread([each.restore_s for each in group]),
            str(Spread.of([each.interruption_s for each in group])),
            str(Spread.of([each.commit_s for each in group])),
        ]
        for (mode, place, size), group in sorted(groups.items())
    ]


def predictions(restarted: Sequence[Restarted], tasks: int) -> list[list[str]]:
    """Return the rows of the second table; the rows of Oceanus come last.

    A row has the mode, the place, the seconds per MB and the seconds at `TASK_MB` of a restore, and
    the same two figures of an interruption. All are of one task: Spark sums a restore over `tasks`
    tasks, which load at the same time, so it is divided by their number.
    """
    rows = []
    by_cell = grouped(restarted, lambda each: (each.mode, each.place))
    for (mode, place), group in sorted(by_cell.items()):
        restore = [
            (each.state_mb / tasks, each.restore_s / tasks)
            for each in group
            if each.restore_s is not None
        ]
        away = [(each.state_mb / tasks, each.interruption_s) for each in group]
        rows.append([mode, place, *_line(restore), *_line(away)])
    return [*rows, *map(list, OCEANUS)]


def _line(points: Sequence[tuple[float, float]]) -> tuple[str, str]:
    """Return seconds per MB with twice the standard error, and seconds at `TASK_MB`.

    Where the time does not grow with the state, the second one is the text "no growth".
    """
    from scipy.stats import linregress

    if len({size for size, _ in points}) < 2:
        return "", ""
    line = linregress(*zip(*points, strict=True))
    error = f" +- {2 * line.stderr:.4f}" if len(points) > 2 else ""
    grows = line.slope > 2 * line.stderr
    at = line.intercept + line.slope * TASK_MB
    return f"{line.slope:.4f}{error}", f"{at:.0f}" if grows else "no growth"


def _spread(values: Sequence[float | None]) -> str:
    """Return the spread of the values that were reported, in words."""
    reported = [value for value in values if value is not None]
    return str(Spread.of(reported)) if reported else "not reported"
