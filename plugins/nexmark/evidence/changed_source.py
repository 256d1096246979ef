"""What changed in the source of Spark between the last build that was not red and the first red."""

from collections.abc import Iterable, Sequence

from nexmark.commits.source_changes import SourceChange, source_change
from nexmark.config import load_repository
from nexmark.evidence.alarms import FEW_NIGHTS, NIGHTS
from nexmark.evidence.night_rows import NightRows
from nexmark.model import QueryKey
from nexmark.store import Store
from nexmark.store.table_rows import NightRow
from nexmark.verdict.acks import Group
from nexmark.verdict.verdict import Verdict


def changed_source(store: Store, stored: NightRows, groups: Iterable[Group]) -> list[SourceChange]:
    """Return each change of the source with which groups of alarms of a night began.

    Alarms are left out if the revision of one of their builds is not known, or if both builds have
    the same revision.
    """
    night = stored.night
    queries: dict[tuple[str, str], list[str]] = {}
    for group in groups:
        alarm = group.alarms[0]
        is_tonight = alarm.since == night.id
        first = night if is_tonight else store.night(alarm.since)
        of_first = stored.verdicts if is_tonight else None
        between = (build_before(store, first, alarm.verdict.key, of_first), group.build)
        queries.setdefault(between, []).extend(each.verdict.query for each in group.alarms)
    rows = store.builds({build for between in queries for build in between})
    revisions = {row.id: row.revision or "" for row in rows}
    repository = load_repository(night.engine) if any(revisions.values()) else None
    changes = (
        source_change(
            repository, revisions.get(old, ""), revisions.get(new, ""), list(dict.fromkeys(names))
        )
        for (old, new), names in queries.items()
    )
    return [change for change in changes if change is not None]


def build_before(
    store: Store, first: NightRow, key: QueryKey, of_first: Sequence[Verdict] | None
) -> str:
    """Return the build whose change to the candidate of a night made a verdict red; "" if unknown.

    It is the candidate of the last comparable night in which the verdict was not red. If there is
    no such night, or if a person asked for this comparison, it is the build that the candidate was
    compared with.

    Args:
        store: The results database.
        first: The first night in which the verdict was red.
        key: The query and the metric of the verdict.
        of_first: The verdicts on this night; None to read them where they are needed.
    """
    for limit in (FEW_NIGHTS, NIGHTS) if first.teaches else ():
        earlier = store.earlier(first.id, limit, {key.query}, {key.metric})
        for verdict in (verdict for verdicts in reversed(earlier) for verdict in verdicts):
            if verdict.key == key and not verdict.bad:
                return store.candidates([verdict.night])[verdict.night]
    for verdict in store.verdicts(first.id) if of_first is None else of_first:
        if verdict.key == key:
            run = verdict.baseline_run
            return store.night(run).build_id if run else verdict.baseline_build
    return ""
