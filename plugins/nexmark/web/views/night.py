"""The page of a night: is it green, why, what next; then a line per query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nexmark.report.alarms import alarm_lines
from nexmark.report.health import health
from nexmark.report.rows import Row, rows_of, suite_of
from nexmark.report.summary import failed, summary
from nexmark.store import Store, details, history
from nexmark.store.models import Build, Night, VerdictRow
from nexmark.verdict.nights import SUITE
from nexmark.web.bars import Bar, bar, scale_of
from nexmark.web.verdicts import Look, look
from nexmark.web.views.arms import NOTABLE, UNKNOWN, Arms, arms_of
from nexmark.web.views.hosts import Host, hosts_of

GREEN, RED, OPEN = "GREEN", "RED", "NOT JUDGED"
WALL = "wall_s"
_UNJUDGED = "wait for its tasks; where none of them runs, see in Airflow which has failed"


@dataclass(frozen=True)
class Line:
    """One query of a night."""

    query: str
    look: Look
    reason: str
    red: bool
    known: bool
    ratio: float | None
    bar: Bar | None
    figure: float | None
    wall: float | None
    wall_look: Look | None
    result: str
    plan: str
    state_bytes: float | None
    state: float | None
    place: int


@dataclass(frozen=True)
class NightPage:
    """A night; ``done`` of ``asked`` queries have rows, ``colour`` is GREEN, RED or NOT JUDGED."""

    night: Night
    colour: str
    what: str
    why: str
    todo: str
    health: tuple[str, ...]
    alarms: tuple[str, ...]
    lines: tuple[Line, ...]
    hosts: tuple[Host, ...]
    candidate: Build
    baselines: tuple[tuple[Build | str, int], ...]
    before: str | None
    after: str | None
    done: int
    asked: int
    sort: str
    suite: VerdictRow | None
    same_build: bool


def _attention(line: Line) -> tuple[Any, ...]:
    return (line.look.rank, -abs((line.ratio or 1) - 1), line.place)


def _largest(value: Callable[[Line], float | None]) -> Callable[[Line], tuple[Any, ...]]:
    return lambda line: (value(line) is None, -(value(line) or 0), line.place)


SORTS: Mapping[str, Callable[[Line], tuple[Any, ...]]] = {
    "attention": _attention,
    "query": lambda line: (line.place,),
    "cpu": _largest(lambda line: line.ratio),
    "wall": _largest(lambda line: line.wall),
    "state": _largest(lambda line: line.state_bytes),
}
"""What the lines can be sorted by."""


def night_page(store: Store, night: Night, sort: str = "attention") -> NightPage:
    """Return the page of a night."""
    rows, suite = rows_of(store, night), suite_of(store, night)
    verdicts = store.verdicts(night.id)
    arms = arms_of(details.arms(store, night.id), _accepted_arms(store, verdicts))
    judged = any(row.verdict for row in rows)
    what, why, todo = summary(night, rows, suite)
    colour = (RED if failed(rows, suite) else GREEN) if judged else OPEN
    before, after = history.neighbours(store, night)
    return NightPage(
        night=night,
        colour=colour,
        what=_without_colour(what),
        why=why.removeprefix("Why: "),
        todo=_todo(night, todo) if judged else _UNJUDGED,
        health=tuple(line.removeprefix("Gate: ") for line in health(store, night, rows)),
        alarms=tuple(alarm_lines(store, night)) if colour == RED else (),
        lines=tuple(sorted(lines_of(rows, verdicts, arms), key=SORTS[sort])),
        hosts=tuple(hosts_of(history.hosts(store, night.id))),
        candidate=store.build(night.build_id),
        baselines=tuple(_baselines(store, night, verdicts)),
        before=before,
        after=after,
        done=sum(row.result != "not run" for row in rows),
        asked=len(night.queries),
        sort=sort,
        suite=suite,
        same_build=set((night.baselines or {}).values()) == {night.build_id}
        and not night.candidate_conf,
    )


def _todo(night: Night, line: str) -> str:
    """Return what to do; files are named below the night's directory, wherever that is."""
    return line.removeprefix("Next: ").replace(f"{night.directory}/", "")


def lines_of(
    rows: Sequence[Row], verdicts: Sequence[VerdictRow], arms: Mapping[str, Arms]
) -> list[Line]:
    """Return a line per query, in the order of the rows."""
    walls = {row.query: row for row in verdicts if row.metric == WALL}
    scale = scale_of(x for row in rows for x in (row.ratio, row.lo, row.hi))
    return [
        _line(place, row, arms.get(row.query, Arms()), walls.get(row.query), scale)
        for place, row in enumerate(rows)
    ]


def _line(place: int, row: Row, arms: Arms, wall: VerdictRow | None, scale: Any) -> Line:
    known = row.acceptance is not None
    state = arms.ratio("state_bytes_max")
    return Line(
        query=row.query,
        look=look(row.verdict, known=known),
        reason=row.reason or "",
        red=row.red,
        known=known,
        ratio=row.ratio,
        bar=bar(scale, row.ratio, row.lo, row.hi, row.mde),
        figure=row.cpu_s_per_mevent,
        wall=wall.ratio if wall and wall.ratio else arms.ratio(WALL),
        wall_look=look(wall.value) if wall and wall.value in ("WATCH", "FASTER") else None,
        result=row.result,
        plan=arms.plan,
        state_bytes=arms.median("state_bytes_max"),
        state=state if state is not None and abs(state - 1) >= NOTABLE else None,
        place=place,
    )


def _accepted_arms(store: Store, verdicts: Sequence[VerdictRow]) -> dict[str, list[Any]]:
    """Return the rows of the accepted runs that queries are compared with by bounds."""
    wanted: dict[str, set[str]] = {}
    for row in verdicts:
        if row.baseline_run and row.decides and row.query != SUITE:
            wanted.setdefault(row.baseline_run, set()).add(row.query)
    found: dict[str, list[Any]] = {}
    for run, queries in wanted.items():
        for row in details.arms(store, run, queries):
            found.setdefault(row.query, []).append(row)
    return found


def _baselines(
    store: Store, night: Night, verdicts: Sequence[VerdictRow]
) -> list[tuple[Build | str, int]]:
    """Return the builds or runs that queries are compared with, each with how many."""
    builds: dict[str, int] = {}
    for build in (night.baselines or {}).values():
        builds[str(build)] = builds.get(str(build), 0) + 1
    runs: dict[str, int] = {}
    for row in verdicts:
        if row.baseline_run and row.decides:
            runs[row.baseline_run] = runs.get(row.baseline_run, 0) + 1
    known = {build.id: build for build in store.builds(builds)}
    found: list[tuple[Build | str, int]] = [(known.get(x, x), n) for x, n in builds.items()]
    return [*found, *runs.items()]


def _without_colour(line: str) -> str:
    for words in ("NIGHT FAILED: ", "NIGHT OK: ", "NIGHT NOT JUDGED: "):
        line = line.removeprefix(words)
    return line[:1].upper() + line[1:]


__all__ = [
    "GREEN",
    "OPEN",
    "RED",
    "SORTS",
    "UNKNOWN",
    "Line",
    "NightPage",
    "lines_of",
    "night_page",
]
