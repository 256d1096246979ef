"""Runs a build on damaged checkpoints: it refuses, goes on rightly, or answers wrongly."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nexmark.compatibility.application import Application, Half
from nexmark.compatibility.check import ended
from nexmark.compatibility.classes import Ending, Input, Restart
from nexmark.engines import Build
from nexmark.errors import NexmarkError
from nexmark.interrupts import temporary_directory
from nexmark.labs.damage import damage
from nexmark.model import Say
from nexmark.recovery.recovery_run import state_confs
from nexmark.recovery.remote_storage import RemoteStorage

#: The state stores by their name in the table: the store, and whether RocksDB writes changelogs.
STATES = {
    "rocksdb": ("rocksdb", False),
    "rocksdb changelog": ("rocksdb", True),
    "hdfs": ("hdfs", False),
}
PLACES = ("local", "remote")
UNDAMAGED = "(none)"
_WAITING = Restart(Ending.NOT_BEGUN)


@dataclass(frozen=True)
class Damaged:
    """A query on a checkpoint of `state` at `place` with damage `kind`, and its outcome."""

    kind: str
    state: str
    place: str
    directory: Path
    restart: Restart = _WAITING

    @property
    def id(self) -> str:
        """The name of its second half."""
        return f"{self.kind}, {self.state}, {self.place}"

    @property
    def is_wrong(self) -> bool:
        """Whether the query went on without a word, and its result is wrong."""
        return self.restart.ending == Ending.WRONG

    @property
    def words(self) -> str:
        """The outcome in a word, with the error class."""
        return "ANSWERS WRONGLY" if self.is_wrong else str(self.restart)


def run_damaged(
    build: Build, query: str, kinds: Sequence[str], events: Input, say: Say
) -> list[Damaged]:
    """Begin the query with each state store, damage copies of its checkpoint, and go on with them.

    The undamaged checkpoint is among them, as the control. `local` is the file system file:, whose
    checksum files lie beside the data; `remote` has none. NexmarkError: a first half could not be
    run, or has no state, or Spark does not start.
    """
    with temporary_directory("nexmark-damage-") as work:
        confs = RemoteStorage(0, 100_000).confs(build, work / "fault")
        begun = [_half(state, query, events, work / _name(state)) for state in STATES]
        dumped = work / "events"
        dump = [*events.generator_arguments, "--out", str(dumped), "--format", "parquet"]
        told = Application(build, begun, work / "first", dump, confs=confs).run(say)
        for half in begun:
            if told[half.id]["state"] != "done":
                raise NexmarkError(f"damage: {half.id}: {told[half.id].get('reason')}")
        runs = _damaged(kinds, work)
        halves = [_half(run.state, query, events, run.directory, run) for run in runs]
        records = Application(build, halves, work / "second", confs=confs).run(say)
        return [
            replace(run, restart=ended(records[run.id], query, run.directory / "table", dumped))
            for run in runs
        ]


def _name(state: str) -> str:
    return state.replace(" ", "-")


def _damaged(kinds: Sequence[str], work: Path) -> list[Damaged]:
    runs: list[Damaged] = []
    for state in STATES:
        for kind in (UNDAMAGED, *kinds):
            for place in PLACES:
                target = work / "damaged" / f"{len(runs)}"
                shutil.copytree(work / _name(state), target)
                if kind == UNDAMAGED or damage(kind, target / "kept" / "checkpoint"):
                    runs.append(Damaged(kind, state, place, target))
                else:
                    shutil.rmtree(target)
    return runs


def _half(
    state: str, query: str, events: Input, directory: Path, run: Damaged | None = None
) -> Half:
    """The first half of the query, or the second one in a damaged copy."""
    kept = f"{directory}/kept"
    remote = run is not None and run.place == "remote"
    arguments = [
        *("--query", query, "--digest", "off", *events.run_arguments),
        *("--checkpoint", f"slow://{kept}" if remote else kept),
        *("--sink", f"parquet:{directory}/table"),
        *("--result", f"{directory.parent}/result.json"),
    ]
    if run is None:
        directory.mkdir(parents=True)
        arguments += ["--stop-after-batch", str(events.last_batch_of_first_half)]
    store, changelog = STATES[state]
    confs = state_confs(store, changelog=changelog)
    return Half(run.id if run else f"first half, {state}", arguments, confs)
