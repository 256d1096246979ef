"""Which output row has an event: the first one, however the rows are cut into batches."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nexmark.errors import NexmarkError
from nexmark.kafka.topics import KafkaCluster
from nexmark.kafka.undelivered import Undelivered
from nexmark.latency import pacing
from nexmark.latency.figures import figures
from nexmark.latency.matching import (
    MATCHINGS,
    Matched,
    OutputRecord,
    PerAuctionAndDay,
    PerRow,
)
from nexmark.latency.measuring import Measuring, Pace
from nexmark.latency.pacing import PacedEvent, paced

BASE = 1_784_000_000_000  # 2026-07-14 03:33:20 UTC


def bid(after_ms: int, auction: int = 1) -> PacedEvent:
    line = json.dumps({"n": 0, "event_type": 2, "bid": {"auction": auction, "dateTime": ""}})
    entity = {"auction": auction, "dateTime": "2026-07-14 03:33:20.000"}
    return PacedEvent(BASE + after_ms, "bid", entity, line.encode())


def row(appended_ms: int, due_ms: int) -> OutputRecord:
    return OutputRecord(BASE + appended_ms, str(BASE + due_ms), {})


def counted(appended_ms: int, count: int, auction: int = 1, day: str = "14") -> OutputRecord:
    value = {"auction": auction, "day": f"2026-07-{day}", "total_bids": count}
    return OutputRecord(BASE + appended_ms, None, value)


def test_each_row_is_of_one_event() -> None:
    events = [bid(0), bid(0), bid(5), bid(9)]
    found = PerRow().match(events, [row(7, 0), row(8, 0), row(8, 5), row(9, 5)])
    assert found == Matched([(BASE, 7), (BASE, 8), (BASE + 5, 3)], missing=1, repeated=1)


@pytest.mark.parametrize(
    ("query", "taken", "left"),
    [
        ("q2", {"auction": 1230}, {"auction": 1231}),
        ("q14", {"price": 1_101_322}, {"price": 1_101_321}),
        ("q14", {"price": 55_066_079}, {"price": 55_066_080}),
        ("q21", {"channel": "Google", "url": ""}, {"channel": "c", "url": "x&channel_id="}),
        ("q21", {"channel": "c", "url": "x&channel_id=7"}, {"channel": "c", "url": "channel_i=7"}),
    ],
)
def test_only_what_a_query_selects_is_waited_for(
    query: str, taken: dict[str, object], left: dict[str, object]
) -> None:
    events = [PacedEvent(BASE, "bid", entity, b"") for entity in (taken, left)]
    assert MATCHINGS[query].match(events, []).missing == 1
    assert MATCHINGS[query].match(events[1:], []).missing == 0


def test_an_event_is_in_the_first_row_that_counts_it() -> None:
    events = [bid(0), bid(10), bid(20), bid(3, auction=2)]
    output = [counted(11, 1), counted(30, 3), counted(40, 3), counted(50, 1, auction=2)]
    found = PerAuctionAndDay().match(events, output)
    assert found.latencies == [(BASE, 11), (BASE + 10, 20), (BASE + 20, 10), (BASE + 3, 47)]
    assert (found.missing, found.repeated) == (0, 0)


def test_an_event_of_another_day_or_of_no_row_is_missing() -> None:
    found = PerAuctionAndDay().match([bid(0), bid(1)], [counted(5, 2, day="15"), counted(6, 1)])
    assert found == Matched([(BASE, 6)], missing=1, repeated=0)


def test_events_are_moved_to_when_they_are_due() -> None:
    lines = [
        json.dumps(
            {
                "n": 0,
                "event_type": 1,
                "person": None,
                "auction": {
                    "id": 7,
                    "dateTime": "2015-07-15 00:00:00.000",
                    "expires": "2015-07-15 00:00:02.500",
                },
            }
        ),
        json.dumps({"n": 1, "event_type": 2, "bid": {"dateTime": "2015-07-15 00:00:00.010"}}),
    ]
    first, second = paced(lines, BASE)
    assert (first.due_ms, second.due_ms) == (BASE, BASE + 10)
    assert json.loads(first.line)["auction"]["expires"] == "2026-07-14 03:33:22.500"
    assert json.loads(second.line)["bid"]["dateTime"] == "2026-07-14 03:33:20.010"
    assert (first.kind, second.kind) == ("auction", "bid")


def test_a_client_that_has_too_many_records_is_waited_for() -> None:
    class FullTwice:
        polled: list[float] = []  # noqa: RUF012
        given: list[bytes] = []  # noqa: RUF012

        def poll(self, wait_s: float) -> None:
            self.polled.append(wait_s)

        def produce(self, topic: str, line: bytes, partition: int, on_delivery: Any) -> None:
            if len(self.polled) < 3:
                raise BufferError("Local: Queue full")
            self.given.append(line)

    client = FullTwice()
    pacing._give(client, "t", b"line", 0, Undelivered())  # type: ignore[arg-type]
    assert client.given == [b"line"]
    assert client.polled[0] == 0 < client.polled[1]


SENT = [bid(0), bid(9)]


def of(latencies: list[int], missing: int = 0, lag: float = 1.0) -> str:
    matched = Matched([(BASE + n, x) for n, x in enumerate(latencies)], missing, 0)
    return figures("q0", "micro-batch", 100, matched, [lag] * 10, SENT, BASE).invalid


def test_percentiles_are_of_the_events_after_the_warm_up() -> None:
    matched = Matched([(BASE - 1, 9_000), *((BASE + n, n) for n in range(1, 1001))], 0, 0)
    found = figures("q0", "micro-batch", 100, matched, [1.0] * 10, SENT, BASE)
    assert found.percentiles == (500, 900, 990, 999)
    assert (found.longest, found.events) == (1000, 1000)
    assert (found.sent, found.first_ms, found.last_ms) == (2, BASE, BASE + 9)


def test_for_comparisons_the_events_of_a_millisecond_are_spread_over_it() -> None:
    """Else a median of 0 or 1 ms could not change by a tenth."""
    matched = Matched([(BASE, 0)] * 60 + [(BASE, 1)] * 40, 0, 0)
    found = figures("q0", "real-time", 100, matched, [1.0] * 10, SENT, BASE)
    assert found.percentiles[0] == 0
    assert (round(found.p50, 3), round(found.p99, 3)) == (0.833, 1.975)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (of([5] * 9, missing=3), "3 events are in no output row"),
        (of([5] * 9, lag=6.2), "the producer was 6.2 ms late (p99), more than 5 ms"),
        (of([5, -2, 5, 5]), "an output row is 2 ms older than its event: clocks differ"),
        (of([]), "no event has a latency"),
        (of([5] * 9), ""),
    ],
)
def test_what_cannot_be_believed_says_why(given: str, says: str) -> None:
    assert given == says


def keeps_up(latency_at: Callable[[float], float], seconds: int = 20) -> bool:
    """Of ten events per second; `latency_at`: milliseconds, by the second in which one is due."""
    dues = [n / 10 for n in range(seconds * 10)]
    matched = Matched([(BASE + int(x * 1000), int(latency_at(x))) for x in dues], 0, 0)
    return figures("q0", "micro-batch", 10, matched, [1.0] * 10, SENT, BASE).keeps_up


def test_a_latency_that_grows_falls_behind() -> None:
    assert keeps_up(lambda _: 200)
    assert not keeps_up(lambda second: 200 + 500 * second)


def test_a_latency_that_is_long_from_the_start_and_grows_falls_behind() -> None:
    """It need not double: 17 s at the start, 21 s eight seconds later."""
    assert not keeps_up(lambda second: 17_000 + 500 * second, seconds=8)


def test_waiting_for_a_batch_and_catching_up_is_no_falling_behind() -> None:
    assert keeps_up(lambda second: 3_000 + 1_000 * (3 - second % 3)), "batches of three seconds"
    assert keeps_up(lambda second: 20_000 - 500 * second)
    assert keeps_up(lambda second: 150 if second < 1 else 700, seconds=2), "a pause in a short run"


def test_a_query_that_would_select_nothing_is_refused_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    line = {"n": 0, "event_type": 2, "bid": {"auction": 7, "dateTime": "2015-07-15 00:00:00.000"}}
    (tmp_path / "0.json").write_text(json.dumps(line))
    measuring = Measuring(KafkaCluster("127.0.0.1:1"), print)
    with pytest.raises(NexmarkError, match="q2 selects none of the 1 events that count; give it"):
        measuring.measure(Pace("q2", "micro-batch", 100, 0, 2), tmp_path, ("", ""), tmp_path, int)
