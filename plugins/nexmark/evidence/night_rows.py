"""The rows of one night in the results database, read once for all evidence of the night."""

from collections.abc import Sequence
from dataclasses import dataclass

from nexmark.model import SUITE
from nexmark.store import Store
from nexmark.store.reading import CanaryReading, of_one_moment
from nexmark.store.table_rows import (
    AcceptanceRow,
    CompatibilityRow,
    NightRow,
    RepetitionRow,
    ValidationRow,
)
from nexmark.verdict.verdict import Verdict


@dataclass(frozen=True)
class NightRows:
    """The rows of a night, as they were at one moment.

    ``verdicts`` are by the newest version of the gate that judged the night. ``acceptances`` are of
    all nights of the same engine, workload and cluster, the oldest first; of one query, if the rows
    were read for one.
    """

    night: NightRow
    repetitions: Sequence[RepetitionRow]
    verdicts: Sequence[Verdict]
    validations: Sequence[ValidationRow]
    compatibility: Sequence[CompatibilityRow]
    canaries: Sequence[CanaryReading]
    acceptances: Sequence[AcceptanceRow]

    @property
    def suite(self) -> Verdict | None:
        """The verdict on the suite as a whole."""
        return next((verdict for verdict in self.verdicts if verdict.query == SUITE), None)

    @property
    def gate_version(self) -> int | None:
        """The version of the gate that judged the night; None if the night is not judged."""
        return max((verdict.gate_version for verdict in self.verdicts), default=None)

    def deciding(self, query: str) -> Verdict | None:
        """Return the deciding verdict on a query; None if there is none."""
        return next(
            (verdict for verdict in self.verdicts if verdict.query == query and verdict.decides),
            None,
        )


@of_one_moment
def night_rows(
    store: Store,
    night: NightRow,
    repetitions: Sequence[RepetitionRow] | None = None,
    leave_out: Sequence[str] = ("batch_list",),
    query: str | None = None,
) -> NightRows:
    """Read the rows of a night in one transaction.

    Args:
        store: The results database.
        night: The night.
        repetitions: The repetitions of the night, if they are read already.
        leave_out: The columns of the repetitions that are not read, because they are large.
        query: The query whose acceptances are read; None for all.
    """
    if repetitions is None:
        repetitions = store.repetitions(night.id, leave_out=leave_out)
    return NightRows(
        night=night,
        repetitions=repetitions,
        verdicts=store.verdicts(night.id),
        validations=store.validations(night.id),
        compatibility=store.compatibility(night.id),
        canaries=store.canaries(night.id),
        acceptances=store.acceptances(night.engine, night.workload, night.cluster, query),
    )
