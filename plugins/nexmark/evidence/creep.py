"""The sum of accepted changes: since the first baseline, since a day, or since the last release."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from nexmark.evidence.signoffs import last_release
from nexmark.model import SUITE, metric_of
from nexmark.secrets import without_secrets
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

BUILD = 19
"""The number of characters of a build's id that are shown; they are enough to tell builds apart."""


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
    rows = store.accepted(night.engine, night.workload, night.cluster, at or night.started)
    baselines = {of_query[-1].baseline for of_query in links}
    is_last = night.build_id in {row.build_id for row in rows.values()} - baselines
    names = _names(store, links, release)
    way = ("slower", "faster") if metric_of(metric).decides else ("more", "less")
    return [
        _creep(chain, is_last, names, way)
        for chain in chains
        if chain is not None and chain.accepted + is_last
    ]


def _chains(
    links: Iterable[list[Link]], release: SignedOffBuild | None, day: str | None
) -> list[Chain]:
    chains = (chain_of(of_query, release, day=day) for of_query in links)
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
    """Return the version and the short id of each build that was a baseline."""
    builds = {link.baseline for of_query in links for link in of_query}
    rows = store.builds(builds | ({release.build} if release else set()))
    return {row.id: f"{without_secrets(row.version)} {row.id[:BUILD]}" for row in rows}
