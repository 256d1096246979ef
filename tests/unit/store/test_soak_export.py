"""Soak nights are judged again from the file that they are exported to, as they were judged."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.soak import NONE, WORLDS
from nexmark.store import Store
from nexmark.verdict import nightly
from nexmark.verdict.__main__ import main as replay
from nexmark.verdict.stored_nights import read_nights
from nexmark.verdict.verdict import Verdict
from tests.unit.store.night_builder import RULES
from tests.unit.store.soak_builder import LEAK, QUERY, SOAK_RULES, soaked


def said(verdicts: list[Verdict]) -> list[tuple[Any, ...]]:
    """What decides, with its numbers; what a growth is made up of is not in the file."""
    return [
        (x.night, x.query, x.value, x.candidate, x.baseline, x.reason.partition(" per 1,000")[0])
        for x in verdicts
        if x.decides
    ]


def test_growth_is_judged_again_from_the_file_with_the_same_numbers(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also by the pairs that an earlier night left open."""
    verdicts = soaked(store, 1, LEAK, LEAK)
    verdicts += soaked(store, 2, NONE)
    verdicts += soaked(store, 3, LEAK)
    verdicts += soaked(store, 4, LEAK)
    verdicts += soaked(store, 5, NONE, world=WORLDS[1])
    values = [each.value for each in verdicts if each.decides]
    assert values[:4] == ["REGRESSION", "OK", "SUSPECT", "REGRESSION"]
    assert "in 2 pairs" in verdicts[-2].reason or values[4] in ("OK", "UNDECIDED")
    gate, out = tmp_path / "gate.yaml", tmp_path / "out"
    gate.write_text(yaml.safe_dump(RULES.model_dump(mode="json")))
    store.export(out, "csv")
    with (out / "nights.csv").open(newline="") as lines:
        again = nightly.replay(read_nights(lines), SOAK_RULES)
    assert said([x for night in again for x in night]) == said(verdicts)
    capsys.readouterr()
    assert replay(["--nights", str(out / "nights.csv"), "--gate", str(gate)]) == 0
    rows = csv.DictReader(capsys.readouterr().out.splitlines())
    assert [row["verdict"] for row in rows if row["metric"] == "growth"] == values


def test_a_wrong_result_stays_invalid_and_a_missing_one_missing(
    store: Store, tmp_path: Path
) -> None:
    verdicts = soaked(store, 1, NONE, invalid="wrong rows")
    verdicts += soaked(store, 2, NONE, failed="it was killed", measurement=None)
    verdicts += soaked(store, 3, NONE)
    values = [each.value for each in verdicts if each.decides]
    assert values == ["INVALID", "MISSING", "OK"]
    store.export(tmp_path / "out", "csv")
    with (tmp_path / "out" / "nights.csv").open(newline="") as lines:
        again = nightly.replay(read_nights(lines), SOAK_RULES)
    assert [x.value for night in again for x in night if x.decides] == values


def test_pairs_of_an_earlier_night_alone_judge_nothing(store: Store) -> None:
    """Tonight's repetitions failed, so the query is missing, whatever was measured before."""
    (suspect, *_) = soaked(store, 1, LEAK)
    assert suspect.value == "SUSPECT"
    (tonight, *_) = soaked(store, 2, LEAK, failed="it was killed", measurement=None)
    assert tonight.value == "MISSING"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("", "", "candidate, batch 300 is there twice"),
        (",300,240", ",300,", "warmup '' is not a whole number"),
        (",300,240", ",six,240", "batch 'six' is not a whole number"),
    ],
)
def test_a_sample_that_is_wrong_is_named(
    store: Store,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    old: str,
    new: str,
    says: str,
) -> None:
    soaked(store, 1, NONE)
    store.export(tmp_path / "out", "csv")
    nights = tmp_path / "out" / "nights.csv"
    lines = nights.read_text().splitlines()
    wanted = (f",{QUERY},", ",candidate,", "driver threads", ",300,240")
    line = next(each for each in lines if all(part in each for part in wanted))
    nights.write_text("\n".join([*lines, line.replace(old, new)]) + "\n")
    assert replay(["--nights", str(nights)]) == 2
    assert says in capsys.readouterr().err
