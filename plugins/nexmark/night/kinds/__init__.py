"""The kinds of nights: `kind_of` a workload says what its nights do.

A repetition of an application of a person's own, or of a job over files of a person's own, is of
another kind than its night: `kind_for`.
"""

from nexmark.config import Workload
from nexmark.config.workload_models import WorkloadKind, WorkloadSource
from nexmark.night.kinds.bounded import Bounded
from nexmark.night.kinds.kafka import ReadsKafka
from nexmark.night.kinds.night_kind import NightKind
from nexmark.night.kinds.own import OwnApplication
from nexmark.night.kinds.own_tables import ReadsOwnTables
from nexmark.night.kinds.paced import Paced
from nexmark.night.kinds.recovery import Recovered
from nexmark.night.kinds.soak import Soaked
from nexmark.night.night_plan import Night

__all__ = ["KINDS", "NightKind", "kind_for", "kind_of"]

_OWN = OwnApplication()
_OWN_TABLES = ReadsOwnTables()

#: The kinds by the kind and the source of a workload.
KINDS: dict[tuple[WorkloadKind, WorkloadSource], NightKind] = {
    (WorkloadKind.BOUNDED, WorkloadSource.DATAGEN): Bounded(),
    (WorkloadKind.BOUNDED, WorkloadSource.KAFKA): ReadsKafka(),
    (WorkloadKind.PACED, WorkloadSource.KAFKA): Paced(),
    (WorkloadKind.RECOVERY, WorkloadSource.DATAGEN): Recovered(),
    (WorkloadKind.SOAK, WorkloadSource.DATAGEN): Soaked(),
}


def kind_of(workload: Workload) -> NightKind:
    """Return the kind of the nights of a workload."""
    return KINDS[workload.kind, workload.source]


def kind_for(night: Night, query: str) -> NightKind:
    """Return the kind of the repetitions of a query: the night's own unless the job says more."""
    if night.is_application(query):
        return _OWN
    return _OWN_TABLES if night.reads_own_tables(query) else kind_of(night.workload)
