"""The builds that were tested, and the comparison of any two of them."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import TypeAlias

from nexmark.commits.source_changes import SourceChange, source_change
from nexmark.config import load_repository
from nexmark.evidence.night_list import RED, NightLine, lines_of, with_builds
from nexmark.model import CPU_METRICS, QueryKey, grouped
from nexmark.store import Store, history
from nexmark.store.history import FilterChoices, ListedNight, MeasuredBuild
from nexmark.store.list_filter import EVERYTHING, ListFilter
from nexmark.store.reading import of_one_moment
from nexmark.verdict.verdict import Verdict

NIGHTS = 60
"""The number of nights of each build that are compared; they are its last ones."""
SHOWN = 200
"""The number of builds that are listed; they are the builds that were tested last."""

_Interval: TypeAlias = tuple[float, float | None, float | None]
"""A ratio, and the lower and the upper end of its interval."""


@dataclass(frozen=True)
class Compared:
    """One query on two builds.

    ``ratio`` is new / old. If ``paired``, it is the median ratio of pairs that were measured in
    turns, in ``nights`` nights, by the metric that decided them; it has an interval from ``lo``
    to ``hi`` if there is one such night. If not, it is the ratio of the medians of different
    nights, which shows large changes only. ``new`` and ``old`` are the figures of the builds, of
    the CPU time of tasks where both have it, else of the executors.
    """

    query: str
    new: float | None
    old: float | None
    ratio: float | None
    lo: float | None
    hi: float | None
    paired: bool
    nights: int


@dataclass(frozen=True)
class BuildComparison:
    """Two builds, with a line per query; the lines with the largest change come first.

    ``paired`` is the number of queries that were measured in pairs, ``mean`` the geometric mean of
    the ratios. ``source`` is what changed in the source from the old build to the new one; None if
    a revision is not known, or if both are the same.
    """

    new: MeasuredBuild
    old: MeasuredBuild
    lines: tuple[Compared, ...]
    paired: int
    mean: float | None
    source: SourceChange | None


BuildLine: TypeAlias = tuple[MeasuredBuild, NightLine | None]
"""A build, and the last night in which it was the candidate; None if it was only a baseline."""


@dataclass(frozen=True)
class BuildsPage:
    """The list of builds that the filter ``wanted`` lets through."""

    lines: tuple[BuildLine, ...]
    wanted: ListFilter
    choices: FilterChoices


@of_one_moment
def builds_page(store: Store, dags: Collection[str], wanted: ListFilter = EVERYTHING) -> BuildsPage:
    """Return the list of the builds that nights of some DAGs measured."""
    lines = build_lines(store, dags, wanted)
    return BuildsPage(tuple(lines), wanted, history.filter_choices(store, dags))


@of_one_moment
def build_lines(
    store: Store, dags: Collection[str], wanted: ListFilter = EVERYTHING
) -> list[BuildLine]:
    """Return the builds, the one that was measured last first.

    Args:
        store: The results database.
        dags: The DAGs whose nights count.
        wanted: Which nights count, and which builds are listed; a build is red if its last night as
            the candidate is red.
    """
    of_nights = replace(wanted, red=False)
    builds = history.builds(store, dags, of_nights)
    nights = history.nights(store, dags, 2 * SHOWN, wanted=replace(of_nights, search=""))
    newest = {night.build_id: night for night in reversed(nights)}
    last = with_builds(store, lines_of(store, list(newest.values())))
    lines = {line.night.build_id: line for line in last}
    if wanted.red:
        builds = [one for one in builds if one.id in lines and lines[one.id].colour == RED]
    return [(build, lines.get(build.id)) for build in builds[:SHOWN]]


@of_one_moment
def build_named(store: Store, dags: Collection[str], text: str) -> MeasuredBuild | None:
    """Return the build whose id is a text, or the only one whose id begins so; None for others."""
    builds = history.builds(store, dags)
    named = [build for build in builds if build.id == text]
    named = named or [build for build in builds if text and build.id.startswith(text)]
    return named[0] if len(named) == 1 else None


@of_one_moment
def compare_builds(
    store: Store, dags: Collection[str], new: MeasuredBuild, old: MeasuredBuild
) -> BuildComparison:
    """Return the comparison of two builds: by pairs where one was the baseline of the other.

    Args:
        store: The results database.
        dags: The DAGs whose nights count.
        new: The build in the numerator of the ratios.
        old: The build in the denominator.
    """
    new_nights = history.nights(store, dags, NIGHTS, build=new.id)
    old_nights = history.nights(store, dags, NIGHTS, build=old.id)
    new_verdicts = _verdicts(store, new_nights)
    old_verdicts = _verdicts(store, old_nights)
    alike = _comparable_nights(new_nights, old_nights)
    lines = compare(
        [verdict for verdict in new_verdicts if verdict.night in alike],
        [verdict for verdict in old_verdicts if verdict.night in alike],
        new_verdicts,
        old_verdicts,
        new.id,
        old.id,
    )
    logs = [math.log(line.ratio) for line in lines if line.ratio]
    return BuildComparison(
        new=new,
        old=old,
        lines=tuple(lines),
        paired=sum(line.paired for line in lines),
        mean=math.exp(fmean(logs)) if logs else None,
        source=_source_change(new, old, (*new_nights, *old_nights)),
    )


def _source_change(
    new: MeasuredBuild, old: MeasuredBuild, nights: Sequence[ListedNight]
) -> SourceChange | None:
    """Return what changed between two builds; the engine of a night tells where the source is."""
    repositories = (load_repository(engine) for engine in {night.engine: None for night in nights})
    repository = next(filter(None, repositories), None)
    return source_change(repository, old.revision or "", new.revision or "")


def _verdicts(store: Store, nights: Iterable[ListedNight]) -> list[Verdict]:
    return history.figures(store, [night.id for night in nights], CPU_METRICS)


def _comparable_nights(
    new_nights: Iterable[ListedNight], old_nights: Iterable[ListedNight]
) -> set[str]:
    """Return the ids of the nights whose workload, cluster and shape nights of both builds have."""
    new_by_place, old_by_place = (
        grouped(nights, lambda night: (night.workload, night.cluster, night.shape))
        for nights in (new_nights, old_nights)
    )
    return {
        night.id
        for place in new_by_place.keys() & old_by_place.keys()
        for night in (*new_by_place[place], *old_by_place[place])
    }


def compare(
    new_verdicts: Iterable[Verdict],
    old_verdicts: Iterable[Verdict],
    new_pairs: Iterable[Verdict],
    old_pairs: Iterable[Verdict],
    new: str,
    old: str,
) -> list[Compared]:
    """Return the comparison of two builds, a line per query.

    Args:
        new_verdicts: Verdicts on the new build in nights that are comparable with nights of the old
            build; their figures make the medians.
        old_verdicts: Verdicts on the old build in nights that are comparable with nights of the new
            build; their figures make the medians.
        new_pairs: Verdicts on the new build in any night; those against the old build are pairs.
        old_pairs: Verdicts on the old build in any night; those against the new build are pairs.
        new: The id of the new build.
        old: The id of the old build.
    """
    ratios: defaultdict[str, list[_Interval]] = defaultdict(list)
    new_figures, old_figures = _medians(new_verdicts), _medians(old_verdicts)
    for verdict in new_pairs:
        if verdict.baseline_build == old and verdict.ratio:
            old_figures.setdefault(verdict.key, verdict.baseline)
            if verdict.decides:
                ratios[verdict.query].append((verdict.ratio, verdict.lo, verdict.hi))
    for verdict in old_pairs:
        if verdict.baseline_build == new and verdict.ratio and new != old:
            new_figures.setdefault(verdict.key, verdict.baseline)
            low, high = (1 / end if end else None for end in (verdict.hi, verdict.lo))
            if verdict.decides:
                ratios[verdict.query].append((1 / verdict.ratio, low, high))
    known = dict.fromkeys([*ratios, *(key.query for key in (*new_figures, *old_figures))])
    lines = [
        _compared(query, ratios[query], *_of_one_metric(query, new_figures, old_figures))
        for query in known
    ]
    return sorted(
        lines,
        key=lambda line: (
            -abs(math.log(line.ratio)) if line.ratio else 1,
            len(line.query),
            line.query,
        ),
    )


def _compared(
    query: str, ratios: Sequence[_Interval], new: float | None, old: float | None
) -> Compared:
    """Return the line of a query.

    Args:
        query: The query.
        ratios: The ratios of the nights in which both builds were measured in turns.
        new: The figure of the new build.
        old: The figure of the old build.
    """
    if ratios:
        ratio = math.exp(median(math.log(of_night) for of_night, _, _ in ratios))
        lo, hi = ratios[0][1:] if len(ratios) == 1 else (None, None)
        return Compared(query, new, old, ratio, lo, hi, True, len(ratios))
    ratio_of_medians = new / old if new and old else None
    return Compared(query, new, old, ratio_of_medians, None, None, False, 0)


_Figures: TypeAlias = dict[QueryKey, float | None]
"""The figure of a build by query and metric."""


def _of_one_metric(query: str, new: _Figures, old: _Figures) -> tuple[float | None, float | None]:
    """Return the figures of both builds by the first metric that both have; else what there is."""
    keys = [QueryKey(query, metric) for metric in CPU_METRICS]
    figures = [(new.get(key), old.get(key)) for key in keys]
    return max(figures, key=lambda both: sum(figure is not None for figure in both))


def _medians(verdicts: Iterable[Verdict]) -> _Figures:
    """Return the median of each query and metric, over the nights with the most frequent basis."""
    by_key: dict[QueryKey, list[float]] = {}
    known = (verdict for verdict in verdicts if verdict.candidate is not None)
    for (key, _), on_basis in grouped(known, lambda row: (row.key, row.basis)).items():
        figures = [verdict.candidate for verdict in on_basis if verdict.candidate is not None]
        if len(figures) > len(by_key.get(key, ())):
            by_key[key] = figures
    return {key: median(figures) for key, figures in by_key.items()}
