"""How much pairs differ: their own spread, mixed with what is expected of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nexmark.verdict.moderation import moderate
from tests.unit.verdict.gate_builder import rules

UNKNOWN = np.nan
RULES = rules(prior_deviation=0.08, prior_degrees=4.0)


def drawn(scales: list[float], pairs: int = 5, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(0, 1, (len(scales), pairs)) * np.array(scales)[:, None]


def spread_of(values: np.ndarray) -> float:
    return float(np.std(values, ddof=1))


def test_one_query_without_history_is_mixed_with_the_shipped_prior() -> None:
    """0.95 of the degrees of three pairs count, beside four of the prior."""
    ratios = np.array([[0.05, 0.0, -0.05]])
    found = moderate(ratios, np.array([UNKNOWN]), RULES)
    own = 0.95 * 2
    expected = (4 * 0.08**2 + own * 0.05**2) / (4 + own)
    assert found.deviation == pytest.approx(math.sqrt(expected))
    assert found.degrees == pytest.approx(4 + own)


def test_one_query_with_history_is_mixed_with_its_own_nights() -> None:
    ratios = np.array([[0.02, 0.0, -0.02]])
    found = moderate(ratios, np.array([0.03]), RULES)
    own = 0.95 * 2
    expected = (12 * 0.03**2 + own * 0.02**2) / (12 + own)
    assert found.deviation == pytest.approx(math.sqrt(expected))
    assert found.degrees == pytest.approx(12 + own)


def test_queries_that_differ_by_chance_only_share_what_they_know() -> None:
    """Three pairs each: together they know the deviation well."""
    ratios = drawn([0.05] * 200, pairs=3)
    found = moderate(ratios, np.full(200, UNKNOWN), RULES)
    own = np.std(ratios, axis=1, ddof=1)
    assert found.deviation.std() < own.std() / 3
    assert np.median(found.deviation) == pytest.approx(0.05, rel=0.15)
    assert np.median(found.degrees) > 10


def test_queries_that_really_differ_keep_their_own_spread() -> None:
    """They differ by more than chance explains, so what is expected counts little."""
    scales = list(np.repeat([0.01, 0.04, 0.16], 40))
    ratios = drawn(scales, pairs=12)
    found = moderate(ratios, np.full(120, UNKNOWN), RULES)
    own = np.std(ratios, axis=1, ddof=1)
    assert np.median(found.deviation[80:]) > 0.85 * np.median(own[80:])
    assert np.median(found.deviation[:40]) < 2 * np.median(own[:40])


def test_a_query_that_is_far_noisier_than_the_others_is_not_believed_to_be_like_them() -> None:
    scales = [0.02] * 22 + [0.3]
    ratios = drawn(scales, pairs=6, seed=5)
    found = moderate(ratios, np.full(23, UNKNOWN), RULES)
    assert found.deviation[-1] > 0.8 * spread_of(ratios[-1])
    assert found.degrees[-1] < 6


def test_a_spike_does_not_make_a_query_noisy() -> None:
    """One pair in ten is hit."""
    ratios = drawn([0.02] * 23, pairs=10)
    ratios[0, 3] = 0.6
    found = moderate(ratios, np.full(23, UNKNOWN), RULES)
    assert found.deviation[0] < 0.4 * spread_of(ratios[0])


def test_three_pairs_of_which_one_is_hit_are_as_noisy_as_earlier_nights_allow() -> None:
    ratios = drawn([0.02] * 23, pairs=3)
    ratios[0] = [0.0, 0.01, 0.6]
    found = moderate(ratios, np.full(23, 0.02), RULES)
    assert found.deviation[0] < 0.1


def test_a_query_without_pairs_has_no_deviation_and_leaves_the_others_theirs() -> None:
    ratios = drawn([0.02] * 6)
    ratios[2] = np.nan
    found = moderate(ratios, np.full(6, UNKNOWN), RULES)
    assert np.isnan(found.deviation).tolist() == [False, False, True, False, False, False]
