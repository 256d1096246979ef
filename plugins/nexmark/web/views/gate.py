"""How good the gate is: its self-test, and the smallest change it can see of each query."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from nexmark.report.health import ALARMED
from nexmark.store import Store, history
from nexmark.store.history import Tally
from nexmark.store.models import SelfTest
from nexmark.store.records import CPU
from nexmark.verdict import Value
from nexmark.verdict.rates import Rates, Result, Test, rates
from nexmark.web.charts import Chart, verdicts_chart
from nexmark.web.verdicts import Look, look
from nexmark.web.words import moment

NIGHTS = 60
"""That the smallest change is the median of."""
CHARTED = 100
"""Nights whose verdicts are drawn."""
TESTS = 400
"""Self-tests that the rates are made of: the last ones of an engine."""
LISTED = 30


@dataclass(frozen=True)
class Engine:
    """The self-test of the gate on one engine."""

    name: str
    rates: Rates


@dataclass(frozen=True)
class Seen:
    """What can be seen of a query: medians over the last nights that were judged."""

    query: str
    nights: int
    mde: float | None
    noise: float | None
    calibrating: bool
    share: float
    """Of the widest bar."""


@dataclass(frozen=True)
class Series:
    """Nights that are compared with each other."""

    engine: str
    workload: str
    cluster: str
    mode: str
    nights: int
    seen: tuple[Seen, ...]


@dataclass(frozen=True)
class GatePage:
    """Gate health."""

    engines: tuple[Engine, ...]
    series: tuple[Series, ...]
    tests: tuple[tuple[SelfTest, Look, bool | None], ...]
    chart: Chart | None


def gate_page(store: Store, dags: Collection[str]) -> GatePage:
    """Return what is known of the gate."""
    nights = history.nights(store, dags, max(NIGHTS, CHARTED))
    engines = list(dict.fromkeys(night.engine for night in nights))
    tests = [test for engine in engines for test in _tests(store, engine, dags)]
    by_engine: dict[str, list[SelfTest]] = {engine: [] for engine in engines}
    for engine, test in tests:
        by_engine[engine].append(test)
    recent = sorted((test for _, test in tests), key=lambda x: x.judged, reverse=True)[:LISTED]
    return GatePage(
        tuple(Engine(name, rates_of(own)) for name, own in by_engine.items() if own),
        tuple(_series(store, nights[:NIGHTS])),
        tuple((test, look(test.value), right(test)) for test in recent),
        _chart(store, nights[:CHARTED]),
    )


def rates_of(tests: Sequence[SelfTest]) -> Rates:
    """Return the rates of self-tests, given newest first."""
    return rates(
        Result(x.night_id, x.query, Test(x.kind), ALARMED.get(Value(x.value), False))
        for x in reversed(tests)
    )


def right(test: SelfTest) -> bool | None:
    """Tell whether the gate was right about a known change; None where it came to no verdict."""
    alarmed = ALARMED.get(Value(test.value), False)
    return None if alarmed is None else alarmed == (test.kind == Test.SLOWDOWN)


def seen_of(rows: Iterable[Any]) -> list[Seen]:
    """Return what can be seen of each query, the least visible first."""
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row.query, []).append(row)
    drawn = []
    for query, own in found.items():
        mdes = [row.mde for row in own if row.mde is not None]
        noises = [row.noise for row in own if row.noise is not None]
        drawn.append(
            (
                query,
                len(own),
                median(mdes) if mdes else None,
                median(noises) if noises else None,
                own[0].value == Value.CALIBRATING,
            )
        )
    widest = max((one[2] or 0 for one in drawn), default=0) or 1
    seen = [Seen(*one, share=(one[2] or 0) / widest) for one in drawn]
    return sorted(seen, key=lambda one: -(one.mde or 0))


def _tests(store: Store, engine: str, dags: Collection[str]) -> list[tuple[str, SelfTest]]:
    found = store.self_tests(engine, TESTS)
    return [(engine, x) for x in found if x.night_id.partition("/")[0] in dags]


def _series(store: Store, nights: Sequence[Any]) -> Iterable[Series]:
    found: dict[tuple[str, ...], list[str]] = {}
    for night in nights:
        place = (night.engine, night.workload, night.cluster, night.mode, night.shape)
        found.setdefault(place, []).append(night.id)
    for (engine, workload, cluster, mode, _), runs in found.items():
        seen = seen_of(history.visible(store, runs, CPU)) if mode != "bounds" else []
        yield Series(engine, workload, cluster, mode, len(runs), tuple(seen))


def _chart(store: Store, nights: Sequence[Any]) -> Chart | None:
    tallies = history.tallies(store, [night.id for night in nights])
    counts = []
    for place, night in enumerate(reversed(nights)):
        tally = tallies.get(night.id, Tally({}, 0, 0, None))
        for value, number in tally.values.items():
            seen = look(value)
            counts.append(
                {
                    "place": place,
                    "night": moment(night.started),
                    "verdict": value,
                    "number": number,
                    "tone": seen.tone,
                    "rank": seen.rank,
                }
            )
    return verdicts_chart(counts) if counts else None


__all__ = ["Engine", "GatePage", "Seen", "Series", "gate_page", "rates_of", "right", "seen_of"]
