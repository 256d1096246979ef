"""The red verdicts of a night by the build with which they began, and acceptances with reasons."""

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

NIGHTS = 100
"""The number of earlier nights in which the beginning of an alarm is searched."""
BUILD = 19
"""The number of characters of a build's id that are shown; they are enough to tell builds apart."""


def alarm_lines(store: Store, stored: NightRows) -> list[str]:
    """Return a line per group of alarms: ``since build 4.3.0 sha256:.. (night ..): q5 1.120``."""
    return [
        f"{since_of(store, group)}: {', '.join(map(_alarm, group.alarms))}"
        for group in alarm_groups(store, stored.night, stored.verdicts)
    ]


def alarm_groups(store: Store, night: NightRow, verdicts: Sequence[Verdict]) -> list[Group]:
    """Return the red verdicts on a night, grouped by the build with which each began to be red."""
    red = {verdict.key for verdict in verdicts if verdict.red}
    if not red:
        return []
    tonight = [verdict for verdict in verdicts if verdict.key in red]
    queries = {query for query, _ in red}
    nights = [of_night for of_night in store.earlier(night.id, NIGHTS, queries) if of_night]
    builds = store.candidates(of_night[0].night for of_night in nights)
    history = [(builds[of_night[0].night], of_night) for of_night in nights]
    return group_by_first_bad([*history, (night.build_id, tonight)])


def since_of(store: Store, group: Group) -> str:
    """Return the build and night with which a group began: ``since build 4.3.0 .. (night ..)``."""
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
    """An acceptance and its state.

    ``covers`` is the query of the night whose verdict the acceptance covers, None if there is none.
    """

    row: AcceptanceRow
    state: str
    covers: str | None = None

    @property
    def open(self) -> bool:
        """Whether a person can withdraw the acceptance."""
        return self.state in (COUNTS, SUPERSEDED)


def acks_of(store: Store, dags: Collection[str]) -> list[Acknowledged]:
    """Return the acceptances of the nights of some DAGs, the newest first."""
    newest_first = states(store.acceptances(), datetime.now(UTC))[::-1]
    return [
        Acknowledged(row, state)
        for row, state in newest_first
        if row.night_id.partition("/")[0] in dags
    ]


def acks_for(stored: NightRows) -> list[Acknowledged]:
    """Return the acceptances for the engine, workload and cluster of a night, oldest first."""
    covers = {verdict.acceptance: verdict.query for verdict in stored.verdicts}
    acceptances = states(stored.acceptances, datetime.now(UTC))
    return [Acknowledged(row, state, covers.get(row.id)) for row, state in acceptances]
