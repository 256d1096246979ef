"""The figures of a night, one row per query: medians over its repetitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from nexmark.store import CANDIDATE, FIRST, Store
from nexmark.store.models import Night, Repetition, Validation, VerdictRow
from nexmark.verdict.nights import SUITE


@dataclass(frozen=True)
class Row:
    """One query of a night; None where there is no figure.

    ``wall_s`` and ``cpu_s`` are medians over the ``repetitions`` that count, of the run from the
    start of the query to its last batch; ``cores`` and ``throughput_per_core`` follow from them,
    so that the row is consistent in itself. ``cpu_s_per_mevent`` is the metric of record on its
    ``basis`` (steady or application), that of the verdict where there is one. ``ratio`` is
    ``cpu_s_per_mevent`` / ``baseline``, of a night of pairs that of the pairs, with its 95 %
    interval ``lo``, ``hi``; ``mde`` is the smallest slowdown that could have been seen (0.07 is
    7 %). ``red``: whether the verdict fails the night; ``acceptance``: the id of the one that
    covers a verdict that is known. ``result``: right, WRONG, unmeasured, unverified, or not run.
    """

    query: str
    repetitions: int = 0
    events: int | None = None
    wall_s: float | None = None
    cpu_s: float | None = None
    result: str = "not run"
    cpu_s_per_mevent: float | None = None
    basis: str | None = None
    baseline: float | None = None
    ratio: float | None = None
    lo: float | None = None
    hi: float | None = None
    mde: float | None = None
    verdict: str | None = None
    reason: str | None = None
    baseline_run: str | None = None
    red: bool = False
    acceptance: int | None = None

    @property
    def cores(self) -> float | None:
        """CPU-seconds per second."""
        return self.cpu_s / self.wall_s if self.cpu_s is not None and self.wall_s else None

    @property
    def throughput_per_core(self) -> float | None:
        """Events per second and core, which is events per CPU-second."""
        return self.events / self.cpu_s if self.events is not None and self.cpu_s else None


def rows_of(store: Store, night: Night) -> list[Row]:
    """Return the rows of a night in the order its queries were asked for."""
    verdicts = {row.query: row for row in store.verdicts(night.id) if row.decides}
    validations = {x.query: x for x in store.validations(night.id) if x.arm == CANDIDATE}
    measured: dict[str, list[Repetition]] = {}
    for row in store.repetitions(night.id, lists=False):
        if row.arm == CANDIDATE and row.stage == FIRST:
            measured.setdefault(row.query, []).append(row)
    queries = list(dict.fromkeys([*night.queries, *verdicts, *measured]))
    if SUITE in queries:  # it is no query; `suite_of` has its verdict
        queries.remove(SUITE)
    return [_row(query, measured.get(query, ()), verdicts, validations) for query in queries]


def suite_of(store: Store, night: Night) -> VerdictRow | None:
    """Return the verdict on the suite as a whole, None where there is none."""
    return next((row for row in store.verdicts(night.id) if row.query == SUITE), None)


def _row(
    query: str,
    repetitions: Sequence[Repetition],
    verdicts: Mapping[str, VerdictRow],
    validations: Mapping[str, Validation],
) -> Row:
    right = [row for row in repetitions if row.ok]
    verdict = verdicts.get(query)
    own = _on_one_basis(right)
    judged = verdict is not None and verdict.candidate is not None
    return Row(
        query=query,
        repetitions=len(right),
        events=right[0].events if right else None,
        wall_s=_median([row.wall_s for row in right]),
        cpu_s=_median([row.cpu_s for row in right]),
        result=_result(repetitions, validations.get(query)),
        cpu_s_per_mevent=verdict.candidate if verdict and judged else own[0],
        basis=verdict.basis if verdict and judged else own[1],
        baseline=verdict.baseline if verdict else None,
        ratio=verdict.ratio if verdict else None,
        lo=verdict.lo if verdict else None,
        hi=verdict.hi if verdict else None,
        mde=verdict.mde if verdict else None,
        verdict=verdict.value if verdict else None,
        reason=verdict.reason if verdict else None,
        baseline_run=verdict.baseline_run if verdict else None,
        red=verdict is not None and verdict.red,
        acceptance=verdict.acceptance_id if verdict else None,
    )


def _on_one_basis(rows: Sequence[Repetition]) -> tuple[float | None, str | None]:
    """Return the median metric of record and its basis, the same for all repetitions."""
    if not rows:
        return None, None
    if all(row.basis == "steady" for row in rows):
        return _median([row.cpu_s_per_mevent_steady for row in rows]), "steady"
    return _median([row.cpu_s_per_mevent_application for row in rows]), "application"


def _result(repetitions: Sequence[Repetition], validation: Validation | None) -> str:
    invalid = [row for row in repetitions if row.status == "invalid"]
    wrong = any(row.wall_s is not None for row in invalid)  # it was measured, so that is not it
    if wrong or (validation is not None and not validation.success):
        return "WRONG"
    if invalid:
        return "unmeasured"
    if validation is not None:
        return "right"
    return "unverified" if repetitions else "not run"


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
