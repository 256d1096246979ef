"""What the accepted builds come to: since the first baseline, a day, or the last release."""

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

BUILD = 19  # characters of a build's name that are shown: enough to tell it by


@dataclass(frozen=True)
class Creep:
    """A chain of ``accepted`` builds that ends with the candidate of a night.

    ``since`` is the build it begins with, ``day`` when that became the baseline, or was
    ``signed_off``. ``ratio`` is candidate / ``since`` with its 95 % interval.
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
    """Return what the nights before one know of the accepted builds, as the gate takes it."""
    links = store.links(night.id, metric)
    earlier = {query: [x for x in own if x.night != night.id] for query, own in links.items()}
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

    ``day`` (2026-10-01) is of the night itself or earlier, the first baseline's if it is not given.
    The candidate counts as accepted if it is the baseline at the moment ``at`` (when the night
    began). Only chains in which there is an accepted build; none where the night has no figure.
    """
    found = store.links(night.id, metric, None if query == SUITE else [query])
    links = [own for own in found.values() if own[-1].night == night.id]
    release = last_release(store, night)
    shared = _shared(store, night, metric) if query == SUITE else 1.0
    chains = [suite_chain(_chains(links, None, day), shared)]
    if release is not None:
        since = [chain for chain in _chains(links, release, None) if chain.signed_off]
        chains.append(suite_chain(since, shared))
    rows = store.accepted(night.engine, night.workload, night.cluster, at or night.started)
    baselines = {own[-1].baseline for own in links}
    is_last = night.build_id in {x.build_id for x in rows.values()} - baselines
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
    found = (chain_of(own, release, day=day) for own in links)
    return [chain for chain in found if chain is not None]


def _shared(store: Store, night: NightRow, metric: str) -> float:
    rows = [x for x in store.verdicts(night.id) if x.metric == metric]
    suite = next((x.noise for x in rows if x.query == SUITE), None)
    return shared_noise(suite, [x.noise for x in rows if x.query != SUITE and x.noise])


def _creep(chain: Chain, is_last: bool, names: Mapping[str, str], way: tuple[str, str]) -> Creep:
    accepted = chain.accepted + is_last
    own = (chain.since, chain.day, chain.signed_off, accepted, chain.ratio, chain.lo, chain.hi)
    return Creep(*own, chain.words(names, accepted, way))


def _names(
    store: Store, links: Iterable[Iterable[Link]], release: SignedOffBuild | None
) -> dict[str, str]:
    """Return the version and the short name of each build that was a baseline."""
    builds = {link.baseline for own in links for link in own}
    rows = store.builds(builds | ({release.build} if release else set()))
    return {row.id: f"{without_secrets(row.version)} {row.id[:BUILD]}" for row in rows}
