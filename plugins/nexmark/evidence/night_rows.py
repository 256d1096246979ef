"""All that the results database has of one night, read once for everything that shows the night."""

from collections.abc import Sequence
from dataclasses import dataclass

from nexmark.model import SUITE
from nexmark.store import Store
from nexmark.store.reading import of_one_moment
from nexmark.store.table_rows import (
    AcceptanceRow,
    CanaryRow,
    CompatibilityRow,
    NightRow,
    RepetitionRow,
    ValidationRow,
)
from nexmark.verdict.verdict import Verdict


@dataclass(frozen=True)
class NightRows:
    """The rows of a night, as they were at one moment.

    ``verdicts`` are of the newest gate that judged it. ``acceptances`` are of its engine, workload
    and cluster, of all nights, oldest first.
    """

    night: NightRow
    repetitions: Sequence[RepetitionRow]
    verdicts: Sequence[Verdict]
    validations: Sequence[ValidationRow]
    compatibility: Sequence[CompatibilityRow]
    canaries: Sequence[CanaryRow]
    acceptances: Sequence[AcceptanceRow]

    @property
    def suite(self) -> Verdict | None:
        """The verdict on the suite as a whole."""
        return next((verdict for verdict in self.verdicts if verdict.query == SUITE), None)

    @property
    def gate_version(self) -> int | None:
        """The version of the gate that judged the night, None where none has."""
        return max((verdict.gate_version for verdict in self.verdicts), default=None)

    def deciding(self, query: str) -> Verdict | None:
        """Return the verdict on a query that decides."""
        own = (x for x in self.verdicts if x.query == query and x.decides)
        return next(own, None)


@of_one_moment
def night_rows(
    store: Store,
    night: NightRow,
    repetitions: Sequence[RepetitionRow] | None = None,
    leave_out: Sequence[str] = ("batch_list",),
) -> NightRows:
    """Read the rows of a night in one transaction.

    Args:
        store: the results database.
        night: the night.
        repetitions: the repetitions of the night, where they were read before.
        leave_out: the large columns of the repetitions that are not needed.
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
        acceptances=store.acceptances(night.engine, night.workload, night.cluster),
    )
