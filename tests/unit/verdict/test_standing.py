"""Where a query stands while its pairs are measured."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nexmark.verdict.standing import standing_of
from tests.unit.verdict.gate_builder import rules


def test_one_pair_tells_nothing() -> None:
    assert standing_of([], rules()) is None
    assert standing_of([1.05], rules()) is None


def test_it_is_the_ratio_of_the_pairs_with_an_interval_that_narrows() -> None:
    rng = np.random.default_rng(5)
    ratios = [1.08 * math.exp(x) for x in rng.normal(0, 0.03, 12)]
    few, many = standing_of(ratios[:4], rules()), standing_of(ratios, rules())
    assert few is not None
    assert many is not None
    assert (few.pairs, many.pairs) == (4, 12)
    assert few.lo < few.ratio < few.hi
    assert many.hi - many.lo < few.hi - few.lo
    assert many.ratio == pytest.approx(1.08, abs=0.03)
    assert many.lo < 1.08 < many.hi


def test_two_pairs_that_agree_by_chance_are_not_believed_to_be_exact() -> None:
    found = standing_of([1.1, 1.1], rules())
    assert found is not None
    assert found.ratio == pytest.approx(1.1)
    assert found.hi / found.lo > 1.1
    assert str(found).endswith(" after 2 pairs")
