"""The quality of the measurement: self-tests of the gate, smallest visible changes, and hosts."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from nexmark.evidence.night_rows import NightRows
from nexmark.model import FIRST_ROUND, Mode, grouped, median_of, round_group
from nexmark.night.run_directory import RunDirectory
from nexmark.store import Store, history
from nexmark.store.history import ListedNight, Tally, VisibleChange
from nexmark.store.reading import CanaryReading, SelfTestOutcome, of_one_moment
from nexmark.store.table_rows import NightRow, SelfTestRow
from nexmark.verdict.rates import Rates, Test, alarmed, rates

NIGHTS = 60
"""The number of last nights whose smallest visible changes are summarised by their median."""
CHARTED = 100
"""The number of last nights whose verdicts are drawn."""
LISTED = 30
"""The number of last self-tests that are listed."""
TESTS = 400
"""The number of last self-tests on an engine from which the rates are computed."""


@dataclass(frozen=True)
class SelfTests:
    """Self-tests of one version of the gate on an engine.

    ``rows`` are the self-tests that are shown, the newest first; ``rates`` are the rates of the
    last ``count`` self-tests.
    """

    rows: tuple[SelfTestRow, ...]
    count: int
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
    """Nights that are comparable, and what could be seen of each query in them."""

    engine: str
    workload: str
    cluster: str
    mode: Mode
    nights: int
    seen: tuple[Seen, ...]


@dataclass(frozen=True)
class GateHealth:
    """The state of the gate.

    ``engines`` has the rates on each engine, by the newest version of the gate that was tested.
    ``tests`` are the last self-tests, each with whether the gate was right. ``tallies`` are the
    last nights that were judged, with their verdicts counted, the oldest night first.
    """

    engines: tuple[tuple[str, Rates], ...]
    series: tuple[ComparedNights, ...]
    tests: tuple[tuple[SelfTestRow, bool | None], ...]
    tallies: tuple[tuple[ListedNight, Tally], ...]


def self_tests(store: Store, engine: str, dags: Collection[str]) -> SelfTests:
    """Return the last self-tests in nights of some DAGs, by the newest gate that has any."""
    rows = store.self_tests(engine, LISTED, dags=dags)
    return _with_rates(rows, store.self_test_outcomes(engine, TESTS, dags=dags))


def self_tests_of(store: Store, stored: NightRows) -> SelfTests:
    """Return the self-tests of a night; the rates are of the version of the gate that judged it."""
    night, version = stored.night, stored.gate_version
    rows = store.self_tests(night.engine, version=version, run=night.id)
    outcomes = store.self_test_outcomes(night.engine, TESTS, version=version)
    return _with_rates(rows, outcomes, version)


def _with_rates(
    rows: Sequence[SelfTestRow], outcomes: Sequence[SelfTestOutcome], version: int | None = None
) -> SelfTests:
    """Return self-tests that are shown, with the rates of a version's outcomes."""
    version = outcomes[0].gate_version if outcomes else version
    results = ((Test(one.kind), alarmed(one.value)) for one in outcomes)
    return SelfTests(tuple(rows), len(outcomes), rates(results, version))


@of_one_moment
def gate_health(store: Store, dags: Collection[str]) -> GateHealth:
    """Return the state of the gate, as the nights of some DAGs show it."""
    nights = history.nights(store, dags, max(NIGHTS, CHARTED))
    engines = list(dict.fromkeys(night.engine for night in nights))
    tests = {engine: self_tests(store, engine, dags) for engine in engines}
    all_tests = (test for of_engine in tests.values() for test in of_engine.rows)
    recent = sorted(all_tests, key=lambda test: test.judged, reverse=True)[:LISTED]
    tallies = history.tallies(store, nights[:CHARTED])
    return GateHealth(
        tuple((name, of_engine.rates) for name, of_engine in tests.items() if of_engine.count),
        tuple(_series(store, nights[:NIGHTS])),
        tuple((test, right(test)) for test in recent),
        tuple((night, tallies[night.id]) for night in nights[CHARTED::-1] if night.id in tallies),
    )


def right(test: SelfTestRow) -> bool | None:
    """Tell whether the gate was right about a known change; None if it reached no verdict."""
    alarm = alarmed(test.value)
    return None if alarm is None else alarm == (test.kind == Test.SLOWDOWN)


def seen_of(visible: Iterable[VisibleChange]) -> list[Seen]:
    """Return the smallest visible change of each query; the query with the largest one comes first.

    ``visible`` has one for each query and night.
    """
    seen = [
        Seen(
            query,
            len(of_query),
            median_of(one.mde for one in of_query),
            median_of(one.noise for one in of_query),
        )
        for query, of_query in grouped(visible, lambda one: one.query).items()
    ]
    return sorted(seen, key=lambda one: (-(one.mde or 0), len(one.query), one.query))


def _series(store: Store, nights: Sequence[ListedNight]) -> Iterator[ComparedNights]:
    comparable = grouped(
        nights,
        lambda night: (night.engine, night.workload, night.cluster, night.mode, night.shape),
    )
    for (engine, workload, cluster, mode, _), alike in comparable.items():
        runs = [night.id for night in alike]
        visible = history.visible_changes(store, runs) if mode != Mode.BOUNDS else ()
        yield ComparedNights(engine, workload, cluster, mode, len(alike), tuple(seen_of(visible)))


@dataclass(frozen=True)
class NightHost:
    """One host in a night, as the canary measured it; None where there is no reading.

    ``drift`` is the median of a timing after the queries, divided by its median before them, as the
    grade of the night compares them: around each query and round, the drift furthest from 1.
    ``timing`` is the name of the timing that the grade names, if it names one of this host, else of
    the timing that moved most among those that do not wait for a disk or for a turn on a CPU.
    ``steal_percent``, ``load`` and ``throttled`` are the largest readings.
    """

    name: str
    drift: float | None
    timing: str
    steal_percent: float | None
    load: float | None
    throttled: float | None

    @property
    def apart(self) -> float | None:
        """How far apart the medians are, in the words of the grade: 0.158 for 15.8 %."""
        return None if self.drift is None else _distance(self.drift) - 1


@dataclass(frozen=True)
class CanaryMedian:
    """The median reading of a metric on a host, before or after the queries of a group.

    ``group`` is a query, a later round, or '' for the whole night.
    """

    host: str
    metric: str
    moment: str
    median: float
    readings: int
    group: str = ""


def _readings(rows: Iterable[CanaryReading]) -> dict[tuple[str, str, str], list[float]]:
    """Return the readings by host, metric and moment."""
    readings: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in rows:
        if row.value is not None:
            readings[row.host, row.metric, row.moment].append(row.value)
    return readings


def canary_of(rows: Iterable[CanaryReading], group: str = "") -> list[CanaryMedian]:
    """Return the median reading of each host and metric, before and after the queries."""
    readings = sorted(_readings(rows).items())
    return [CanaryMedian(*place, median(values), len(values), group) for place, values in readings]


def canary_around(
    rows: Iterable[CanaryReading], query: str, rounds: Collection[int]
) -> Iterator[CanaryMedian]:
    """Return the median readings around a query, and around the later ones of its ``rounds``."""
    by_group = grouped(rows, lambda row: row.group)
    later = (round_group(number) for number in sorted(rounds) if number != FIRST_ROUND)
    for group in ("", query, *later):
        yield from canary_of(by_group.get(group, ()), group)


def host_facts(night: NightRow) -> Mapping[str, Mapping[str, object]]:
    """Return the kernel, CPU, JDK and so on of each host; {} if the night has not noted them."""
    return RunDirectory(Path(night.directory)).hosts()


def hosts_of(rows: Sequence[CanaryReading], reason: str | None = None) -> list[NightHost]:
    """Return the hosts of a night from the readings of its canary.

    ``reason`` is the reason of the grade, which names a reading; None if there is none.
    """
    from nexmark.verdict.eligibility import WAITING

    hosts = []
    for name, of_host in sorted(grouped(rows, lambda row: row.host).items()):
        drifts = _drifts(of_host)
        named = [
            timing
            for timing in drifts
            if (reason or "").startswith(f"canary {timing}{f' on {name}' if name else ''}: ")
        ]
        busy = [timing for timing in drifts if not timing.startswith(WAITING)]
        timing = max(named or busy, key=lambda one: _distance(drifts[one]), default="")
        hosts.append(
            NightHost(
                name=name,
                drift=drifts.get(timing),
                timing=timing,
                steal_percent=_largest(of_host, "steal_percent"),
                load=_largest(of_host, "load_1m"),
                throttled=_largest(of_host, "throttled"),
            )
        )
    return hosts


def _drifts(rows: Iterable[CanaryReading]) -> dict[str, float]:
    """Return the drift of each timing of a host: of the groups, the drift furthest from 1."""
    from nexmark.verdict.eligibility import is_level

    drifts: dict[str, float] = {}
    for of_group in grouped(rows, lambda row: row.group).values():
        medians = {
            (metric, moment): median(values)
            for (_, metric, moment), values in _readings(of_group).items()
        }
        for (metric, moment), before in medians.items():
            after = medians.get((metric, "after"))
            if moment != "before" or is_level(metric) or not before or not after:
                continue
            drifts[metric] = max(drifts.get(metric, 1.0), after / before, key=_distance)
    return drifts


def _distance(drift: float) -> float:
    """Return how far a drift is from 1; half is as far as twice."""
    return max(drift, 1 / drift)


def _largest(rows: Iterable[CanaryReading], metric: str) -> float | None:
    """Return the largest reading of a metric at any moment; None if there is no reading."""
    values = (row.value for row in rows if row.metric == metric and row.value is not None)
    return max(values, default=None)
