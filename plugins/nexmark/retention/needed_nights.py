"""The nights that somebody needs, however old they are, and why.

The run directory and the raw rows of a night stay for one of these reasons:

    running          a night has a cluster: its lease names the run
    baseline         an acceptance that counts names it, or one that would count again if later ones
                     were withdrawn
    sealed sign-off  its bundle is in the run directory
    open alarm       an alarm of the newest judged night of a series began in this night; also the
                     night before it, and the newest one itself

Only the raw rows of a night stay for one of these:

    history of the gate  it is among the last nights that the gate learns from
    compared with        a night that keeps its raw rows was judged by this one
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from nexmark.cluster.lease import LeaseFile
from nexmark.config import SIGNOFF_DAG_ID, Gate
from nexmark.evidence.alarms import alarm_groups
from nexmark.evidence.signoffs import is_sealed
from nexmark.model import RunKey, grouped
from nexmark.store import Store
from nexmark.store.reading import of_one_moment
from nexmark.store.table_rows import NightRow

RUNNING, BASELINE, ALARM = "running", "baseline", "open alarm"
SIGNED, HISTORY, COMPARED = "sealed sign-off", "history of the gate", "compared with"


@dataclass(frozen=True)
class NeededNights:
    """The nights that stay, by name, each with the reason.

    Attributes:
        whole: The nights whose run directory and raw rows stay.
        rows: The nights whose raw rows stay: all in `whole`, and more.
    """

    whole: dict[str, str]
    rows: dict[str, str]


@of_one_moment
def needed_nights(store: Store, gate: Gate, home: Path, now: datetime) -> NeededNights:
    """Return which nights are needed at a moment, and why.

    Args:
        store: The results database.
        gate: The rules of the gate, which say how many nights it learns from.
        home: The home with the leases of the clusters.
        now: The moment.

    Raises:
        ClusterError: The lease of a cluster cannot be read.
    """
    nights = store.nights()
    whole: dict[str, str] = {}
    for reason, names in (
        (RUNNING, map(str, running(home))),
        (BASELINE, (row.night_id for row in store.acceptances() if not row.over(now))),
        (SIGNED, _signed(nights, home)),
        (ALARM, _alarming(store, nights)),
    ):
        for name in names:
            whole.setdefault(name, reason)
    return NeededNights(whole, dict.fromkeys(_learnt_from(nights, gate), HISTORY) | whole)


def running(home: Path) -> set[RunKey]:
    """Return the runs that have a cluster, by its lease; ClusterError if one cannot be read.

    A killed night has its lease until the next night claims the cluster.
    """
    runs = set()
    for path in sorted((home / "clusters").glob("*/lease.json")):
        lease = LeaseFile(path, path.parent.name).holder()
        if lease is not None and lease.run_id:
            runs.add(RunKey(lease.dag_id, lease.run_id))
    return runs


def _signed(nights: Iterable[NightRow], home: Path) -> Iterator[str]:
    """Yield the sign-offs with a sealed bundle, and all sign-offs of other homes.

    Whether a bundle in another home is sealed cannot be seen from here.
    """
    for night in nights:
        if night.dag_id == SIGNOFF_DAG_ID:
            directory = Path(night.directory)
            if is_sealed(directory) or not directory.is_relative_to(home):
                yield night.id


def _alarming(store: Store, nights: Iterable[NightRow]) -> Iterator[str]:
    """Yield the nights of the alarms that are open in the newest night of each series."""
    teaching = [night for night in nights if night.teaches]
    for newest_first in grouped(teaching, _series).values():
        newest = next((night for night in newest_first if store.verdicts(night.id)), None)
        groups = alarm_groups(store, newest, store.verdicts(newest.id)) if newest else []
        if not newest or not groups:
            continue
        yield newest.id
        for since in {alarm.since for group in groups for alarm in group.alarms}:
            yield since
            yield from (verdicts[0].night for verdicts in store.earlier(since, 1) if verdicts)


def _learnt_from(nights: Iterable[NightRow], gate: Gate) -> Iterator[str]:
    """Yield the last nights that the gate learns from, or in which it looks for a creep."""
    window = max(gate.remembered, gate.creep_nights)
    teaching = [night for night in nights if night.teaches]
    for newest_first in grouped(teaching, lambda night: night.comparable).values():
        yield from (night.id for night in newest_first[:window])


def _series(night: NightRow) -> tuple[object, ...]:
    return night.dag_id, *night.comparable
