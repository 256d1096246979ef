"""A step at a change of scale is believed where the nights on both sides cannot be one level."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from nexmark.verdict.change_points import Ratio, dated_changes

SIGMA = 0.02


@dataclass(frozen=True)
class Case:
    """Nights against the old baseline, some with a link to the new one; then nights against it.

    ``apart``: successive nights differ by this, about a ``level``; ``deviations`` are in turns.
    """

    before: int = 20
    after: int = 20
    links: int = 1
    apart: float = 0.0
    level: float = 0.0
    deviations: tuple[float | None, ...] = (SIGMA,)

    def nights(self, step: float) -> list[Ratio]:
        turns = [(0.0, self.apart, 0.0, -self.apart)[i % 4] for i in range(self.before)]
        linking = range(2, 2 + 4 * self.links, 4)
        found = [
            Ratio(
                f"n{i}",
                "new" if i in linking else f"b{i}",
                "old",
                self.level + shift + (step if i in linking else 0.0),
                self.deviations[i % len(self.deviations)],
            )
            for i, shift in enumerate(turns)
        ]
        own = self.deviations[0]
        later = [Ratio(f"m{i}", f"c{i}", "new", 0.0, own) for i in range(self.after)]
        return [*found, *later]

    def bound(self, noise: float) -> float:
        """2.5 deviations of the step; a median of n is as sure as a mean of 2 n / pi."""
        medians = math.pi / 2 * (1 / self.before + 1 / self.after)
        return 2.5 * noise * math.sqrt(1 / self.links + medians)


@pytest.mark.parametrize("way", [1, -1])
@pytest.mark.parametrize(
    ("case", "noise"),
    [
        (Case(), SIGMA),
        (Case(before=40, after=40, links=4), SIGMA),
        (Case(before=12), SIGMA),
        (Case(after=8), SIGMA),
        (Case(deviations=(SIGMA, None)), SIGMA),
        (Case(deviations=(SIGMA, 0.0, None)), SIGMA),  # 0 is no deviation
        (Case(deviations=(0.03, 0.01, 0.02)), SIGMA),  # their median
        (Case(apart=0.03, deviations=(0.0001,)), 1.4826 * 0.03 / math.sqrt(2)),
        (Case(apart=0.03, deviations=(None,)), 1.4826 * 0.03 / math.sqrt(2)),
        (Case(apart=0.03, level=0.5, deviations=(None,)), 1.4826 * 0.03 / math.sqrt(2)),
    ],
)
def test_a_step_counts_beyond_two_and_a_half_deviations(case: Case, noise: float, way: int) -> None:
    bound = case.bound(noise)
    assert dated_changes(case.nights(way * 0.97 * bound)) == []
    (found,) = dated_changes(case.nights(way * 1.03 * bound))
    assert found.night == "m0"
    assert math.log(found.ratio) == pytest.approx(way * 1.03 * bound, abs=0.02)


@pytest.mark.parametrize("before", [1, 2, 3])
@pytest.mark.parametrize(("times", "is_believed"), [(0.97, False), (1.03, True)])
def test_a_few_nights_are_enough_to_be_linked_to(
    before: int, times: float, is_believed: bool
) -> None:
    """Then a later change is relative to the level of the links, else to one that goes on."""
    step = times * Case(before=before).bound(SIGMA)
    nights = [Ratio(f"n{i}", f"b{i}", "old", 0.0, SIGMA) for i in range(before - 1)]
    nights.append(Ratio("link", "new", "old", 0.0, SIGMA))
    nights += [Ratio(f"m{i}", f"c{i}", "new", step, SIGMA) for i in range(20)]
    nights += [Ratio(f"o{i}", f"d{i}", "new", step + 1.0, SIGMA) for i in range(20)]
    later = next(x for x in dated_changes(nights) if x.night == "o0")
    assert math.log(later.before) == pytest.approx(step if is_believed else 0.0, abs=1e-9)
