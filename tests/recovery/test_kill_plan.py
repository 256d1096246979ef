"""When a query is killed."""

from __future__ import annotations

import pytest

from nexmark.recovery.kill_plan import kill_plan


def test_a_seed_gives_the_same_moments_and_another_seed_others() -> None:
    assert kill_plan(5, 20, 1) == kill_plan(5, 20, 1) != kill_plan(5, 20, 2)


@pytest.mark.parametrize(("kills", "batches"), [(0, 10), (1, 1), (5, 10), (20, 10)])
def test_kills_are_spread_over_the_run_in_its_order(kills: int, batches: int) -> None:
    plan = kill_plan(kills, batches, 7)
    after = [kill.after_batch for kill in plan]
    assert len(plan) == kills
    assert after == sorted(after)
    assert all(-1 <= batch < batches for batch in after)
    assert all(0 <= kill.delay < 1 for kill in plan)


def test_every_part_of_the_run_has_its_kill() -> None:
    for seed in range(50):
        after = [kill.after_batch for kill in kill_plan(5, 100, seed)]
        assert [(batch + 1) // 20 for batch in after] == [0, 1, 2, 3, 4]


def test_every_third_kill_hits_a_restart() -> None:
    assert [kill.of_restart for kill in kill_plan(6, 60, 1)] == [False, False, True] * 2


def test_kills_aim_at_uploads_restores_and_restarts() -> None:
    aims = [kill.aim for kill in kill_plan(6, 60, 1)]
    assert aims == ["any", "upload", "restore", "any", "upload", "restart"]
