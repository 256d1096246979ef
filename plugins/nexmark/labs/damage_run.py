"""Resume a query from damaged checkpoints: Spark refuses, or its result is right or wrong."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nexmark.compatibility.application import Application, CheckpointRun
from nexmark.compatibility.cases import Input
from nexmark.compatibility.results import Restart, RestartOutcome
from nexmark.compatibility.resumed_rows import RightRows
from nexmark.engines import Build
from nexmark.errors import NexmarkError
from nexmark.interrupts import temporary_directory
from nexmark.labs.damage import damage
from nexmark.model import Say
from nexmark.recovery.recovery_run import state_confs
from nexmark.recovery.remote_storage import RemoteStorage

#: By the name in the table: the state store, and whether RocksDB checkpoints changelogs.
STATES = {
    "rocksdb": ("rocksdb", False),
    "rocksdb changelog": ("rocksdb", True),
    "hdfs": ("hdfs", False),
}
PLACES = ("local", "remote")
UNDAMAGED = "(none)"
_WAITING = Restart(RestartOutcome.NOT_BEGUN)


@dataclass(frozen=True)
class DamagedRun:
    """A run that resumes from a damaged checkpoint.

    Attributes:
        kind: The damage, a key of `nexmark.labs.damage.DAMAGES`.
        state: The state store, one of `STATES`.
        place: One of `PLACES`: the file system that the checkpoint is on.
        directory: The directory of the run, with its copy of the checkpoint.
        restart: How the run ended.
    """

    kind: str
    state: str
    place: str
    directory: Path
    restart: Restart = _WAITING

    @property
    def id(self) -> str:
        """The id of the run."""
        return f"{self.kind}, {self.state}, {self.place}"

    @property
    def is_wrong(self) -> bool:
        """Whether Spark reported no error although the result is wrong."""
        return self.restart.outcome == RestartOutcome.WRONG

    @property
    def words(self) -> str:
        """The outcome in words, with the error class."""
        return "ANSWERS WRONGLY" if self.is_wrong else str(self.restart)


def run_damaged(
    build: Build, query: str, kinds: Sequence[str], events: Input, say: Say
) -> list[DamagedRun]:
    """Run a query with each state store, damage copies of its checkpoint, and resume from them.

    One copy stays undamaged, as the control. The place `local` is the file system file:, whose
    checksum files lie beside the data; `remote` has no checksum files.

    Args:
        build: The Spark build.
        query: The name of the query, which has to keep state.
        kinds: The kinds of damage.
        events: The generated events.
        say: Called with each line of progress.

    Raises:
        NexmarkError: A first run could not be made, or has no state, or Spark does not start.
    """
    with temporary_directory("nexmark-damage-") as work:
        confs = RemoteStorage(0, 100_000).confs(build, work / "fault")
        first_runs = [_run(state, query, events, work / _name(state)) for state in STATES]
        dumped = work / "events"
        dump = [*events.generator_arguments, "--out", str(dumped), "--format", "parquet"]
        records = Application(build, first_runs, work / "first", dump, confs=confs).run(say)
        for run in first_runs:
            if records[run.id]["state"] != "done":
                raise NexmarkError(f"damage: {run.id}: {records[run.id].get('reason')}")
        damaged = _damaged(kinds, work)
        resumed = [_run(each.state, query, events, each.directory, each) for each in damaged]
        records = Application(build, resumed, work / "second", confs=confs).run(say)
        return [
            replace(
                each,
                restart=RightRows(query, dumped).restart(
                    records[each.id], each.directory / "table"
                ),
            )
            for each in damaged
        ]


def _name(state: str) -> str:
    return state.replace(" ", "-")


def _damaged(kinds: Sequence[str], work: Path) -> list[DamagedRun]:
    """Make the damaged copies; leave out a kind of damage for which a checkpoint has no file."""
    runs: list[DamagedRun] = []
    for state in STATES:
        for kind in (UNDAMAGED, *kinds):
            for place in PLACES:
                target = work / "damaged" / f"{len(runs)}"
                shutil.copytree(work / _name(state), target)
                if kind == UNDAMAGED or damage(kind, target / "kept" / "checkpoint"):
                    runs.append(DamagedRun(kind, state, place, target))
                else:
                    shutil.rmtree(target)
    return runs


def _run(
    state: str, query: str, events: Input, directory: Path, damaged: DamagedRun | None = None
) -> CheckpointRun:
    """Return the first run of a query, or the one that resumes from a `damaged` checkpoint.

    Args:
        state: The state store, one of `STATES`.
        query: The name of the query.
        events: The generated events.
        directory: The directory of the run.
        damaged: The damaged checkpoint; None for the first run.
    """
    kept = f"{directory}/kept"
    remote = damaged is not None and damaged.place == "remote"
    arguments = [
        "--query",
        query,
        "--digest",
        "off",
        *events.run_arguments,
        "--checkpoint",
        f"slow://{kept}" if remote else kept,
        "--sink",
        f"parquet:{directory}/table",
        "--result",
        f"{directory.parent}/result.json",
    ]
    if damaged is None:
        directory.mkdir(parents=True)
        arguments += ["--stop-after-batch", str(events.last_batch_of_first_run)]
    store, changelog = STATES[state]
    confs = state_confs(store, changelog=changelog)
    return CheckpointRun(damaged.id if damaged else f"first run, {state}", arguments, confs)
