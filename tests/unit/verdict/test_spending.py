"""The bounds of a test that looks at its data several times."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from nexmark.verdict import spending
from nexmark.verdict.spending import spending_bounds


def crossed(
    counts: tuple[int, ...], bounds: tuple[float, ...], goes_on: tuple[float, ...] = ()
) -> float:
    """The share of unchanged queries beyond a bound at any look, of four hundred thousand."""
    rng = np.random.default_rng(2)
    total = np.zeros(400_000)
    going, before = np.ones(total.size, dtype=bool), 0
    hit = np.zeros(total.size, dtype=bool)
    for look, (count, bound) in enumerate(zip(counts, bounds, strict=True)):
        total += rng.normal(0, np.sqrt(count - before), total.size)
        z = total / np.sqrt(count)
        hit |= going & (z > bound)
        going &= z <= bound
        if look < len(goes_on):
            going &= z > goes_on[look]
        before = count
    return float(hit.mean())


def test_a_single_look_has_the_bound_of_a_plain_test() -> None:
    assert spending_bounds((10,), 0.025) == (pytest.approx(norm.isf(0.025), abs=1e-3),)


def test_two_looks_spend_a_quarter_of_the_error_at_half_of_the_pairs() -> None:
    """By the power family with power 2 of Kim and DeMets (1987)."""
    first, _ = spending_bounds((10, 20), 0.02)
    assert first == pytest.approx(norm.isf(0.02 / 4), abs=1e-3)


def test_an_error_spent_evenly_has_the_bounds_that_lan_and_demets_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """0.025 one-sided, over five equal looks in proportion to the pairs (Lan and DeMets, 1983)."""
    monkeypatch.setattr(spending, "POWER", 1.0)
    bounds = spending_bounds.__wrapped__((1, 2, 3, 4, 5), 0.025)
    assert bounds == pytest.approx((2.58, 2.49, 2.41, 2.34, 2.28), abs=0.01)


@pytest.mark.parametrize("counts", [(5, 10, 20, 40), (3, 5, 7, 10, 14, 20, 30, 48)])
def test_all_looks_together_have_the_error(counts: tuple[int, ...]) -> None:
    assert crossed(counts, spending_bounds(counts, 0.02)) == pytest.approx(0.02, rel=0.05)


def test_early_looks_need_more_evidence() -> None:
    bounds = spending_bounds((5, 10, 20, 40), 0.005)
    assert list(bounds) == sorted(bounds, reverse=True)


def test_what_does_not_go_on_lowers_the_bounds_and_the_error_is_still_spent() -> None:
    counts = (3, 5, 7, 10, 14, 20, 30, 48)
    goes_on = (0.15, 0.49, 0.81, 1.0, 1.42, 1.76, 2.15)
    lower = spending_bounds(counts, 0.004, goes_on)
    assert all(x <= y for x, y in zip(lower, spending_bounds(counts, 0.004), strict=True))
    assert lower[-1] < spending_bounds(counts, 0.004)[-1] - 0.2
    assert crossed(counts, lower, goes_on) == pytest.approx(0.004, rel=0.1)


def test_where_hardly_anything_goes_on_the_bound_stays_a_number() -> None:
    assert spending_bounds((5, 10), 0.02, (6.0,))[1] == 0.0
