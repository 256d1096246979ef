"""One query over all nights of a place: every metric, its changes with their causes, its builds."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from nexmark.attribution.explained import words
from nexmark.evidence.alarms import Acknowledged, acknowledged
from nexmark.evidence.creep import Creep, creeps_of
from nexmark.evidence.explaining import attribution_of
from nexmark.evidence.night_list import Issue, Trail, ValueLook, issues_of, look_of, with_beginnings
from nexmark.evidence.query_evidence import source_of
from nexmark.model import METRICS, SUITE, Metric, Spread, grouped, median_of, metric_of
from nexmark.store import Store
from nexmark.store.history import Judged
from nexmark.store.place_history import (
    MeasuredPlace,
    Place,
    PlaceNight,
    place_nights,
    place_points,
    places,
)
from nexmark.store.query_history import LevelChange, RatioPoint, lasting_changes
from nexmark.store.reading import of_one_moment
from nexmark.store.table_rows import BuildRow

NIGHTS = 400
"""The largest number of nights that are read."""
TRIALS = 20
"""The largest number of nights by hand that are listed."""
TRACED = 2
"""The number of last changes whose cause is looked up here; the page of a night has the others."""
BUILDS = 60
"""The largest number of builds that are drawn."""
REDS = 50
"""The largest number of reds that are listed, each with what it began with."""
DRAWN = 120
"""The number of last nights of each metric that are drawn small."""


@dataclass(frozen=True, kw_only=True)
class MetricLine(Trail):
    """A metric of the query; ``points`` are its last verdicts."""

    metric: Metric


@dataclass(frozen=True)
class TracedChange:
    """A lasting change and what is known of its cause; what is not known is None or empty.

    ``issue`` is the red verdict of these nights. ``cause`` is why the query changed, in words.
    """

    level: LevelChange
    issue: Issue | None
    cause: str

    @property
    def look(self) -> ValueLook:
        """How the verdict of the first night with the new level looks."""
        return look_of(self.level.first.verdict)


@dataclass(frozen=True)
class BuildOverNights:
    """A build that was a candidate, with its figures by the metric of the page.

    ``figures`` is the spread of the candidate's figures over the nights of the build that are
    comparable with the newest night; None if there is none. ``ratio`` is the median ratio.
    """

    build: BuildRow
    nights: int
    first: RatioPoint
    last: RatioPoint
    figures: Spread | None
    ratio: float | None


@dataclass(frozen=True, kw_only=True)
class QueryOverTime(Trail):
    """One query over the nights of a place, by one ``metric``.

    ``points`` are its verdicts, the oldest first; ``trials`` the last verdicts of nights that a
    person started to compare builds or to try a setting. ``issues`` are its red verdicts with their
    outcomes, the newest first. ``builds`` are in the order of their first nights; ``named`` has
    these builds and their baselines by their ids.
    """

    query: str
    title: str
    place: Place
    places: tuple[MeasuredPlace, ...]
    metric: Metric
    metrics: tuple[MetricLine, ...]
    trials: tuple[RatioPoint, ...]
    changes: tuple[TracedChange, ...]
    issues: tuple[Issue, ...]
    builds: tuple[BuildOverNights, ...]
    named: Mapping[str, BuildRow]
    creeps: tuple[Creep, ...]
    acks: tuple[Acknowledged, ...]

    @property
    def open(self) -> Issue | None:
        """The red verdict that the newest night has; None if the newest night is not red."""
        newest = self.issues[0] if self.issues else None
        return newest if newest and newest.last.night == self.last.verdict.night else None


@of_one_moment
def query_over_time(
    store: Store, dags: Collection[str], query: str, asked: Place, metric: str = ""
) -> QueryOverTime | None:
    """Return a query over the nights of a place; None if no night has judged it there.

    Args:
        store: The results database.
        dags: The DAGs whose nights count.
        query: The query, or the suite.
        asked: The place; of several, the one that was measured last.
        metric: The metric; the metric that decides for one that was not judged.
    """
    measured = places(store, dags, query)
    place = next((one.place for one in measured if asked.has(one.place)), None)
    if place is None:
        return None
    nights = place_nights(store, dags, place, NIGHTS)
    tried = place_nights(store, dags, place, TRIALS, taught=False)
    drawn, by_hand = nights[-DRAWN:], place_points(store, tried, query)
    latest = place_points(store, drawn, query)
    if not latest:  # it was judged in older nights, or only in nights by hand
        drawn, latest = nights, place_points(store, nights, query)
    if not latest:
        nights = drawn = tried
        latest, by_hand = by_hand, []
    if not latest:
        return None
    by_metric = grouped(latest, lambda point: point.verdict.metric)
    newest_first = reversed(latest)
    decided = (point.verdict.metric for point in newest_first if point.verdict.decides)
    deciding = next(decided, latest[-1].verdict.metric)
    name = metric if metric in by_metric else deciding
    older = nights[: len(nights) - len(drawn)]
    points = [*place_points(store, older, query, {name, deciding}), *latest]
    whole = grouped(points, lambda point: point.verdict.metric)
    shown = whole[name]
    acks = _acks(store, dags, query, place)
    ids = {point.verdict.build for point in (*points, *by_hand)}
    ids |= {point.baseline for point in (*points, *by_hand)}
    named = {build.id: build for build in store.builds(ids)}
    names = {build.id: build.name for build in named.values()}
    judged = _judged(nights, place, whole[deciding])
    issues = issues_of(judged, [(ack.row, ack.state) for ack in acks], names)
    issues[:REDS] = with_beginnings(store, issues[:REDS])
    changes = lasting_changes(shown)[::-1]
    return QueryOverTime(
        query=query,
        title=source.title if (source := source_of(query)) else "",
        place=place,
        places=tuple(measured),
        metric=metric_of(name),
        metrics=tuple(_metric_lines(by_metric)),
        points=tuple(shown),
        trials=tuple(point for point in by_hand if point.verdict.metric == name),
        changes=tuple(_traced(store, changes, issues)),
        issues=tuple(issues),
        builds=tuple(_builds(shown, named))[-BUILDS:],
        named=named,
        creeps=tuple(creeps_of(store, store.night(shown[-1].verdict.night), query, name)),
        acks=tuple(acks),
    )


def _metric_lines(by_metric: Mapping[str, Sequence[RatioPoint]]) -> Iterator[MetricLine]:
    """Yield the lines of the metrics; the metric that decides comes first."""
    known = [name for name in METRICS if name in by_metric]
    for name in dict.fromkeys([*known, *sorted(by_metric)]):
        yield MetricLine(metric=metric_of(name), points=tuple(by_metric[name][-DRAWN:]))


def _acks(store: Store, dags: Collection[str], query: str, place: Place) -> list[Acknowledged]:
    """Return the acceptances of a query in a place, the oldest first."""
    acks = acknowledged(store.acceptances(*place, query), datetime.now(UTC))
    return [ack for ack in acks if ack.dag in dags]


def _judged(
    nights: Sequence[PlaceNight], place: Place, points: Iterable[RatioPoint]
) -> Iterator[Judged]:
    """Yield the verdicts that decide, the oldest first.

    ``nights`` are the nights of the place, ``points`` the verdicts on them.
    """
    by_id = {night.id: night for night in nights}
    for point in points:
        night, verdict = by_id[point.verdict.night], point.verdict
        yield Judged(
            night=night.id,
            dag=night.dag_id,
            started=night.started,
            engine=place.engine,
            workload=place.workload,
            cluster=place.cluster,
            build=night.build_id,
            query=verdict.query,
            value=verdict.value,
            ratio=verdict.ratio,
            bad=verdict.bad,
            acceptance=verdict.acceptance,
            shape=night.shape,
            mode=night.mode,
        )


def _traced(
    store: Store, changes: Sequence[LevelChange], issues: Sequence[Issue]
) -> Iterator[TracedChange]:
    """Yield changes, the newest first, with what is known of their causes."""
    for number, level in enumerate(changes):
        first = level.first.verdict
        issue = next((one for one in issues if _covers(one, level.first)), None)
        cause = ""
        if number < TRACED and first.query != SUITE:
            attribution = attribution_of(store, first.night, first.query)
            cause = words(attribution) if attribution else ""
        yield TracedChange(level, issue, cause)


def _covers(issue: Issue, point: RatioPoint) -> bool:
    """Tell whether a night is among the nights of a red verdict."""
    return issue.first.started <= point.started <= issue.last.started


def _builds(
    points: Sequence[RatioPoint], builds: Mapping[str, BuildRow]
) -> Iterator[BuildOverNights]:
    """Yield the builds that were candidates, in the order of their first nights."""
    newest = points[-1]
    bases = Counter(point.verdict.basis for point in points if point.shape == newest.shape)
    basis = bases.most_common(1)[0][0]
    for build, of_build in grouped(points, lambda point: point.verdict.build).items():
        figures = [
            point.verdict.candidate
            for point in of_build
            if point.verdict.candidate is not None
            and (point.shape, point.verdict.basis) == (newest.shape, basis)
        ]
        yield BuildOverNights(
            build=builds[build],
            nights=len(of_build),
            first=of_build[0],
            last=of_build[-1],
            figures=Spread.of(figures) if figures else None,
            ratio=median_of(point.verdict.ratio for point in of_build),
        )
