"""The records that tasks give to the store; the store makes rows of them."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from nexmark.measure.cpu_series import CpuSeries
from nexmark.measure.executed_plan import Part
from nexmark.measure.measurement import Measurement
from nexmark.model import FIRST_ROUND, Arm, Mode, RunKey, Status
from nexmark.store.table_rows import CanaryRow, SelfTestRow
from nexmark.verdict.verdict import Verdict


def plan_id(text: str) -> str:
    """Return the id of an executed plan: the SHA-256 of its normalised text."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class BuildRecord:
    """A concrete Spark artifact: the hash of its content, its Spark version, and its source.

    ``revision`` is the commit that it was made from; None if that is not known.
    """

    id: str
    version: str
    source: str
    revision: str | None = None


@dataclass(frozen=True)
class NightRecord:
    """One DAG run.

    The fields are as in ``NightRow``; the fields ``*_spec`` are configured objects as JSON.
    ``jobs`` is the hash of the modules of ``nexmark_jobs`` that a timed run imports.
    ``repetitions`` is the number of repetitions of each query (of pairs, if the night has both
    arms). ``baseline_builds`` are the builds in ``baselines``.
    """

    dag_id: str
    run_id: str
    engine: str
    workload: str
    cluster: str
    build: BuildRecord
    jobs: str
    workload_spec: Mapping[str, object]
    cluster_spec: Mapping[str, object]
    queries: Sequence[str]
    repetitions: int
    directory: Path
    started: datetime
    mode: Mode = Mode.BOUNDS
    baselines: Mapping[str, str] | None = None
    seed: int | None = None
    gate_spec: Mapping[str, object] | None = None
    candidate_conf: Mapping[str, str] | None = None
    teaches: bool = True
    baseline_builds: Sequence[BuildRecord] = ()
    started_by: str = ""

    @property
    def run(self) -> str:
        """The name of the night everywhere in the store: ``<dag_id>/<run_id>``."""
        return str(RunKey(self.dag_id, self.run_id))


@dataclass(frozen=True)
class RepetitionRecord:
    """One repetition of a query: measured and right, or with the reason why it is not.

    ``invalid`` says why a repetition does not count although it ran, ``failed`` why it did not run
    to its end. At most one of them is given, and ``measurement`` may be None only with one of them.

    ``result`` is the content of the result file. ``number`` is the number of the pair in its
    ``stage``. ``position`` is the place of the repetition in the order in which the repetitions of
    its query and stage really ran, from 1; None if it never started. ``series`` has the CPU of each
    host, with the samples file from which it was computed. ``parts`` come from the event log;
    ``parts_problem`` says why there are none.
    """

    run: str
    query: str
    number: int
    measurement: Measurement | None = None
    invalid: str | None = None
    failed: str | None = None
    arm: str = Arm.CANDIDATE
    result: Mapping[str, object] = field(default_factory=dict)
    result_path: Path | None = None
    event_log_path: Path | None = None
    event_log_bytes: int | None = None
    series: Sequence[tuple[CpuSeries, Path]] = ()
    stage: int = FIRST_ROUND
    position: int | None = None
    parts: Sequence[Part] = ()
    parts_problem: str | None = None

    def __post_init__(self) -> None:
        """Refuse a record with two reasons, or with neither a measurement nor a reason."""
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
    """The outcome of the expectations on the verified result of a query."""

    run: str
    query: str
    success: bool
    failures: Sequence[str] = ()
    evaluated: int = 0
    statistics: Mapping[str, object] = field(default_factory=dict)
    arm: str = Arm.CANDIDATE


@dataclass(frozen=True)
class WholeNight:
    """A judged night with all of its rows, to be recorded at once.

    ``judged`` is the moment at which all of it was recorded; ``grade`` and ``grade_reason`` say how
    far the hosts can be trusted.
    """

    night: NightRecord
    judged: datetime
    repetitions: Sequence[RepetitionRecord] = ()
    validations: Sequence[ValidationRecord] = ()
    canaries: Sequence[CanaryRow] = ()
    self_tests: Sequence[SelfTestRow] = ()
    verdicts: Sequence[Verdict] = ()
    grade: str | None = None
    grade_reason: str = ""


@dataclass(frozen=True)
class Accepted:
    """The result of ``accept``: the accepted queries, and why the others were left out."""

    run: str
    queries: tuple[str, ...]
    left_out: Mapping[str, str]
