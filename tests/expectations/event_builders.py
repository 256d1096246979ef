"""Small builders of Nexmark events, so that a test states only the fields that matter.

Times are seconds since 2015-07-15 00:00:00.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2015, 7, 15)
RECORDED = Path(__file__).parents[1] / "data" / "recorded_nexmark_10k.jsonl.gz"
"""A topic recorded from nexmark-flink's generator: 10 000 events, 100 per second."""

HOUR = 3600
DAY = 24 * HOUR

Event = dict[str, Any]


def when(seconds: float) -> datetime:
    return START + timedelta(milliseconds=round(seconds * 1000))


def _text(seconds: float) -> str:
    return when(seconds).isoformat(sep=" ", timespec="milliseconds")


def person(id: int, at: float = 0, **fields: Any) -> Event:
    values = {
        "id": id,
        "name": f"Name {id}",
        "emailAddress": f"{id}@example.com",
        "creditCard": "0000 1111 2222 3333",
        "city": "Bend",
        "state": "OR",
        "dateTime": _text(at),
        "extra": "p",
    }
    return {"event_type": 0, "person": values | fields}


def auction(id: int, at: float = 0, expires: float = 60, **fields: Any) -> Event:
    values = {
        "id": id,
        "itemName": f"item {id}",
        "description": "a thing",
        "initialBid": 1,
        "reserve": 2,
        "dateTime": _text(at),
        "expires": _text(expires),
        "seller": 1000,
        "category": 10,
        "extra": "a",
    }
    return {"event_type": 1, "auction": values | fields}


def bid(
    auction: int = 1000, bidder: int = 1001, price: int = 100, at: float = 1, **fields: Any
) -> Event:
    values = {
        "auction": auction,
        "bidder": bidder,
        "price": price,
        "channel": "Google",
        "url": "https://www.nexmark.com/aa/bb/cc/item.htm?query=1",
        "dateTime": _text(at),
        "extra": "b",
    }
    return {"event_type": 2, "bid": values | fields}


def write_events(directory: Path, events: list[Event], *, numbered: bool = True) -> Path:
    """Write the events as one recorded file, numbered in order; return the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    lines = (
        json.dumps(({"n": n} if numbered else {}) | event) + "\n" for n, event in enumerate(events)
    )
    (directory / "events.json").write_text("".join(lines), encoding="utf-8")
    return directory


def edge_events() -> list[Event]:
    """Return what random events hardly ever hold: ties, boundary instants, gaps of exactly 10 s.

    Among them: a seller who registers after the auction, an auction without a bid, bids at an
    auction's start, expiry and just outside, at a window's end with that window's highest price,
    prices on the bounds of the ranks, every kind of hour, and two days.
    """
    events = [
        person(1000, at=0, state="OR"),
        person(1001, at=9.999, state="CA"),
        person(1002, at=10, state="WA"),
        auction(1000, at=1, expires=10, seller=1000),
        auction(1001, at=5, expires=15, seller=1001, category=10),
        auction(1002, at=10, expires=20, seller=1001, category=11),
        auction(1003, at=12, expires=22, seller=1003, category=10),
        auction(1004, at=12, expires=22, seller=1000, category=12),  # nobody bids on it
        auction(1005, at=19, expires=39, seller=1002, category=10),
        auction(1107, at=12, expires=22, seller=1001, category=11),
        person(1003, at=13, state="ID"),
        # Auction 1000: in time only from 1 to 10 s, both included.
        bid(1000, 1001, price=9_000, at=0.999),
        bid(1000, 1002, price=800, at=1),
        bid(1000, 1001, price=600, at=5),
        bid(1000, 1002, price=700, at=10),
        bid(1000, 1001, price=8_000, at=10.001),
        # Auction 1001: equal prices at different and at equal times.
        bid(1001, 1002, price=10_000, at=6, extra="first"),
        bid(1001, 1003, price=10_000, at=6, extra="second"),
        bid(1001, 1002, price=10_000, at=7, extra="third"),
        bid(1001, 1002, price=9_999, at=7, extra="fourth"),
        # Auctions 1002 and 1003: the highest bid exactly at the start and at the expiry.
        bid(1002, 1003, price=1_000_000, at=10),
        bid(1002, 1003, price=999_999, at=20),
        bid(1003, 1003, price=700, at=12),
        bid(1003, 1003, price=1_000_000, at=22),
        # Window [10, 20) has its highest price again at 20 s sharp, and window [20, 30) as well.
        bid(1002, 1001, price=1_000_000, at=20),
        # Bidder 1050: gaps of exactly 10 s, then of 10.001 s.
        bid(1005, 1050, price=300, at=20),
        bid(1005, 1050, price=301, at=30),
        bid(1005, 1050, price=302, at=40.001),
        # Twelve bids on one auction, the tenth and eleventh highest equal.
        *(bid(1107, 1060 + i, price=5_000 - 10 * i, at=15 + i / 100) for i in range(9)),
        *(bid(1107, 1070 + i, price=4_000, at=15.5, channel=f"channel-{i}") for i in range(3)),
        bid(1107, 1080, price=4_000_000, at=50),
        # Known channels in other letters, an unknown one with and without an id.
        bid(1006, 1001, channel="APPLE", at=60),
        bid(1006, 1001, channel="apple", at=61),
        bid(1006, 1001, channel="channel-9", url="https://h/a/b/c/i?query=1&channel_id=77", at=62),
        bid(1006, 1001, channel="channel-8", url="https://h/a/b/c/i?query=1", at=63),
    ]
    # Every kind of hour, at its first and last instant, at a price that q14 keeps.
    for hour in (6, 7, 8, 18, 19, 20, 23):
        for second in (hour * HOUR, (hour + 1) * HOUR - 0.001):
            events.append(bid(1007, 1090, price=2_000_000, at=second, extra="cCdc"))
    events += [
        bid(1007, 1090, price=1_101_321, at=8 * HOUR),  # the last price that q14 drops
        bid(1007, 1090, price=1_101_322, at=8 * HOUR + 1),  # and the first that it keeps
        bid(1007, 1091, price=77, at=DAY),  # midnight: the next day
        bid(1008, 1091, price=78, at=DAY),
    ]
    return events
