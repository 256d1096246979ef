"""The verbs that print tables: restarts by the size of the state, and damaged checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexmark.cli.app import main
from nexmark.labs.damage import DAMAGES

RIGHT = {"(none)", "commit missing"}
"""What an engine goes on from, with a right result; all other kinds are refused or wrong."""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["recovery-sizes", "--grow-to", "64"], "--grow-to: '64' is not a size; write 64MB"),
        (["recovery-sizes", "--grow-to", "0MB"], "--grow-to: '0MB' is not a size"),
        (["recovery-sizes", "--query", "q99"], "--query: unknown query 'q99'"),
        (["recovery-sizes", "--out", "/"], "'--out': / exists"),
        (["recovery-damage", "--damage", "fire"], "--damage: no kind 'fire'"),
        (["recovery-damage", "--query", "q12"], "--query: the result of q12 differs"),
        (["recovery-damage", "--engine", "spark-9"], "engine: unknown engine 'spark-9'"),
    ],
)
def test_a_wrong_option_is_one_line(
    capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    assert main(words) == 2
    told = capsys.readouterr().err
    assert says in told
    assert told.count("\n") == 1


@pytest.mark.spark
@pytest.mark.long
def test_restarts_are_told_by_size_with_a_prediction(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    given = ["--grow-to", "1MB,3MB", "--repetitions", "1", "--rows-per-batch", "10000"]
    assert main(["recovery-sizes", *given, "--out", str(tmp_path / "sizes.json")]) == 0
    cells, fits = capsys.readouterr().out.split("\n\n")
    assert len(cells.splitlines()) == 1 + 2 * 2 * 2
    assert "57 GB in 8 tasks" in fits
    restarts = json.loads((tmp_path / "sizes.json").read_text())["restarts"]
    assert all(each["restore_s"] > 0 for each in restarts)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("engine", ["spark-4.3.0", "spark-3.5.9"])
def test_damage_is_refused_or_told_as_a_wrong_answer(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, engine: str
) -> None:
    out = tmp_path / "damage.json"
    code = main(["recovery-damage", "--engine", engine, "--out", str(out)])
    outcomes = json.loads(out.read_text())["outcomes"]
    assert {each["damage"] for each in outcomes} == {"(none)", *DAMAGES}
    assert code == int(any(each["outcome"] == "ANSWERS WRONGLY" for each in outcomes))
    for each in outcomes:
        if each["damage"] in RIGHT:
            assert each["outcome"] == "right", each
