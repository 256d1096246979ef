"""The sum of accepted changes: since the first baseline, since a day, or since the last release."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache

from nexmark.evidence.signoffs import last_release
from nexmark.model import SUITE, metric_of
from nexmark.store import Store
from nexmark.store.reading import of_one_moment
from nexmark.store.table_rows import NightRow
from nexmark.verdict.baseline_chain import (
    Chain,
    Lineage,
    Link,
    SignedOffBuild,
    chain_of,
    shared_noise,
    suite_chain,
)

FIRST, RELEASE = "first", "release"
"""Where a chain may begin: with the first baseline, or with the build that was signed off last."""


@dataclass(frozen=True)
class Creep:
    """A chain of ``accepted`` builds that ends with the candidate of a night.

    ``since`` is the build with which the chain begins. ``day`` is the day on which this build
    became the baseline; if ``signed_off``, the day on which it was signed off. ``ratio`` is
    candidate / ``since``, with its 95 % interval from ``lo`` to ``hi``. ``words`` say all of this.
    """

    since: str
    day: str
    signed_off: bool
    accepted: int
    ratio: float
    lo: float
    hi: float
    words: str


@of_one_moment
def lineage_of(store: Store, night: NightRow, metric: str) -> Lineage:
    """Return the accepted builds as the nights before a night measured them, for the gate."""
    earlier = {
        query: [link for link in links if link.night != night.id]
        for query, links in store.links(night.id, metric).items()
    }
    release = last_release(store, night)
    return Lineage(earlier, release, _names(store, earlier.values(), release))


@of_one_moment
def creeps_of(
    store: Store,
    night: NightRow,
    query: str,
    metric: str,
    day: str | None = None,
    at: datetime | None = None,
) -> list[Creep]:
    """Return the chains that lead to a night's candidate: since a day, and since the last release.

    Chains without an accepted build are left out; there is no chain if the night has no figure.

    Args:
        store: The results database.
        night: The night.
        query: The query, or the suite.
        metric: The metric.
        day: The day with which the chain begins (2026-10-01), not later than the night; None for
            the day of the first baseline.
        at: The moment; the candidate counts as accepted if it is the baseline then. None for the
            moment at which the night began.
    """
    by_query = store.links(night.id, metric, None if query == SUITE else [query])
    links = [of_query for of_query in by_query.values() if of_query[-1].night == night.id]
    release = last_release(store, night)
    shared = _shared(store, night, metric) if query == SUITE else 1.0
    chains = [suite_chain(_chains(links, None, day), shared)]
    if release is not None:
        since = [chain for chain in _chains(links, release, None) if chain.signed_off]
        chains.append(suite_chain(since, shared))
    place = (night.engine, night.workload, night.cluster)
    rows = store.accepted(*place, at or night.started, None if query == SUITE else query)
    baselines = {of_query[-1].baseline for of_query in links}
    is_last = night.build_id in {row.build_id for row in rows.values()} - baselines
    names = _names(store, links, release)
    way = ("slower", "faster") if metric_of(metric).decides else ("more", "less")
    return [
        _creep(chain, is_last, names, way)
        for chain in chains
        if chain is not None and chain.accepted + is_last
    ]


@of_one_moment
def chains_since(store: Store, night: NightRow, metric: str, since: str) -> dict[str, Chain]:
    """Return by query the chain of builds that leads to the last candidate; see ``chain_of``.

    Queries that nothing links to the beginning have no chain.

    Args:
        store: The results database.
        night: The last night.
        metric: The metric.
        since: With which build the chain begins: ``first`` for the first baseline, ``release`` for
            the build that was signed off last, a day for the baseline of this day, or the id of a
            build.
    """
    release, day = None, None
    if since == RELEASE:
        release = last_release(store, night)
        if release is None:
            return {}
    elif is_day(since):
        day = since
    elif since != FIRST:
        release = SignedOffBuild(since, "")
    links = store.links(night.id, metric)
    chains = {query: _chain(tuple(of_query), release, day) for query, of_query in links.items()}
    return {
        query: chain
        for query, chain in chains.items()
        if chain is not None and chain.signed_off == (release is not None)
    }


def is_day(text: str) -> bool:
    """Tell whether a text is a day: 2026-10-01."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


@lru_cache(maxsize=128)
def _chain(
    links: tuple[Link, ...], release: SignedOffBuild | None, day: str | None
) -> Chain | None:
    """Return what ``chain_of`` does; kept, because past nights do not change between two pages."""
    return chain_of(links, release, day=day)


def _chains(
    links: Iterable[list[Link]], release: SignedOffBuild | None, day: str | None
) -> list[Chain]:
    chains = (_chain(tuple(of_query), release, day) for of_query in links)
    return [chain for chain in chains if chain is not None]


def _shared(store: Store, night: NightRow, metric: str) -> float:
    """Return the noise that all queries of a night share; see ``shared_noise``."""
    verdicts = [verdict for verdict in store.verdicts(night.id) if verdict.metric == metric]
    suite = next((verdict.noise for verdict in verdicts if verdict.query == SUITE), None)
    return shared_noise(
        suite, [verdict.noise for verdict in verdicts if verdict.query != SUITE and verdict.noise]
    )


def _creep(chain: Chain, is_last: bool, names: Mapping[str, str], way: tuple[str, str]) -> Creep:
    """Return a chain for people.

    Args:
        chain: The chain.
        is_last: Whether its last build, the candidate, counts as accepted.
        names: The names of the builds, by their ids.
        way: The words for a larger and for a smaller figure.
    """
    accepted = chain.accepted + is_last
    return Creep(
        since=chain.since,
        day=chain.day,
        signed_off=chain.signed_off,
        accepted=accepted,
        ratio=chain.ratio,
        lo=chain.lo,
        hi=chain.hi,
        words=chain.words(names, accepted, way),
    )


def _names(
    store: Store, links: Iterable[Iterable[Link]], release: SignedOffBuild | None
) -> dict[str, str]:
    """Return by id the name of each build that was a baseline."""
    builds = {link.baseline for of_query in links for link in of_query}
    return store.build_names(builds | ({release.build} if release else set()))
