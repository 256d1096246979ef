"""What of a recording counts, and collapsed stacks as text."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from nexmark.errors import NexmarkError
from nexmark.flames.jfr import StackSample
from nexmark.flames.tree import Profile, collapse, write_stacks
from nexmark.measure.measurement import SteadyWindow

MIDNIGHT = 1_795_219_200.0  # 2026-11-21 00:00 UTC
A, B = ("main", "a.B.c"), ("main", "a.B.d")


def at(*seconds: float, stack: tuple[str, ...] = A) -> list[StackSample]:
    return [StackSample(second % 86_400, stack) for second in seconds]


def test_only_what_runs_within_the_window_counts() -> None:
    window = SteadyWindow(MIDNIGHT + 100, MIDNIGHT + 200, 1)
    samples = [*at(50, 99, 100, 150), *at(200, 201, stack=B), StackSample(150, B, waits=True)]
    assert collapse(samples, window, "x") == {A: 2, B: 1}


def test_without_a_window_all_of_it_does() -> None:
    assert collapse(at(1, 2, 3), None, "x") == {A: 3}


def test_a_window_may_have_midnight_in_it() -> None:
    window = SteadyWindow(MIDNIGHT - 10, MIDNIGHT + 10, 1)
    assert collapse(at(-60, -5, 5, 60), window, "x") == {A: 2}


def test_a_recording_that_lost_its_beginning_is_refused() -> None:
    """By its size: what is missing would look as if it had become faster."""
    window = SteadyWindow(MIDNIGHT + 100, MIDNIGHT + 200, 1)
    with pytest.raises(NexmarkError, match=r"q5\.jfr: the recording begins 50 s after"):
        collapse(at(150, 160), window, "q5.jfr")


def test_stacks_are_the_same_after_writing_and_reading(tmp_path: Path) -> None:
    counts = Counter({A: 3, ("a b", "c.D.<init> (native)"): 2})
    write_stacks(tmp_path / "stacks.txt", counts)
    assert (tmp_path / "stacks.txt").read_text() == "a b;c.D.<init> (native) 2\nmain;a.B.c 3\n"


def test_the_samples_of_an_arm_stand_for_its_measured_cpu_time() -> None:
    profile = Profile({A: 30, B: 10}, cpu_s_per_mevent=8.0)
    assert (profile.samples, profile.cost) == (40, 0.2)
