"""The records that tasks hand to the store where a row is made of more than they know."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from nexmark.measure.cpu_series import CpuSeries
from nexmark.measure.executed_plan import Part
from nexmark.measure.measurement import Measurement
from nexmark.model import FIRST_ROUND, Arm, Mode, RunKey, Status


def plan_id(text: str) -> str:
    """Return the id of an executed plan: the hash of its normalised text."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class BuildRecord:
    """A concrete Spark artifact: content hash, Spark version, where it came from."""

    id: str
    version: str
    source: str


@dataclass(frozen=True)
class NightRecord:
    """One DAG run; the fields are as in ``NightRow``, specs are the configured objects as JSON.

    ``jobs`` is the hash of what a timed run imports of ``nexmark_jobs``. ``repetitions``: how many
    of each query (pairs, if the night has both arms).
    ``baseline_builds``: the builds in ``baselines``.
    """

    dag_id: str
    run_id: str
    engine: str
    workload: str
    cluster: str
    build: BuildRecord
    jobs: str
    workload_spec: Mapping[str, Any]
    cluster_spec: Mapping[str, Any]
    queries: Sequence[str]
    repetitions: int
    directory: Path
    started: datetime
    mode: Mode = Mode.BOUNDS
    baselines: Mapping[str, str] | None = None
    seed: int | None = None
    gate_spec: Mapping[str, Any] | None = None
    candidate_conf: Mapping[str, str] | None = None
    teaches: bool = True
    baseline_builds: Sequence[BuildRecord] = ()

    @property
    def run(self) -> str:
        """The name of the night everywhere in the store: ``<dag_id>/<run_id>``."""
        return str(RunKey(self.dag_id, self.run_id))


@dataclass(frozen=True)
class RepetitionRecord:
    """One repetition of a query: measured and right, or with the reason why not.

    ``invalid`` says why it does not count although it ran, ``failed`` why it did not run to its
    end; at most one of them, and only with one ``measurement`` may be None. ``result`` is the
    content of the result file. ``number`` is the pair's within its ``stage``, ``position`` its
    place among the repetitions of its query and stage as they really ran (from 1), None where it
    never started. ``series`` are its CPU by host, each with the samples file it was made from;
    ``parts`` are what its event log says; ``parts_problem``: why there are none.
    """

    run: str
    query: str
    number: int
    measurement: Measurement | None = None
    invalid: str | None = None
    failed: str | None = None
    arm: str = Arm.CANDIDATE
    result: Mapping[str, Any] = field(default_factory=dict)
    result_path: Path | None = None
    event_log_path: Path | None = None
    event_log_bytes: int | None = None
    series: Sequence[tuple[CpuSeries, Path]] = ()
    stage: int = FIRST_ROUND
    position: int | None = None
    parts: Sequence[Part] = ()
    parts_problem: str | None = None

    def __post_init__(self) -> None:
        """Refuse a repetition that is nothing, or two things at once."""
        if self.invalid is not None and self.failed is not None:
            raise ValueError("a repetition is either invalid or failed, not both")
        if self.measurement is None and self.status == Status.OK:
            raise ValueError("a repetition without measurement needs a reason: invalid or failed")

    @property
    def status(self) -> str:
        """``ok``, ``invalid`` or ``failed``."""
        if self.failed is not None:
            return Status.FAILED
        return Status.OK if self.invalid is None else Status.INVALID


@dataclass(frozen=True)
class ValidationRecord:
    """The outcome of the expectations on a query's verified result."""

    run: str
    query: str
    success: bool
    failures: Sequence[str] = ()
    evaluated: int = 0
    statistics: Mapping[str, Any] = field(default_factory=dict)
    arm: str = Arm.CANDIDATE


@dataclass(frozen=True)
class Accepted:
    """The result of ``accept``: the queries with a new baseline, and the reasons of the others."""

    run: str
    queries: tuple[str, ...]
    left_out: Mapping[str, str]
