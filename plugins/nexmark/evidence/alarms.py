"""Tonight's reds by the build in which they began, and the acceptances with their reasons."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from nexmark.evidence.night_rows import NightRows
from nexmark.secrets import without_secrets
from nexmark.store import Store
from nexmark.store.accepting import COUNTS, SUPERSEDED, states
from nexmark.store.table_rows import AcceptanceRow, NightRow
from nexmark.verdict.acks import Alarm, Group, group_by_first_bad
from nexmark.verdict.verdict import Verdict

NIGHTS = 100  # so far back an alarm is followed
BUILD = 19  # characters of a build's name that are shown: enough to tell it by


def alarm_lines(store: Store, stored: NightRows) -> list[str]:
    """Return a line per open group: ``since build 4.3.0 sha256:.. (night ..): q5 1.120``."""
    return [
        f"{since_of(store, group)}: {', '.join(map(_alarm, group.alarms))}"
        for group in alarm_groups(store, stored.night, stored.verdicts)
    ]


def alarm_groups(store: Store, night: NightRow, verdicts: Sequence[Verdict]) -> list[Group]:
    """Return which of the verdicts on a night are red, by the build with which each began."""
    red = {x.key for x in verdicts if x.red}
    if not red:
        return []
    tonight = [x for x in verdicts if x.key in red]
    earlier = [x for x in store.earlier(night.id, NIGHTS, {query for query, _ in red}) if x]
    builds = store.candidates(verdicts[0].night for verdicts in earlier)
    history = [(builds[verdicts[0].night], verdicts) for verdicts in earlier]
    return group_by_first_bad([*history, (night.build_id, tonight)])


def since_of(store: Store, group: Group) -> str:
    """Return which build and night a group began with: ``since build 4.3.0 sha256:.. (..)``."""
    build = store.build(group.build)
    name = f"{without_secrets(build.version)} {build.id[:BUILD]}"
    return f"since build {name} (night {group.alarms[0].since})"


def _alarm(alarm: Alarm) -> str:
    verdict = alarm.verdict
    size = verdict.value.value if verdict.ratio is None else f"{verdict.ratio:.3f}"
    times = f" ({alarm.nights} nights)" if alarm.nights > 1 else ""
    return f"{verdict.query} {size}{times}"


@dataclass(frozen=True)
class Acknowledged:
    """An acceptance and its state; ``covers``: the query whose verdict in the night it covers."""

    row: AcceptanceRow
    state: str
    covers: str | None = None

    @property
    def open(self) -> bool:
        """Whether it can be withdrawn."""
        return self.state in (COUNTS, SUPERSEDED)


def acks_of(store: Store, dags: Collection[str]) -> list[Acknowledged]:
    """Return the acceptances of nights of these DAGs, the newest first."""
    found = states(store.acceptances(), datetime.now(UTC))[::-1]
    return [Acknowledged(x, state) for x, state in found if x.night_id.partition("/")[0] in dags]


def acks_for(stored: NightRows) -> list[Acknowledged]:
    """Return what was accepted for the engine, workload and cluster of a night, oldest first."""
    covers = {x.acceptance: x.query for x in stored.verdicts}
    known = states(stored.acceptances, datetime.now(UTC))
    return [Acknowledged(row, state, covers.get(row.id)) for row, state in known]
