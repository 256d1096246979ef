"""Stages of a rollout: what a person may write, and what is refused in one line."""

from __future__ import annotations

import pytest

from nexmark.errors import NexmarkError
from nexmark.rollout.state import parse_stages

KNOWN = ("q0", "q1", "q2", "q5", "q10", "q14_python_udf")


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        ("q1, q0; q2-q10; all", (("q0", "q1"), ("q2", "q5", "q10"), ("q14_python_udf",))),
        ("all", (KNOWN,)),
        ("q14_python_udf", (("q14_python_udf",),)),
        ("q0,q5-q10", (("q0", "q5", "q10"),)),
    ],
)
def test_lists_ranges_and_what_is_left(text: str, stages: tuple[tuple[str, ...], ...]) -> None:
    assert parse_stages(text, KNOWN) == stages


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("q0;q3", "no query 'q3' in the workload; did you mean 'q"),
        ("q0;q0", "stage 2: q0 is named twice; name it once"),
        ("q0,q0-q2", "stage 1: q0 is named twice"),
        ("q0;;q1", "stage 2: '' has no query left; leave it out"),
        ("all;all", "stage 2: 'all' has no query left"),
        ("q5-q1", "'q5-q1' goes backwards; write q1-q5"),
    ],
)
def test_what_cannot_be_is_one_line(text: str, says: str) -> None:
    with pytest.raises(NexmarkError) as caught:
        parse_stages(text, KNOWN)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
