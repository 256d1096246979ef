"""The overhead of the recorder is of pairs; bad arguments are one line."""

from __future__ import annotations

import pytest

from bench.flight_recorder import Overhead, main


def test_it_is_the_median_of_the_pairs_with_their_spread() -> None:
    found = Overhead.of([(100, 101), (50, 51), (200, 210)])
    assert (found.median, found.low, found.high) == pytest.approx((0.02, 0.01, 0.05))
    assert str(found) == "median +2.0%, from +1.0% to +5.0%, deviation 2.1%"


def test_a_single_pair_has_no_deviation() -> None:
    assert str(Overhead.of([(100, 99)])) == "median -1.0%, from -1.0% to -1.0%"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(["--pairs", "0"], "from 1 to 1000"), (["--query", "q99"], "q99"), (["--engine", "x"], "'x'")],
)
def test_bad_arguments_are_reported(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert told in capsys.readouterr().err
