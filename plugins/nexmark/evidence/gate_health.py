"""How good the measurement is: the gate's self-test and what it sees, and the hosts of a night."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from statistics import fmean, median
from typing import Any

from nexmark.evidence.night_rows import NightRows
from nexmark.model import CPU, FIRST_ROUND, Mode, grouped, median_of, round_group
from nexmark.night.run_directory import RunDirectory
from nexmark.store import Store, history
from nexmark.store.history import Tally
from nexmark.store.reading import of_one_moment
from nexmark.store.table_rows import CanaryRow, NightRow, SelfTestRow
from nexmark.verdict.rates import Rates, Test, alarmed, rates

NIGHTS = 60  # that the smallest change is the median of
CHARTED = 100  # nights whose verdicts are drawn
LISTED = 30
TESTS = 400  # self-tests that the rates are made of: the last ones of an engine


@dataclass(frozen=True)
class SelfTests:
    """The last self-tests of one version of the gate, newest first, and their rates."""

    rows: tuple[SelfTestRow, ...]
    rates: Rates


@dataclass(frozen=True)
class Seen:
    """The smallest visible change of a query: medians over the last judged nights."""

    query: str
    nights: int
    mde: float | None
    noise: float | None


@dataclass(frozen=True)
class ComparedNights:
    """Nights that are compared with each other."""

    engine: str
    workload: str
    cluster: str
    mode: Mode
    nights: int
    seen: tuple[Seen, ...]


@dataclass(frozen=True)
class GateHealth:
    """Gate health; ``engines``: their rates, by the newest version of the gate that was tested."""

    engines: tuple[tuple[str, Rates], ...]
    series: tuple[ComparedNights, ...]
    tests: tuple[tuple[SelfTestRow, bool | None], ...]
    tallies: tuple[tuple[Any, Tally], ...]  # the last nights that were judged, the oldest first


def self_tests(
    store: Store, engine: str, version: int | None = None, dags: Collection[str] | None = None
) -> SelfTests:
    """Return the self-tests on an engine by a version of the gate; by the newest if none is given.

    ``dags``: of these DAGs only. Without any such test there are no rows, and no rate.
    """
    rows = store.self_tests(engine, TESTS, version=version, dags=dags)
    version = rows[0].gate_version if rows else version
    results = ((Test(x.kind), alarmed(x.value)) for x in rows)
    return SelfTests(tuple(rows), rates(results, version))


def self_tests_of(store: Store, stored: NightRows) -> SelfTests:
    """Return the self-tests of the version of the gate that judged a night."""
    return self_tests(store, stored.night.engine, stored.gate_version)


@of_one_moment
def gate_health(store: Store, dags: Collection[str]) -> GateHealth:
    """Return what is known of the gate."""
    nights = history.nights(store, dags, max(NIGHTS, CHARTED))
    engines = list(dict.fromkeys(night.engine for night in nights))
    tests = {engine: self_tests(store, engine, dags=dags) for engine in engines}
    found = (test for own in tests.values() for test in own.rows)
    recent = sorted(found, key=lambda x: x.judged, reverse=True)[:LISTED]
    tallies = history.tallies(store, nights[:CHARTED])
    return GateHealth(
        tuple((name, own.rates) for name, own in tests.items() if own.rows),
        tuple(_series(store, nights[:NIGHTS])),
        tuple((test, right(test)) for test in recent),
        tuple((night, tallies[night.id]) for night in nights[CHARTED::-1] if night.id in tallies),
    )


def right(test: SelfTestRow) -> bool | None:
    """Tell whether the gate was right about a known change; None where it came to no verdict."""
    said = alarmed(test.value)
    return None if said is None else said == (test.kind == Test.SLOWDOWN)


def seen_of(rows: Iterable[Any]) -> list[Seen]:
    """Return what can be seen of each query, the least visible first."""
    seen = [
        Seen(
            query,
            len(own),
            median_of(row.mde for row in own),
            median_of(row.noise for row in own),
        )
        for query, own in grouped(rows, attrgetter("query")).items()
    ]
    return sorted(seen, key=lambda one: -(one.mde or 0))


def _series(store: Store, nights: Sequence[Any]) -> Iterable[ComparedNights]:
    place = attrgetter("engine", "workload", "cluster", "mode", "shape")
    for (engine, workload, cluster, mode, _), own in grouped(nights, place).items():
        rows = (
            history.figures(store, [night.id for night in own], CPU) if mode != Mode.BOUNDS else ()
        )
        yield ComparedNights(engine, workload, cluster, mode, len(own), tuple(seen_of(rows)))


@dataclass(frozen=True)
class NightHost:
    """One host: how far apart the canary's timings were, the worst steal and load.

    ``drift`` is the mean of a timing after the queries by that before, the one that is furthest
    from 1 of those that do not wait; ``timing`` its name. None where there is no reading.
    """

    name: str
    drift: float | None
    timing: str
    steal_percent: float | None
    load: float | None
    throttled: float | None


@dataclass(frozen=True)
class CanaryMedian:
    """The median reading of a metric on a host, before or after the queries of a group.

    ``group``: a query, a later round, or '' for all of the night.
    """

    host: str
    metric: str
    moment: str
    median: float
    readings: int
    group: str = ""


def _readings(rows: Iterable[CanaryRow]) -> dict[tuple[str, str, str], list[float]]:
    """Return what was read by host, metric and moment."""
    found: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in rows:
        if row.value is not None:
            found[row.host, row.metric, row.moment].append(row.value)
    return found


def canary_of(rows: Iterable[CanaryRow], group: str = "") -> list[CanaryMedian]:
    """Return the median reading of each host and metric, before and after the queries."""
    known = sorted(_readings(rows).items())
    return [CanaryMedian(*place, median(values), len(values), group) for place, values in known]


def canary_around(
    rows: Iterable[CanaryRow], query: str, rounds: Collection[int]
) -> Iterator[CanaryMedian]:
    """Return what was read around a query, and around the later ones of its ``rounds``."""
    by_group = grouped(rows, lambda row: row.group)
    later = (round_group(number) for number in sorted(rounds) if number != FIRST_ROUND)
    for group in ("", query, *later):
        yield from canary_of(by_group.get(group, ()), group)


def host_facts(night: NightRow) -> dict[str, Mapping[str, Any]]:
    """Return kernel, CPU, JDK and so on by host, {} where the night has not noted them."""
    return RunDirectory(Path(night.directory)).hosts()


def hosts_of(rows: Sequence[CanaryRow]) -> list[NightHost]:
    """Return the hosts of a night from the readings of its canary."""
    from nexmark.verdict.eligibility import WAITING, is_level

    readings, hosts = _readings(rows), []
    for name in sorted({row.host for row in rows}):
        own = {place[1:]: values for place, values in readings.items() if place[0] == name}
        means = {place: fmean(values) for place, values in own.items()}
        drifts = {
            metric: after / before
            for (metric, moment), before in means.items()
            if moment == "before" and not (is_level(metric) or metric.startswith(WAITING))
            if before and (after := means.get((metric, "after")))
        }
        worst = max(drifts, key=lambda x: max(drifts[x], 1 / drifts[x]), default="")
        levels = (
            max((x for place in own if place[0] == level for x in own[place]), default=None)
            for level in ("steal_percent", "load_1m", "throttled")
        )
        hosts.append(NightHost(name, drifts.get(worst), worst, *levels))
    return hosts
