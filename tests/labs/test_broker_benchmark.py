"""The benchmark of the brokers: what Kafka's tools print is read, ratios are of the right tests."""

from __future__ import annotations

import pytest

from nexmark.kafka import KafkaError
from nexmark.labs.broker_benchmark import RATIOS, BenchRow, ratio
from nexmark.labs.broker_tables import broker_table
from nexmark.labs.kafka_tools import Latencies, Throughput, fetched, percentiles, sent
from nexmark.model import Spread

SENT = "300000 records sent, 122199.592668 records/sec (11.65 MB/sec), 411.88 ms avg latency\n"
STEADY = "200000 steady state records sent, 149476.831091 records/sec (14.26 MB/sec), 4 ms avg\n"
FETCHED = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec\n"
    "2026-11-23 23:04:01:664, 2026-11-23 23:04:02:744, 28.6102, 26.4910, 300000, 277777.7778, "
    "529, 551, 51.9242, 544464.6098\n"
)


def test_what_the_tools_print_is_read() -> None:
    assert sent(SENT) == Throughput(122199.592668, 11.65)
    assert sent(f"Warmup first 100000 records.\n{SENT}{STEADY}") == Throughput(149476.831091, 14.26)
    assert fetched(f"WARN a, b\n{FETCHED}") == Throughput(544464.6098, 51.9242)
    text = "Avg latency: 4.6337 ms\nPercentiles: 50th = 3, 99th = 17, 99.9th = 164\n"
    assert percentiles(text) == Latencies(3, 17, 164)


@pytest.mark.parametrize("read", [sent, fetched, percentiles])
def test_a_tool_without_figures_is_an_error(read: object) -> None:
    with pytest.raises(KafkaError, match="printed no figures: no such topic"):
        read("no such topic\n")  # type: ignore[operator]


def row(name: str, rate: float) -> BenchRow:
    return BenchRow(name, Spread.of([rate * 2, rate, rate / 2]), 1, 1, None)


def test_a_ratio_is_of_medians_and_needs_both_tests() -> None:
    first = next(each for each in RATIOS if each.under == "K1")
    assert ratio(first, [row("K1", 100), row("K2", 60)]) == 0.6
    assert ratio(first, [row("K2", 60)]) is None
    shown = broker_table([row("K1", 100), row("K2", 60)], is_shared=True)
    assert "100 (50-200)" in shown
    assert "K2/K1  0.60  0.96" in shown
    assert "not to be compared" in shown
    assert "not to be compared" not in broker_table([row("K1", 1), row("K2", 1)], is_shared=False)
