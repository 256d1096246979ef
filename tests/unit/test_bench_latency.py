"""The benchmark of latency pairs: silent where arms are alike, loud where rows come later."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from bench.latency import Asked, rounds_of
from bench.rounds import ARMS, Rounds, fitting
from nexmark.config.load import load_gate
from nexmark.errors import NexmarkError
from nexmark.labs.kept_runs import KeptRuns
from nexmark.model import P50, P99, Arm
from nexmark_jobs.real_time import later_confs

ROUNDS = 15


def asked(later: float = 0.2) -> Asked:
    return Asked("q17", "micro-batch", 1000, 6, 6, ROUNDS, later)


def rounds(file: Path, rise: float) -> Rounds:
    """Rounds with a noise of 4 % in each run."""
    drawn = random.Random(1)
    found = rounds_of(asked(), file)
    for number in range(1, ROUNDS + 1):
        for arm in ARMS:
            size = (1 + rise if arm == Arm.SLOWED else 1) * math.exp(drawn.gauss(0, 0.04))
            found.runs.figures[number, arm] = {P50: 400 * size, P99: 900 * size}
    return found


@pytest.mark.parametrize(("rise", "code", "found"), [(0.2, 0, "met"), (0.0, 1, "MISSED")])
def test_a_seeded_delay_is_found_and_none_is_not(
    rise: float, code: int, found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gate = load_gate()
    made = rounds(tmp_path / "none", rise)
    assert made.report(gate, gate.paced_metric, "rows later") == code
    alarms, seeded = capsys.readouterr().out.splitlines()[-2:]
    assert alarms.split()[:2] == ["met", "alarms"]
    assert seeded.split()[0] == found


def test_only_rounds_that_there_are_enough_pairs_for_are_read() -> None:
    gate = load_gate().model_copy(update={"rounds": (3, 4, 8, 9), "pursue_z": (0.1, 0.2, 0.3)})
    found = fitting(gate, 15)
    assert (found.rounds, found.pursue_z) == ((3, 4, 8), (0.1, 0.2))
    assert fitting(gate, 14).rounds == (3, 4)
    assert fitting(gate, 2).rounds == (3,)


def test_rows_come_later_by_the_part_that_is_asked_for() -> None:
    """Batches of 200 ms: p50 is 300 ms, and 360 ms if they begin every 320 ms (160 + 200)."""
    every = {"spark.nexmark.batch_every": "320 milliseconds"}
    assert later_confs("q0", "micro-batch", 300, 0.2) == every
    assert list(later_confs("q17", "real-time", 27, 0.2).values()) == ["61"]
    assert later_confs("q0", "real-time", 1, 0.2) == {}


def test_a_metric_by_which_nothing_may_be_found_is_a_bar(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rounds(tmp_path / "none", 0.2).report(load_gate(), P50, "later", quiet=(P99,)) == 1
    assert "MISSED  of the slowed arm, red by latency_ms_p99" in capsys.readouterr().out


def test_runs_are_kept_and_those_of_another_measurement_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    rounds_of(asked(), file).runs.keep(1, "control", {P50: 1})
    again = rounds_of(asked(), file)
    assert again.runs.figures[1, "control"][P50] == 1
    left = list(again.missing("latency"))
    assert len(left) == 3 * ROUNDS - 1
    assert (1, "control") not in left
    with pytest.raises(NexmarkError, match=r"20% later, not of .* 50% later; name another file"):
        KeptRuns(str(asked(later=0.5)), file)
