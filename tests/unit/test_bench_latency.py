"""The benchmark of latency pairs: silent where arms are alike, loud where rows come later."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

from bench.latency import ARMS, Asked, Runs, report
from nexmark.config.load import load_gate
from nexmark.errors import NexmarkError
from nexmark.model import P50, P99, Arm
from nexmark_jobs.real_time import later_confs

ROUNDS = 15


def asked(file: Path, later: float = 0.2) -> Asked:
    return Asked("q17", "micro-batch", 1000, 6, 6, ROUNDS, later, file)


def runs(file: Path, rise: float) -> Runs:
    """Rounds with a noise of 4 % in each run."""
    drawn = random.Random(1)
    found = Runs(asked(file))
    for number in range(1, ROUNDS + 1):
        for arm in ARMS:
            size = (1 + rise if arm == Arm.SLOWED else 1) * math.exp(drawn.gauss(0, 0.04))
            found.found[number, arm] = {P50: 400 * size, P99: 900 * size}
    return found


@pytest.mark.parametrize(("rise", "code", "found"), [(0.2, 0, "met"), (0.0, 1, "MISSED")])
def test_a_seeded_delay_is_found_and_none_is_not(
    rise: float, code: int, found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(runs(tmp_path / "none", rise), load_gate()) == code
    alarms, seeded = capsys.readouterr().out.splitlines()[-2:]
    assert alarms.split()[:2] == ["met", "alarms"]
    assert seeded.split()[0] == found


def test_rows_come_later_by_the_part_that_is_asked_for() -> None:
    """Batches of 200 ms: p50 is 300 ms, and 360 ms if they begin every 320 ms (160 + 200)."""
    every = {"spark.nexmark.batch_every": "320 milliseconds"}
    assert later_confs("q0", "micro-batch", 300, 0.2) == every
    assert list(later_confs("q17", "real-time", 27, 0.2).values()) == ["61"]
    assert later_confs("q0", "real-time", 1, 0.2) == {}


def test_runs_of_another_measurement_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    known = Runs(asked(file))
    file.write_text(json.dumps({"of": known._of(), "round": 1, "arm": "control", P50: 1}) + "\n")
    known.read()
    assert known.found[1, "control"][P50] == 1
    with pytest.raises(NexmarkError, match=r"20% later, not of .* 50% later; name another file"):
        Runs(asked(file, later=0.5)).read()
