"""The learned noise: right on average, and not blown up by what is no noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nexmark.verdict.location import hodges_lehmann, spread
from nexmark.verdict.noise import Noise, learn

FLOOR = 0.004


def drawn(
    queries: int, nights: int, sd: float = 0.05, nightly: float = 0.0, pairs: int = 5, seed: int = 1
) -> np.ndarray:
    """Log ratios (queries, nights, pairs)."""
    rng = np.random.default_rng(seed)
    common = rng.normal(0, 1, (queries, nights, 1)) * nightly
    return common + rng.normal(0, sd, (queries, nights, pairs))


def learned(ratios: np.ndarray) -> Noise:
    shift, wide = hodges_lehmann(ratios), spread(ratios)
    return learn(shift, wide, np.full(shift.shape, float(ratios.shape[-1])), FLOOR)


def five(noise: Noise) -> np.ndarray:
    """The deviation of the estimate of five pairs, as the noise alone has it."""
    return np.sqrt(1.08 * noise.pair**2 / 5 + noise.nightly**2)


@pytest.mark.parametrize("nights", [10, 60])
@pytest.mark.parametrize("nightly", [0.0, 0.03])
def test_what_is_learned_is_how_far_the_estimate_moves(nights: int, nightly: float) -> None:
    ratios = drawn(400, nights, nightly=nightly)
    truth = math.sqrt(0.05**2 * 1.08 / 5 + nightly**2)
    assert five(learned(ratios)).mean() == pytest.approx(truth, rel=0.1)


def test_a_noisy_query_keeps_its_own_noise_in_a_quiet_suite() -> None:
    ratios = drawn(20, 60)
    ratios[3] *= 4
    found = five(learned(ratios))
    assert found[3] / np.median(found) == pytest.approx(4, rel=0.25)


def test_a_change_that_stays_is_not_noise() -> None:
    before, ratios = drawn(20, 60), drawn(20, 60)
    ratios[0, 20:] += 0.2
    assert five(learned(ratios))[0] < 1.6 * five(learned(before))[0]


def test_spikes_hardly_widen_it() -> None:
    rng = np.random.default_rng(3)
    clean = drawn(100, 60)
    spiked = clean + np.where(rng.random(clean.shape) < 0.04, rng.exponential(0.3, clean.shape), 0)
    assert five(learned(spiked)).mean() < 1.25 * five(learned(clean)).mean()


def test_nights_that_are_not_there_teach_nothing() -> None:
    ratios = drawn(6, 30)
    padded = np.concatenate([np.full((6, 30, 5), np.nan), ratios], axis=1)
    np.testing.assert_allclose(five(learned(padded)), five(learned(ratios)))
    np.testing.assert_array_equal(learned(padded).nights, 30)


def test_without_nights_there_is_no_noise_known() -> None:
    noise = learn(np.full((2, 5), np.nan), np.full((2, 5), np.nan), np.full((2, 5), np.nan), FLOOR)
    assert np.isnan(five(noise)).all()
    np.testing.assert_array_equal(noise.nights, 0)
