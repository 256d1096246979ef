"""Simulated soak nights are judged by the shipped code: quiet without a leak, red with one."""

from __future__ import annotations

import random

import pytest

from bench import soak
from nexmark.config import Gate
from nexmark.config.load import load_gate
from nexmark.model import GROWTH, Value


@pytest.fixture(scope="module")
def rules() -> Gate:
    return load_gate().model_copy(update={"metric": GROWTH})


def test_nothing_leaks_and_nothing_is_red(rules: Gate) -> None:
    draws = random.Random(1)
    decided = [soak.soaked(soak.WORLDS[0], soak.NONE, rules, draws) for _ in range(5)]
    assert {each.value for each in decided} == {Value.OK}


@pytest.mark.parametrize("leak", [{"heap": 10.0}, {"threads": 20.0}, {"files": 20.0}])
def test_a_leak_is_shown_by_two_pairs(rules: Gate, leak: soak.Leak) -> None:
    decided = soak.soaked(soak.WORLDS[0], leak, rules, random.Random(2))
    assert decided == (Value.REGRESSION, 2)


def test_a_bar_that_is_missed_is_named(rules: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "BAR", -1.0)
    monkeypatch.setattr(soak, "LEAKS", soak.LEAKS[2:3])
    text, missed = soak.table(1, rules, 1)
    assert "live heap +10 MB" in text
    assert missed[0] == "as measured: 0.000 alarms a night, at most -1.0"
    assert len(missed) == len(soak.WORLDS)
