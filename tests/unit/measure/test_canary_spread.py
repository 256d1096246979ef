"""`nexmark bench canary` says how steady the canary is, in the terms of the gate."""

from __future__ import annotations

import pytest

from bench import canary as canary_spread
from bench.canary import main, spread


def test_the_spread_of_a_few_runs() -> None:
    found = spread([1.0, 1.1, 1.0, 0.5])
    assert found.median_s == 1.0
    assert found.range == pytest.approx(0.6)
    assert found.apart == pytest.approx(0.1)
    assert found.worst_apart == pytest.approx(1.0)


def test_timings_have_a_spread_and_levels_a_range(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(
        [
            {"metrics": {"cpu_s": 0.010, "load_1m": 0.5}, "problems": ["no disk"], "elapsed_s": 1},
            {"metrics": {"cpu_s": 0.011, "load_1m": 1.5, "mhz": 9}, "problems": [], "elapsed_s": 2},
        ]
    )
    monkeypatch.setattr(canary_spread, "run", lambda _: next(answers))
    assert main(["--runs", "2"]) == 0
    text = capsys.readouterr().out
    for words in ("2 runs of 1.5 s", "no disk", "10.500 ms", "10.0% apart", "from 0.50 to 1.50"):
        assert words in text


def test_one_run_has_no_spread(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--runs", "1"])
    assert "give 2 or more" in capsys.readouterr().err
