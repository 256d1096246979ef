"""Match output records to events: an event's latency ends with the first row that contains it.

The newest `dateTime` of a row is not enough: it would hide the events that waited for a batch.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nexmark.latency.pacing import PacedEvent


@dataclass(frozen=True)
class OutputRecord:
    """A record of the output topic.

    `appended_ms` is the time when the broker appended it, in milliseconds since 1970.
    """

    appended_ms: int
    key: str | None
    value: dict[str, Any]


@dataclass(frozen=True)
class Matched:
    """The events that output rows contain, and how many events and rows do not match.

    Attributes:
        latencies: The due time (ms since 1970) and the latency (ms) of each event in a row.
        missing: How many events are in no row.
        repeated: How many rows were written again.
    """

    latencies: list[tuple[int, int]]
    missing: int
    repeated: int


@dataclass(frozen=True)
class PerRow:
    """Queries that write a row for each bid that they select, with its `dateTime`."""

    selects: Callable[[Mapping[str, Any]], bool] = lambda _: True

    def match(self, events: Sequence[PacedEvent], output: Sequence[OutputRecord]) -> Matched:
        """Find each bid in the output, which is in the order of the topic."""
        bids = (event for event in events if event.kind == "bid" and self.selects(event.entity))
        wanted = Counter(event.due_ms for event in bids)
        latencies: list[tuple[int, int]] = []
        seen: Counter[int] = Counter()
        repeated = 0
        for record in output:
            due = int(record.key or 0)
            seen[due] += 1
            if seen[due] > wanted[due]:
                repeated += 1
            else:
                latencies.append((due, record.appended_ms - due))
        return Matched(latencies, wanted.total() - len(latencies), repeated)


class PerAuctionAndDay:
    """Queries that count bids by auction and day: bid n is in the first row that counts n bids."""

    def match(self, events: Sequence[PacedEvent], output: Sequence[OutputRecord]) -> Matched:
        """Find each bid in the output; the bids of an auction count in the order of due times."""
        waiting: dict[tuple[int, str], list[int]] = defaultdict(list)
        for event in events:
            if event.kind == "bid":
                waiting[event.entity["auction"], event.entity["dateTime"][:10]].append(event.due_ms)
        counted: Counter[tuple[int, str]] = Counter()
        latencies = []
        for record in output:
            key, count = (record.value["auction"], record.value["day"]), record.value["total_bids"]
            for due in waiting[key][counted[key] : count]:
                latencies.append((due, record.appended_ms - due))
            counted[key] = max(counted[key], count)
        total = sum(map(len, waiting.values()))
        return Matched(latencies, total - len(latencies), 0)


_NAMED = ("apple", "google", "facebook", "baidu")
_CHANNEL = re.compile("(&|^)channel_id=[^&]+")


def _has_channel(bid: Mapping[str, Any]) -> bool:
    return bid["channel"].lower() in _NAMED or _CHANNEL.search(bid["url"]) is not None


MATCHINGS: dict[str, PerRow | PerAuctionAndDay] = {
    "q0": PerRow(),
    "q1": PerRow(),
    "q2": PerRow(lambda bid: bid["auction"] % 123 == 0),
    "q10": PerRow(),
    "q13": PerRow(),
    "q14": PerRow(lambda bid: 1_000_000_000 < 908 * bid["price"] < 50_000_000_000),
    "q17": PerAuctionAndDay(),
    "q21": PerRow(_has_channel),
    "q22": PerRow(),
}
"""The queries whose latency can be measured."""
