"""What a chain of accepted builds comes to: changes too small for any night, one after the other.

A night measures the log ratio of its candidate to the accepted build: a link between two builds. A
candidate that is accepted is the baseline of the next night, so that links make a chain. Log ratios
add along it, and so do their variances, for nights are independent; nights that measured the same
link count by their inverse variances. Both are least squares over the pairs of builds that were
measured, which also knows what to do with more than one way from a build to another: a baseline
that was moved back, a release that a sign-off measured directly. The weights are the Laplacian of a
graph, the variance between two builds is their resistance in it: G. Ruecker, "Network
meta-analysis, electrical networks and graph theory" (2012).

The figure of a link is the shift of the first pairs, also where later rounds were measured: a night
measures a query on mostly because its first pairs look slower. To take all pairs wherever there are
more would pull up one end of the first shifts and leave the other, and a chain adds that up. All
pairs are taken where the first ones are beyond ``WILD`` deviations, on either side: two disturbed
runs of five make such a night, and a sum never forgets it. The deviation is the noise of the first
pairs, host included; where the gate has none, what the night's own pairs say.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nexmark.config import Gate
from nexmark.model import FALLS_BACK, SUITE
from nexmark.verdict.location import EFFICIENCY, Array
from nexmark.verdict.order import MIN_FRESH_PAIRS
from nexmark.verdict.verdict import Verdict

WIDTH = 1.96
"""Half the width of a 95 % interval, in deviations."""
LEAST = 0.004
"""No link is believed to be more exact than this."""
WILD = 3.0
"""First pairs beyond this are always measured again, slower or faster."""


class Link(NamedTuple):
    """The log ratio of ``build`` to ``baseline`` in a night; ``day`` is the night's, if known.

    ``build`` is "" where nothing tells which one it was. ``teaches``: the baseline was the accepted
    build, not one that a person chose.
    """

    night: str
    build: str
    baseline: str
    shift: float
    deviation: float
    day: str = ""
    teaches: bool = True


class SignedOffBuild(NamedTuple):
    """The build that was signed off last, and the day."""

    build: str
    day: str


@dataclass(frozen=True)
class Chain:
    """The log ratio of a candidate to an earlier build, ``since`` which ``accepted`` others were.

    ``day`` (or night) is when that one became the baseline, or when it was ``signed_off``.
    """

    since: str
    day: str
    shift: float
    deviation: float
    accepted: int
    signed_off: bool = False

    @property
    def ratio(self) -> float:
        """Candidate / ``since``."""
        return math.exp(self.shift)

    @property
    def lo(self) -> float:
        """The lower end of the 95 % interval of ``ratio``."""
        return math.exp(self.shift - WIDTH * self.deviation)

    @property
    def hi(self) -> float:
        """The upper end of the 95 % interval of ``ratio``."""
        return math.exp(self.shift + WIDTH * self.deviation)

    def words(
        self,
        names: Mapping[str, str],
        accepted: int | None = None,
        way: tuple[str, str] = ("slower", "faster"),
    ) -> str:
        """Return what it comes to; ``names`` of builds, ``way``: the words for more and less."""
        (more, less), name = way, names.get(self.since, self.since)
        count = self.accepted if accepted is None else accepted
        since = f"{self.day} ({name})"
        if self.signed_off:
            since = f"{name} was signed off on {self.day}"
        size = f"{_percent(self.ratio)} {more if self.shift >= 0 else less}"
        ends = [self.lo, self.hi] if self.shift >= 0 else [self.hi, self.lo]
        texts = [_percent(end) for end in ends]
        if self.lo < 1 < self.hi:
            texts = [f"{_percent(self.lo)} {less}", f"{_percent(self.hi)} {more}"]
        builds = f"{count} accepted build{'' if count == 1 else 's'}"
        return f"since {since}: {size} ({' to '.join(texts)}), {builds}"


def _percent(ratio: float) -> str:
    size = 100 * abs(ratio - 1)
    return f"{size:.0f} %" if size >= 9.95 else f"{size:.1f} %"


def creeps(shift: Array, deviation: Array, rules: Gate) -> NDArray[np.bool_]:
    """Tell which chains are slower by what matters, and beyond their noise."""
    needed = np.maximum(rules.creep_z * deviation, np.log1p(rules.creep_change))
    result: NDArray[np.bool_] = shift > needed
    return result


def is_creep(chain: Chain | None, rules: Gate) -> bool:
    """Tell whether a chain is a creep; one without an accepted build in it is tonight's change."""
    if chain is None or not chain.accepted:
        return False
    return bool(creeps(np.asarray(chain.shift), np.asarray(chain.deviation), rules))


def says_enough(shift: float, noise: float | None) -> bool:
    """Tell whether shift and noise of the first pairs are a link, without the other pairs."""
    return bool(noise) and abs(shift) <= WILD * (noise or 0.0)


def link_of(verdict: Verdict, teaches: bool = True, day: str = "") -> Link | None:
    """Return what a night says of its candidate; None where it compared nothing."""
    if verdict.shift is None or verdict.spread is None or not verdict.baseline_build:
        return None
    shift, deviation = verdict.shift, verdict.noise
    if not deviation:
        of_pairs = math.sqrt(EFFICIENCY / max(verdict.pairs, 1)) * verdict.spread
        deviation = max(of_pairs, LEAST)
    elif not says_enough(shift, deviation):
        shift, deviation = _fresh(verdict) or (shift, deviation)
    said = (verdict.night, verdict.build, verdict.baseline_build, shift, deviation, day, teaches)
    return Link(*said)


def _fresh(verdict: Verdict) -> tuple[float, float] | None:
    if verdict.fresh_pairs < MIN_FRESH_PAIRS or not (verdict.ratio and verdict.lo and verdict.hi):
        return None
    return math.log(verdict.ratio), math.log(verdict.hi / verdict.lo) / (2 * WIDTH)


@dataclass
class Lineage:
    """The links of each query, oldest first; the last ``release``, and ``names`` of builds.

    Stored nights may not tell which build their candidate was. Then a baseline that was not seen
    before is the candidate of the night just before it.
    """

    links: dict[str, list[Link]] = field(default_factory=dict)
    release: SignedOffBuild | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    _last: str = ""

    def add(
        self, verdicts: Iterable[Verdict], rules: Gate, teaches: bool = True, day: str = ""
    ) -> None:
        """Add the next night; ``day`` is its day, if known."""
        night, links = "", dict[str, Link]()
        for verdict in verdicts:
            night = verdict.night
            first = verdict.metric == rules.metric
            other = verdict.metric == FALLS_BACK.get(rules.metric) and verdict.query not in links
            judged = (first or other) and verdict.mode == rules.mode
            if judged and verdict.query != SUITE and (link := link_of(verdict, teaches, day)):
                links[verdict.query] = link
        for query, link in links.items():
            if teaches:
                self._name(query, link.baseline)
            self.links.setdefault(query, []).append(link)
        if teaches and night:
            self._last = night

    def chain(self, tonight: Verdict, nights: int) -> Chain | None:
        """Return the chain to tonight's candidate: see ``chain_of``."""
        if (link := link_of(tonight)) is None:
            return None
        self._name(tonight.query, tonight.baseline_build)
        return chain_of([*self.links.get(tonight.query, ()), link], self.release, nights)

    def _name(self, query: str, baseline: str) -> None:
        links = self.links.get(query, [])
        taught = next((i for i in range(len(links) - 1, -1, -1) if links[i].teaches), None)
        if taught is None or links[taught].build or links[taught].night != self._last:
            return
        if not any(baseline in (link.build, link.baseline) for link in links):
            links[taught] = links[taught]._replace(build=baseline)


def chain_of(
    links: Sequence[Link],
    release: SignedOffBuild | None = None,
    nights: int | None = None,
    day: str | None = None,
) -> Chain | None:
    """Return what the builds come to that were accepted before the last link's candidate.

    The chain begins with the release; if there is none, or nothing links it to the candidate, with
    the first baseline of the last nights that is linked to the candidate. None where nothing is
    linked, or where the candidate is the build with which the chain begins.

    Args:
        links: The links of one query, oldest first; the last one is tonight's.
        release: The build that was signed off last; None where none was.
        nights: How many of the last nights the chain covers; None for all.
        day: The chain begins with the first baseline on or after this day; None for any day.
    """
    last = links[-1]
    build = last.build or last.night
    links = [*links[:-1], last._replace(build=build)]
    weights = _weighed(links)
    reached = _reached(weights, build)
    turns = _turns(links)
    if release is not None and release.build in reached | {build}:
        first = next(
            i for i, link in enumerate(links) if release.build in (link.build, link.baseline)
        )
        signed = next((i for i, turn in enumerate(turns) if turn.build == release.build), None)
        after = (
            sum(turn.first > first for turn in turns) if signed is None else len(turns) - signed - 1
        )
        return _made(weights, build, Chain(*release, 0.0, 0.0, after, signed_off=True))
    taught = [i for i, link in enumerate(links) if link.teaches]
    oldest = taught[-nights] if nights is not None and len(taught) >= nights else 0
    for place, turn in enumerate(turns):
        if turn.last < oldest or turn.build not in reached:
            continue
        if day is not None and links[turn.last].day < day:
            continue
        began = links[turn.first].day or links[turn.first].night
        return _made(weights, build, Chain(turn.build, began, 0.0, 0.0, len(turns) - place - 1))
    return None


class _Turn(NamedTuple):
    """A baseline, and the first and the last of the links in which it was."""

    build: str
    first: int
    last: int


def _turns(links: Sequence[Link]) -> list[_Turn]:
    """Return the accepted builds in turn; where one counts again, those after it do not."""
    turns: list[_Turn] = []
    taught = (place for place, link in enumerate(links) if link.teaches)
    for baseline, run in groupby(taught, key=lambda place: links[place].baseline):
        places = list(run)
        known = next((i for i, turn in enumerate(turns) if turn.build == baseline), len(turns))
        first = turns[known].first if known < len(turns) else places[0]
        turns[known:] = [_Turn(baseline, first, places[-1])]
    return turns


_Weights = dict[str, dict[str, tuple[float, float]]]
"""By two builds: the weight of what was measured of them, and weight times shift."""


def _weighed(links: Iterable[Link]) -> _Weights:
    sums: dict[tuple[str, str], tuple[float, float]] = {}
    for link in links:
        if link.build and link.build != link.baseline:
            weight = 1 / link.deviation**2
            before = sums.get((link.build, link.baseline), (0.0, 0.0))
            sums[link.build, link.baseline] = before[0] + weight, before[1] + weight * link.shift
    weights: _Weights = {}
    for (build, baseline), (weight, product) in sums.items():
        for one, other, signed in ((build, baseline, product), (baseline, build, -product)):
            before = weights.setdefault(one, {}).get(other, (0.0, 0.0))
            weights[one][other] = before[0] + weight, before[1] + signed
    return weights


def _reached(weights: _Weights, build: str) -> set[str]:
    """Return the builds that links lead to from one, without itself."""
    reached, left = {build}, [build]
    while left:
        for other in weights.get(left.pop(), ()):
            if other not in reached:
                reached.add(other)
                left.append(other)
    return reached - {build}


def _made(weights: _Weights, build: str, chain: Chain) -> Chain | None:
    """Return the chain with its size; None from a build to itself."""
    if chain.since == build:
        return None
    used = _between(weights, chain.since, build)
    places = {name: place for place, name in enumerate(used - {chain.since})}
    laplacian, right = np.zeros((len(places), len(places))), np.zeros(len(places))
    for name, place in places.items():
        for other in weights[name].keys() & used:
            weight, product = weights[name][other]
            laplacian[place, place] += weight
            right[place] += product
            if other in places:
                laplacian[place, places[other]] -= weight
    unit = np.zeros(len(places))
    unit[places[build]] = 1.0
    solved = np.linalg.solve(laplacian, np.stack([right, unit], axis=-1))[places[build]]
    return replace(chain, shift=float(solved[0]), deviation=math.sqrt(float(solved[1])))


def _between(weights: _Weights, since: str, build: str) -> set[str]:
    """Return the builds that both are linked by; one that leads nowhere else says nothing."""
    used = _reached(weights, build) | {build}
    degrees = {name: len(weights[name].keys() & used) for name in used}
    left = [name for name in used if degrees[name] == 1]
    while left:
        name = left.pop()
        if name in (since, build) or name not in used:
            continue
        used.discard(name)
        for other in weights[name].keys() & used:
            degrees[other] -= 1
            if degrees[other] == 1:
                left.append(other)
    return used


def shared_noise(suite: float | None, noises: Sequence[float]) -> float:
    """Return by how much more the mean of the queries varies than if they were independent.

    ``suite`` is the noise that the gate learned for it, ``noises`` are the queries' own.
    """
    if not suite or not noises:
        return 1.0
    return max(1.0, suite * len(noises) / math.sqrt(math.fsum(noise**2 for noise in noises)))


def suite_chain(chains: Sequence[Chain], shared: float = 1.0) -> Chain | None:
    """Return the geometric mean of the queries' chains, of those since the commonest build.

    ``shared``: see ``shared_noise``. None where there is no chain.
    """
    sinces = [chain.since for chain in chains]
    alike = [chain for chain in chains if chain.since == max(sinces, key=sinces.count)]
    if not alike:
        return None
    deviation = shared * math.sqrt(math.fsum(chain.deviation**2 for chain in alike)) / len(alike)
    shift = math.fsum(chain.shift for chain in alike) / len(alike)
    first = max(alike, key=lambda chain: chain.accepted)
    return replace(first, shift=shift, deviation=deviation)
