"""Repetitions of a recovery workload: killed, started again by their task, run to their end.

The result is of the process that reached the end. Checkpoint and table are in `kept`; a wrong
table stays there.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from nexmark.cluster import SparkCluster
from nexmark.config import Gate, Size
from nexmark.errors import NexmarkError
from nexmark.model import CATCH_UP, COMMIT, FIRST_COMMIT, INTERRUPTION, RESTORE, median_of
from nexmark.night.deployments import Deployment, Deployments
from nexmark.night.kinds.bounded import Bounded
from nexmark.night.kinds.night_kind import JobProgram, Ready
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import say
from nexmark.night.run_directory import (
    ApplicationDirectory,
    KillCost,
    RecoverySplits,
    Run,
    RunDirectory,
)
from nexmark.night.submission import Repetition
from nexmark_jobs.host.processes import with_word

if TYPE_CHECKING:
    from nexmark.engines import Build
    from nexmark.kafka.topics import KafkaCluster
    from nexmark.recovery.kill_plan import Kill
    from nexmark.recovery.remote_storage import RemoteStorage

_POLL_S = 0.05


def kept_dir(night: Night, run: Run) -> Path:
    """Return the checkpoint and the table of a repetition, where executors see them."""
    return RunDirectory(night.data_dir).application(run).path / "kept"


def recovery_confs(night: Night, deployment: Deployment) -> dict[str, str]:
    """Return the confs of the state store and of the storage."""
    from nexmark.recovery.recovery_run import state_confs
    from nexmark.recovery.remote_storage import classes_of

    asked = night.workload.recovered
    confs, storage = state_confs(asked.state, changelog=asked.changelog), _storage(night)
    if storage:
        confs |= storage.confs_with(classes_of(_build(deployment), _shared_classes(night)), None)
    return confs


def _build(deployment: Deployment) -> "Build":
    from nexmark.engines import Build

    home = Path(deployment.spark_home)
    return Build(deployment.build, deployment.spark_version, home, deployment.source)


def _shared_classes(night: Night) -> Path | None:
    """Return the directory for the storage's classes that all hosts see; None on one machine."""
    return None if night.cluster.kind == "embedded" else night.data_dir / "remote-fs"


def problems_of(night: Night) -> list[str]:
    """Return the reasons why the repetitions of a recovery night cannot be killed or compared."""
    from nexmark_jobs.queries import QUERIES

    return [
        f"queries: the result of {query} cannot be compared after a kill; leave it out"
        for query in night.queries
        if query == "q10" or not QUERIES[query].deterministic
    ]


def kills_of(night: Night) -> "list[Kill]":
    """Return the kills of a repetition, the same in each: half-way between two commits."""
    from nexmark.recovery.kill_plan import spread_kills

    asked, workload = night.workload.recovered, night.workload
    return spread_kills(-(-workload.events // workload.rows_per_batch), asked.at, asked.times)


class _Submitted:
    """A process of a repetition, which a thread runs to its end.

    Args:
        submit: Runs the process; raises if it fails.
        mark: The environment variable that marks the processes of the cluster.
        result: The result file of the process, whose path its command line has.
        log: The file for the message of the error if the process fails.
    """

    def __init__(self, submit: Callable[[], object], mark: str, result: Path, log: Path) -> None:
        self.returncode: int | None = None
        self._mark, self._result = mark, result
        self._thread = threading.Thread(target=self._run, args=(submit, log), daemon=True)
        self._thread.start()

    def _run(self, submit: Callable[[], object], log: Path) -> None:
        try:
            submit()
            self.returncode = 0
        except Exception as error:  # a thread has nobody to tell
            log.write_text(str(error))
            self.returncode = 1

    def poll(self) -> int | None:
        return self.returncode

    def kill(self) -> None:
        """Kill until nothing runs: spark-submit becomes the driver, which starts Python."""
        while (left := with_word(self._mark, str(self._result))) or self._thread.is_alive():
            for process in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
            time.sleep(_POLL_S)


@dataclass(frozen=True)
class _Submitter:
    """Starts the processes of a repetition as its task starts any; see `recovery.supervisor`."""

    ready: Ready
    work: Path
    cluster: SparkCluster

    @contextlib.contextmanager
    def started(
        self, arguments: Sequence[str], result: Path, *, confs: Mapping[str, str]
    ) -> Iterator[_Submitted]:
        from nexmark.engines.launcher import log_of

        submit = self.ready(arguments, confs)
        running = _Submitted(submit, self.cluster.mark, result, log_of(result))
        try:
            yield running
        finally:
            running.kill()

    def scratch(self, result: Path) -> Path:
        return self.cluster.scratch / "local"

    def kill_one(self, word: str, draws: random.Random, *, again: bool) -> bool:
        return self.cluster.kill_one(word, draws, again=again)


def recovered(night: Night, submission: Repetition, ready: Ready) -> None:
    """Run a repetition with its kills, and compare its table; NexmarkError where it failed."""
    from nexmark.expectations.suites import validate
    from nexmark.recovery.checkpoint_files import commits, size
    from nexmark.recovery.recovery_run import splits_of
    from nexmark.recovery.remote_storage import compiled
    from nexmark.recovery.supervisor import Supervisor

    directory, kept = submission.directory, kept_dir(night, submission.run)
    query, table, checkpoint = submission.run.query, kept / "table", kept / "checkpoint"
    asked, storage = night.workload.recovered, _storage(night)
    work = directory.attempts
    work.mkdir()
    supervisor = Supervisor(
        _Submitter(ready, work, night.clusters[submission.application.arm]),
        submission.application.arguments,
        checkpoint,
        storage.url(checkpoint) if storage else str(checkpoint),
        table,
        asked.kill,
        None,
        say,
    )
    plan = kills_of(night)
    if storage:
        deployment = Deployments.read(night).of(submission.application.arm, query)
        compiled(_build(deployment), _shared_classes(night))
    story = supervisor.run(plan, night.workload.seed)
    splits = splits_of(story, commits(checkpoint / "checkpoint"), asked.pace_s)
    last = work / f"attempt-{len(story.attempts) - 1}.json"
    if len(story.killed) < len(plan) or not last.exists():
        raise NexmarkError(f"{query}: reached its end before it was killed; lower at, or times")
    outcome = validate(query, table, night.events_dir)
    splits |= {"failures": list(outcome.failures), "checkpoint_bytes": size(checkpoint)}
    splits["batches"] = [_shown_batch(line) for each in story.attempts for line in each.progress]
    directory.recovery_file.write_text(json.dumps(splits, indent=1))
    result = json.loads(last.read_text())
    result["workload"]["events"] = None  # some of them were read by the process before
    directory.write_result(result | {"label": str(last)})
    shutil.rmtree(checkpoint)
    if outcome.success:
        shutil.rmtree(kept)


def recovery_figures(directory: ApplicationDirectory) -> dict[str, float]:
    """Return the metrics of a repetition, none if not killed; NexmarkError for a wrong table."""
    if (splits := directory.recovery()) is None:
        return {}
    if splits.failures:
        raise NexmarkError(f"after a kill: {' | '.join(splits.failures)}")
    return figures_of(splits)


def figures_of(splits: RecoverySplits) -> dict[str, float]:
    """Return the metrics of a query from the cost of its kills and commits."""
    commit_s: dict[int, float] = {}
    for commit in splits.commit:
        commit_s[commit.batch] = commit_s.get(commit.batch, 0.0) + commit.commit_s
    regular_s = splits.regular_gap_s or 0.0
    figures = {
        RESTORE: median_of(_restore_s(kill, regular_s) for kill in splits.kills),
        COMMIT: median_of(1000 * seconds for seconds in commit_s.values()),
        INTERRUPTION: median_of(kill.interruption_s for kill in splits.kills),
        FIRST_COMMIT: median_of(kill.first_commit_s for kill in splits.kills),
        CATCH_UP: median_of(kill.catch_up_s for kill in splits.kills),
    }
    return {name: value for name, value in figures.items() if value is not None}


def _restore_s(kill: KillCost, regular_s: float) -> float | None:
    """Return the seconds that a restore took; None if the query made no commit after the kill.

    No engine reports for aggregations how long stores were loaded. The restore is then how much
    longer the first commit took than the `regular_s` seconds between commits.
    """
    if kill.load_s is not None or kill.first_commit_s is None:
        return kill.load_s
    return max(0.0, kill.first_commit_s - regular_s)


def _storage(night: Night) -> "RemoteStorage | None":
    from nexmark.recovery.remote_storage import RemoteStorage

    asked = night.workload.recovered
    if asked.checkpoint == "local":
        return None
    return RemoteStorage(asked.latency_ms, asked.mb_per_s, night.workload.seed)


def _shown_batch(progress: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Return a batch of any of the processes as the pages show it, from Spark's progress."""
    from nexmark_jobs.progress import batch

    finished = batch(progress, "data", progress["numInputRows"])
    return {
        "id": finished.id,
        "phase": finished.phase,
        "input_rows": finished.input_rows,
        "duration_ms": finished.duration_ms,
        "state_rows": finished.state_rows,
        "state_bytes": finished.state_bytes,
        "state_commit_ms": finished.state_commit_ms,
        "state_restore_ms": finished.state_restore_ms,
    }


class Recovered(Bounded):
    """Nights whose repetitions are killed and started again."""

    is_judged_by_pairs_only = True
    has_flame_graphs = False
    has_slowed_arm = False  # more events are no slowdown of what decides there
    has_short_starts = False
    compares_digests = False  # each table is compared with the reference
    runs_own_jobs = False
    runs_own_inputs = False

    def gate(self, gate: Gate) -> Gate:
        """Return the gate whose metric is what kills or commits cost."""
        return gate.model_copy(update={"metric": gate.recovery_metric})

    def problems(self, night: Night) -> list[str]:
        """Return the queries that cannot be compared after a kill."""
        return problems_of(night)

    def program(self, night: Night, run: Run) -> JobProgram:
        """Return the query, but for the arguments that differ from process to process."""
        pace = night.workload.recovered.pace_s
        arguments = [
            "--query",
            run.query,
            *self.source_arguments(night, run.query, night.workload),
            "--digest",
            "off",
            "--sink",
            f"parquet:{kept_dir(night, run) / 'table'}",
            "--conf-profile",
            night.conf_profile,
            *(("--pace", str(pace)) if pace else ()),
        ]
        return JobProgram(name="run_query.py", arguments=tuple(arguments))

    def base_confs(self, night: Night, deployment: Deployment) -> dict[str, str]:
        """Return the confs of the state store and of the storage."""
        return recovery_confs(night, deployment)

    def directories(self, night: Night, run: Run) -> tuple[Path, ...]:
        """Return the directory of checkpoint and table."""
        return (kept_dir(night, run),)

    def run(
        self,
        night: Night,
        submission: Repetition,
        ready: Ready,
        connect: Callable[[], "KafkaCluster"],
    ) -> None:
        """Run a repetition with its kills, and compare its table."""
        recovered(night, submission, ready)

    def loses_executors(self, night: Night) -> bool:
        """Tell whether executors are killed, or workers with theirs."""
        return night.workload.recovered.kill != "driver"

    def figures(
        self, night: Night, directory: ApplicationDirectory, size: Size, read_rate: float
    ) -> dict[str, float]:
        """Return what kills and commits cost; NexmarkError for a wrong table."""
        return recovery_figures(directory)

    def shown_result(
        self, directory: ApplicationDirectory, result: Mapping[str, JsonValue]
    ) -> Mapping[str, JsonValue]:
        """Return the result with the batches of all processes."""
        splits = directory.recovery()
        return result if splits is None else {**result, "batches": splits.batches}
