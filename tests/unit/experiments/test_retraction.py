"""Sums of the long window, kept by adding and taking away, equal sums made from nothing."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from nexmark_jobs.experiments.long_window import _retraction

MINUTE, PANES, NEVER = 60_000, 60, 10**12


class Handle:
    """Spark's side: one value, and timers that the watermark lets expire."""

    def __init__(self) -> None:
        self.value: Any = None
        self.timers: set[int] = set()

    def getValueState(self, *_: Any) -> Any:
        return SimpleNamespace(
            exists=lambda: self.value is not None,
            get=lambda: self.value,
            update=lambda value: setattr(self, "value", value),
            clear=lambda: setattr(self, "value", None),
        )

    def registerTimer(self, moment: int) -> None:
        self.timers.add(moment)


@pytest.mark.parametrize("seed", range(20))
def test_each_pane_is_added_and_taken_away_once(seed: int) -> None:
    draw, handle, sums = random.Random(seed), Handle(), _retraction()
    sums.init(handle)
    ends = sorted(draw.sample(range(1, 400), draw.choice([3, 40, 200])))
    panes = {end * MINUTE: (draw.randint(1, 9), draw.randint(1, 99)) for end in ends}
    left, found, wanted = list(panes), {}, dict[int, tuple[int, int]]()
    while left or handle.timers:
        batch, left = left[:20], left[20:]
        rows = [SimpleNamespace(ended=x, bids=panes[x][0], total=panes[x][1]) for x in batch]
        draw.shuffle(rows)
        list(sums.handleInputRows((7,), rows, None)) if rows else None
        watermark = max(batch, default=NEVER)
        for timer in sorted(x for x in handle.timers if x <= watermark):
            handle.timers.discard(timer)
            now = SimpleNamespace(getCurrentWatermarkInMs=lambda at=watermark: at)
            for row in sums.handleExpiredTimer((7,), now, None):
                assert row.ended not in found
                found[row.ended] = (row.bids, row.total)
    for end, (bids, total) in panes.items():
        for window in range(end, end + PANES * MINUTE, MINUTE):
            before = wanted.get(window, (0, 0))
            wanted[window] = (before[0] + bids, before[1] + total)
    assert found == wanted
    assert handle.value is None  # nothing stays in the state
