from __future__ import annotations

import pytest

from bench.peer import PEER, PEER_LARGE
from bench.queries import QueryRates, largest, main, print_means


def test_a_figure_is_compared_only_at_the_number_of_events_of_the_peers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    peer, peer_large = PEER["q0"], PEER_LARGE["q0"]
    large = {
        "q0": QueryRates(30_000_000, 9.0, 3.0 * peer_large.shipped),
        "q3": QueryRates(10_000_000, 9.0, 9999.0),  # no figure of the peer is of 10 M events
    }
    print_means({"q0": 0.5 * peer.shipped}, large)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == (
        "5 M events, with end / shipped: geometric mean 0.50 over 1 queries; slower: q0 0.50"
    )
    assert printed[2] == (
        "30 M events, with end / shipped: geometric mean 3.00 over 1 queries; slower: none"
    )


@pytest.mark.parametrize(
    ("bytes_per_event", "events"),
    [(0.0, 30_000_000), (150.0, 20_000_000), (300.0, 10_000_000), (9999.0, 0)],
)
def test_the_size_is_the_largest_whose_state_fits_the_heap(
    bytes_per_event: float, events: int
) -> None:
    sizes = (30_000_000, 20_000_000, 10_000_000, 0)
    assert largest(sizes, bytes_per_event, 8 * 1024**3) == events


@pytest.mark.parametrize("option", [("--heap", "lots"), ("--events", "1000"), ("--queries", "q77")])
def test_a_bad_option_is_refused_before_a_jvm_starts(
    option: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(option)
    assert stopped.value.code == 2
    assert option[0] in capsys.readouterr().err
